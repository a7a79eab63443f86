"""Tables of regions: the same as one probability at a time."""

from itertools import product

import numpy as np
import pytest
from tests.joint.cases import random_density

from jointwise.joint.crosstab import crosstab
from jointwise.joint.events import Interval, Point, Values


def test_each_cell_is_the_probability_of_its_regions():
    density = random_density(np.random.default_rng(0), ["label", "counts", "smooth"], 3)
    regions = {
        2: [Interval(-np.inf, 0.0), Interval(0.0, np.inf)],
        0: [Point(0.0), Values((1.0,))],
        1: [Interval(-np.inf, 2.0), Interval(3.0, 3.0)],
    }
    table = crosstab(density.mixture, regions)
    assert table.shape == (2, 2, 2)
    for place in product(*map(range, table.shape)):
        event = {density.names[n]: each[i] for (n, each), i in zip(regions.items(), place, strict=True)}
        assert table[place] == pytest.approx(density.probability(event), rel=1e-12, abs=1e-300)
