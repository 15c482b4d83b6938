"""Estimators for scikit-learn: thresholds tuned around any multilabel classifier, and heads trained with our losses.

Importing this loads scikit-learn; PyTorch is loaded when a ``TorchMultilabelClassifier`` is first fitted or read.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as missing:
    raise ImportError("scoreloss.sklearn needs scikit-learn: pip install 'scoreloss[sklearn]'") from missing

from scoreloss.sklearn.head import TorchMultilabelClassifier
from scoreloss.sklearn.tuned import ThresholdTunedClassifier

__all__ = ["ThresholdTunedClassifier", "TorchMultilabelClassifier"]
