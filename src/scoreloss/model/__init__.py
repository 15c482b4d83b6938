"""From data to a model in daily use: ``fit``, ``save``, ``load``, ``predict``.

``Classifier`` is for Python; ``Model`` is what all else works with. To predict takes numpy and the backbone's own
package; PyTorch is imported to train.
"""

from scoreloss.model.classifier import Classifier
from scoreloss.model.fitted import Model, Prediction
from scoreloss.model.folder import load, save

__all__ = ["Classifier", "Model", "Prediction", "load", "save"]
