"""One step of our losses against the peers' own code, and ``evaluate`` against theirs, where they are installed.

    python benchmarks/peers.py [--smoke]

Prints ratios theirs / ours, of forward and backward (loss) or of the same numbers (metrics), and says who is absent. torch's BCE, the
paper's listing and scikit-learn are always there. The others get an environment of their own, in which this runs as well:

    python -m venv peers
    peers/bin/pip install torch==2.13.0 scikit-learn torchmetrics pillow pandas tqdm
    peers/bin/pip install --no-deps torchvision==0.28.0 timm segmentation-models-pytorch libauc
    peers/bin/pip install huggingface-hub safetensors pyyaml
    peers/bin/pip install --no-deps .

The wheel of torchvision wants its own torch; beside one without CUDA two operators are missing, and declared here.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import warnings
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import scoreloss as sl
from decisions import by_scikit_learn
from loss_step import listing
from scoreloss.torch import BCE, Asymmetric, Focal, SigmoidF1
from timing import medians, ratio, shown

SHAPES = {(256, 20): 100, (4096, 80): 40, (65536, 80): 9}
SMOKE = {(64, 3): 2}

Loss = Callable[[Tensor, Tensor], Tensor]


def bce() -> tuple[Loss, Loss]:
    return BCE(), F.binary_cross_entropy_with_logits


def paper() -> tuple[Loss, Loss]:
    return SigmoidF1(), listing


def dice() -> tuple[Loss, Loss]:
    peer = importlib.import_module("segmentation_models_pytorch.losses").DiceLoss("multilabel")
    # It pools all but the second axis: an image of one pixel for each example.
    return SigmoidF1(), lambda logits, targets: peer(logits[:, :, None], targets[:, :, None])


def asymmetric() -> tuple[Loss, Loss]:
    peer = importlib.import_module("timm.loss").AsymmetricLossMultiLabel(gamma_neg=4, gamma_pos=1, clip=0.05)
    return Asymmetric(reduction="sum"), peer


def focal() -> tuple[Loss, Loss]:
    peer = importlib.import_module("torchvision.ops").sigmoid_focal_loss
    return Focal(), lambda logits, targets: peer(logits, targets, reduction="mean")


def auc() -> tuple[Loss, Loss]:
    """Another loss for another score, so no ratio of the same thing: pairwise AUC, all labels at once."""
    peer = importlib.import_module("libauc.losses").MultiLabelAUCMLoss
    made = {}

    def theirs(logits: Tensor, targets: Tensor) -> Tensor:
        c = logits.shape[1]
        if c not in made:
            made[c] = peer(num_labels=c, device="cpu")
        return made[c](torch.sigmoid(logits), targets)

    return SigmoidF1(), theirs


PEERS = {
    "torch's bce / BCE": bce,
    "the paper's listing / SigmoidF1": paper,
    "segmentation-models-pytorch DiceLoss / SigmoidF1": dice,
    "timm AsymmetricLossMultiLabel / Asymmetric": asymmetric,
    "torchvision sigmoid_focal_loss / Focal": focal,
    "libauc MultiLabelAUCMLoss / SigmoidF1": auc,
}
SAME_VALUE = ("torch", "timm", "torchvision")


def declare_missing_operators() -> None:
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float limit) -> Tensor"
            )


def compare_losses(shapes: dict[tuple[int, int], int]) -> None:
    for name, make in PEERS.items():
        try:
            ours, theirs = make()
        except (ImportError, RuntimeError) as missing:
            print(f"{name}: absent ({str(missing).splitlines()[0]})", flush=True)
            continue
        for (n, c), rounds in shapes.items():
            torch.manual_seed(0)
            logits = torch.randn(n, c, requires_grad=True)
            targets = (torch.rand(n, c) < 0.1).float()
            if name.startswith(SAME_VALUE):
                torch.testing.assert_close(
                    theirs(logits, targets), ours(logits, targets), rtol=1e-4, atol=1e-6
                )

            def step(loss, logits=logits, targets=targets):
                return torch.autograd.grad(loss(logits, targets), logits)

            calls = {
                "theirs": lambda step=step, loss=theirs: step(loss),
                "ours": lambda step=step, loss=ours: step(loss),
            }
            seconds = medians(calls, rounds)
            found = shown(ratio(seconds["theirs"], seconds["ours"]))
            print(f"{name + f', {n:,} x {c}':68} {found}", flush=True)


def compare_metrics(n: int, c: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    y, s = rng.random((n, c)) < 0.1, rng.random((n, c)).astype(np.float32)
    contenders = {"ours": lambda: sl.evaluate(y, s), "scikit-learn": lambda: by_scikit_learn(y, s)}
    try:
        contenders["torchmetrics"] = with_torchmetrics(y, s)
    except ImportError as missing:
        print(f"torchmetrics: absent ({missing})", flush=True)
    seconds = medians(contenders, rounds)
    for name in list(contenders)[1:]:
        found = shown(ratio(seconds[name], seconds["ours"]))
        print(f"{f'{name}, metrics / evaluate, {n:,} x {c}':68} {found}", flush=True)


def with_torchmetrics(y: np.ndarray, s: np.ndarray) -> Callable[[], object]:
    """What of ``evaluate`` it has, and which agrees."""
    of = importlib.import_module("torchmetrics.functional.classification")
    targets, scores = torch.from_numpy(y).long(), torch.from_numpy(s)
    c = y.shape[1]

    def all_of_them() -> dict[str, float]:
        found = {
            f"{average}_{name}": getattr(of, f"multilabel_{kind}")(
                scores, targets, num_labels=c, average=average
            )
            for name, kind in (
                ("f1", "f1_score"),
                ("precision", "precision"),
                ("recall", "recall"),
                ("jaccard", "jaccard_index"),
            )
            for average in ("micro", "macro", "weighted")
        }
        found["hamming_loss"] = of.multilabel_hamming_distance(scores, targets, num_labels=c)
        found["subset_accuracy"] = of.multilabel_exact_match(scores, targets, num_labels=c)
        found["average_precision"] = of.multilabel_average_precision(scores, targets, num_labels=c)
        found["lrap"] = of.multilabel_ranking_average_precision(scores, targets, num_labels=c)
        found["coverage_error"] = of.multilabel_coverage_error(scores, targets, num_labels=c)
        found["ranking_loss"] = of.multilabel_ranking_loss(scores, targets, num_labels=c)
        return {name: float(value) for name, value in found.items()}

    ours = sl.evaluate(y, s)
    for name, value in all_of_them().items():
        if abs(ours[name] - value) > 1e-3 * max(1, abs(value)):
            print(f"torchmetrics says {value:.4f} of {name}, evaluate {ours[name]:.4f}")
    return all_of_them


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two rounds on a small batch")
    smoke = parser.parse_args().smoke
    warnings.simplefilter("ignore")
    declare_missing_operators()
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads; median [quartiles] of theirs / ours"
    )
    compare_losses(SMOKE if smoke else SHAPES)
    compare_metrics(*((200, 4, 1) if smoke else (20_000, 80, 3)))


if __name__ == "__main__":
    main()
