"""Images through a frozen model of timm, ``timm:NAME`` or ``timm:FOLDER``: TResNet-M and hundreds more.

timm prepares images with torchvision, which it brings along.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones import weights
from scoreloss.backbones.image import ImageEncoder, Model, forward_on
from scoreloss.checks import InputError, reason_of

VERSION = 1
"""Rises when the same model would give other features."""


def timm_model(name: str, inputs: Sequence[Path], *, batch_size: int | None = None) -> ImageEncoder:
    """The encoder of a model by its name on the hub (``tresnet_m.miil_in21k``), or of a folder saved by timm."""
    folder = weights.find(name, [name if "/" in name else f"timm/{name}"])
    recipe = {"backbone": "timm", "weights": weights.checksum(folder), "version": VERSION}
    return ImageEncoder(recipe, lambda: _loaded(name, folder), inputs, batch_size=batch_size)


def _loaded(name: str, folder: Path) -> Model:
    try:
        import timm
        import torch
        from timm.data import create_transform, resolve_model_data_config
    except ImportError:
        raise ImportError(f"backbone timm:{name} needs timm: pip install 'scoreloss[timm]'") from None
    except RuntimeError as problem:
        raise ImportError(
            f"backbone timm:{name}: torchvision does not fit this torch ({problem}): install the two together"
        ) from problem
    if not (folder / "model.safetensors").is_file():
        raise InputError(f"backbone timm:{name}: {folder} holds no model.safetensors")
    try:
        network = timm.create_model(f"local-dir:{folder.absolute()}", pretrained=True, num_classes=0)
    except Exception as problem:  # a folder may be wrong in many ways
        raise InputError(f"backbone timm:{name} cannot be loaded: {reason_of(problem)}") from problem
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = network.eval().to(device).to(memory_format=torch.channels_last)
    transform = create_transform(**resolve_model_data_config(network), is_training=False)

    def numbers(image: Any) -> NDArray[np.float32]:
        return np.asarray(transform(image), np.float32)

    return Model(numbers, forward_on(device, network))
