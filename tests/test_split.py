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

    ours = unevenness(y, sl.stratified_split(y, [0.8, 0.2], seed=0))
    shuffled = rng.permutation(2000)
    assert ours < 0.25 * unevenness(y, [shuffled[:1600], shuffled[1600:]])


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


@given(data=st.data())
def test_groups_never_cross_parts(data):
    y, _ = data.draw(matrices(max_rows=30))
    groups = np.array(data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=len(y), max_size=len(y))))
    shares = data.draw(st.sampled_from([[0.8, 0.2], [0.5, 0.25, 0.25], [1.0], [0.5, 0.5, 0.0]]))
    parts = sl.stratified_split(y, shares, groups=groups, seed=data.draw(st.integers(0, 5)))
    assert sorted(np.concatenate(parts)) == list(range(len(y)))
    named = [set(groups[part]) for part in parts]
    assert sum(map(len, named)) == len(set(groups))
    largest = max(np.sum(groups == g) for g in groups)
    assert all(abs(len(p) - share * len(y)) <= largest + 0.5 for p, share in zip(parts, shares, strict=True))


def test_groups_of_one_keep_sizes_exact_and_labels_spread():
    rng = np.random.default_rng(1)
    y = rng.random((2000, 20)) < np.linspace(0.005, 0.3, 20)
    parts = sl.stratified_split(y, [1200, 400, 400], groups=rng.permutation(2000))
    assert [len(p) for p in parts] == [1200, 400, 400]
    shuffled = np.split(rng.permutation(2000), [1200, 1600])
    assert unevenness(y, parts) < 0.25 * unevenness(y, shuffled)


def test_labels_of_groups_are_spread_more_evenly_than_by_chance():
    rng = np.random.default_rng(1)
    y = rng.random((2000, 20)) < np.linspace(0.005, 0.3, 20)
    groups = rng.integers(0, 400, 2000)
    parts = sl.stratified_split(y, [0.6, 0.2, 0.2], groups=groups)
    assert [len(p) for p in parts] == [1200, 400, 400]
    by_chance = rng.choice(3, p=[0.6, 0.2, 0.2], size=400)[groups]
    assert unevenness(y, parts) < 0.5 * unevenness(y, [np.flatnonzero(by_chance == p) for p in range(3)])


def unevenness(y, parts):
    return np.abs(np.array([y[p].mean(0) for p in parts]) - y.mean(0)).mean()


def test_a_group_too_large_for_any_part_goes_to_the_largest():
    groups = ["a"] * 9 + ["b"]
    parts = sl.stratified_split(np.ones((10, 1)), [0.3, 0.7], groups=groups)
    assert [len(p) for p in parts] == [1, 9]


def test_bad_groups_are_named():
    with pytest.raises(ValueError, match=r"groups have shape \(3,\): they must name one for each of 4"):
        sl.stratified_split(np.ones((4, 1)), [0.5, 0.5], groups=[1, 1, 2])
