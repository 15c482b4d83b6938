"""The decoders against enumeration of all label sets, and against a plain sum over counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import scoreloss as sl
from scoreloss.decode import expected_f
from tests.oracles import f_of_sets, label_sets

BETAS = [1.0, 2.0, 0.5, 1.5, 0.7, 2**0.25, 10.0]
"""F1, rational squares, and squares with which only the general way can deal."""


def expectations(chances_of_sets, beta):
    """The expected F-beta of predicting each label set, when each is true by its chance."""
    sets = label_sets(int(np.log2(len(chances_of_sets))))
    return {
        tuple(h): sum(p * f_of_sets(h, y, beta) for p, y in zip(chances_of_sets, sets, strict=True) if p)
        for h in sets
    }


def independent(chances):
    """The chance of each label set."""
    return np.prod(np.where(label_sets(len(chances)), chances, 1 - np.asarray(chances)), axis=1)


def assert_best(predicted, chances_of_sets, beta):
    expected = expectations(chances_of_sets, beta)
    assert expected[tuple(predicted)] == pytest.approx(max(expected.values()), abs=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@given(tenths=hnp.arrays(np.int64, st.integers(1, 5), elements=st.integers(0, 10)))
def test_independent_labels_equal_enumeration(beta, tenths):
    chances = tenths / 10
    predicted = sl.ExpectedF1(beta=beta).predict([chances])[0]
    assert_best(predicted, independent(chances), beta)


@pytest.mark.parametrize("beta", [1.0, 2.0, 0.7])
@given(data=st.data())
def test_joint_chances_equal_enumeration(beta, data):
    c = data.draw(st.integers(1, 5))
    parts = data.draw(hnp.arrays(np.int64, 2**c, elements=st.integers(0, 5)))
    parts[data.draw(st.integers(0, 2**c - 1))] += 1
    chances = parts / parts.sum()
    predicted = sl.ExpectedF1(joint=True, beta=beta).predict([joint_of(chances, c)])[0]
    assert_best(predicted, chances, beta)


def joint_of(chances_of_sets, m):
    """joint[i, s - 1]: the chance that label i is there, and s labels are."""
    sets = label_sets(int(np.log2(len(chances_of_sets))))
    sizes = sets.sum(axis=1)
    return np.stack([chances_of_sets * (sizes == s) @ sets for s in range(1, m + 1)], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [1.0, 2.0, 0.7])
def test_eight_labels_equal_enumeration(beta, rng):
    sets = label_sets(8)
    table = np.array([[f_of_sets(h, y, beta) for y in sets] for h in sets])
    place = {tuple(h): k for k, h in enumerate(sets)}
    for power in (0.3, 1, 4):
        chances = rng.random((12, 8)) ** power
        joint = rng.dirichlet(np.full(256, 0.02), size=12)
        decided = sl.ExpectedF1(beta=beta).predict(chances)
        decided_jointly = sl.ExpectedF1(beta=beta, joint=True).predict([joint_of(p, 8) for p in joint])
        for i in range(12):
            for predicted, p in ((decided[i], independent(chances[i])), (decided_jointly[i], joint[i])):
                expected = table @ p
                assert expected[place[tuple(predicted)]] == pytest.approx(expected.max(), abs=1e-12)


def sums_over_counts(falling, beta):
    """The expected F-beta of the first k labels, for k = 0 ... c, over all pairs of counts."""

    def distribution(chances):
        counts = np.ones(1)
        for p in chances:
            counts = np.convolve(counts, [1 - p, p])
        return counts

    b2 = beta**2
    values = [float(np.prod(1 - falling))]
    for k in range(1, len(falling) + 1):
        values.append(
            sum(
                p * q * (1 + b2) * hits / (k + b2 * (hits + missed))
                for hits, p in enumerate(distribution(falling[:k]))
                for missed, q in enumerate(distribution(falling[k:]))
            )
        )
    return values


@pytest.mark.parametrize("beta", BETAS)
def test_more_labels_equal_the_sum_over_counts(beta, rng):
    falling = -np.sort(-(rng.random((2, 30)) ** 3), axis=1)
    for row, chances in zip(expected_f(falling, beta), falling, strict=True):
        assert row == pytest.approx(sums_over_counts(chances, beta), rel=1e-12)


@pytest.mark.slow
def test_the_two_ways_agree_to_rounding_on_hundreds_of_labels(rng):
    falling = -np.sort(-(rng.random((3, 400)) ** 8), axis=1)
    exact, general = expected_f(falling, 2.0), expected_f(falling, 2.0 * (1 + 1e-13))
    assert exact == pytest.approx(general, rel=1e-11)
    beside = np.nextafter(2.0, 3) * (1 + 1e-10)
    assert exact == pytest.approx(expected_f(falling, beside), rel=1e-8)


@pytest.mark.parametrize("joint", [False, True])
def test_rows_are_decided_alone(joint, rng):
    """Whatever blocks they are worked on in."""
    chances = rng.random((150, 70)) ** 3
    if joint:
        chances = chances[..., None] * rng.dirichlet(np.ones(6), size=(150, 70))
    rule = sl.ExpectedF1(joint=joint)
    whole = rule.predict(chances)
    for i in (0, 77, 149):
        assert np.array_equal(rule.predict(chances[i : i + 1])[0], whole[i])


def test_nothing_certain_everything_certain():
    assert not sl.ExpectedF1().predict([[0.0, 0.0]]).any()
    assert sl.ExpectedF1().predict([[1.0, 1.0]]).all()
    assert not sl.ExpectedF1(joint=True).predict([[[0.1], [0.1]]]).any()


def test_nothing_is_the_best_set_where_all_or_nothing_is_true():
    """P(all three) = 0.45 leaves 0.55 for none, though each label has its 0.45 in the joint chances."""
    joint = np.zeros((1, 3, 3))
    joint[0, :, 2] = 0.45
    assert not sl.ExpectedF1(joint=True).predict(joint).any()
    joint[0, :, 2] = 0.55
    assert sl.ExpectedF1(joint=True).predict(joint).all()


def test_the_joint_chances_of_deep_f_can_be_decoded():
    import torch

    from scoreloss.torch import DeepF

    loss = DeepF(3)
    logits = torch.randn(6, 4, 4, generator=torch.Generator().manual_seed(0))
    rule = sl.ExpectedF1(joint=True).fit(np.eye(6, 4), loss.joint(logits))
    assert rule.predict(loss.joint(logits)).shape == (6, 4)
