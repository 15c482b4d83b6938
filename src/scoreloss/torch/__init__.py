"""The losses in PyTorch: thin ``nn.Module`` classes, and the start of a head.

    loss = SigmoidF1()
    loss(model(x), y).backward()

Every loss takes logits (..., n, c) and targets (n, c) or of the same shape, and returns a scalar; with leading
axes, one loss a run. ``loss.boundary`` is the logit where the loss itself puts positive, and
``loss.scores(logits)`` is 1/2 there.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError("scoreloss.torch needs PyTorch: pip install 'scoreloss[torch]'") from missing

from scoreloss.torch.base import Loss
from scoreloss.torch.bounds import AUCPR, HingeF1, PrecisionAtRecall, RecallAtPrecision
from scoreloss.torch.entries import BCE, Asymmetric, Focal, Hill, Poly1
from scoreloss.torch.fused import fused_linear_loss
from scoreloss.torch.large_batch import large_batch_step
from scoreloss.torch.metric import (
    MFC,
    DoubleSoftF1,
    MetricLoss,
    SigmoidF1,
    SmoothAccuracy,
    SmoothNPV,
    SmoothPrecision,
    SmoothRecall,
    SmoothSpecificity,
    SoftF1,
    UnboundedF1,
)
from scoreloss.torch.mix import Mix, warm_up
from scoreloss.torch.ops import OPS
from scoreloss.torch.rankings import BPMLL, ZLPR, DeepF, LambdaLoss, PickAllLabels, RecallAtK, TwoWay
from scoreloss.torch.reductions import LabelCount, LabelPowerset
from scoreloss.torch.start import StackedLinear, start_at_priors

LOSSES: dict[str, type[Loss]] = {
    "bce": BCE,
    "focal": Focal,
    "asymmetric": Asymmetric,
    "poly1": Poly1,
    "hill": Hill,
    "sigmoid_f1": SigmoidF1,
    "unbounded_f1": UnboundedF1,
    "smooth_accuracy": SmoothAccuracy,
    "smooth_precision": SmoothPrecision,
    "smooth_npv": SmoothNPV,
    "smooth_recall": SmoothRecall,
    "smooth_specificity": SmoothSpecificity,
    "soft_f1": SoftF1,
    "double_soft_f1": DoubleSoftF1,
    "mfc": MFC,
    "hinge_f1": HingeF1,
    "precision_at_recall": PrecisionAtRecall,
    "recall_at_precision": RecallAtPrecision,
    "aucpr": AUCPR,
    "pick_all_labels": PickAllLabels,
    "bp_mll": BPMLL,
    "zlpr": ZLPR,
    "two_way": TwoWay,
    "recall_at_k": RecallAtK,
    "lambda_loss": LambdaLoss,
    "deep_f": DeepF,
}
"""The losses by the names that the command line takes; ``for_targets`` makes one."""

__all__ = [
    "AUCPR",
    "BCE",
    "BPMLL",
    "LOSSES",
    "MFC",
    "OPS",
    "ZLPR",
    "Asymmetric",
    "DeepF",
    "DoubleSoftF1",
    "Focal",
    "Hill",
    "HingeF1",
    "LabelCount",
    "LabelPowerset",
    "LambdaLoss",
    "Loss",
    "MetricLoss",
    "Mix",
    "PickAllLabels",
    "Poly1",
    "PrecisionAtRecall",
    "RecallAtK",
    "RecallAtPrecision",
    "SigmoidF1",
    "SmoothAccuracy",
    "SmoothNPV",
    "SmoothPrecision",
    "SmoothRecall",
    "SmoothSpecificity",
    "SoftF1",
    "StackedLinear",
    "TwoWay",
    "UnboundedF1",
    "fused_linear_loss",
    "large_batch_step",
    "start_at_priors",
    "warm_up",
]
