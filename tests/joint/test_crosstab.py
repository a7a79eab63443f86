"""Cross tables against one probability at a time."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import issparse
from tests.joint.cases import random_density, single

from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian
from jointwise.joint import crosstab
from jointwise.joint.crosstab import partition_atom_masses, partition_masses, value_masses
from jointwise.joint.events import Interval, Point, Values
from jointwise.tables.variables import Variable


def test_each_cell_is_the_probability_of_its_regions():
    density = random_density(np.random.default_rng(0), ["label", "counts", "smooth"], 3)
    regions = {
        2: [Interval(-np.inf, 0.0), Interval(0.0, np.inf)],
        0: [Point(0.0), Values((1.0,))],
        1: [Interval(-np.inf, 2.0), Interval(3.0, 3.0)],
    }
    table = density.mixture.crosstab(regions)
    assert table.shape == (2, 2, 2)
    for place in product(*map(range, table.shape)):
        event = {density.names[n]: each[i] for (n, each), i in zip(regions.items(), place, strict=True)}
        assert table[place] == pytest.approx(density.probability(event), rel=1e-12, abs=1e-300)


def test_an_interval_does_not_count_points_that_are_regions_of_their_own():
    atoms = Dictionary((Gaussian([0.0], [1.0]),)) + Dictionary.points([0.3, 50.0])
    density = single(Variable("x", "continuous", spikes=(0.3, 50.0)), atoms, [0.3, 0.6, 0.1])
    table = density.mixture.crosstab({0: [Interval(-np.inf, 40.0), Point(0.3), Interval(40.0, 60.0), Point(50.0)]})
    np.testing.assert_allclose(table, [0.3, 0.6, 0.0, 0.1])
    assert table[2] == 0


@pytest.mark.parametrize("half", [0.0, 0.5])
def test_many_values_of_many_single_atoms_have_sparse_masses(half, monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.permutation(40)[:30].astype(float)
    atoms, values = Dictionary.points(points[:20]) + Dictionary.points(points[20:]), rng.permutation(60).astype(float)
    dense = value_masses(atoms, values, half)
    monkeypatch.setattr(crosstab, "MOST_DENSE", 0)
    sparse = value_masses(atoms, values, half)
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    regions = [
        Values(tuple(values[:7].tolist()), half),
        Point(values[9], half),
        Values(tuple(values[10:].tolist()), half),
    ]
    each = [crosstab.atom_masses(atoms, region) for region in regions]
    np.testing.assert_array_equal(partition_atom_masses(atoms, regions), each)


def test_as_many_categories_as_a_column_may_have_are_no_matrix():
    n = 65_535
    atoms = Dictionary.categories(n)
    sets = [Values(tuple(np.arange(n / 2).tolist())), Values(tuple(np.arange(n / 2 + 0.5, n).tolist()))]
    found = partition_masses(atoms, np.full((n, 1), 1 / n), sets)
    assert found.sum() == pytest.approx(1)
