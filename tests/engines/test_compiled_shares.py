"""Shares of sets given other sets, against loops over rows."""

import numpy as np
import pytest

from jointwise.engines.compiled_shares import SetsOfColumns
from jointwise.joint.comparison import Noise

N_CELLS = (3, 5, 2, 4)


def drawn_sets(rng, n_cells, n):
    """Rows with gaps, and one to four sets of cells of each column, some of them empty or of all cells."""
    codes = np.array([rng.integers(k + 1, size=n) for k in n_cells])
    subsets = [[np.flatnonzero(rng.random(k) < 0.5) for _ in range(rng.integers(1, 5))] for k in n_cells]
    every = [cells for own in subsets for cells in own]
    first = np.concatenate([[0], np.cumsum([len(own) for own in subsets])])
    ends = np.cumsum([len(cells) for cells in every])
    weights = rng.random(n) + 0.5
    return subsets, SetsOfColumns(codes, np.array(n_cells), weights, first, np.concatenate(every), ends)


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_loop_over_rows(seed):
    rng = np.random.default_rng(seed)
    subsets, sets = drawn_sets(rng, N_CELLS, 60)
    column, others = 1, np.array([3, 0])
    given = (rng.random((3, N_CELLS[column])) < 0.6).astype(float)
    asked = [(o, cells) for o, k in enumerate(others) for cells in subsets[k]]
    answers = rng.random((len(asked), len(given)))
    hits, totals, _ = sets.compared(column, others, given, answers, 4.0, 1.0)
    for g, condition in enumerate(given):
        held = np.array([own < N_CELLS[column] and condition[own] == 1 for own in sets.codes[column]])
        for o, k in enumerate(others):
            rows = held & (sets.codes[k] < N_CELLS[k])
            assert totals[o, g] == pytest.approx(sets.weights[rows].sum())
        for e, (o, cells) in enumerate(asked):
            assert hits[e, g] == pytest.approx(sets.weights[held & np.isin(sets.codes[others[o]], cells)].sum())


@pytest.mark.parametrize("repeats", [1.0, 2.5])
def test_what_noise_explains_is_put_aside_by_the_quick_interval(repeats):
    rng, noise = np.random.default_rng(0), Noise(100)
    _, sets = drawn_sets(rng, N_CELLS, 300)
    given, others, least = np.eye(N_CELLS[1]), np.array([0, 2, 3]), 40.0
    n_asked = sum(np.diff(sets.first)[others])
    answers = rng.random((n_asked, len(given))) * 1.2 - 0.1  # rounding may lead out of the interval
    hits, totals, beyond = sets.compared(1, others, given, answers, noise.z**2 * repeats, least)
    n = np.repeat(totals, np.diff(sets.first)[others], axis=0)
    expected = (noise.approximate(np.clip(answers, 0, 1), hits / n, n / repeats) > 0) & (n >= least)
    assert 0.1 < beyond.mean() < 0.9
    np.testing.assert_array_equal(beyond, expected)
