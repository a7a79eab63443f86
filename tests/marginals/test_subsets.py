"""Counts of chosen subsets as values that add up."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from jointwise.axes import DiscreteAxis
from jointwise.exceptions import InputError
from jointwise.marginals import PairwiseMarginals, SubsetMarginals, subsets
from jointwise.tables.variables import Schema, Variable

SCHEMA = Schema(tuple(Variable(name, "categorical", categories=("u", "v", "w")) for name in "abcd"))
AXES = (DiscreteAxis([0.0, 1.0, 2.0]),) * 4
TRIPLES = list(combinations(range(4), 3))


def rows(n, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    table = rng.choice(["u", "v", "w"], size=(n, 4)).astype(object)
    table[rng.random(table.shape) < missing] = None
    return table


def counts(n=200, seed=0, **options):
    return SubsetMarginals.of(rows(n, seed), SCHEMA, AXES, TRIPLES, **options)


def test_blocks_add_to_the_whole():
    whole = SubsetMarginals.of(np.vstack([rows(150, 1), rows(50, 2)]), SCHEMA, AXES, TRIPLES)
    parts = counts(150, 1) + counts(50, 2)
    assert whole == parts
    assert hash(whole) == hash(parts)
    assert whole != counts(150, 1)
    assert repr(whole) == "SubsetMarginals(4 variables, 4 subsets, 200 rows)"


def test_pairs_are_those_of_pairwise_marginals():
    data = rows(300)
    pairs = list(combinations(range(4), 2))
    ours = SubsetMarginals.of(data, SCHEMA, AXES, pairs)
    theirs = PairwiseMarginals.of(data, SCHEMA, AXES)
    for pair in pairs:
        np.testing.assert_array_equal(ours.counts[pair], theirs.pair(*pair))


def test_weights_count_as_repeats():
    data = rows(20)
    twice = SubsetMarginals.of(np.vstack([data, data]), SCHEMA, AXES, TRIPLES)
    weighed = SubsetMarginals.of(data, SCHEMA, AXES, TRIPLES, sample_weight=np.full(20, 2.0))
    assert twice == weighed


def test_masses_sum_to_one_and_leave_out_what_no_row_has():
    data = rows(50)
    data[:, 3] = None
    masses = SubsetMarginals.of(data, SCHEMA, AXES, TRIPLES).masses()
    assert list(masses) == [(0, 1, 2)]
    assert masses[0, 1, 2].sum() == pytest.approx(1.0)


def test_what_does_not_add():
    one = counts()
    with pytest.raises(InputError, match="Counts of different subsets do not add"):
        one + SubsetMarginals.of(rows(5), SCHEMA, AXES, TRIPLES[:2])
    with pytest.raises(InputError, match="Counts of different schemas do not add"):
        one + SubsetMarginals.of(rows(5)[:, :3], Schema(SCHEMA.variables[:3]), AXES[:3], TRIPLES[:1])
    with pytest.raises(TypeError):
        one + 1


@pytest.mark.parametrize("subset", [(), (1, 0), (0, 0), (0, 4), (-1, 0)])
def test_a_subset_is_increasing_positions(subset):
    with pytest.raises(InputError, match="A subset is a tuple of increasing positions from 0 to 3"):
        SubsetMarginals.of(rows(5), SCHEMA, AXES, [subset])


def test_tables_must_fit_the_axes():
    with pytest.raises(InputError, match=r"`counts\[\(0, 1\)\]` must be a table of shape \(3, 3\)"):
        SubsetMarginals(SCHEMA, AXES, {(0, 1): np.ones((2, 3))}, 6)
    with pytest.raises(InputError, match="that are not negative"):
        SubsetMarginals(SCHEMA, AXES, {(0, 1): -np.ones((3, 3))}, 6)
    with pytest.raises(InputError, match="Expected 4 axes"):
        SubsetMarginals(SCHEMA, AXES[:2], {}, 6)
    with pytest.raises(InputError, match="`codes` must have 4 columns"):
        SubsetMarginals.from_codes(np.zeros((2, 3), dtype=np.uint8), SCHEMA, AXES, TRIPLES)


def test_too_many_cells_are_refused_before_counting(monkeypatch):
    monkeypatch.setattr(subsets, "MEMORY_LIMIT", 500)
    with pytest.raises(InputError, match="the widest columns"):
        counts()
