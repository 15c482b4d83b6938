"""The report as files: what it says, what it keeps, and that it can be made again without training."""

import dataclasses
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from pyarrow.parquet import read_table

import scoreloss as sl
from scoreloss.bench import decide, report, results
from scoreloss.bench.contenders import Config, contenders, given
from scoreloss.bench.packed import unpack
from scoreloss.bench.plan import Cell, Settings
from scoreloss.bench.report import figures, names
from scoreloss.bench.report.published import published
from scoreloss.bench.report.text import headline_across
from scoreloss.bench.run import Bench, run
from scoreloss.bench.stats import Gap, Row
from scoreloss.bench.store import REPORTS, Store
from scoreloss.cli import main
from scoreloss.data import load
from tests.report_cases import made_up

MARKUP = ("<b>bold</b>", "<script>alert(1)</script>", '"&amp;', "a|b_c*")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A folder in which a small benchmark was run."""
    folder = tmp_path_factory.mktemp("bench")
    options = ["--epochs", "2", "--seeds", "2", "--losses", "bce,sigmoid_f1,two_way", "--head", "linear"]
    assert main(["bench", "yeast", "--out", str(folder), *options]) == 0
    return folder


@pytest.fixture
def folder(bench, tmp_path):
    """A copy of it to change."""
    return shutil.copytree(bench, tmp_path / "bench")


class Text(HTMLParser):
    """The words of a page, and its tables as lists of lists."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.tags, self.words = [], [], []
        self._cell = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data):
        self.words.append(data)
        if self._cell:
            self.tables[-1][-1][-1] += data


def test_the_report_is_made_again_byte_for_byte_and_nothing_is_trained(folder, capsys):
    before = {name: (folder / name).read_bytes() for name in REPORTS}
    cells = {path: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}
    for name in REPORTS:
        (folder / name).unlink()
    assert main(["report", str(folder)]) == 0
    assert {name: (folder / name).read_bytes() for name in REPORTS} == before
    assert {path: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()} == cells
    assert f"Report: {folder / 'report.html'}" in capsys.readouterr().out


def test_a_report_of_a_benchmark_that_is_not_done_says_so(folder, capsys):
    first, second = sorted((folder / "cells").iterdir())[:2]
    first.unlink()
    second.write_text("{")
    assert main(["report", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "yeast: 2 runs of the plan are not there yet" in out
    assert err.startswith(f"damaged, left out: {second}")
    assert "2 runs of the plan are not there yet" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: shutil.rmtree(f), "is no folder of a benchmark: there is no bench.json"),
        (lambda f: (f / "bench.json").write_text("{"), "bench.json is damaged"),
        (lambda f: (f / "bench.json").write_text("[]"), "bench.json is damaged"),
        (lambda f: (f / "bench.json").write_text("{}"), "records cannot be read"),
        (lambda f: (f / "splits.json").write_text("{}"), "splits.json is of other data"),
        (lambda f: [path.unlink() for path in (f / "cells").iterdir()], "holds no finished runs"),
    ],
)
def test_a_folder_that_cannot_be_reported_is_one_line(folder, capsys, change, message):
    change(folder)
    assert main(["report", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scoreloss: ")
    assert err.count("\n") == 1
    assert message in err


def test_several_folders_need_a_place_and_different_datasets(folder, capsys):
    assert main(["report", str(folder), str(folder)]) == 2
    assert "2 folders are given: --out says where" in capsys.readouterr().err
    assert main(["report", str(folder), str(folder), "--out", str(folder / "x")]) == 2
    assert "2 folders hold yeast" in capsys.readouterr().err


def test_a_cell_keeps_the_label_sets_that_its_metrics_are_of(bench):
    found = results.read(Store(bench))
    for cell, result in found.found.items():
        y = found.data.targets[found.splits[cell.seed].test]
        for judged in result["rules"].values():
            metrics = sl.evaluate(y, unpack(judged["predicted"], y.shape).astype(float))
            for name in results.RESAMPLED:
                assert judged["test"][name] == pytest.approx(metrics[name], abs=1e-12)
    size = max(path.stat().st_size for path in (bench / "cells").iterdir())
    assert size < 40_000


def test_threshold_curves_are_evaluate_at_each_threshold(rng):
    y = rng.random((40, 5)) < 0.4
    y[:, 2] = False
    scores = rng.random((40, 5)).round(2)
    scores[:3] = [[0.0], [0.5], [1.0]]
    curves = decide.threshold_curves(y, scores)
    for k, threshold in enumerate(decide.GRID):
        truth = sl.evaluate(y, scores, threshold)
        for average in ("micro", "macro", "weighted"):
            assert curves[average][k] == pytest.approx(truth[f"{average}_f1"], abs=1e-5), threshold
    assert 0.5 in decide.GRID
    assert 0.05 in decide.GRID
    assert np.all(np.diff(decide.GRID) > 0)


def test_the_leaderboard_shows_every_loss_floor_and_rule(bench):
    found = results.read(Store(bench))
    page = Text((bench / "report.html").read_text())
    boards = page.tables[: len(names.COLUMNS)]
    for metric, board in zip(names.COLUMNS, boards, strict=True):
        assert board[0] == ["loss", *names.RULE_NAMES.values()]
        lines = {line[0]: line[1:] for line in board[1:]}
        assert set(lines) == {"bce", "sigmoid_f1", "two_way", *decide.FLOORS}
        assert lines["two_way"][:2] == ["–", "–"]
        for row in found.rows:
            shown = lines[row.name][list(decide.RULES).index(row.rule)]
            assert f"{100 * row.mean[metric]:.1f}±{100 * row.std[metric]:.1f}" in shown
            assert ("≈" in shown) == row.within_noise(metric)
        best = max(row.mean[metric] for row in found.rows)
        assert sum("★" in cell for line in lines.values() for cell in line) == 1
        assert any(f"★{100 * best:.1f}" in cell for line in lines.values() for cell in line)
    assert report.headline(found.rows) in "".join(page.words)


def row(name, rule, value, *, floor=False):
    return Row(name, rule, (0,), {metric: np.array([value]) for metric in names.COLUMNS}, floor)


def test_the_sentence_says_what_the_table_says():
    floor = row("all positive", "global", 0.3, floor=True)
    own, tuned = row("a", "fixed_0.5", 0.6), row("b", "global", 0.7)
    said = report.headline([own, tuned, floor])
    assert (
        said
        == "With no threshold tuned, a reaches a weighted F1 of 60.0; the best with another rule is b under Global, 70.0."
    )
    near = dataclasses.replace(own, gaps={"weighted_f1": Gap(0.1, -0.01, 0.2)})
    assert "60.0, within noise of the best of all: b under Global, 70.0." in report.headline(
        [near, tuned, floor]
    )
    assert "80.0, the best of all; the best with" in report.headline(
        [row("a", "fixed_0.5", 0.8), tuned, floor]
    )
    assert report.headline([tuned, floor]) == "The best weighted F1 is that of b under Global, 70.0."
    high = row("all positive", "global", 0.9, floor=True)
    assert report.headline([own, tuned, high]).startswith(
        "No loss beats a floor: all positive has a weighted F1 of 90.0"
    )


def test_names_that_are_markup_stay_words():
    found = made_up("<i>data</i>", labels=MARKUP)
    page = Text(report.html([found]))
    assert {tag for tag, _ in page.tags} & {"i", "alert"} == set()
    assert "scoreloss bench <i>data</i>" in page.words
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert len(scripts) == 3
    assert r"\<i\>data\</i\>" in report.markdown([found])
    tex = report.tex([made_up("a_b & c%")])
    assert r"a\_b \& c\%" in tex


def test_the_page_is_small_enough_to_mail_and_forbids_itself_the_network():
    page = report.html([made_up()])
    assert len(page) < 2_100_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'")
    shown = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", shown)


def test_markdown_and_latex_hold_the_figures(bench):
    found = results.read(Store(bench))
    best = names.best(found.rows)
    mean = f"{100 * best.mean['weighted_f1']:.1f}"
    markdown = (bench / "report.md").read_text()
    assert f"**{mean}**" in markdown
    widths = {line.count("|") for line in markdown.splitlines() if line.startswith("|")}
    assert widths == {len(names.RULE_NAMES) + 2, len(names.COLUMNS) + 2}
    tex = (bench / "table.tex").read_text()
    assert f"\\mathbf{{{mean}}}^{{\\ast}}" in tex
    assert [tex.count(f"\\{rule}") for rule in ("toprule", "midrule", "bottomrule")] == [1, 2, 1]
    lines = [line for line in tex.splitlines() if line.endswith("\\\\")]
    assert {line.count("&") for line in lines} == {len(decide.RULES)}


def test_parquet_holds_every_cell_under_every_rule(bench):
    table = read_table(bench / "cells.parquet").to_pylist()
    cells = [json.loads(path.read_text()) for path in (bench / "cells").iterdir()]
    assert len(table) == sum(len(cell["result"]["rules"]) for cell in cells)
    for cell in cells:
        for rule, judged in cell["result"]["rules"].items():
            (line,) = (
                line
                for line in table
                if (line["loss"], line["seed"], line["rule"])
                == (cell["cell"]["loss"], cell["cell"]["seed"], rule)
            )
            assert line["weighted_f1"] == judged["test"]["weighted_f1"]
            assert line["learning_rate"] == cell["cell"]["configs"][judged["config"]]["learning_rate"]
            assert line["epoch"] == judged["epoch"]


def test_the_papers_numbers_stand_under_the_names_they_have_here():
    """The first row of the paper's main table for moviePosters: its macro F1 of bce, 12.94, is micro F1 here."""
    posters = published("movie_posters")
    assert posters.columns["paper, at 0.05"]["bce"] == {
        "weighted_f1": 13.79,
        "macro_f1": 9.47,
        "micro_f1": 12.94,
        "macro_precision": 5.51,
        "map": 5.78,
    }
    assert posters.minutes["sigmoid_f1"] == 52
    assert "asymmetric" in posters.columns["paper, at 0.05"]
    assert list(published("arxiv").columns) == ["paper, at 0.05", "paper, threshold averaging"]
    assert published("cancer_hallmarks").columns["paper, at 0.05, one run"]["focal"]["micro_f1"] == 19.0
    assert published("yeast") is None
    page = Text(report.html([made_up("movie_posters")]))
    board = page.tables[0]
    assert board[0][-1] == "paper, at 0.05"
    assert {line[0]: line[-1] for line in board[1:]} == {
        "bce": "13.8",
        "focal": "0.0",
        "sigmoid_f1": "14.8",
        **dict.fromkeys(decide.FLOORS, "–"),
    }
    assert "58" in [line[-1] for line in page.tables[-1]]


def test_slopes_and_offsets_are_drawn_where_a_loss_was_tried_with_several_of_both():
    assert figures.payload(made_up())["heat"] is None
    grid = given(
        {"loss": "sigmoid_f1", "slope": [0.5, 1.0], "offset": [0.0, 1.0, 2.0], "learning_rate": [0.1, 0.2]},
        1,
        Config(),
    )
    cells = [Cell("made up", "h", grid, s, Settings()) for s in range(2)]
    found = made_up(losses=("sigmoid_f1",), cells=cells)
    drawn = figures.heat_map(found)["sigmoid_f1"]
    assert (drawn["slopes"], drawn["offsets"]) == ([0.5, 1.0], [0.0, 1.0, 2.0])
    for row, offset in zip(drawn["values"], drawn["offsets"], strict=True):
        for value, slope in zip(row, drawn["slopes"], strict=True):
            at = [
                k
                for k, config in enumerate(grid.configs)
                if dict(config.options) == {"slope": slope, "offset": offset}
            ]
            best = [max(found.found[cell]["tried"]["fixed_0.5"][k] for k in at) for cell in cells]
            assert len(at) == 2
            assert value == pytest.approx(100 * np.mean(best), abs=0.006)


def test_seeds_that_stopped_early_share_a_learning_curve():
    found = made_up(losses=("bce",))
    first, second = (result["curve"] for result in found.found.values())
    for rule in decide.RULES_ON_SCORES:
        first[rule], second[rule] = [0.2, None, 0.5], [0.4, 0.3]
    second["epoch"] = [1, 2]
    drawn = figures.payload(found)["curves"]
    assert drawn["epoch"] == [1, 2, 3]
    assert drawn["rules"]["global"]["bce"] == [300, 300, 500]


def test_what_was_chosen_is_said_where_there_was_a_choice(bench, tmp_path, capsys):
    assert "What was chosen" not in (bench / "report.html").read_text()
    options = ["--epochs", "2", "--seeds", "2", "--losses", "bce,recommended", "--head", "linear"]
    assert main(["bench", "yeast", "--out", str(tmp_path), "--budget", "5", *options]) == 0
    found = results.read(Store(tmp_path))
    said = names.chosen(found, "fixed_0.5")
    for loss in ("bce", "recommended"):
        for cell, result in found.found.items():
            taken = cell.contender.configs[result["rules"]["fixed_0.5"]["config"]]
            tried = result["tried"]["fixed_0.5"]
            assert len(tried) == 5
            assert tried[cell.contender.configs.index(taken)] == max(tried)
            if cell.name == loss:
                assert f"learning rate {taken.learning_rate:g}" in said[loss]
    page = (tmp_path / "report.html").read_text()
    assert "What was chosen" in page
    assert "Each loss was trained in 5 ways" in page
    assert said["bce"] in (tmp_path / "report.md").read_text()


@pytest.mark.slow
def test_ranks_are_shown_where_there_are_several_datasets_and_three_losses():
    several = [made_up(f"data {k}", seed=k) for k in range(4)]
    page = report.html(several)
    assert "Ranks across datasets" in page
    assert page.count("critical difference") == len(decide.RULES)
    assert "Ranks across datasets" not in report.html(several[:1])
    two = [made_up(f"data {k}", losses=("bce", "focal"), seed=k) for k in range(2)]
    assert "Ranks across datasets" not in report.html(two)


def test_the_sentence_on_several_datasets_counts_where_the_best_is_reached():
    def of(*rows):
        return dataclasses.replace(made_up(losses=("bce",), seeds=1), rows=list(rows))

    top, own = row("b", "global", 0.7), row("a", "fixed_0.5", 0.6)
    near = dataclasses.replace(own, gaps={"weighted_f1": Gap(0.1, -0.01, 0.2)})
    assert (
        "a is best or within noise of the best of all losses and rules on 2 of 3 datasets"
        in headline_across([of(top, own), of(top, near), of(row("a", "fixed_0.5", 0.9), top)])
    )
    assert "no loss is within noise of the best on any of 2" in headline_across([of(top, own)] * 2)
    also = dataclasses.replace(near, name="c")
    assert "a and c are each best" in headline_across([of(top, near, also)] * 2)


def test_a_benchmark_that_is_stopped_leaves_the_report_of_the_one_before(tmp_path, capsys):
    def stopped(line, *, counting=False):
        if counting:
            raise KeyboardInterrupt

    def asked(epochs):
        return Bench(load("yeast"), contenders(["bce"]), 1, Settings(head="linear", epochs=epochs))

    run(asked(2), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(asked(3), tmp_path, say=stopped)
    assert main(["report", str(tmp_path)]) == 0
    assert "bce" in capsys.readouterr().out
