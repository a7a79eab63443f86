"""Wrong use of the estimators: each gets a sentence that says what to do."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from tests.estimators.cases import QUICK, make_classifier, make_imputer

from jointwise import JUPAD, Dictionary
from jointwise.exceptions import InputError, JointwiseError, RankError, UnknownNameError

X = np.random.default_rng(0).normal(size=(30, 3))
CLASSES = np.arange(30) % 2
GAUSSIANS = Dictionary.grid("gaussian", -3, 3, n=5, scale=1)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_components": 0}, InputError, "`n_components` must be an integer of at least 1; got 0"),
        ({"n_components": "ten"}, InputError, "`n_components`.*'ten'"),
        ({"method": "em"}, InputError, "`method` must be one of 'rows', 'pairs', 'paper'; got 'em'"),
        ({"method": None}, InputError, "`method` must be one of"),
        ({"dictionaries": "gaussian"}, InputError, '"auto" or a mapping'),
        ({"dictionaries": None}, InputError, '"auto" or a mapping'),
        ({"dictionaries": {"x0": [1, 2]}}, InputError, r"dictionaries\['x0'\] must be a Dictionary, got list"),
        ({"dictionaries": {"age": GAUSSIANS}}, UnknownNameError, "'age'.*Known: 'x0', 'x1', 'x2'"),
        ({"kinds": "continuous"}, InputError, "`kinds` must be a mapping"),
        ({"n_bins": 2}, InputError, "`n_bins` must be an integer of at least 3; got 2"),
        ({"n_bins": 10.0}, InputError, "`n_bins`"),
        ({"n_init": 0}, InputError, "`n_init`"),
        ({"on_interrupt": "stop"}, InputError, "`on_interrupt` must be one of 'raise', 'keep'; got 'stop'"),
        ({"max_iter": -1}, InputError, "`max_iter`"),
        ({"n_models": 0}, InputError, "`n_models` must be an integer of at least 1; got 0"),
        ({"learn_dictionary": "True"}, InputError, "`learn_dictionary` must be True, False or \"auto\"; got 'True'"),
        ({"device": "gpu"}, InputError, "`device` must be one of 'cpu', 'cuda'; got 'gpu'"),
        ({"beta": -1.0}, InputError, '`beta` must be "auto" or a number of rows'),
        ({"beta": "strong"}, InputError, "`beta` must be a finite number"),
        ({"tol": "small"}, InputError, "`tol` must be a finite number"),
        ({"method": "pairs", "learning_rates": (1, 1, 1)}, InputError, 'belong to method="paper"'),
        ({"method": "paper", "learning_rates": (1, 1)}, InputError, "three numbers"),
        ({"method": "paper", "learning_rates": np.ones(2)}, InputError, "three numbers"),
        ({"method": "paper", "learning_rates": (-1, 1, 1)}, InputError, "positive"),
        ({"method": "paper", "n_components": 500}, RankError, "500 components are more than"),
    ],
)
@pytest.mark.parametrize("estimator", [JUPAD, make_classifier, make_imputer])
def test_wrong_parameters(estimator, parameters, error, message):
    with pytest.raises(error, match=message):
        estimator(**{"random_state": 0, **parameters}).fit(X, CLASSES)


def test_parameters_are_checked_before_any_work():
    """A wrong parameter must not cost a choice of dictionaries on a large table."""
    with pytest.raises(InputError, match="n_components"):
        JUPAD(n_components=0).fit(np.full((2, 2), np.inf))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.empty((0, 2)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        ({"x": []}, "0 sample"),
        ({}, "0 feature"),
        (pd.DataFrame({"a": pd.Series([], dtype=float)}), "0 sample"),
        ({"x": [1.0, 2.0], "gone": [np.nan, np.nan]}, "Column 'gone' has no observed value; drop it"),
        ({"x": [1.0, np.inf]}, "contains infinity: column 'x'"),
        ({"x": [1.0, -np.inf, np.nan]}, "contains infinity: column 'x'"),
        (np.ones(3), "Expected a 2D array.*Reshape your data"),
        (3.0, "Expected a 2D array"),
        ("rows.csv", "Expected a 2D array"),
        ({"x": [1.0, 2.0], "y": [1.0]}, "must have one length"),
        ({"x": ["a", 1.0]}, "mixes values of type"),
        ({"x": [{}, {}]}, "type 'dict'"),
        (np.ones((2, 2)) + 1j, "Complex data not supported"),
        (csr_array(np.eye(2)), "dense data is required"),
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", [JUPAD, make_imputer])
def test_wrong_tables(estimator, table, message):
    with pytest.raises(JointwiseError, match=message):
        estimator(**QUICK).fit(table)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(30), "Every sample_weight is zero"),
        (np.full(30, -1.0), "not negative"),
        (np.full(30, np.nan), "finite"),
        (np.ones(29), "one number for each of the 30 rows"),
        (["heavy"] * 30, "must hold numbers"),
    ],
    ids=["zero", "negative", "nan", "short", "text"],
)
@pytest.mark.parametrize("estimator", [JUPAD, make_classifier, make_imputer])
def test_wrong_weights(estimator, weights, message):
    with pytest.raises(InputError, match=message):
        estimator(**QUICK).fit(X, CLASSES, sample_weight=weights)


@pytest.mark.parametrize(
    "use",
    [
        lambda: JUPAD().score_samples(X),
        lambda: JUPAD().score(X),
        lambda: JUPAD().sample(),
        lambda: make_classifier().predict(X),
        lambda: make_classifier().predict_proba(X),
        lambda: make_imputer().transform(X),
    ],
)
def test_use_before_fit(use):
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        use()


def test_a_pair_never_observed_together_has_no_pairwise_fit():
    apart = {"x": [1.0, np.nan], "y": [np.nan, 1.0]}
    with pytest.raises(InputError, match=r"No row holds both values of \('x', 'y'\)"):
        JUPAD(**QUICK, method="pairs").fit(apart)
    assert np.isfinite(JUPAD(**QUICK).fit(apart).score(apart))  # rows are enough for a likelihood


def test_a_failed_fit_does_not_pass_for_a_fitted_one():
    model = JUPAD(method="paper", n_components=500)
    with pytest.raises(RankError):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.score(X)


def test_infinite_values_at_prediction_have_density_zero_or_are_refused():
    model = JUPAD(**QUICK).fit(X)
    scores = model.score_samples(np.array([[np.inf, 0, 0]]))
    assert scores[0] == -np.inf


def test_text_where_numbers_were_fitted_is_refused():
    model = JUPAD(**QUICK).fit({"x": [1.0, 2.5, 3.0]})
    with pytest.raises(JointwiseError, match="x"):
        model.score_samples({"x": ["a", "b"]})
