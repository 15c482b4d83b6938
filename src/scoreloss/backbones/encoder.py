"""What a backbone is to the rest: something that turns inputs into rows of features, and says what decides them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones.cache import Digests, Indices

Batches = Iterator[tuple[Indices, NDArray[np.float32]]]
"""Which examples, and their features."""


class Encoder(Protocol):
    """A frozen backbone over the inputs of one dataset."""

    recipe: Mapping[str, Any]
    """All that decides the features of an input; ``backbone`` is the kind."""

    problems: dict[int, str]
    """Examples that cannot be read, with the reason."""

    def digests(self) -> Digests:
        """The content of every input in 128 bits."""

    def sizes(self) -> NDArray[np.int64]:
        """How much work each input is, against the others. The largest are done first."""

    def encode(self, rows: Indices) -> Batches:
        """Features of these examples, as they come. What cannot be read is left out and put into ``problems``."""

    def over(self, inputs: Any) -> Self:
        """The same backbone over other inputs; what has been loaded or learned is shared."""
