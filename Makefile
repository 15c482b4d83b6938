PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

help:  ## Show these commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

demo: .venv/bench  ## Compare the paper's losses on yeast; writes runs/yeast/report.html
	$(BIN)/scoreloss bench yeast

test: .venv/dev  ## Run all tests
	$(BIN)/pytest -q -n auto --dist worksteal

check: .venv/dev  ## What to run before every commit: lint, format, types, fast tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -q -n auto --dist worksteal -m "not slow" --hypothesis-profile=fast

docs: .venv/docs  ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	@touch $@

.venv/bench: .venv/pip pyproject.toml constraints.txt
	$(INSTALL) --editable '.[bench]'
	@touch $@

.venv/dev: .venv/pip pyproject.toml constraints.txt
	$(INSTALL) --editable '.[all]' --group dev
	@touch $@

.venv/docs: .venv/pip pyproject.toml constraints.txt
	$(INSTALL) --group docs
	@touch $@

.PHONY: help demo test check docs
