"""Train on the score you report: any confusion-matrix score as a loss, thresholds, and the experiment.

Importing this package imports numpy and no framework; ``scoreloss.torch`` has the losses.
"""

from typing import TYPE_CHECKING, Any

from scoreloss.calibrate import calibrate, reliability
from scoreloss.data import Dataset
from scoreloss.metrics import evaluate, label_frequencies
from scoreloss.ops import logits_from
from scoreloss.scores import SCORES
from scoreloss.split import stratified_split
from scoreloss.thresholds import Averaging, ExpectedF1, Fixed, Global, Lipton, PerLabel, TopK

if TYPE_CHECKING:
    from scoreloss.model import Classifier

__version__ = "0.1.0.dev0"

__all__ = [
    "SCORES",
    "Averaging",
    "Classifier",
    "Dataset",
    "ExpectedF1",
    "Fixed",
    "Global",
    "Lipton",
    "PerLabel",
    "TopK",
    "__version__",
    "calibrate",
    "evaluate",
    "label_frequencies",
    "logits_from",
    "reliability",
    "stratified_split",
]


def __getattr__(name: str) -> Any:
    """``Classifier``, which is imported when it is asked for: it trains with PyTorch."""
    if name == "Classifier":
        from scoreloss.model import Classifier

        return Classifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
