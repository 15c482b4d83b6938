"""What is said of differences, against scikit-learn, enumeration and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score

from scoreloss.bench import across
from scoreloss.bench.packed import pack, unpack
from scoreloss.bench.results import RESAMPLED
from scoreloss.bench.stats import Resamples, Row, summarise, with_gaps
from scoreloss.checks import InputError


def some_targets(rng, n, c, rate=0.4):
    return rng.random((n, c)) < rate


def with_errors(rng, targets, rate):
    return targets ^ (rng.random(targets.shape) < rate)


def test_mean_spread_and_quartiles_over_seeds():
    row = summarise("x", "r", {k: {"test": {"micro_f1": v}} for k, v in enumerate((0.1, 0.2, 0.6))})
    assert row.seeds == (0, 1, 2)
    assert row.mean["micro_f1"] == pytest.approx(0.3)
    assert row.std["micro_f1"] == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1))
    assert row.quartiles("micro_f1") == pytest.approx((0.15, 0.2, 0.4))
    assert summarise("x", "r", {3: {"test": {"micro_f1": 0.1}}}).std["micro_f1"] == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_packed_label_sets_come_back(seed, n, c):
    matrix = np.random.default_rng(seed).random((n, c)) < 0.5
    assert np.array_equal(unpack(pack(matrix), (n, c)), matrix)
    with pytest.raises(ValueError, match="bytes"):
        unpack(pack(matrix), (n + 8, c))


@pytest.mark.parametrize("text", ["no base64!", "AAAA"])
def test_packed_label_sets_that_cannot_be_are_refused(text):
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(text, (1, 1))


def test_a_resample_is_the_metric_with_each_example_as_often_as_it_was_drawn(rng):
    """Every metric, for two seeds whose test parts overlap, against scikit-learn's sample_weight."""
    tests = {0: np.arange(40), 7: np.arange(20, 50)}
    targets = {seed: some_targets(rng, len(rows), 5) for seed, rows in tests.items()}
    for y in targets.values():
        y[:, 4] = False
    predicted = {seed: with_errors(rng, y, 0.3) for seed, y in targets.items()}
    resamples = Resamples(targets, tests, resamples=6)
    (found,) = resamples.metrics([{s: pack(p) for s, p in predicted.items()}], RESAMPLED)
    assert np.array_equal(resamples.weights[0][:, 20:], resamples.weights[7][:, :20])
    for place, seed in enumerate(tests):
        for b in range(6):
            weight = resamples.weights[seed][b]
            for name in RESAMPLED:
                average, score = name.split("_")
                truth = {"f1": f1_score, "precision": precision_score}[score](
                    targets[seed], predicted[seed], average=average, sample_weight=weight, zero_division=0
                )
                assert found[name][b, place] == pytest.approx(truth, abs=1e-6), (name, seed)


def test_every_resample_draws_as_many_examples_as_there_are(rng):
    y = some_targets(rng, 30, 2)
    resamples = Resamples({0: y, 1: y}, {0: np.arange(30), 1: np.arange(30)})
    assert set(resamples.weights[0].sum(axis=1)) == {30}
    assert resamples.weights[0].mean(axis=0) == pytest.approx(np.ones(30), abs=0.2)


def test_the_spread_of_the_mean_over_seeds_is_not_too_small():
    """s^2 / S, where resampling S of S seeds would give (S - 1) / S of it."""
    values = np.array([0.1, 0.5, 0.2, 0.9])
    y = np.ones((3, 1), bool)
    seeds = range(4)
    resamples = Resamples(dict.fromkeys(seeds, y), dict.fromkeys(seeds, np.arange(3)), resamples=20_000)
    means = (resamples.seed_weights * values).sum(axis=1) / resamples.seed_weights.sum(axis=1)
    assert means.var() == pytest.approx(values.var(ddof=1) / 4, rel=0.03)


def test_few_seeds_know_their_own_spread_badly():
    """Where seeds are all the noise, equals are told apart more often than the 5 % of the level; less with more seeds."""
    rng = np.random.default_rng(0)
    told_apart = {}
    for several in (5, 10):
        seeds = range(several)
        y = np.ones((2, 1), bool)
        resamples = Resamples(dict.fromkeys(seeds, y), dict.fromkeys(seeds, np.arange(2)))
        hits = 0
        for _ in range(1000):
            behind = rng.normal(size=several)
            behind *= np.sign(behind.mean())
            low, _ = resamples.gap(np.tile(behind, (1000, 1)), np.zeros((1000, several)))
            hits += low > 0
        told_apart[several] = hits / 1000
    print(told_apart)
    assert told_apart[10] < 0.11 < told_apart[5] < 0.19


def rows_of(predicted, targets):
    """Rows with their weighted F1, as a benchmark would judge them."""
    return [
        summarise(
            name,
            "r",
            {
                seed: {"test": {"weighted_f1": f1_score(targets[seed], p, average="weighted")}}
                for seed, p in of_name.items()
            },
        )
        for name, of_name in predicted.items()
    ]


def gaps_of(predicted, targets, **options):
    tests = {seed: np.arange(len(y)) for seed, y in targets.items()}
    packed = [{seed: pack(p) for seed, p in of_name.items()} for of_name in predicted.values()]
    resamples = Resamples(targets, tests, **options)
    rows = with_gaps(rows_of(predicted, targets), packed, resamples, ["weighted_f1"])
    return {row.name: row for row in rows}


def test_what_predicts_the_same_is_within_noise_and_what_is_far_worse_is_not(rng):
    y = some_targets(rng, 300, 4)
    targets = dict.fromkeys(range(3), y)
    good = {seed: with_errors(rng, y, 0.1) for seed in targets}
    bad = {seed: with_errors(rng, y, 0.3) for seed in targets}
    found = gaps_of({"good": good, "same": dict(good), "bad": bad}, targets)
    assert "weighted_f1" not in found["good"].gaps
    assert not found["good"].within_noise("weighted_f1")
    assert found["same"].within_noise("weighted_f1")
    assert found["same"].gaps["weighted_f1"].mean == 0
    gap = found["bad"].gaps["weighted_f1"]
    assert 0 < gap.low < gap.mean < gap.high
    assert not gap.within_noise


def test_a_small_but_constant_difference_is_found_because_the_draws_are_paired(rng):
    """The two intervals overlap widely; the difference is that of twenty examples which one gets right everywhere."""
    y = some_targets(rng, 300, 4)
    base = with_errors(rng, y, 0.2)
    better = base.copy()
    better[::15] = y[::15]
    found = gaps_of({"better": {0: better}, "base": {0: base}}, {0: y})
    gap = found["base"].gaps["weighted_f1"]
    assert gap.low > 0
    assert gap.high < 0.05


def test_seeds_that_one_of_them_lacks_are_left_out(rng):
    y = some_targets(rng, 200, 3)
    targets = dict.fromkeys(range(3), y)
    a = {seed: with_errors(rng, y, 0.1) for seed in targets}
    b = {1: a[1]}
    c = {seed: with_errors(rng, y, 0.4) for seed in (0, 2)}
    found = gaps_of({"a": a, "b": b, "c": c}, targets)
    best = max(found.values(), key=lambda row: row.mean["weighted_f1"]).name
    other = "b" if best == "a" else "a"
    assert found[other].within_noise("weighted_f1")
    assert not found["c"].within_noise("weighted_f1") or best == "b"


def test_without_a_common_seed_nothing_can_be_told(rng):
    y = some_targets(rng, 50, 3)
    found = gaps_of({"a": {0: y}, "b": {1: ~y}}, {0: y, 1: y})
    assert found["b"].gaps["weighted_f1"].within_noise


@pytest.mark.slow
def test_equals_are_told_apart_rarely_and_a_real_difference_mostly():
    """100 simulated comparisons of two contenders on new examples and seeds, with errors of 20 % or 20 and 25 %."""
    rng = np.random.default_rng(0)
    told_apart = {0.20: 0, 0.25: 0}
    for rate in told_apart:
        for _ in range(100):
            y = some_targets(rng, 200, 3)
            targets = dict.fromkeys(range(5), y)
            hard = rng.random(y.shape)  # an entry is as hard for both and for every seed, in part
            sets = {
                name: {seed: y ^ ((hard + rng.random(y.shape)) / 2 < np.sqrt(r / 2)) for seed in targets}
                for name, r in (("a", 0.20), ("b", rate))
            }
            found = gaps_of(sets, targets, resamples=200)
            told_apart[rate] += not any(row.within_noise("weighted_f1") for row in found.values())
    print(told_apart)
    assert told_apart[0.20] <= 12, told_apart
    assert told_apart[0.25] >= 85, told_apart


def test_equal_rows_are_one_matrix_product(rng):
    """The best, of many: the first of equals, and no row is compared with itself."""
    y = some_targets(rng, 20, 2)
    row = Row("a", "r", (0,), {"weighted_f1": np.array([1.0])})
    resamples = Resamples({0: y}, {0: np.arange(20)}, resamples=5)
    marked = with_gaps([row, row], [{0: pack(y)}] * 2, resamples, ["weighted_f1"])
    assert [bool(m.gaps) for m in marked] == [False, True]


def plain_friedman(table):
    """Demšar 2006, with the correction for ties, in loops."""
    n, k = table.shape
    ranks = [
        [sum(other > own for other in line) + (sum(other == own for other in line) + 1) / 2 for own in line]
        for line in table.tolist()
    ]
    sums = [sum(line[j] for line in ranks) for j in range(k)]
    ties = sum((line.count(value) ** 3 - line.count(value)) for line in table.tolist() for value in set(line))
    statistic = 12 / (n * k * (k + 1)) * sum(s * s for s in sums) - 3 * n * (k + 1)
    return [s / n for s in sums], statistic / (1 - ties / (n * (k**3 - k)))


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_is_its_definition(rng, ties):
    table = rng.random((8, 5))
    table = table.round(1) if ties else table
    ranks, statistic = plain_friedman(table)
    found = across.friedman(table)
    assert found.ranks == pytest.approx(ranks)
    assert found.statistic == pytest.approx(statistic)
    assert 0 < found.p < 1


def test_where_all_are_equal_friedman_finds_nothing():
    found = across.friedman(np.ones((3, 4)))
    assert (found.statistic, found.p) == (0, 1)
    assert found.ranks.tolist() == [2.5] * 4
    with pytest.raises(InputError, match="needs 2 x 3"):
        across.friedman(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("contenders", "q"),
    [
        (2, 1.960),
        (3, 2.343),
        (4, 2.569),
        (5, 2.728),
        (6, 2.850),
        (7, 2.949),
        (8, 3.031),
        (9, 3.102),
        (10, 3.164),
    ],
)
def test_the_critical_difference_is_that_of_the_printed_table(contenders, q):
    """Demšar 2006, table 5a; and his example: 14 datasets, 4 contenders, 1.25."""
    expected = q * np.sqrt(contenders * (contenders + 1) / (6 * 14))
    assert across.critical_difference(14, contenders) == pytest.approx(expected, rel=3e-4)
    assert across.critical_difference(14, 4) == pytest.approx(1.25, abs=0.005)


def enumerated_wilcoxon(differences):
    """The share of sign patterns whose smaller rank sum is at most the one seen; no ties, no zeros."""
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    total = ranks.sum()

    def smaller(signs):
        positive = ranks[np.asarray(signs)].sum()
        return min(positive, total - positive)

    seen = smaller(differences > 0)
    patterns = list(itertools.product([False, True], repeat=len(differences)))
    return np.mean([smaller(signs) <= seen for signs in patterns])


def test_wilcoxon_with_holm_is_enumeration_and_a_loop(rng):
    table = rng.random((8, 3)) + np.array([0.0, 0.1, 0.9])
    pairs = [(0, 1), (0, 2), (1, 2)]
    plain = {pair: enumerated_wilcoxon(table[:, pair[0]] - table[:, pair[1]]) for pair in pairs}
    found = across.wilcoxon_holm(table)
    largest = 0.0
    for left, pair in zip((3, 2, 1), sorted(pairs, key=plain.get), strict=True):
        largest = max(largest, min(1, left * plain[pair]))
        assert found[pair] == found[pair[::-1]] == pytest.approx(largest)
    assert np.diag(found).tolist() == [1, 1, 1]
    assert across.wilcoxon_holm(np.ones((8, 2))).tolist() == [[1, 1], [1, 1]]


@given(st.lists(st.integers(1, 12), min_size=2, max_size=6), st.integers(0, 6))
def test_groups_are_all_largest_runs_of_alike(ranks, reach):
    values = np.array(ranks, float)
    alike = np.abs(values[:, None] - values) <= reach
    order = np.argsort(values, kind="stable")
    runs = [
        set(order[a:b].tolist())
        for a in range(len(order))
        for b in range(a + 2, len(order) + 1)
        if alike[np.ix_(order[a:b], order[a:b])].all()
    ]
    largest = [run for run in runs if not any(run < other for other in runs)]
    assert sorted(map(sorted, largest)) == sorted(sorted(g.tolist()) for g in across.groups(values, alike))
