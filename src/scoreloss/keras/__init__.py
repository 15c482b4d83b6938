"""The losses in Keras 3, with any of its backends: ``keras.losses.Loss`` classes, a streaming score, a start.

    loss = SigmoidF1()
    head = keras.layers.Dense(labels, bias_initializer=PriorBias(frequencies, loss))
    model.compile("adam", loss=loss, metrics=[Score("f1", loss=loss)])

Every loss takes targets and logits, and can be saved with its model. The names are those of ``scoreloss.torch``;
losses with parameters of their own are functions there: ``scoreloss.losses`` over ``OPS``.
"""

try:
    import keras as _keras  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"scoreloss.keras needs Keras and its backend ({missing}): pip install 'scoreloss[keras]', and tensorflow, "
        "or set KERAS_BACKEND to jax or torch"
    ) from missing

from scoreloss.keras.base import Loss
from scoreloss.keras.losses import (
    BCE,
    BPMLL,
    LOSSES,
    ZLPR,
    Asymmetric,
    DeepF,
    DoubleSoftF1,
    Focal,
    Hill,
    HingeF1,
    LambdaLoss,
    MetricLoss,
    PickAllLabels,
    Poly1,
    RecallAtK,
    SigmoidF1,
    SmoothAccuracy,
    SmoothNPV,
    SmoothPrecision,
    SmoothRecall,
    SmoothSpecificity,
    SoftF1,
    TwoWay,
    UnboundedF1,
)
from scoreloss.keras.ops import OPS
from scoreloss.keras.score import Score
from scoreloss.keras.start import PriorBias

__all__ = [
    "BCE",
    "BPMLL",
    "LOSSES",
    "OPS",
    "ZLPR",
    "Asymmetric",
    "DeepF",
    "DoubleSoftF1",
    "Focal",
    "Hill",
    "HingeF1",
    "LambdaLoss",
    "Loss",
    "MetricLoss",
    "PickAllLabels",
    "Poly1",
    "PriorBias",
    "RecallAtK",
    "Score",
    "SigmoidF1",
    "SmoothAccuracy",
    "SmoothNPV",
    "SmoothPrecision",
    "SmoothRecall",
    "SmoothSpecificity",
    "SoftF1",
    "TwoWay",
    "UnboundedF1",
]
