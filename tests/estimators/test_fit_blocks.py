"""A table in blocks gives the same model as the whole table, bit for bit."""

import numpy as np
import pytest

from jointwise import JUPAD
from jointwise.exceptions import InputError


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    number = rng.normal(group, 1.0)
    number[rng.random(n) < 0.1] = np.nan
    return {
        "group": np.array(["a", "b", "c"], dtype=object)[group],
        "number": number,
        "count": rng.poisson(3 + group),
    }


def rows(table, chosen):
    return {name: column[chosen] for name, column in table.items()}


@pytest.mark.parametrize("settings", [{}, {"n_components": 2, "polish": None}])
def test_blocks_give_the_model_of_the_whole(settings):
    table = mixed(300)
    parts = [rows(table, np.arange(a, b)) for a, b in ((0, 7), (7, 200), (200, 300))]
    calls = []

    def blocks():
        calls.append(1)
        return iter(parts)

    whole = JUPAD(random_state=0, **settings).fit(table)
    pieces = JUPAD(random_state=0, **settings).fit_blocks(blocks)
    assert len(calls) == 2
    assert pieces.density_.schema == whole.density_.schema
    assert np.array_equal(pieces.density_.mixture.weights, whole.density_.mixture.weights)
    for a, b in zip(pieces.density_.mixture.coefficients, whole.density_.mixture.coefficients, strict=True):
        assert np.array_equal(a, b)
    assert pieces.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert pieces.n_features_in_ == 3


def test_no_blocks_is_no_table():
    with pytest.raises(InputError, match="0 sample"):
        JUPAD().fit_blocks(lambda: iter(()))
