"""The references against values worked out by hand, and against what their definitions promise.

In the comments p and S are sigmoids: sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4.
"""

import inspect
import math
from math import log, log2

import numpy as np
import pytest

from tests import loss_references as ref
from tests.oracles import assert_close

LN2, LN3 = log(2), log(3)
SOFTPLUS_1 = log(1 + math.e)
RANDOM = [ref.random_case(seed, n, c) for seed, (n, c) in enumerate([(7, 5), (4, 9), (12, 3), (3, 2)])]
ALL_CASES = [*RANDOM, *ref.degenerate_cases().values()]

ELEMENTS = [
    # y = 1 at p = 3/4: -log p = ln 4/3; y = 0 at p = 3/4: -log(1-p) = ln 4
    (ref.bce, {}, [log(4 / 3), log(4)]),
    (ref.bce, {"pos_weight": 2}, [2 * log(4 / 3), log(4)]),
    (ref.bce, {"pos_weight": [3, 7]}, [3 * log(4 / 3), log(4)]),
    # p_t = 3/4 and 1/4
    (ref.focal, {}, [1 / 4 * (1 / 4) ** 2 * log(4 / 3), 3 / 4 * (3 / 4) ** 2 * log(4)]),
    (ref.focal, {"alpha": None, "gamma": 1}, [1 / 4 * log(4 / 3), 3 / 4 * log(4)]),
    (ref.focal, {"alpha": None, "gamma": [1, 2]}, [1 / 4 * log(4 / 3), 9 / 16 * log(4)]),
    # q = 1/4 + 1/20 = 3/10, 1 - q = 7/10
    (ref.asymmetric, {}, [1 / 4 * log(4 / 3), (7 / 10) ** 4 * log(10 / 3)]),
    (ref.asymmetric, {"gamma_neg": 2, "gamma_pos": 3, "clip": 0}, [1 / 64 * log(4 / 3), 9 / 16 * log(4)]),
    # q = min(1/4 + 3/4, 1) = 1: log q = 0
    (ref.asymmetric, {"clip": 3 / 4}, [1 / 4 * log(4 / 3), 0]),
    (ref.poly1, {}, [log(4 / 3) + 1 / 4, log(4) + 3 / 4]),
    (ref.poly1, {"epsilon": -2}, [log(4 / 3) - 2 / 4, log(4) - 6 / 4]),
    # the focal values above, and epsilon times (1/4)^3 and (3/4)^3
    (ref.poly1, {"alpha": 1 / 4, "gamma": 2}, [log(4 / 3) / 64 + 1 / 64, 27 / 64 * log(4) + 27 / 64]),
]


@pytest.mark.parametrize(("loss", "options", "expected"), ELEMENTS)
def test_elements_by_hand(loss, options, expected):
    assert_close(loss([[LN3, LN3]], [[1, 0]], **options), [expected])


def test_hill_by_hand():
    # y = 1: p' = sigmoid(1 + ln 3 - 1) = 3/4, so (1/4)^2 ln 4/3; y = 0: p = 3/4, so (3/2 - 3/4) (3/4)^2
    assert_close(ref.hill([[1 + LN3, LN3]], [[1, 0]]), [[log(4 / 3) / 16, 27 / 64]])


def test_focal_and_asymmetric_reach_bce():
    for z, y in ALL_CASES:
        assert_close(ref.focal(z, y, alpha=None, gamma=0), ref.bce(z, y))
        assert_close(ref.asymmetric(z, y, gamma_neg=0, gamma_pos=0, clip=0), ref.bce(z, y))
        assert_close(ref.poly1(z, y, epsilon=0), ref.bce(z, y))


def test_pick_all_labels_by_hand():
    z = [[0, LN2, LN3]] * 3  # softmax 1/6, 1/3, 1/2
    y = [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert_close(ref.pick_all_labels(z, y)[:2], [LN3 + LN2, log(6)])
    assert_close(ref.pick_all_labels(z, y, normalised=True)[:2], [(LN3 + LN2) / 2, log(6)])
    assert ref.pick_all_labels(z, y)[2] is None


def test_bp_mll_by_hand():
    half = math.atanh(1 / 2)  # tanh = 1/2
    assert_close(ref.bp_mll([[half, 0]], [[1, 0]]), [math.exp(-1 / 2)])
    # two positives at 1/2 and -1/2, the negative at 0: (e^-1/2 + e^1/2) / (2 x 1)
    assert_close(ref.bp_mll([[half, -half, 0]], [[1, 1, 0]]), [math.cosh(1 / 2)])
    assert ref.bp_mll([[1, 2], [1, 2]], [[1, 1], [0, 0]]) == [None, None]


def test_recall_at_k_by_hand():
    # Far apart the ranks are 1, 2, 3, 4; the positives have ranks 1 and 4:
    # R_1 = (S(1-1) + S(1-4)) / 1, R_2 = (S(2-1) + S(2-4)) / 2
    s = [1 / (1 + math.exp(-x)) for x in (0, -3, 1, -2)]
    z, y = [[9, 6, 3, 0]], [[1, 0, 0, 1]]
    assert_close(ref.recall_at_k(z, y, ks=(1, 2)), [1 - (s[0] + s[1] + (s[2] + s[3]) / 2) / 2])
    # three positives at a wide t1: S(0) + S(-1/10) + S(-2/10) is above 1, and at most k = 1 counts
    assert_close(ref.recall_at_k([[9, 6, 3]], [[1, 1, 1]], ks=(1,), t1=10), [0])
    # equal logits share a rank: 1 + S(0) = 3/2 each, S(1 - 3/2) = S(-1/2)
    assert_close(ref.recall_at_k([[2, 2]], [[1, 0]], ks=(1,)), [1 - 1 / (1 + math.exp(1 / 2))])
    # an only positive of an only label under a k beyond it: rank 1, S(8 - 1)
    assert_close(ref.recall_at_k([[2]], [[1]], ks=(8,)), [1 - 1 / (1 + math.exp(-7))])
    assert ref.recall_at_k([[2, 1]], [[0, 0]]) == [None]


def test_recall_at_k_tends_to_recall_at_k():
    # Cold sigmoids at k + 1/2 count ranks up to k; with P <= k the divisor is P.
    for z, y in RANDOM:
        for k in (3, 5):
            for value, zs, ys in zip(
                ref.recall_at_k(z, y, ks=(k + 0.5,), t1=1e-3, t2=1e-6), z, y, strict=True
            ):
                top = np.argsort(-zs)[:k]
                if 0 < ys.sum() <= k:
                    assert_close(value, 1 - ys[top].sum() / ys.sum(), 1e-9)


def test_lambda_loss_by_hand():
    # One positive, one negative: maxDCG = 1/log2 2 = 1, so the gains differ by 1; the ranks are 1 and 2 whatever
    # the logits, both discounts differ by 1 - 1/log2 3: w = (1 + 10) (1 - 1/log2 3).
    w = 11 * (1 - 1 / log2(3))
    z = [[0, 0], [LN3, 0], [0, LN3]]
    assert_close(ref.lambda_loss(z, [[1, 0]] * 3), [w * log2(2), w * log2(4 / 3), w * log2(4)])
    # Ranks 3, 2, 1 of two positives and a negative: maxDCG = 1 + 1/log2 3.
    # First pair: ranks 3 and 1, |1/2 - 1| = 1/2, two apart |1/log2 3 - 1/2|, log2(1 + 9).
    # Second pair: ranks 2 and 1, w again, log2(1 + 3) = 2.
    first = (1 / 2 + 10 * (1 / log2(3) - 1 / 2)) * log2(10)
    assert_close(ref.lambda_loss([[0, LN3, 2 * LN3]], [[1, 1, 0]]), [(first + 2 * w) / (1 + 1 / log2(3))])
    assert ref.lambda_loss([[1, 2], [1, 2]], [[1, 1], [0, 0]]) == [None, None]


def test_lambda_loss_breaks_ties_by_label_index():
    # Equal logits: ranks 1, 2, 3 along the labels; maxDCG = 1, each pair log2 2 = 1.
    near = 11 * (1 - 1 / log2(3))  # ranks 1 and 2
    lower = (1 / log2(3) - 1 / 2) + 10 * (1 - 1 / log2(3))  # ranks 2 and 3
    far = 1 / 2 + 10 * (1 / log2(3) - 1 / 2)  # ranks 1 and 3
    values = ref.lambda_loss(np.zeros((3, 3)), np.eye(3))
    assert_close(values, [near + far, near + lower, far + lower])


def test_zlpr_by_hand():
    z = [[0, 0], [LN3, LN2], [0, LN2], [0, -LN2]]
    y = [[1, 0], [1, 0], [0, 0], [1, 1]]
    # log(1+1) + log(1+1); log(1 + 2) + log(1 + 1/3) = log 4; log(1 + 1 + 2); log(1 + 1 + 2)
    assert_close(ref.zlpr(z, y), [2 * LN2, log(4), log(4), log(4)])


def test_deep_f_and_label_count_by_hand():
    # Row of 2 labels, counts up to 2. First label: softmax 1/4, 1/4, 1/2; second: 1/3 each.
    z = [[[0, 0, LN2], [0, 0, 0]]] * 3
    assert_close(ref.deep_f(z, [[1, 1], [1, 0], [0, 0]]), [LN2 + LN3, log(4) + LN3, log(4) + LN3])
    # the first label is not there, whatever the count: its class is 0
    assert_close(ref.deep_f([[[0, LN3, 0], [0, 0, 0]]], [[0, 1]]), [log(5) + LN3])
    # counts up to 1: two labels count as one; softmax 1/4, 3/4
    assert_close(ref.deep_f([[[0, LN3], [0, LN3]]], [[1, 1]]), [2 * log(4 / 3)])
    # softmax 1/6, 1/3, 1/2 of the counts 0, 1, 2; three labels count as two
    assert_close(ref.label_count([[0, LN2, LN3]] * 3, [[1, 1, 1], [0, 1, 0], [0, 0, 0]]), [LN2, LN3, log(6)])


def test_smooth_scores_by_hand():
    # First label: S = 3/4 on a positive, 1/2 on a negative: tp 3/4, fp 1/2, fn 1/4, tn 1/2.
    # Second label, all negative at S = 1/2: tp 0, fp 1, fn 0, tn 1.
    z, y = [[LN3, 0], [0, 0]], [[1, 0], [0, 0]]
    f1, other = (3 / 2) / (9 / 4), 1 / (7 / 4)  # 2 tp / (2 tp + fp + fn), 2 tn / (2 tn + fp + fn)
    expected = {
        ref.soft_f1: [1 - f1, 1],
        ref.sigmoid_f1: [1 - f1, 1],
        ref.double_soft_f1: [1 - (f1 + other) / 2, 1 - (0 + 2 / 3) / 2],
        ref.smooth_accuracy: [1 - (5 / 4) / 2, 1 - 1 / 2],
        ref.smooth_precision: [1 - (3 / 4) / (5 / 4), 1],
        ref.smooth_npv: [1 - (1 / 2) / (3 / 4), 0],
        ref.smooth_recall: [1 - 3 / 4, 1],
        ref.smooth_specificity: [1 / 2, 1 / 2],
    }
    for loss, labels in expected.items():
        assert_close(loss(z, y), np.mean(labels))


def test_slope_and_offset_by_hand():
    # S(0) at slope 2 and offset ln 3 / 2 is 3/4, at offset -ln 3 / 2 it is 1/4
    offsets = [LN3 / 2, -LN3 / 2]
    # label 1: f1 = 2 (3/4) / (3/4 + 1) = 6/7; label 2 has no positive
    assert_close(ref.sigmoid_f1([[0, 0]], [[1, 0]], slope=2, offset=offsets), (1 / 7 + 1) / 2)
    # pooled: 2 (3/4) / (3/4 + 1/4 + 1) = 3/4
    assert_close(ref.mfc([[0, 0]], [[1, 0]], slope=2, offsets=offsets), 1 / 4)
    # at offset 0, S = 1/2 twice: 2 (1/2) / (1 + 1)
    assert_close(ref.mfc([[0, 0]], [[1, 0]]), 1 / 2)


def test_unbounded_f1_by_hand():
    # 2 sum(y z) / (sum z + sum y): 4 / (2 - 1 + 1) in the first label; in the second the denominator -3 + 1 is
    # held at 1e-7, so 1 - 2 (-3) / 1e-7
    assert_close(ref.unbounded_f1([[2, -3], [-1, 0]], [[1, 1], [0, 0]]), (1 - 2 + 1 + 6e7) / 2)


def test_hinge_f1_by_hand():
    # fn = 1 - 1/2, fp = 1 - 1/2, P = 1: (1/2 + 1/2) / (1 + 1/2)
    assert_close(ref.hinge_f1([[1 / 2, -1 / 2]], [[1, 0]]), 2 / 3)
    # fn = 3 is more than P: (3 + 0) / (1 + 0)
    assert_close(ref.hinge_f1([[-2, -1]], [[1, 0]]), 3)
    assert ref.hinge_f1([[1, -1], [2, -3]], [[1, 0], [1, 0]]) == 0


def test_hinge_f1_bounds_one_minus_f1():
    for z, y in ALL_CASES:
        hard = np.where(z >= 0, math.inf, -math.inf)
        assert ref.hinge_f1(z, y) >= ref.mfc(np.clip(hard, -1e4, 1e4), y) - 1e-12


def test_two_way_by_hand():
    # One row: softplus(4 (-1/4) + 0), and the only column with a positive has no negative: softplus(-inf) = 0.
    assert_close(ref.two_way([[1, 0]], [[1, 0]]), SOFTPLUS_1 - 1)
    # Two of them crosswise: the rows and columns are alike, each softplus(-1).
    assert_close(ref.two_way([[1, 0], [0, 1]], np.eye(2)), 2 * (SOFTPLUS_1 - 1))
    # Two positives at 0: T ln 2 + 0 in the row, so log(1 + 2^T).
    assert_close(ref.two_way([[0, 0, 0]], [[1, 1, 0]]), log(1 + 2**4))
    assert_close(ref.two_way([[0, 0, 0]], [[1, 1, 0]], temperature=1), log(1 + 2))
    # Two negatives at 0 and at ln 3: lse = ln 4
    assert_close(ref.two_way([[0, 0, LN3]], [[1, 0, 0]]), log(1 + 4))
    # The second column and the second row have no positive and do not count; the first column is softplus(0 - 1).
    assert_close(ref.two_way([[1, 0], [0, 0]], [[1, 0], [0, 0]]), 2 * (SOFTPLUS_1 - 1))
    # Columns and rows full of positives count 0 in the mean: (0 + softplus(4 (-1/4) + 0)) / 2 twice.
    assert_close(ref.two_way([[2, 1], [1, 0]], [[1, 1], [1, 0]]), SOFTPLUS_1 - 1)
    assert ref.two_way([[1, 0]], [[0, 0]]) == 0


def test_two_way_and_rankings_do_not_see_a_constant():
    for z, y in ALL_CASES:
        assert_close(ref.two_way(z + 3, y), ref.two_way(z, y), 1e-9)
        for loss in (ref.pick_all_labels, ref.recall_at_k, ref.lambda_loss):
            for moved, value in zip(loss(z + 3, y), loss(z, y), strict=True):
                assert moved is value is None or moved == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_lagrangians_by_hand():
    # One label, logits 0, a positive and a negative, prior 1/2: l+ = l- = ln 2, k = ln 2.
    point = {"z": [[0], [0]], "y": [[1], [0]], "multipliers": [2], "priors": [1 / 2]}
    # (ln 2 + 2 ln 2) / 2 - 2 (1/2) ln 2 (1/5) = (3/2 - 1/5) ln 2
    assert_close(ref.precision_at_recall(**point, target=4 / 5), 1.3 * LN2)
    # ((1 + 2/4) ln 2 + 2 (3/4) ln 2) / 2 - 2 (1/4) ln 2 (1/2) = (3/2 - 1/4) ln 2
    assert_close(ref.recall_at_precision(**point, target=3 / 4), 1.25 * LN2)
    # hinge: l+ = l- = 1/2, k = 1
    point["z"] = [[1 / 2], [-1 / 2]]
    # (1/2 + 2 (1/2)) / 2 - 2 (1/2) (1/5) = 3/4 - 1/5
    assert_close(ref.precision_at_recall(**point, target=4 / 5, kind="hinge"), 0.55)
    # ((3/2) (1/2) + 2 (3/4) (1/2)) / 2 - 2 (1/4) (1/2) = 3/4 - 1/4
    assert_close(ref.recall_at_precision(**point, target=3 / 4, kind="hinge"), 0.5)


@pytest.mark.parametrize(("kind", "k"), [("log", LN2), ("hinge", 1.0)])
def test_lagrangians_bound_those_of_the_counts(kind, k):
    rng = np.random.default_rng(0)
    for z, y in ALL_CASES:
        n, c = y.shape
        m, target = rng.uniform(0, 5, c), rng.uniform(0, 1, c)
        tp, fp = ((z >= 0) & (y == 1)).sum(0), ((z >= 0) & (y == 0)).sum(0)
        total = y.sum(0)
        arguments = (z, y, target, m, total / n, kind)
        hard = k * np.mean(fp + m * (target * total - tp)) / n
        assert ref.precision_at_recall(*arguments) >= hard - 1e-12
        hard = k * np.mean(total - tp + m * (target * fp - (1 - target) * tp)) / n
        assert ref.recall_at_precision(*arguments) >= hard - 1e-12


@pytest.mark.parametrize("kind", ["log", "hinge"])
def test_lagrangians_are_tight_where_the_loss_touches_the_mistake(kind):
    # All wrong at the boundary for the log loss (softplus(0) = ln 2), all right by the margin for the hinge.
    y = np.array([[1, 0], [1, 1], [0, 0]])
    z = np.zeros((3, 2)) if kind == "log" else 2.0 * y - 1
    k, wrong = (LN2, 1) if kind == "log" else (1, 0)
    m, total = np.array([2, 3]), y.sum(0)
    tp, fp = total * (1 - wrong), (3 - total) * wrong
    expected = k * np.mean(fp + m * (0.7 * total - tp)) / 3
    assert_close(ref.precision_at_recall(z, y, 0.7, m, total / 3, kind), expected)
    expected = k * np.mean(total - tp + m * (0.7 * fp - 0.3 * tp)) / 3
    assert_close(ref.recall_at_precision(z, y, 0.7, m, total / 3, kind), expected)


@pytest.mark.parametrize("kind", ["log", "hinge"])
def test_aucpr_averages_recall_at_precision_over_moved_logits(kind):
    z, y = RANDOM[0]
    ones, priors = np.ones(5), y.mean(0)
    single = ref.aucpr(z, y, np.full((5, 1), 3), np.full((5, 1), 0.4), priors, kind)
    assert_close(single, ref.recall_at_precision(z + 0.4, y, 1 / 2, 3 * ones, priors, kind))
    # the anchors are 1/3 and 2/3, the biases 0 and 1, the multipliers 1 and 2
    pair = ref.aucpr(z, y, np.tile([1, 2], (5, 1)), np.tile([0, 1], (5, 1)), priors, kind)
    low = ref.recall_at_precision(z, y, 1 / 3, ones, priors, kind)
    high = ref.recall_at_precision(z + 1, y, 2 / 3, 2 * ones, priors, kind)
    assert_close(pair, (low + high) / 2)


def test_every_reference_is_finite_and_of_its_shape_on_every_case():
    for z, y in ALL_CASES:
        n, c = y.shape
        for loss in ref.ELEMENTS:
            values = np.array(loss(z, y))
            assert values.shape == (n, c)
            assert np.isfinite(values).all()
        for loss in ref.ROWS:
            values = loss(z, y)
            assert len(values) == n
            assert all(v is None or math.isfinite(v) for v in values)
        for loss in ref.BATCHES:
            assert math.isfinite(loss(z, y))


def test_huge_logits_do_not_overflow():
    z, y = [[1e4, -1e4], [1e4, -1e4]], [[0, 1], [1, 0]]
    for loss in (*ref.ELEMENTS, *ref.ROWS, *ref.BATCHES):
        assert np.isfinite(np.array(loss(z, y), float)).all(), loss.__name__


def test_the_lists_hold_every_reference_of_logits_and_targets():
    listed = {*ref.ELEMENTS, *ref.ROWS, *ref.BATCHES}
    own_arguments = {ref.precision_at_recall, ref.recall_at_precision, ref.aucpr, ref.deep_f, ref.label_count}
    helpers = {ref.smooth}
    references = {
        value
        for value in vars(ref).values()
        if inspect.isfunction(value) and list(inspect.signature(value).parameters)[:2] == ["z", "y"]
    }
    assert references == listed | own_arguments | helpers


def test_cases_hold_what_they_are_called_after():
    cases = ref.degenerate_cases()
    rows, labels = (
        cases["empty, full and one-positive rows"][1],
        cases["empty, full and one-positive labels"][1],
    )
    assert {0, 1, 4} <= set(rows.sum(1))
    assert {0, 1, 5} <= set(labels.sum(0))
    assert (cases["one positive in each row"][1].sum(1) == 1).all()
    for z, y in ALL_CASES:
        assert z.shape == y.shape
        assert set(np.unique(y)) <= {0.0, 1.0}
        assert len(np.unique(z)) == z.size
        assert np.abs(np.subtract.outer(z, ref.KINKS)).min() >= 1e-3
