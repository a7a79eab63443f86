"""The benchmark `tree_states`: bins and atoms as states of trees, on a law that is known."""

import numpy as np
import pytest
from scipy.integrate import quad

tree_states = pytest.importorskip("benchmarks.tree_states", reason="benchmarks are in a checkout of the source only")


def test_a_smooth_law_is_a_density():
    law = tree_states.SmoothTree.draw(2, 0)

    def density(a):
        b = np.linspace(-4, 4, 2_001)
        return np.trapezoid(np.exp(law.logpdf({"a": np.full_like(b, a), "b": b})), b)

    assert quad(density, -8, 8)[0] == pytest.approx(1, abs=1e-9)


def test_all_states_are_compared(monkeypatch):
    monkeypatch.setattr(tree_states, "N_COLUMNS", 3)
    monkeypatch.setattr(tree_states, "N_TEST", 200)
    monkeypatch.setattr(tree_states, "FLOORS", {})
    (row,) = tree_states.run(sizes=(200,), stacked=("smooth tree",))
    keys = (*tree_states.KEYS, *tree_states.STACKS)
    scores = [float(row[key]) for key in keys]
    assert max(scores) < float(row["truth"]) + 0.3
    assert min(scores) > float(row["truth"]) - 1.5
    assert all(float(row[f"{key} s"]) > 0 for key in keys)
