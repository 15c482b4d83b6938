"""Train on the score you report: any confusion-matrix score as a loss, thresholds, and the experiment.

Importing this package imports numpy and no framework; ``scoreloss.torch`` has the losses.
"""

from scoreloss.calibrate import calibrate, reliability
from scoreloss.data import Dataset
from scoreloss.metrics import evaluate, label_frequencies
from scoreloss.ops import logits_from
from scoreloss.scores import SCORES
from scoreloss.split import stratified_split
from scoreloss.thresholds import Averaging, ExpectedF1, Fixed, Global, Lipton, PerLabel, TopK

__version__ = "0.1.0.dev0"

__all__ = [
    "SCORES",
    "Averaging",
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
