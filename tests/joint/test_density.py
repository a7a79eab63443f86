"""JointDensity: names, tables and marginals; the laws that tie its answers together."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from tests.joint.cases import PlainJoint, build, cases, random_density, random_rows, single

from jointwise import JUPAD
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnknownNameError, UnseenCategoryWarning
from jointwise.families import Category, Gaussian, Laplace, Lattice, PointMass, StudentT, Uniform
from jointwise.joint import JointDensity
from jointwise.tables import decode
from jointwise.tables.variables import Schema, Variable

FEW = settings(deadline=None, max_examples=40)

AGE = Variable("age", "continuous")
CHILDREN = Variable("children", "integer", dtype="int64")
SEX = Variable("sex", "categorical", categories=("F", "M"), dtype="string")
DAY = Variable("day", "continuous", dtype="date")


@pytest.fixture
def family_table():
    """Three kinds, two components, numbers that can be checked by hand."""
    dictionaries = [
        Dictionary((Gaussian([30.0, 50.0], [5.0, 10.0]),)),
        Dictionary.points([0, 1, 2]),
        Dictionary.categories(2),
    ]
    coefficients = [np.eye(2), np.array([[0.6, 0.1], [0.3, 0.4], [0.1, 0.5]]), np.array([[0.5, 0.8], [0.5, 0.2]])]
    return build([AGE, CHILDREN, SEX], dictionaries, [0.25, 0.75], coefficients)


# ---- logpdf, pdf, cdf ------------------------------------------------------------------------------------


@FEW
@given(cases())
def test_rows_by_name_equal_plain_loops(case):
    plain = PlainJoint(case.density)
    rows = case.density.mixture.sample(3, case.rng)
    table = {v.name: [v.decode_value(x) for x in rows[:, n]] for n, v in enumerate(case.density.schema)}
    expected = [plain.pdf(row) for row in rows]
    # cell masses are differences of cdf values
    np.testing.assert_allclose(case.density.pdf(table), expected, rtol=1e-9)
    np.testing.assert_allclose(case.density.logpdf(table), np.log(expected), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(case.density.cdf(table), [plain.cdf(row) for row in rows], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("answer", "impossible"), [("logpdf", -np.inf), ("pdf", 0.0), ("cdf", 0.0)])
def test_a_category_that_the_density_does_not_know_is_impossible_and_told_once(family_table, answer, impossible):
    rows = {"age": [30.0, 31.0, 32.0], "children": [1, 1, 1], "sex": ["X", "F", "Q"]}
    with pytest.warns(UnseenCategoryWarning) as caught:
        found = getattr(family_table, answer)(rows)
    (warning,) = caught
    assert "zero" in str(warning.message)
    assert "'sex': 'Q', 'X'" in str(warning.message)
    assert warning.filename == __file__
    np.testing.assert_array_equal(found[[0, 2]], impossible)
    assert np.isfinite(found[1])


def test_a_fraction_of_an_integer_that_came_as_floats_is_impossible():
    density = JUPAD(n_components=1, random_state=0).fit({"x": [1.0, 2.0, 2.0, 3.0]}).density_
    assert density.schema["x"].kind == "integer"
    assert density.sample(5, rng=0)["x"].dtype == float
    np.testing.assert_array_equal(np.isfinite(density.logpdf({"x": [2.0, 2.5]})), [True, False])


@FEW
@given(cases(min_variables=2))
def test_a_missing_cell_is_the_marginal_of_the_rest(case):
    density, rng = case.density, case.rng
    keep = np.sort(rng.choice(len(density.names), size=rng.integers(1, len(density.names)), replace=False))
    rows = random_rows(rng, density, 6, missing=0.0)
    rows[:, np.setdiff1d(np.arange(len(density.names)), keep)] = np.nan
    part = density.marginal([density.names[n] for n in keep])
    np.testing.assert_allclose(density.mixture.logpdf(rows), part.mixture.logpdf(rows[:, keep]), rtol=1e-12)
    np.testing.assert_allclose(density.mixture.cdf(rows), part.mixture.cdf(rows[:, keep]), rtol=1e-12, atol=1e-300)


@FEW
@given(cases())
def test_cdf_is_monotone_from_zero_to_one(case):
    mixture = case.density.mixture
    low = random_rows(case.rng, case.density, 8, missing=0.0)
    high = low + case.rng.exponential(size=low.shape) * (case.rng.random(low.shape) < 0.5)
    # sums over atoms round differently at neighbouring points
    assert (mixture.cdf(high) >= mixture.cdf(low) - 1e-14).all()
    everywhere = np.full((1, mixture.n_variables), np.inf)
    np.testing.assert_allclose(mixture.cdf(everywhere), 1.0, rtol=1e-12)
    assert (mixture.cdf(everywhere) <= 1.0).all()
    nowhere = everywhere.copy()
    nowhere[0, case.rng.integers(mixture.n_variables)] = -np.inf
    assert mixture.cdf(nowhere)[0] == 0.0


@FEW
@given(cases())
def test_cdf_is_the_probability_of_the_box_below(case):
    density = case.density
    row = density.mixture.sample(1, case.rng)
    cells = {v.name: v.decode_value(x) for v, x in zip(density.schema, row[0], strict=True)}
    ordered = {v.name for v in density.schema if v.categories is None or v.ordered}
    box = {
        name: (None, cell) if name in ordered else set(density.schema[name].categories[: int(row[0, n]) + 1])
        for n, (name, cell) in enumerate(cells.items())
    }
    assert density.cdf(cells)[0] == pytest.approx(density.probability(box), rel=1e-9, abs=1e-14)


@FEW
@given(cases(max_variables=3))
def test_chain_rule(case):
    """f(a, b) = f(a | b) f(b)."""
    density = case.density
    assume(len(density.names) > 1)
    row = density.mixture.sample(1, case.rng)[0]
    cells = {v.name: v.decode_value(x) for v, x in zip(density.schema, row, strict=True)}
    given_names = density.names[: case.rng.integers(1, len(density.names))]
    rest = density.condition({name: cells[name] for name in given_names})
    left = rest.logpdf(cells) + density.marginal(given_names).logpdf(cells)
    np.testing.assert_allclose(left, density.logpdf(cells), rtol=1e-9, atol=1e-9)


def test_density_by_hand(family_table):
    first = 0.25 * math.exp(0) / (5 * math.sqrt(2 * math.pi)) * 0.3 * 0.5
    second = 0.75 * math.exp(-2) / (10 * math.sqrt(2 * math.pi)) * 0.4 * 0.8
    assert family_table.pdf({"age": 30.0, "children": 1, "sex": "F"})[0] == pytest.approx(first + second)
    assert family_table.pdf({"age": None, "children": 1, "sex": None})[0] == pytest.approx(0.25 * 0.3 + 0.75 * 0.4)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, lambda t: np.array([*t.values()], object).T])
def test_every_kind_of_table_is_read(family_table, make):
    table = {"age": [30.0, 41.5, None], "children": [0, 2, 1], "sex": ["F", None, "M"]}
    expected = [PlainJoint(family_table).pdf(row) for row in [[30, 0, 0], [41.5, 2, math.nan], [math.nan, 1, 1]]]
    np.testing.assert_allclose(family_table.pdf(make(table)), expected, rtol=1e-12)


def test_columns_go_by_name_and_others_are_ignored(family_table):
    shuffled = {"sex": ["F"], "note": ["x"], "children": [1], "age": [30.0]}
    assert family_table.logpdf(shuffled) == family_table.logpdf({"age": 30.0, "children": 1, "sex": "F"})


def test_outside_every_support_is_minus_infinity(family_table):
    rows = {"age": [30.0, 1e300], "children": [7, 1], "sex": ["F", "F"]}
    assert np.isneginf(family_table.logpdf(rows)).all()
    assert family_table.pdf(rows).tolist() == [0.0, 0.0]
    bounded = single(AGE, Dictionary((Uniform(0.0, 1.0),)))
    assert bounded.logpdf([[-0.1], [1.1], [np.inf], [-np.inf]]).tolist() == [-np.inf] * 4


def test_density_beyond_the_largest_number_is_infinite_and_its_logarithm_is_not():
    narrow = Dictionary((Gaussian(0.0, 1e-3),))
    variables = [Variable(f"x{n}", "continuous") for n in range(500)]
    density = build(variables, [narrow] * 500, [1.0], [np.ones((1, 1))] * 500)
    assert density.pdf(np.zeros((1, 500)))[0] == np.inf
    assert density.logpdf(np.zeros((1, 500)))[0] == pytest.approx(500 * (math.log(1000) - 0.5 * math.log(2 * math.pi)))


# ---- marginals -------------------------------------------------------------------------------------------


def test_marginal_keeps_the_order_asked_for(family_table):
    part = family_table.marginal(["sex", "age"])
    assert part.names == ("sex", "age")
    assert part.pdf({"sex": "F", "age": 30.0})[0] == pytest.approx(
        PlainJoint(family_table).pdf([30.0, math.nan, 0.0]), rel=1e-12
    )
    assert family_table.marginal("age").names == ("age",)


@FEW
@given(cases(max_variables=3))
def test_marginal_of_marginal_is_marginal(case):
    density = case.density
    name = density.names[-1]
    x = random_rows(case.rng, density.marginal(name), 5)
    twice = density.marginal(density.names[::-1]).marginal(name)
    np.testing.assert_array_equal(twice.mixture.logpdf(x), density.marginal(name).mixture.logpdf(x))


# ---- tables out ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("dict", dict), ("numpy", np.ndarray)]
)
def test_samples_come_back_in_the_frame_that_went_in(container, kind):
    density = random_density(np.random.default_rng(0), ["smooth", "counts", "label"], 2, container)
    sample = density.sample(5, rng=0)
    assert isinstance(sample, kind)
    assert np.isfinite(density.logpdf(sample)).all()
    part = density.condition({density.names[2]: "ash"}).sample(3, rng=0)
    assert isinstance(part, kind)


def test_sample_is_repeatable_and_may_be_empty(family_table):
    np.testing.assert_array_equal(family_table.sample(20, rng=7), family_table.sample(20, rng=7))
    assert len(family_table.sample(0)) == 0
    assert family_table.sample(rng=1).shape == (1, 3)


def test_decoded_samples_encode_to_the_same_density():
    rng = np.random.default_rng(5)
    density = random_density(rng, ["spiky", "lattice", "grade", "smooth"], 3, "pandas")
    rows = density.mixture.sample(50, rng)
    np.testing.assert_allclose(density.logpdf(decode(rows, density.schema)), density.mixture.logpdf(rows), rtol=1e-12)


# ---- sentences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.marginal("height"),
        lambda f: f.marginal(["age", "height"]),
        lambda f: f.condition({"height": 3}),
        lambda f: f.probability({"height": (1, 2)}),
        lambda f: f.quantile("height", 0.5),
        lambda f: f.predict("height", {"age": [1.0]}),
        lambda f: f.predict_proba("height", {"age": [1.0]}),
        lambda f: f.mutual_information("height", "sex"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(family_table, ask):
    with pytest.raises(UnknownNameError, match=r"Unknown variable 'height'.*'age', 'children', 'sex'"):
        ask(family_table)


def test_a_table_that_lacks_a_column_is_refused(family_table):
    with pytest.raises(UnknownNameError, match="lacks columns 'sex'"):
        family_table.logpdf({"age": [1.0], "children": [1]})
    with pytest.raises(InputError, match="2 features, but 3"):
        family_table.logpdf(np.zeros((1, 2)))


@pytest.mark.parametrize("names", [[], ["age", "age"], ()])
def test_marginal_needs_each_name_once(family_table, names):
    with pytest.raises(InputError, match=r"at least one variable, each once.*'age', 'children', 'sex'"):
        family_table.marginal(names)


@pytest.mark.parametrize("n", [-1, 2.5, "3", None, True])
def test_sample_needs_a_number_of_rows(family_table, n):
    with pytest.raises(InputError, match="`n` must be an integer of at least 0"):
        family_table.sample(n)


@pytest.mark.parametrize(
    ("variable", "dictionary", "message"),
    [
        (SEX, Dictionary.categories(3), "Category with codes below 2"),
        (SEX, Dictionary.points([0, 1]), "'sex' is categorical"),
        (SEX, Dictionary.categories(2) + Dictionary.points([0]), "'sex' is categorical"),
        (AGE, Dictionary((Category([0, 1]),)), "'age' is continuous"),
        (CHILDREN, Dictionary((Gaussian(0.0, 1.0),)), "'children' is integer.*Lattice"),
        (CHILDREN, Dictionary((Lattice(Gaussian(0.0, 1.0)), Laplace(0.0, 1.0))), "'children' is integer"),
        (CHILDREN, Dictionary.categories(2), "'children' is integer"),
        (CHILDREN, Dictionary.points([0.5]), "point masses at integers"),
    ],
)
def test_atoms_must_be_of_the_variables_kind(variable, dictionary, message):
    with pytest.raises(InputError, match=message):
        single(variable, dictionary)


def test_schema_and_mixture_must_have_the_same_number_of_variables(family_table):
    with pytest.raises(InputError, match="schema has 1 variables but the mixture has 3"):
        JointDensity(Schema((AGE,)), family_table.mixture)


def test_repr_names_the_variables(family_table):
    assert repr(family_table) == "JointDensity(3 variables: age, children, sex; 2 components)"
    many = build(
        [Variable(f"x{n}", "continuous") for n in range(9)],
        [Dictionary((Gaussian(0.0, 1.0),))] * 9, [1.0], [np.ones((1, 1))] * 9,
    )  # fmt: skip
    assert repr(many).startswith("JointDensity(9 variables: x0, x1, x2, x3, x4, x5, x6, x7, ...;")


# ---- dates -----------------------------------------------------------------------------------------------


@pytest.fixture
def calendar():
    """A day around new year 2020 with a spike on it, and a label."""
    dictionaries = [Dictionary((Gaussian([18262.0, 18628.0], 20.0), PointMass(18262.0))), Dictionary.categories(2)]
    coefficients = [np.array([[0.5, 0.0], [0.0, 1.0], [0.5, 0.0]]), np.eye(2)]
    return build([DAY, SEX], dictionaries, [0.5, 0.5], coefficients, "pandas")


def test_dates_are_asked_as_dates_or_text(calendar):
    new_year = dt.date(2020, 1, 1)
    for day in (new_year, "2020-01-01", dt.datetime(2020, 1, 1, tzinfo=dt.UTC), np.datetime64("2020-01-01")):
        assert calendar.probability({"day": day}) == pytest.approx(0.25)
        assert calendar.probability({"day": (day, None)}) == pytest.approx(0.5 + 0.25 + 0.125)
    assert calendar.probability({"day": {new_year, "2020-01-01"}}) == pytest.approx(0.25)
    assert calendar.probability({"day": (None, "2020-06-30")}) == pytest.approx(0.5)
    assert calendar.logpdf({"day": new_year, "sex": "F"})[0] == pytest.approx(math.log(0.25))


def test_dates_come_back_as_dates(calendar):
    first = calendar.condition({"sex": "F"})
    assert first.mean()["day"] == first.mode()["day"] == first.quantile("day", 0.5) == dt.date(2020, 1, 1)
    assert first.var()["day"] == pytest.approx(200.0)
    later = calendar.condition({"day": ("2020-06-30", None)})
    assert later.mean()["day"] == dt.date(2021, 1, 1)
    assert later.sample(50, rng=0)["day"].min() > dt.date(2020, 6, 30)
    np.testing.assert_array_equal(
        first.quantile("day", [0.5, 0.5]), np.array(["2020-01-01", "2020-01-01"], dtype="M8[D]")
    )
    np.testing.assert_array_equal(
        calendar.predict("day", {"sex": ["F", "M"]}), np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
    )


def test_a_date_without_bound_is_missing(calendar):
    assert calendar.quantile("day", 0) is None
    assert calendar.quantile("day", 1) is None
    assert np.isnat(calendar.quantile("day", [0.0, 1.0])).all()
    heavy = single(DAY, Dictionary((StudentT(0.9, 18262.0, 1.0),)))
    assert heavy.mean()["day"] is None
    assert heavy.condition({"day": ("2020-01-01", None)}).mean()["day"] is None
    assert single(DAY, Dictionary((Gaussian(1e9, 1.0),))).mode()["day"] == dt.date(9999, 12, 31)  # the calendar ends


def test_times_with_a_zone():
    moment = Variable("at", "continuous", dtype="datetime[us,Europe/Paris]")
    density = single(moment, Dictionary((Gaussian(18262.5, 0.25),)))
    middle = density.quantile("at", 0.5)
    assert middle == dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
    assert middle.utcoffset() == dt.timedelta(hours=1)
    assert density.probability({"at": (None, "2020-01-01T13:00")}) == pytest.approx(0.5)
    assert density.mean()["at"] == density.mode()["at"] == middle
