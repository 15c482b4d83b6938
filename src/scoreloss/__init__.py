"""Train on the score you report: any confusion-matrix score as a loss, thresholds, and the experiment.

Importing this package imports numpy and no framework; ``scoreloss.torch`` has the losses.
"""

from scoreloss.data import Dataset
from scoreloss.metrics import evaluate, label_frequencies
from scoreloss.ops import logits_from
from scoreloss.scores import SCORES
from scoreloss.split import stratified_split
from scoreloss.thresholds import Fixed, Global, PerLabel, TopK

__version__ = "0.1.0.dev0"

__all__ = [
    "SCORES",
    "Dataset",
    "Fixed",
    "Global",
    "PerLabel",
    "TopK",
    "__version__",
    "evaluate",
    "label_frequencies",
    "logits_from",
    "stratified_split",
]
