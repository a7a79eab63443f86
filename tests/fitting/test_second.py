"""The second density of JointClassifier: its probabilities, its share, and when it is not asked."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from tests.estimators.cases import QUICK, make_classifier

from jointwise import Dictionary, PairwiseMarginals, Profile
from jointwise.estimators import classifier
from jointwise.exceptions import InputError
from jointwise.fitting import second as second_module
from jointwise.joint.classes import pooled, standardised_probabilities
from jointwise.joint.prediction import category_probabilities

# two components are too few for narrow bands
pytestmark = pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")


def bands(n=400, seed=0):
    """Two narrow bands side by side: either column by itself tells little of the class."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, n)
    along = 3 * rng.normal(size=n)
    return np.column_stack([along, along + 0.3 * rng.normal(size=n) + classes]), classes


def by_second(model, X):
    """What the second density of a classifier says."""
    second = model.class_model_.second
    return standardised_probabilities(second.standardisation, second.density.mixture, X)


@pytest.fixture(scope="module")
def fitted():
    return make_classifier(random_state=0).fit(*bands())


def test_classes_of_correlated_columns_are_told_better(fitted):
    X, y = bands(2000, seed=1)
    alone = make_classifier(random_state=0, standardise=False).fit(*bands())
    assert fitted.standardised_share_ > 0.5
    assert log_loss(y, fitted.predict_proba(X)) < 0.8 * log_loss(y, alone.predict_proba(X))
    assert alone.standardised_share_ == 0
    assert alone.standardised_density_ is None


def test_gaussian_classes_are_told_as_by_quadratic_discriminants(fitted):
    X, y = bands()
    rows = bands(500, seed=2)[0]
    exact = QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(rows)
    assert np.abs(by_second(fitted, rows) - exact).mean() < 0.03


def test_probabilities_follow_the_formula_row_by_row(fitted):
    std, g = fitted.class_model_.second.standardisation, fitted.standardised_density_
    X = bands(20, seed=3)[0]
    found = by_second(fitted, X)
    for row, got in zip(X, found, strict=True):
        joint = []
        for c in range(2):
            z = std.maps[c].T @ (row - std.means[c])
            joint.append(np.exp(g.mixture.logpdf(np.array([[*z, c]]))[0]) * abs(np.linalg.det(std.maps[c])))
        np.testing.assert_allclose(got, np.array(joint) / sum(joint), rtol=1e-5)


def test_what_is_predicted_is_the_mean_by_share(fitted):
    X = bands(50, seed=4)[0]
    first = category_probabilities(fitted.density_.mixture, 2, np.column_stack([X, np.zeros(len(X))]), 2)
    second = by_second(fitted, X)
    s = fitted.standardised_share_
    np.testing.assert_allclose(fitted.predict_proba(X), (1 - s) * first + s * second, rtol=1e-12)


def test_rows_with_gaps_are_left_to_the_joint_density(fitted):
    X = bands(50, seed=5)[0]
    X[::2, 1] = np.nan
    expected = fitted.density_.predict_proba(fitted.target_name_, {"x0": X[::2, 0], "x1": X[::2, 1]})
    np.testing.assert_allclose(fitted.predict_proba(X)[::2], expected, rtol=1e-12)


def test_rows_far_from_all_others_still_have_probabilities(fitted):
    found = fitted.predict_proba(np.array([[1e6, -1e6], [1e300, 1e300], [-1e308, 1e308]]))
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_it_is_not_asked_where_held_out_rows_gain_too_little(monkeypatch):
    monkeypatch.setattr(second_module, "LEAST_GAIN", 10.0)
    X, y = bands()
    model = make_classifier(**QUICK).fit(X, y)
    assert model.standardised_share_ == 0
    expected = model.density_.predict_proba(model.target_name_, {"x0": X[:, 0], "x1": X[:, 1]})
    np.testing.assert_allclose(model.predict_proba(X), expected)


def test_it_is_not_asked_of_columns_that_are_not_correlated():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 2
    assert make_classifier(**QUICK).fit(rng.normal(size=(1000, 2)) + 2 * y[:, None], y).standardised_share_ == 0


@pytest.mark.parametrize("parameters", [{"method": "pairs"}, {"standardise": False}])
def test_it_is_not_asked_where_it_is_not_wanted(parameters):
    X, y = bands()
    assert make_classifier(**QUICK, **parameters).fit(X, y).standardised_share_ == 0


def test_a_fit_from_counts_forgets_it():
    X, y = bands()
    model = make_classifier(random_state=0).fit(X, y)
    data = {"a": X[:, 0], "b": X[:, 1], "y": np.array(["no", "yes"], dtype=object)[y]}
    profile = Profile.of(data)
    schema = profile.schema()
    model.fit_marginals(PairwiseMarginals.of(data, schema, profile.axes(schema, 16)))
    assert model.standardised_share_ == 0
    assert model.standardised_density_ is None


def test_many_classes_are_left_to_the_joint_density(monkeypatch):
    monkeypatch.setattr(classifier, "MOST_CLASSES", 1)
    assert make_classifier(**QUICK).fit(*bands()).standardised_share_ == 0


def test_mixed_tables_keep_their_other_columns():
    X, y = bands()
    rng = np.random.default_rng(1)
    table = {"a": X[:, 0], "b": X[:, 1], "job": np.where(rng.random(400) < 0.5, "cook", "nurse").astype(object)}
    model = make_classifier(n_components=3, random_state=0).fit(table, y)
    assert model.standardised_share_ > 0.3
    assert model.standardised_density_.names == ("mix 1", "mix 2", "job", "target")
    assert model.score(table, y) > 0.9


def test_a_given_dictionary_is_of_the_joint_density_alone():
    X, y = bands()
    given_one = {"x0": Dictionary.grid("gaussian", -8, 8, n=20, scale=1.0)}
    model = make_classifier(n_components=3, dictionaries=given_one, random_state=0).fit(X, y)
    assert model.density_.mixture.dictionaries[0].n_atoms == 20
    assert model.standardised_share_ > 0.3


def test_order_and_repetition_of_rows_have_no_effect(fitted):
    X, y = bands()
    rng = np.random.default_rng(2)
    shuffled = rng.permutation(len(X))
    other = make_classifier(random_state=0).fit(X[shuffled], y[shuffled])
    assert other.standardised_share_ == fitted.standardised_share_
    np.testing.assert_allclose(other.predict_proba(X), fitted.predict_proba(X), rtol=1e-9)
    weights = rng.integers(0, 3, len(X))
    weighted = clone(fitted).fit(X, y, sample_weight=weights)
    repeated = clone(fitted).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.standardised_share_ == repeated.standardised_share_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_units_of_columns_have_next_to_no_effect(fitted):
    X, y = bands()
    scaled = make_classifier(random_state=0).fit(X * [1024.0, 0.25] + [2048.0, 0.0], y)
    found = scaled.predict_proba(X * [1024.0, 0.25] + [2048.0, 0.0])
    assert np.abs(found - fitted.predict_proba(X)).max() < 0.05


def test_a_pickled_classifier_says_the_same(fitted):
    X = bands(30, seed=6)[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_the_summary_tells_its_share(fitted):
    assert f"classes: {fitted.standardised_share_:.0%} by a second density" in fitted.summary()


def test_a_verbose_fit_tells_of_it(capfd):
    make_classifier(**QUICK, verbose=True).fit(*bands())
    told = capfd.readouterr().err.splitlines()
    second = told.index("JointClassifier: a second density for the classes, of columns standardised within each")
    assert any(line.startswith("JUPAD: step ") for line in told[:second])
    assert any(line.startswith("JointClassifier: step ") for line in told[second:])


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_interrupt_of_its_fit_keeps_the_joint_density_if_asked(monkeypatch):
    monkeypatch.setattr(second_module, "held_out_share", interrupt)
    with pytest.warns(ConvergenceWarning, match="which alone predicts the classes"):
        model = make_classifier(**QUICK, on_interrupt="keep").fit(*bands())
    assert model.standardised_share_ == 0
    assert model.score(*bands()) > 0.5
    with pytest.raises(KeyboardInterrupt):
        make_classifier(**QUICK).fit(*bands())


def test_a_wrong_value_is_told():
    with pytest.raises(InputError, match="`standardise` must be True or False; got 'yes'"):
        make_classifier(standardise="yes").fit(*bands())


def test_of_many_rows_a_sample_finds_the_share(monkeypatch, fitted):
    monkeypatch.setattr(second_module, "SEARCH_ROWS", 150)
    monkeypatch.setattr(second_module, "CANONICAL_ROWS", 100)
    model = make_classifier(random_state=0).fit(*bands())
    assert model.standardised_share_ > 0.3
    assert model.standardised_share_ != fitted.standardised_share_


def test_folds_with_too_few_rows_have_no_say(monkeypatch):
    monkeypatch.setattr(second_module.ClassStandardisation, "of", once(second_module.ClassStandardisation.of))
    assert make_classifier(**QUICK).fit(*bands()).standardised_share_ == 0


def once(call):
    """The function at its first call; None after."""
    results = []

    def first(*arguments):
        results.append(call(*arguments) if not results else None)
        return results[-1]

    return first


# ---- shares --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(5, 300))
def test_the_share_is_the_best_of_a_fine_grid(seed, n):
    rng = np.random.default_rng(seed)
    said, counts = rng.random((n, 2)) ** 2, rng.integers(1, 4, n).astype(float)
    grid = np.linspace(0.0005, 0.9995, 1000)
    scores = [counts @ np.log(said @ [1 - s, s]) + second_module.PRIOR_ROWS / 2 * np.log(s * (1 - s)) for s in grid]
    best = grid[np.argmax(scores)]
    gain = np.average(np.log(said @ [1 - best, best]) - np.log(said[:, 0]), weights=counts)
    share = second_module._best_share(said, counts)
    if gain > 2 * second_module.LEAST_GAIN:
        assert abs(counts @ np.log(said @ [1 - share, share]) - counts @ np.log(said @ [1 - best, best])) < 0.02 * n
        assert share == pytest.approx(best, abs=0.05)
    elif gain < 0:
        assert share == 0


@pytest.mark.parametrize(
    ("said", "counts"), [(np.empty((0, 2)), np.empty(0)), (np.full((9, 2), 0.5), np.ones(9))], ids=["none", "equal"]
)
def test_without_evidence_there_is_no_share(said, counts):
    assert second_module._best_share(said, counts) == 0


def test_probabilities_of_zero_do_no_harm():
    assert 0 < second_module._best_share(np.array([[0.0, 0.9]] * 5 + [[0.9, 0.0]] * 5), np.ones(10)) < 1


def test_where_the_second_says_nothing_the_first_stands():
    first, second = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[0.6, 0.4], [np.nan, np.nan]])
    np.testing.assert_allclose(pooled(first, second, 0.25), [[0.3, 0.7], [0.5, 0.5]])


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_distinct_rows_are_those_of_a_plain_count(seed, n):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, 2)).astype(float)
    rows[rows == 2] = np.nan
    weights = rng.integers(0, 3, n).astype(float)
    weights[0] = 1
    plain = {}
    for row, weight in zip(rows.tolist(), weights, strict=True):
        if weight:
            plain[str(row)] = plain.get(str(row), 0) + weight
    found, added = second_module._distinct(rows, weights)
    assert {str(row): weight for row, weight in zip(found.tolist(), added.tolist(), strict=True)} == plain
