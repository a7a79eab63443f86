"""Designs: one for each set of rows, made once."""

import numpy as np

from jointwise.fitting.blocks.designs import Designs
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows


def coded(n, seed=0):
    x = np.random.default_rng(seed).normal(size=n)
    data = {"a": x, "b": x**2 + x}
    profile = Profile.of(data)
    schema = profile.schema()
    coarse = profile.axes(schema, 16)
    return CodedRows.of(data, schema, profile.axes(schema, 16, fine=["a", "b"])), coarse


def test_a_design_of_the_same_rows_is_made_once():
    rows, coarse = coded(100)
    designs, rng = Designs("log"), np.random.default_rng(0)
    first, again = (designs.of(rows, coarse, rng) for _ in range(2))
    part = designs.of(rows.take(np.arange(50)), coarse, rng)
    assert again is first
    assert part is not first
    assert part.spreads.tolist() != first.spreads.tolist()


def test_designs_of_large_tables_are_not_kept():
    rows, coarse = coded(SMALL_TABLE)
    designs, rng = Designs("none"), np.random.default_rng(0)
    assert designs.of(rows, coarse, rng) is not designs.of(rows, coarse, rng)
