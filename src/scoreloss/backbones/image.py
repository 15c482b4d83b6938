"""Images through a frozen model of transformers; files are read and decoded in threads while the model works.

Each image goes upright and as RGB through the model's own preprocessing. Needs no torchvision.
"""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones import weights
from scoreloss.backbones.cache import Digests, Indices, digest_of
from scoreloss.backbones.encoder import Batches
from scoreloss.checks import InputError, reason_of

VERSION = 1
"""Rises when the same model would give other features."""

BATCH = 32
THREADS = min(8, os.cpu_count() or 1)
ALIASES = {"mobilenet_v2": "google/mobilenet_v2_1.0_224"}

LARGEST = 1 << 26
"""Pixels. A larger JPEG is decoded at a half, a quarter or an eighth of its width and height."""


class Model(NamedTuple):
    """What an image goes through: to numbers, in a thread; and a batch of them to features."""

    numbers: Callable[[Any], NDArray[np.float32]]
    forward: Callable[[Any], Any]


class ImageEncoder:
    """An image model over some files."""

    def __init__(
        self,
        recipe: Mapping[str, Any],
        load: Callable[[], Model],
        inputs: Sequence[Path],
        *,
        batch_size: int | None = None,
    ) -> None:
        try:
            import PIL.Image  # noqa: F401
        except ImportError:
            raise ImportError("image backbones need Pillow: pip install 'scoreloss[image]'") from None
        self.recipe = recipe
        self.problems: dict[int, str] = {}
        self._load = cache(load)
        self._paths = [Path(path) for path in inputs]
        self._batch_size = batch_size or BATCH

    def digests(self) -> Digests:
        """Of the files' bytes; of a file that cannot be read, its number."""
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(_digest, self._paths))
        for row, digest in enumerate(found):
            if isinstance(digest, str):
                self.problems[row] = digest
        content = [d if isinstance(d, bytes) else row.to_bytes(16, "little") for row, d in enumerate(found)]
        return np.frombuffer(b"".join(content), np.uint64).reshape(-1, 2)

    def sizes(self) -> NDArray[np.int64]:
        """All alike: their order is kept."""
        return np.ones(len(self._paths), np.int64)

    def encode(self, rows: Indices) -> Batches:
        """A batch at a time; the next two are decoded meanwhile."""
        import torch

        model = self._load()
        readable = (int(row) for row in rows if int(row) not in self.problems)
        batch: list[tuple[int, NDArray[np.float32]]] = []
        for row, numbers in self._decoded(readable, model.numbers):
            if isinstance(numbers, str):
                self.problems[row] = numbers
                continue
            batch.append((row, numbers))
            if len(batch) == self._batch_size:
                yield _forward(model, batch, torch)
                batch = []
        if batch:
            yield _forward(model, batch, torch)

    def over(self, inputs: Sequence[Path]) -> Self:
        """The same model over other files."""
        other = copy.copy(self)
        other._paths, other.problems = [Path(path) for path in inputs], {}
        return other

    def _decoded(
        self, rows: Iterator[int], numbers: Callable[[Any], NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32] | str]]:
        """Each row's numbers, or why there are none, in the order of the rows."""
        ahead: deque[tuple[int, Future[NDArray[np.float32] | str]]] = deque()
        pool = ThreadPoolExecutor(THREADS)
        try:
            for row in rows:
                ahead.append((row, pool.submit(_read, self._paths[row], numbers)))
                if len(ahead) > 2 * self._batch_size:
                    first, future = ahead.popleft()
                    yield first, future.result()
            for first, future in ahead:
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def transformers_model(name: str, inputs: Sequence[Path], *, batch_size: int | None = None) -> ImageEncoder:
    """The encoder of a model that ``transformers.AutoModel`` reads."""
    folder = weights.find(name, [ALIASES.get(name, name)])
    if not (folder / "preprocessor_config.json").is_file():
        raise InputError(
            f"backbone {folder} holds no preprocessor_config.json: it says how images are prepared"
        )
    recipe = {"backbone": "image", "weights": weights.checksum(folder), "version": VERSION}
    return ImageEncoder(recipe, lambda: _loaded(name, folder), inputs, batch_size=batch_size)


def upright(path: Path) -> Any:
    """An image as RGB, turned as its camera was held."""
    from PIL import Image, ImageOps
    from PIL.JpegImagePlugin import JpegImageFile

    try:
        with path.open("rb") as file:
            is_jpeg = file.read(3) == b"\xff\xd8\xff"
        with JpegImageFile(path) if is_jpeg else Image.open(path) as image:
            shrink = next((s for s in (1, 2, 4) if image.width * image.height <= LARGEST * s * s), 8)
            if shrink > 1:
                image.draft("RGB", (image.width // shrink, image.height // shrink))
            ImageOps.exif_transpose(image, in_place=True)
            return image.convert("RGB")
    except Image.DecompressionBombError:
        raise ValueError("too many pixels to decode; as a JPEG it could be read at a smaller scale") from None


def forward_on(device: Any, features: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A model's forward on a batch in the memory order that convolutions like best."""
    import torch

    def forward(pixels: Any) -> Any:
        with torch.inference_mode():
            x = pixels.to(device).contiguous(memory_format=torch.channels_last)
            return features(x).float().cpu().numpy()

    return forward


def _digest(path: Path) -> bytes | str:
    try:
        content = path.read_bytes()
    except OSError as problem:
        return problem.strerror or str(problem)
    return digest_of(content) if content else "the file is empty"


def _read(path: Path, numbers: Callable[[Any], NDArray[np.float32]]) -> NDArray[np.float32] | str:
    """What the model takes, or why it cannot be had: a damaged file fails in as many ways as there are decoders."""
    try:
        return numbers(upright(path))
    except Exception as problem:
        text = reason_of(problem)
        return "not an image" if text.startswith("cannot identify image") else text


def _forward(
    model: Model, batch: Sequence[tuple[int, NDArray[np.float32]]], torch: Any
) -> tuple[Indices, NDArray[np.float32]]:
    rows, numbers = zip(*batch, strict=True)
    return np.array(rows, np.intp), model.forward(torch.from_numpy(np.stack(numbers)))


def _loaded(name: str, folder: Path) -> Model:
    try:
        import torch
        import transformers
    except ImportError:
        raise ImportError(
            "image backbones need transformers and torch: pip install 'scoreloss[image,torch]'"
        ) from None
    from transformers.utils import logging

    by_pillow: dict[str, Any] = (
        {"backend": "pil"} if int(transformers.__version__.split(".")[0]) >= 5 else {"use_fast": False}
    )
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(folder, **by_pillow)
        network, report = transformers.AutoModel.from_pretrained(
            folder, use_safetensors=True, output_loading_info=True
        )
    except Exception as problem:  # a folder may be wrong in many ways
        raise InputError(
            f"backbone {name} cannot be loaded as an image model: {reason_of(problem)}"
        ) from problem
    finally:
        if bars:
            logging.enable_progress_bar()
    missing = set(report["missing_keys"])
    random_pooler = {key for key in missing if key.startswith("pooler.") or ".pooler." in key}
    if missing - random_pooler:
        raise InputError(
            f"backbone {name} lacks {len(missing)} of its weights, such as {min(missing - random_pooler)}"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = network.eval().to(device).to(memory_format=torch.channels_last)
    pooled = _features_of(network, pooler=not random_pooler)

    def numbers(image: Any) -> NDArray[np.float32]:
        return np.asarray(processor(images=image, return_tensors="np")["pixel_values"][0], np.float32)

    return Model(numbers, forward_on(device, pooled))


def _features_of(network: Any, *, pooler: bool) -> Callable[[Any], Any]:
    """What the model itself calls an image's features; else the mean of its last layer over places."""

    def features(pixels: Any) -> Any:
        if hasattr(network, "get_image_features"):
            output = network.get_image_features(pixel_values=pixels)
            return getattr(output, "pooler_output", output)
        output = network(pixel_values=pixels)
        if pooler and getattr(output, "pooler_output", None) is not None:
            return output.pooler_output.flatten(1)
        last = output.last_hidden_state
        return last.mean(dim=1) if last.ndim == 3 else last.flatten(2).mean(dim=2)

    return features
