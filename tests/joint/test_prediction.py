"""Predictions, class probabilities and filled gaps against loops over posteriors."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from tests.joint.cases import PlainJoint, build, cases, random_density, random_rows, single

from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnseenCategoryWarning
from jointwise.families import Cauchy, Gaussian, Lattice, PointMass, Uniform
from jointwise.joint import prediction
from jointwise.joint.product import ProductConditionals
from jointwise.tables import decode
from jointwise.tables.variables import Kind, Variable

FEW = settings(deadline=None, max_examples=40)

X = Variable("x", "continuous")
Y = Variable("y", "continuous")
K = Variable("k", "integer", dtype="int64")
LABEL = Variable("label", "categorical", categories=("a", "b"), dtype="string")


def plain_guess(plain, n, row):
    """Most probable category, conditional mean or its nearest integer, by loops; None where the row is impossible."""
    row = list(row)
    row[n] = math.nan
    posterior = plain.posterior(row)
    if posterior is None:
        return None
    variable = plain.schema.variables[n]
    if variable.categories is not None:
        return plain_shares(plain, n, posterior)
    return sum(p * plain.moment(n, 1, r) for r, p in enumerate(posterior) if p > 0)


def plain_shares(plain, n, posterior):
    codes = range(len(plain.schema.variables[n].categories))
    return [sum(p * plain.factor(n, r, lambda a, c=c: a.density(c)) for r, p in enumerate(posterior)) for c in codes]


@FEW
@given(cases(min_variables=2, max_variables=3))
def test_predictions_equal_plain_loops(case):
    density, plain = case.density, PlainJoint(case.density)
    n = int(case.rng.integers(len(density.names)))
    variable = density.schema.variables[n]
    rows = density.mixture.sample(4, case.rng)
    rows[case.rng.random(rows.shape) < 0.3] = np.nan
    table = {v.name: [v.decode_value(x) for x in rows[:, i]] for i, v in enumerate(density.schema)}
    found = density.predict(variable.name, table)
    for row, guess in zip(rows, found, strict=True):
        expected = plain_guess(plain, n, row)
        if variable.categories is not None:
            code = variable.encode_value(guess)
            assert expected[int(code)] == pytest.approx(max(expected), rel=1e-9)
        elif variable.kind is Kind.INTEGER:
            assert abs(guess - expected) <= 0.5 + 1e-6
        else:
            assert guess == pytest.approx(expected, rel=1e-7, abs=1e-7)


@FEW
@given(cases(min_variables=2, max_variables=3))
def test_class_probabilities_equal_plain_loops_and_bayes(case):
    density, plain = case.density, PlainJoint(case.density)
    labelled = [n for n, v in enumerate(density.schema) if v.categories is not None]
    assume(labelled)
    n = labelled[0]
    variable = density.schema.variables[n]
    rows = density.mixture.sample(4, case.rng)
    table = {v.name: [v.decode_value(x) for x in rows[:, i]] for i, v in enumerate(density.schema) if i != n}
    shares = density.predict_proba(variable.name, table)
    assert shares.shape == (4, len(variable.categories))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    without = rows.copy()
    without[:, n] = np.nan
    expected = [plain_shares(plain, n, plain.posterior(row)) for row in without]
    np.testing.assert_allclose(shares, expected, rtol=1e-7, atol=1e-10)
    # the rule of Bayes
    each = [density.pdf(table | {variable.name: [c] * 4}) for c in variable.categories]
    total = density.pdf(table | {variable.name: [None] * 4})
    np.testing.assert_allclose(shares.T, each / total, rtol=1e-7, atol=1e-10)
    # the guess is the most probable category
    guess = [variable.encode_value(g) for g in density.predict(variable.name, table)]
    np.testing.assert_allclose(shares[np.arange(4), np.array(guess, int)], shares.max(axis=1), rtol=1e-9)


@FEW
@given(cases(min_variables=2, kinds=("smooth", "spiky", "counts", "lattice")))
def test_a_prediction_is_the_mean_of_the_conditional(case):
    density, rng = case.density, case.rng
    target = density.names[0]
    row = density.mixture.sample(1, rng)[0]
    cells = {v.name: v.decode_value(x) for v, x in zip(density.schema, row, strict=True) if v.name != target}
    mean = density.condition(cells).mean()[target]
    guess = density.predict(target, cells)[0]
    if density.schema[target].kind is Kind.INTEGER:
        assert abs(guess - mean) <= 0.5 + 1e-9
    else:
        assert guess == pytest.approx(mean, rel=1e-9, abs=1e-9)


@FEW
@given(cases())
def test_filled_gaps_are_predictions_and_known_cells_stay(case):
    density = case.density
    rows = density.mixture.sample(6, case.rng)
    rows[case.rng.random(rows.shape) < 0.4] = np.nan
    filled = prediction.fill(density.mixture, density.schema, rows)
    assert not np.isnan(filled).any()
    known = ~np.isnan(rows)
    np.testing.assert_array_equal(filled[known], rows[known])
    table = decode(rows, density.schema)
    for n, variable in enumerate(density.schema):
        gaps = np.isnan(rows[:, n])
        if gaps.any():
            guesses = [variable.encode_value(g) for g in density.predict(variable.name, table[gaps])]
            np.testing.assert_allclose(filled[gaps, n], guesses, rtol=1e-12)


@FEW
@given(cases())
def test_rows_without_density_are_filled_too(case):
    density = case.density
    rows = random_rows(case.rng, density, 6, missing=0.4)
    filled = prediction.fill(density.mixture, density.schema, rows)
    assert not np.isnan(filled).any()


def test_filled_tables_keep_frame_and_types():
    rng = np.random.default_rng(2)
    density = random_density(rng, ["smooth", "counts", "label"], 2, "pandas")
    frame = density.sample(20, rng=0)
    holes = frame.astype(object)
    holes.iloc[3, 0] = holes.iloc[4, 1] = holes.iloc[5, 2] = None
    filled = density.impute(holes)
    assert isinstance(filled, pd.DataFrame)
    assert not filled.isna().any(axis=None)
    assert filled.dtypes.astype(str).tolist() == frame.dtypes.astype(str).tolist()
    untouched = [i for i in range(20) if i not in {3, 4, 5}]
    pd.testing.assert_frame_equal(filled.iloc[untouched], frame.iloc[untouched])


def test_nothing_missing_is_nothing_changed():
    density = random_density(np.random.default_rng(3), ["smooth", "lattice"], 2)
    rows = density.sample(10, rng=0)
    np.testing.assert_array_equal(density.impute(rows), rows)
    assert density.impute(rows[:0]).shape == (0, 2)


def test_a_row_of_gaps_is_filled_from_the_marginals():
    density = build([X, LABEL], [Dictionary((Gaussian([0.0, 8.0], 1.0),)), Dictionary.categories(2)], [0.25, 0.75],
                    [np.eye(2), np.eye(2)])  # fmt: skip
    filled = density.impute({"x": [None], "label": [None]})
    assert filled[0].tolist() == [pytest.approx(6.0), "b"]


def test_an_unknown_category_is_filled_with_a_warning():
    density = build([X, LABEL], [Dictionary((Gaussian([0.0, 8.0], 1.0),)), Dictionary.categories(2)], [0.5, 0.5],
                    [np.eye(2), np.eye(2)])  # fmt: skip
    with pytest.warns(UnseenCategoryWarning, match="'label': 'z'"):
        filled = density.impute({"x": [8.0], "label": ["z"]})
    assert filled[0].tolist() == [8.0, "b"]


# ---- heavy tails, impossible rows, absent columns -----------------------------------------------------------


def test_the_median_stands_in_where_there_is_no_mean():
    atoms = Dictionary((Cauchy([0.0, 10.0], 1.0),))
    density = build([X, LABEL], [atoms, Dictionary.categories(2)], [0.5, 0.5], [np.eye(2), np.eye(2)])
    np.testing.assert_allclose(density.predict("x", {"label": ["a", "b"]}), [0.0, 10.0], atol=1e-9)
    assert density.predict("x", {"label": [None]})[0] == pytest.approx(5.0, abs=1e-9)


@FEW
@given(cases(min_variables=1, max_variables=2, kinds=("smooth", "spiky", "lattice")))
def test_medians_halve_the_conditional(case):
    mixture = case.density.mixture
    posterior = case.rng.dirichlet(np.ones(mixture.n_components), size=4)
    medians = ProductConditionals(mixture, 0, posterior, np.zeros(4)).quantile(0.5)
    for weights, median in zip(posterior, medians, strict=True):
        share = weights @ mixture.coefficients[0].T
        # a kink in a bracketing quantile: some units in the last place
        assert mixture.dictionaries[0].cdf(median + 1e-12 * abs(median)) @ share >= 0.5 - 1e-9
        assert mixture.dictionaries[0].cdf(median - 1e-12 * abs(median) - 1e-300) @ share <= 0.5 + 1e-9


def test_a_component_without_weight_does_not_take_the_mean_away():
    skew = Dictionary((Uniform(0.0, 1.0), PointMass(9.0), Cauchy(0.0, 1.0)))
    coefficients = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    density = build([X, LABEL], [skew, Dictionary.categories(2)], [1.0, 0.0], [coefficients, np.eye(2)])
    assert density.predict("x", {"label": ["a"]})[0] == pytest.approx(0.5 * 0.5 + 0.5 * 9.0)


def test_an_impossible_row_is_read_without_its_impossible_cells():
    uniforms = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    density = build([X, Y, LABEL], [uniforms, uniforms, Dictionary.categories(2)], [0.5, 0.5], [np.eye(2)] * 3)
    rows = {"x": [99.0, 0.5, 99.0], "y": [5.5, 5.5, 99.0], "label": ["a", None, None]}
    shares = density.predict_proba("label", rows)
    np.testing.assert_allclose(shares, [[0, 1], [1, 0], [0.5, 0.5]])
    assert density.predict("label", {"x": [0.5], "y": [0.5], "label": ["unheard"]}).tolist() == ["a"]
    assert density.predict("x", {"label": ["unheard"]})[0] == pytest.approx(3.0)


def test_the_column_to_predict_may_be_there_or_not_and_others_may_be_absent():
    density = random_density(np.random.default_rng(4), ["smooth", "label", "counts"], 3)
    x, label, k = density.names
    rows = density.marginal([x, k]).mixture.sample(5, np.random.default_rng(0))
    table = {x: rows[:, 0], k: rows[:, 1].astype(int)}
    expected = density.predict_proba(label, table)
    np.testing.assert_array_equal(density.predict_proba(label, table | {label: ["ash"] * 5}), expected)
    np.testing.assert_allclose(
        density.predict_proba(label, {x: rows[:, 0]}),
        density.marginal([x, label]).predict_proba(label, {x: rows[:, 0]}),
        rtol=1e-12,
    )
    np.testing.assert_array_equal(density.predict_proba(label, {x: rows[0, 0], k: int(rows[0, 1])}), expected[:1])


def test_a_category_without_atoms_has_probability_zero():
    three = Variable("label", "categorical", categories=("a", "b", "c"), dtype="string")
    density = build([three, X], [Dictionary.categories(2), Dictionary((Gaussian(0.0, 1.0),))], [1.0],
                    [np.array([[0.4], [0.6]]), np.ones((1, 1))])  # fmt: skip
    np.testing.assert_allclose(density.predict_proba("label", {"x": [0.0]}), [[0.4, 0.6, 0.0]])
    assert density.predict("label", {"x": [0.0]}).tolist() == ["b"]


def test_types_of_predictions():
    density = build(
        [X, K, LABEL, Variable("day", "continuous", dtype="date")],
        [Dictionary((Gaussian(0.4, 1.0),)), Dictionary((Lattice(Gaussian(2.6, 1.0)),)), Dictionary.categories(2),
         Dictionary((Gaussian(18262.0, 1.0),))],
        [1.0], [np.ones((1, 1)), np.ones((1, 1)), np.array([[0.3], [0.7]]), np.ones((1, 1))],
    )  # fmt: skip
    row = {"x": [None]}
    assert density.predict("x", row).tolist() == [0.4]
    assert density.predict("k", row).tolist() == [3]
    assert density.predict("k", row).dtype == np.int64
    assert density.predict("label", row).tolist() == ["b"]
    assert density.predict("day", row)[0] == np.datetime64("2020-01-01")
    filled = density.impute({name: [None] for name in density.names})
    assert filled[0].tolist() == [0.4, 3, "b", dt.date(2020, 1, 1)]


@pytest.mark.parametrize(("name", "kind"), [("x", "continuous"), ("k", "integer")])
def test_numbers_have_no_class_probabilities(name, kind):
    density = build([X, K], [Dictionary((Gaussian(0.0, 1.0),)), Dictionary.points([1])], [1.0], [np.ones((1, 1))] * 2)
    with pytest.raises(InputError, match=f"needs a categorical target and '{name}' is {kind}"):
        density.predict_proba(name, {"x": [0.0]})


def test_no_rows_no_predictions():
    density = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    assert density.predict("x", np.empty((0, 1))).shape == (0,)
