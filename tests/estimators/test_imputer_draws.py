"""JointImputer(sample_posterior=True): draws instead of best guesses."""

import numpy as np
import pytest
from tests.estimators.cases import CONTAINERS, QUICK, make_imputer, mixed_columns, table


def gappy(n=200):
    X = np.random.default_rng(0).normal(size=(n, 2))
    X[::2, 1] = np.nan
    return X


def test_known_cells_stay_and_gaps_are_spread():
    X = gappy()
    filled = make_imputer(**QUICK, sample_posterior=True).fit_transform(X)
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[known], X[known])
    guesses = make_imputer(**QUICK).fit_transform(X)
    assert filled[::2, 1].std() > 0.7 > guesses[::2, 1].std()


@pytest.mark.parametrize("container", CONTAINERS)
def test_mixed_tables_are_drawn_with_their_categories(container):
    data = table(container, mixed_columns(gaps=True))
    filled = make_imputer(**QUICK, sample_posterior=True).set_output(transform="pandas").fit_transform(data)
    assert not filled.isna().any(axis=None)
    assert set(filled.iloc[:, 2]) == {"cook", "nurse"}
    assert (filled.iloc[:, 1] == filled.iloc[:, 1].round()).all()


def test_an_integer_seed_gives_the_same_draws_and_none_gives_others():
    X = gappy()
    imputer = make_imputer(**QUICK, sample_posterior=True).fit(X)
    np.testing.assert_array_equal(imputer.transform(X), imputer.transform(X))
    imputer.set_params(random_state=None)
    assert not np.array_equal(imputer.transform(X), imputer.transform(X))
    imputer.set_params(random_state=np.random.RandomState(0))
    assert not np.array_equal(imputer.transform(X), imputer.transform(X))
