"""Every loss once more, as slow loops over plain floats, written from the definitions alone.

``z`` are logits and ``y`` targets of 0 and 1, both n x c, for one run. A loss of elements gives n rows of c
values, a loss of rows n values (``None`` where the row is skipped), and a loss of a batch one number. A parameter of
one value a label may be one number instead. Nothing here knows the package, its masks, weights and reductions.
"""

import math

import numpy as np

# Small pieces


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x):
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def logsumexp(values):
    """log of the sum of e^v; minus infinity where there are none."""
    if not values:
        return -math.inf
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def hinge(x):
    return max(0.0, x)


def mean(values):
    """The mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def ratio(num, den):
    return num / den if den else 0.0


def plain(array):
    return np.asarray(array, float).tolist()


def at(option, *index):
    """An option's value for a label (or a label and an anchor): itself where it is one number."""
    return float(option if np.ndim(option) == 0 else np.asarray(option)[index])


def positives(row):
    return [j for j, t in enumerate(row) if t == 1]


def negatives(row):
    return [j for j, t in enumerate(row) if t == 0]


def per_element(element, z, y):
    """element(logit, target, label) of every entry."""
    return [
        [element(v, t, j) for j, (v, t) in enumerate(zip(zs, ys, strict=True))]
        for zs, ys in zip(plain(z), plain(y), strict=True)
    ]


def per_row(value, z, y):
    return [value(zs, ys) for zs, ys in zip(plain(z), plain(y), strict=True)]


def per_label(value, z, y):
    """value(column of logits, column of targets, label), averaged over the labels."""
    columns = zip(zip(*plain(z), strict=True), zip(*plain(y), strict=True), strict=True)
    return mean([value(zs, ys, j) for j, (zs, ys) in enumerate(columns)])


# Losses of elements


def bce(z, y, pos_weight=None):
    def element(v, t, j):
        weight = 1.0 if pos_weight is None else at(pos_weight, j)
        return weight * t * softplus(-v) + (1 - t) * softplus(v)

    return per_element(element, z, y)


def focal(z, y, alpha=0.25, gamma=2.0):
    """a_t (1-p_t)^gamma bce, a_t = alpha on positives and 1 - alpha on negatives, 1 on both without alpha."""
    return poly1(z, y, epsilon=0.0, alpha=alpha, gamma=gamma)


def asymmetric(z, y, gamma_neg=4.0, gamma_pos=1.0, clip=0.05):
    """The value alone: that the focal weights carry no gradient is not to be seen in it."""

    def element(v, t, j):
        p = sigmoid(v)
        log_q = min(math.log(sigmoid(-v) + clip), 0.0) if clip else -softplus(v)
        of_positive = (1 - p) ** at(gamma_pos, j) * -softplus(-v)
        of_negative = max(p - clip, 0.0) ** at(gamma_neg, j) * log_q  # 1 - q = max(p - clip, 0)
        return -(t * of_positive + (1 - t) * of_negative)

    return per_element(element, z, y)


def poly1(z, y, epsilon=1.0, alpha=None, gamma=0.0):
    """The focal loss (bce at gamma 0, alpha None) + epsilon (1-p_t)^(gamma+1); alpha leaves that term alone."""

    def element(v, t, j):
        toward = v if t == 1 else -v  # p_t = sigmoid(toward)
        wrong, g = sigmoid(-toward), at(gamma, j)
        a = 1.0
        if alpha is not None:
            a = at(alpha, j) if t == 1 else 1 - at(alpha, j)
        return a * wrong**g * softplus(-toward) + at(epsilon, j) * wrong ** (g + 1)

    return per_element(element, z, y)


def hill(z, y):
    def element(v, t, j):
        shifted, p = sigmoid(v - 1), sigmoid(v)
        return t * (1 - shifted) ** 2 * softplus(1 - v) + (1 - t) * (1.5 - p) * p**2

    return per_element(element, z, y)


# Losses of rows


def pick_all_labels(z, y, normalised=False):
    """Softmax cross-entropy summed over the positives, or (``normalised``) its mean; skipped without one."""

    def row(zs, ys):
        pos = positives(ys)
        if not pos:
            return None
        total = sum(logsumexp(zs) - zs[j] for j in pos)
        return total / len(pos) if normalised else total

    return per_row(row, z, y)


def bp_mll(z, y):
    """Mean over (positive k, negative l) of exp(-(tanh z_k - tanh z_l)); skipped without both sides."""

    def row(zs, ys):
        pairs = [(k, j) for k in positives(ys) for j in negatives(ys)]
        return mean([math.exp(math.tanh(zs[j]) - math.tanh(zs[k])) for k, j in pairs]) if pairs else None

    return per_row(row, z, y)


def recall_at_k(z, y, ks=(1, 2, 4, 8, 16), t1=1.0, t2=0.01):
    """1 - mean over k of min(sum over positives of sigmoid((k - rank) / t1), k) / min(k, positives).

    A k above the number of labels stays as it is: it divides by the positives, and all ranks lie below it. A row
    without a positive is skipped.
    """

    def row(zs, ys):
        pos = positives(ys)
        if not pos:
            return None
        ranks = [1 + sum(sigmoid((zs[j] - zs[i]) / t2) for j in range(len(zs)) if j != i) for i in pos]
        recalls = [min(sum(sigmoid((k - r) / t1) for r in ranks), k) / min(k, len(pos)) for k in ks]
        return 1 - mean(recalls)

    return per_row(row, z, y)


def lambda_loss(z, y):
    """NDCG-Loss2++ of Wang et al. (2018) at its mu of 10: a sum over the pairs with y_i > y_j.

    r_i is the rank of i by descending logit (of equal ones the lower label first), D(r) = log2(1 + r),
    G_i = (2^y_i - 1) / maxDCG, maxDCG the sum of (2^y - 1) / D over the targets in descending order. A pair
    counts (|1/D(r_i) - 1/D(r_j)| + 10 |1/D(d) - 1/D(d+1)|) |G_i - G_j| log2(1 + e^-(z_i - z_j)), d = |r_i - r_j|.
    A row without both sides is skipped.
    """

    def discounted(rank):
        return 1 / math.log2(1 + rank)

    def row(zs, ys):
        pairs = [(i, j) for i in range(len(ys)) for j in range(len(ys)) if ys[i] > ys[j]]
        if not pairs:
            return None
        order = sorted(range(len(zs)), key=lambda i: (-zs[i], i))
        rank = {label: r for r, label in enumerate(order, start=1)}
        best = sum((2**t - 1) * discounted(r) for r, t in enumerate(sorted(ys, reverse=True), start=1))
        total = 0.0
        for i, j in pairs:
            d = abs(rank[i] - rank[j])
            swap = abs(discounted(rank[i]) - discounted(rank[j]))
            bound = abs(discounted(d) - discounted(d + 1))
            gain = (2 ** ys[i] - 2 ** ys[j]) / best
            total += (swap + 10 * bound) * gain * softplus(zs[j] - zs[i]) / math.log(2)
        return total

    return per_row(row, z, y)


def zlpr(z, y):
    """Every row counts: a side without labels gives log 1 = 0."""

    def row(zs, ys):
        of_negatives = logsumexp([0.0] + [zs[j] for j in negatives(ys)])
        of_positives = logsumexp([0.0] + [-zs[j] for j in positives(ys)])
        return of_negatives + of_positives

    return per_row(row, z, y)


def deep_f(z, y):
    """z is n x c x (m+1): cross-entropy against y_i min(labels of the row, m), summed over the labels."""

    def row(zs, ys):
        count = min(len(positives(ys)), len(zs[0]) - 1)
        return sum(logsumexp(zs[i]) - zs[i][count if t == 1 else 0] for i, t in enumerate(ys))

    return per_row(row, z, y)


def label_count(z, y):
    """z is n x (m+1): cross-entropy against min(labels of the row, m)."""

    def row(zs, ys):
        return logsumexp(zs) - zs[min(len(positives(ys)), len(zs) - 1)]

    return per_row(row, z, y)


# Losses of a batch: scores of soft counts


def counts(pairs):
    """tp, fp, fn, tn of pairs (how much it is predicted, target)."""
    tp = sum(s * t for s, t in pairs)
    fp = sum(s * (1 - t) for s, t in pairs)
    fn = sum((1 - s) * t for s, t in pairs)
    tn = sum((1 - s) * (1 - t) for s, t in pairs)
    return tp, fp, fn, tn


def f1(tp, fp, fn, tn):
    return ratio(2 * tp, 2 * tp + fp + fn)


def smooth(z, y, score, slope=1.0, offset=0.0):
    """1 - a score of four counts with S(z) for "predicted", for each label, averaged; 0/0 is a score of 0."""

    def label(zs, ys, j):
        surrogate = [sigmoid(at(slope, j) * (v + at(offset, j))) for v in zs]
        return 1 - score(*counts(list(zip(surrogate, ys, strict=True))))

    return per_label(label, z, y)


def sigmoid_f1(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, f1, slope, offset)


def smooth_accuracy(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, lambda tp, fp, fn, tn: ratio(tp + tn, tp + fp + fn + tn), slope, offset)


def smooth_precision(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, lambda tp, fp, fn, tn: ratio(tp, tp + fp), slope, offset)


def smooth_npv(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, lambda tp, fp, fn, tn: ratio(tn, tn + fn), slope, offset)


def smooth_recall(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, lambda tp, fp, fn, tn: ratio(tp, tp + fn), slope, offset)


def smooth_specificity(z, y, slope=1.0, offset=0.0):
    return smooth(z, y, lambda tp, fp, fn, tn: ratio(tn, tn + fp), slope, offset)


def soft_f1(z, y):
    return sigmoid_f1(z, y)


def double_soft_f1(z, y):
    """1 - the mean of f1 on the positives and of f1 on the negatives (0 where a label has none of them)."""
    return smooth(z, y, lambda tp, fp, fn, tn: (f1(tp, fp, fn, tn) + f1(tn, fn, fp, tp)) / 2)


def mfc(z, y, slope=1.0, offsets=None):
    """1 - f1 of the pooled counts of sigmoid(slope (z + offset of the label))."""
    surrogate = per_element(
        lambda v, t, j: sigmoid(slope * (v + at(0.0 if offsets is None else offsets, j))), z, y
    )
    pairs = [pair for ss, ys in zip(surrogate, plain(y), strict=True) for pair in zip(ss, ys, strict=True)]
    return 1 - f1(*counts(pairs))


def unbounded_f1(z, y):
    """1 - f1 with z itself for "predicted", for each label, averaged; the denominator at least 1e-7."""

    def label(zs, ys, j):
        tp, fp, fn, _ = counts(list(zip(zs, ys, strict=True)))
        return 1 - 2 * tp / max(2 * tp + fp + fn, 1e-7)

    return per_label(label, z, y)


def hinge_f1(z, y):
    """(fn + fp) / (P + max(P - fn, 0)), fn and fp bounded from above by the hinge, pooled.

    It bounds 1 - f1, since 1 - f1 = (fn + fp) / (P + tp + fp). Without any positive f1 is 0 whatever is predicted,
    and this is 1.
    """
    missed = sum(map(sum, per_element(lambda v, t, j: t * hinge(1 - v), z, y)))
    raised = sum(map(sum, per_element(lambda v, t, j: (1 - t) * hinge(1 + v), z, y)))
    total = sum(map(sum, plain(y)))
    return (missed + raised) / (total + max(total - missed, 0.0)) if total else 1.0


# Losses of a batch: rankings


def two_way(z, y, temperature=4.0):
    """The mean over the columns that have a positive, plus the mean over the rows that have one.

    Each is softplus(T lse(-z/T over positives) + lse(z over negatives)), T the temperature; where all are positive
    the second lse is minus infinity and the column or row counts 0, in the mean. A mean of none is 0.
    """

    def side(vectors):
        values = []
        for zs, ys in vectors:
            if positives(ys):
                hardest_positive = temperature * logsumexp([-zs[j] / temperature for j in positives(ys)])
                hardest_negative = logsumexp([zs[j] for j in negatives(ys)])
                values.append(softplus(hardest_positive + hardest_negative))
        return mean(values)

    rows, targets = plain(z), plain(y)
    columns = zip(zip(*rows, strict=True), zip(*targets, strict=True), strict=True)
    return side(columns) + side(zip(rows, targets, strict=True))


# Losses of a batch: the Lagrangians of Eban et al. (2017)
#
# With an upper bound e of the indicator of a mistake, of P positives among n: tp >= P - E+ and fp <= E-, where E+
# and E- sum e over the positives and the negatives. The hinge is such a bound (k = 1); the log loss is ln 2 times
# one (k = ln 2), so what multiplies it with a constant multiplies the constant with ln 2. Multipliers m >= 0.
#
# Precision at recall >= b: lower fp while tp >= b P.
#     fp/n + m (b P - tp)/n          <=  E-/n + m (E+/n - (1-b) P/n)
# Recall at precision >= a: lower fn while (1-a) tp >= a fp.
#     fn/n + m (a fp - (1-a) tp)/n   <=  (1 + m (1-a)) E+/n + m a E-/n - m (1-a) P/n
#
# P/n is the prior pi, given here; the bounds hold where it is the share of positives of the batch itself.


def surrogate_losses(kind):
    """The loss of a positive, the loss of a negative, and k."""
    if kind == "hinge":
        return (lambda v: hinge(1 - v)), (lambda v: hinge(1 + v)), 1.0
    assert kind == "log", kind
    return (lambda v: softplus(-v)), softplus, math.log(2)


def precision_at_recall(z, y, target, multipliers, priors, kind="log"):
    """Mean over labels of mean over examples of (1-y) l- + m (y l+ + pi k (b-1)): the constant once an example."""
    plus, minus, k = surrogate_losses(kind)

    def label(zs, ys, j):
        b, m, pi = at(target, j), at(multipliers, j), at(priors, j)
        return mean(
            [(1 - t) * minus(v) + m * (t * plus(v) + pi * k * (b - 1)) for v, t in zip(zs, ys, strict=True)]
        )

    return per_label(label, z, y)


def recall_at_precision(z, y, target, multipliers, priors, kind="log"):
    """Mean over labels of mean over examples of (1+m(1-a)) y l+ + m a (1-y) l- - m (1-a) k pi."""
    plus, minus, k = surrogate_losses(kind)

    def label(zs, ys, j):
        a, m, pi = at(target, j), at(multipliers, j), at(priors, j)
        return mean(
            [
                (1 + m * (1 - a)) * t * plus(v) + m * a * (1 - t) * minus(v) - m * (1 - a) * k * pi
                for v, t in zip(zs, ys, strict=True)
            ]
        )

    return per_label(label, z, y)


def aucpr(z, y, multipliers, biases, priors, kind="log"):
    """Recall at precision >= a, averaged over the anchors a = 1/(A+1) ... A/(A+1): multipliers and biases c x A.

    Every anchor sees the logits plus its own bias. Eban et al. sum over the anchors with the width 1/(A+1) and
    divide by the length A/(A+1) that they cover: the mean.
    """
    multipliers, biases = np.asarray(multipliers, float), np.asarray(biases, float)
    anchors = multipliers.shape[1]
    at_anchor = []
    for i in range(anchors):
        moved = per_element(lambda v, t, j, i=i: v + at(biases, j, i), z, y)
        at_anchor.append(
            recall_at_precision(moved, y, (i + 1) / (anchors + 1), multipliers[:, i], priors, kind)
        )
    return mean(at_anchor)


ELEMENTS = (bce, focal, asymmetric, poly1, hill)
ROWS = (pick_all_labels, bp_mll, recall_at_k, lambda_loss, zlpr)
BATCHES = (
    sigmoid_f1,
    smooth_accuracy,
    smooth_precision,
    smooth_npv,
    smooth_recall,
    smooth_specificity,
    soft_f1,
    double_soft_f1,
    mfc,
    unbounded_f1,
    hinge_f1,
    two_way,
)
"""Those above that need logits n x c and targets alone."""


# What to try them on

KINKS = (-1.0, 0.0, 1.0, math.log(0.05 / 0.95))
"""Where a loss bends: the hinges, the sign, and the clip of ``asymmetric``."""


def random_case(seed, n, c):
    """Logits n x c, no two equal and none near a kink (no nearer than 1e-3), and targets, two in five positive."""
    rng = np.random.default_rng(seed)
    logits = []
    while len(logits) < n * c:
        v = float(rng.normal(scale=2.0))
        if all(abs(v - other) >= 1e-3 for other in (*KINKS, *logits)):
            logits.append(v)
    y = rng.random((n, c)) < 0.4
    return np.reshape(logits, (n, c)), y.astype(float)


def degenerate_cases():
    """name -> (logits, targets), smooth at each of these points for every loss but ``unbounded_f1``."""
    z, y = random_case(1, 5, 4)
    one_label, one_label_y = random_case(2, 6, 1)
    one_example, _ = random_case(3, 1, 5)
    mixed_rows = y.copy()
    mixed_rows[0], mixed_rows[1], mixed_rows[2] = 0, 1, [0, 0, 1, 0]
    mixed_labels = y.copy()
    mixed_labels[:, 0], mixed_labels[:, 1], mixed_labels[:, 2] = 0, 1, [0, 0, 1, 0, 0]
    signs = np.where(np.arange(20).reshape(5, 4) % 3 == 0, 1.0, -1.0)
    extreme = signs * 30 + z / 100  # no two equal
    return {
        "no positives": (z, np.zeros_like(y)),
        "all positives": (z, np.ones_like(y)),
        "empty, full and one-positive rows": (z, mixed_rows),
        "empty, full and one-positive labels": (z, mixed_labels),
        "one positive in each row": (z, np.eye(4)[[0, 1, 2, 3, 0]]),
        "one label": (one_label, one_label_y),
        "one example": (one_example, np.array([[1.0, 0, 1, 0, 0]])),
        "one entry, positive": (np.array([[0.7]]), np.ones((1, 1))),
        "one entry, negative": (np.array([[0.7]]), np.zeros((1, 1))),
        "extreme and right": (extreme, (signs > 0).astype(float)),
        "extreme and wrong": (extreme, (signs < 0).astype(float)),
        "extreme and mixed": (extreme, y),
    }
