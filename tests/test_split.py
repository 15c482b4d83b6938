"""Stratified splits: exact sizes, disjoint and complete, each label spread as evenly as it can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scoreloss as sl
from tests.oracles import matrices


@given(data=st.data())
def test_sizes_are_exact_and_nothing_is_lost(data):
    y, _ = data.draw(matrices(max_rows=30))
    cut = data.draw(st.integers(0, len(y)))
    parts = sl.stratified_split(y, [cut, len(y) - cut], seed=data.draw(st.integers(0, 5)))
    assert [len(p) for p in parts] == [cut, len(y) - cut]
    assert sorted(np.concatenate(parts)) == list(range(len(y)))


def test_labels_are_spread_more_evenly_than_by_chance():
    rng = np.random.default_rng(1)
    y = rng.random((2000, 20)) < np.linspace(0.005, 0.3, 20)

    def unevenness(parts):
        return np.abs(np.array([y[p].mean(0) for p in parts]) - y.mean(0)).mean()

    ours = unevenness(sl.stratified_split(y, [0.8, 0.2], seed=0))
    shuffled = rng.permutation(2000)
    assert ours < 0.25 * unevenness([shuffled[:1600], shuffled[1600:]])


def test_a_seed_repeats_itself_and_another_differs():
    y = np.random.default_rng(0).random((100, 4)) < 0.3
    first, again, other = (sl.stratified_split(y, [0.5, 0.5], seed=s)[0] for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_bad_sizes_are_named():
    y = np.ones((4, 1))
    with pytest.raises(ValueError, match="sum to the 4 examples"):
        sl.stratified_split(y, [1, 2])
    with pytest.raises(ValueError, match="sum to 1"):
        sl.stratified_split(y, [0.5, 0.6])
    with pytest.raises(ValueError, match="none below 0"):
        sl.stratified_split(y, [-1, 5])
