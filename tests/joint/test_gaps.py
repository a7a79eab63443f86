"""Densities in which gaps are a part: laws of rows with gaps, events, samples, fillings, questions and files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.joint.cases import build

import jointwise
from jointwise import GaussianBlocks
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, QuestionError
from jointwise.families import Gaussian
from jointwise.tables.gaps import gap_variable
from jointwise.tables.variables import Variable

JOBS = ("cook", "nurse", "pilot")


def product(seed, container="dict"):
    """A job, a pay that may be missing, and an age that may be too."""
    rng = np.random.default_rng(seed)
    F = 3
    variables = [
        Variable("job", "categorical", categories=JOBS),
        Variable("pay", "continuous"),
        gap_variable("pay missing", "pay"),
        Variable("age", "continuous"),
        gap_variable("age missing", "age"),
    ]
    atoms = [
        Dictionary.categories(3),
        Dictionary((Gaussian(rng.normal(size=4), rng.uniform(0.5, 1, 4)),)),
        Dictionary.categories(2),
        Dictionary((Gaussian(rng.normal(size=4), rng.uniform(0.5, 1, 4)),)),
        Dictionary.categories(2),
    ]
    weights = rng.dirichlet(np.ones(F))
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), F).T for d in atoms]
    return build(variables, atoms, weights, coefficients, container)


@pytest.fixture(scope="module")
def block():
    """A fitted Gaussian block whose gaps depend on the job, in a sum of models."""
    rng = np.random.default_rng(5)
    job = rng.integers(3, size=400)
    age = rng.normal(size=400)
    pay = age + job + 0.5 * rng.normal(size=400)
    pay[rng.random(400) < 0.25 * job] = np.nan
    age[::9] = np.nan
    table = {"job": np.array(JOBS)[job], "pay": pay, "age": age}
    return GaussianBlocks("none", n_components=3, missing="informative", random_state=0).fit(table).density_


seeds = st.integers(0, 10_000)


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_a_cell_is_there_with_some_value_or_missing(seed):
    _check_total(product(seed))


def test_a_cell_of_a_block_is_there_with_some_value_or_missing(block):
    _check_total(block)


def _check_total(f):
    """The integral over all values that a cell may show, and its gap, make up the density without that column."""
    rest = {"job": ["nurse"], "age": [0.3]}

    def shown(pay):
        return f.pdf({**rest, "pay": [pay]})[0]

    there = integrate.quad(shown, -15, 15, limit=200, epsabs=1e-10)[0]
    missing = f.pdf({**rest, "pay": [None]})[0]
    whole = f.pdf({"job": "nurse", "age": 0.3})[0]  # a row without the column
    assert there + missing == pytest.approx(whole, rel=1e-6)
    assert missing == pytest.approx(whole * f.probability({"pay": None}, {"job": "nurse", "age": 0.3})[0], rel=1e-9)


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_missing_and_present_sum_to_one(seed):
    f = product(seed)
    for given_ in ({}, {"job": "nurse"}, {"pay": (0, None)}):
        g = f.condition(given_) if given_ else f
        assert g.probability({"pay": None}) + g.probability({"pay missing": False}) == pytest.approx(1)
    x = {"job": ["cook", None], "age": [None, 1.0]}
    parts = [f.probability({"pay missing": told}, x) for told in (True, False)]
    np.testing.assert_allclose(sum(parts), 1)


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_a_row_without_a_column_is_a_row_of_the_marginal(seed):
    f = product(seed)
    some = {"job": ["pilot", "cook"], "age": [0.1, None]}
    marginal = f.marginal(["job", "age", "age missing"])
    expected = marginal.logpdf(some)
    rows = [f.logpdf({name: column[i] for name, column in some.items()})[0] for i in range(2)]
    np.testing.assert_allclose(rows, expected)


def test_the_plain_sum_over_components():
    f = product(3)
    mixture = f.mixture
    logs = np.log(mixture.weights)
    logs = logs + np.log(mixture.coefficients[0][1])  # nurse
    logs = logs + np.log(mixture.coefficients[2][1])  # pay missing
    atoms = mixture.dictionaries[3].families[0]
    heights = stats.norm.pdf(0.3, atoms.loc, atoms.scale)
    logs = logs + np.log(heights @ mixture.coefficients[3]) + np.log(mixture.coefficients[4][0])  # age is there
    assert f.logpdf({"job": "nurse", "pay": None, "age": 0.3})[0] == pytest.approx(np.log(np.exp(logs).sum()))


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_what_a_question_is_about_is_not_told_by_the_row(seed):
    """Neither the cell of the column asked for, nor whether it is there, nor its absence changes an answer."""
    f = product(seed)
    rows = [{"job": ["nurse"], "age": [0.2]} | extra for extra in ({}, {"pay": [None]}, {"pay": [1.0]})]
    for ask in (
        lambda x: f.expect("pay", x),
        lambda x: f.predict("pay", x),
        lambda x: f.probability({"pay": (0, None)}, x),
        lambda x: f.probability({"pay": None}, x),
        lambda x: f.probability({"pay missing": True}, x),
        lambda x: f.predict_proba("pay missing", x)[:, 1],
    ):
        first, *others = (ask(x) for x in rows)
        for other in others:
            np.testing.assert_allclose(other, first)


def test_a_missing_cell_of_another_column_tells_something_and_an_absent_one_nothing():
    f = product(1)
    there, missing, absent = (f.expect("age", {"job": ["nurse"], **x}) for x in ({"pay": [0.5]}, {"pay": [None]}, {}))
    assert missing != absent
    assert there != absent
    alone = f.condition({"job": "nurse", "pay": None}).mean()["age"]
    assert missing[0] == pytest.approx(alone)
    assert absent[0] == pytest.approx(f.condition({"job": "nurse"}).mean()["age"])


def test_a_missing_cell_is_filled_given_that_it_is_missing():
    f = product(2)
    filled = f.impute({"job": ["cook"], "pay": [None], "age": [0.5]})
    expected = f.condition({"job": "cook", "pay": None, "age": 0.5, "age missing": False}).mean()["pay"]
    assert filled["pay"][0] == pytest.approx(expected)
    assert list(filled) == ["job", "pay", "age"]
    drawn = f.sample_given({"job": ["cook"], "pay": [None]}, 50, rng=0)  # age is absent: drawn too
    assert list(drawn) == ["job", "pay", "age"]
    assert not any(np.isnan(drawn[name]).any() for name in ("pay", "age"))


@pytest.mark.parametrize("which", ["product", "block"])
def test_samples_have_gaps_as_the_density_says(which, block):
    f = product(4) if which == "product" else block
    drawn = f.sample(4000, rng=0)
    assert list(drawn) == ["job", "pay", "age"]
    gaps = np.isnan(drawn["pay"])
    for job in JOBS:  # two-sided binomial tests: each fails one time in a thousand, and the seed is fixed
        here = drawn["job"] == job
        p = f.probability({"pay": None}, {"job": job})[0]
        assert stats.binomtest(int(gaps[here].sum()), int(here.sum()), p).pvalue > 1e-3
    shown = drawn["pay"][~gaps]
    law = f.condition({"pay missing": False}).marginal("pay")
    assert stats.kstest(shown, lambda x: law.cdf({"pay": x})).pvalue > 1e-3


def test_hidden_values_are_sampled_once_it_is_known_that_they_are_missing():
    f = product(4).condition({"pay": None})
    assert f.names == ("job", "pay", "age", "age missing")
    assert not np.isnan(f.sample(50, rng=0)["pay"]).any()


def test_a_cdf_speaks_of_values():
    f = product(0)
    row = {"job": ["pilot"], "pay": [0.5], "age": [None]}
    assert f.cdf(row)[0] == pytest.approx(f.probability({"pay": (None, 0.5)}))


def test_rows_of_a_list_have_a_cell_for_each_column():
    f = product(0)
    assert f.logpdf(["nurse", None, 0.3]) == f.logpdf({"job": "nurse", "pay": None, "age": 0.3})


def test_gaps_in_an_event_need_a_model_of_gaps():
    f = product(0)
    with pytest.raises(InputError, match='fitted with missing="informative"'):
        f.probability({"job": None})
    with pytest.raises(InputError, match="once whether 'pay' is missing"):
        f.probability({"pay": None, "pay missing": False})


def test_gaps_and_their_columns_can_be_taken_apart():
    f = product(0)
    assert f.marginal("pay").logpdf({"pay": [None]})[0] == pytest.approx(0)  # no gap is told: it is integrated out
    alone = f.marginal(["pay missing"])
    assert alone.pdf({"pay missing": [True]})[0] == pytest.approx(f.probability({"pay": None}))
    assert sorted(set(alone.sample(20, rng=0)["pay missing"].tolist())) == [False, True]


def test_a_file_keeps_gaps(tmp_path):
    f = product(0)
    f.save(tmp_path / "model.jwd")
    again = jointwise.load(tmp_path / "model.jwd")
    assert again.schema == f.schema
    row = {"job": ["nurse"], "pay": [None], "age": [0.1]}
    np.testing.assert_array_equal(again.logpdf(row), f.logpdf(row))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("P(pay missing | job=nurse)", "P(pay missing=true | job=nurse)"),
        ("P(pay is missing | job=nurse)", "P(pay missing=true | job=nurse)"),
        ("P(pay = NaN)", "P(pay missing=true)"),
        ("P(PAY is present)", "P(pay missing=false)"),
        ("P('pay' present)", "P(pay missing=false)"),
        ("P(pay != missing)", "P(pay missing=false)"),
        ("P(pay is not present)", "P(pay missing=true)"),
        ("P(not pay missing)", "P(pay missing=false)"),
        ("P(pay > 1, pay present)", "P(pay > 1, pay missing=false)"),
        ("job | pay missing", "job | pay missing=true"),
        ("mean(pay | pay missing)", "mean(pay | pay missing=true)"),
        ("P(age missing, pay missing | job = cook)", "P(age missing=true, pay missing=true | job=cook)"),
        ("pay missing | job = cook", "pay missing | job=cook"),
        ("P(pay > 1 | job is missing)", "P(pay > 1)"),  # of job, no gaps are told
    ],
)
def test_questions_about_gaps(text, read):
    f = product(0)
    answer = f.ask(text)
    assert answer.question == read
    assert f.ask(answer.question).question == read


def test_answers_about_gaps():
    f = product(0)
    assert float(f.ask("P(pay missing | job=nurse)")) == pytest.approx(
        f.probability({"pay": None}, {"job": "nurse"})[0]
    )
    assert f.ask("mean(pay | pay missing)").value == pytest.approx(f.condition({"pay": None}).mean()["pay"])


def test_a_question_about_gaps_that_the_model_does_not_tell():
    with pytest.raises(QuestionError, match='fit with missing="informative"'):
        product(0).ask("P(job missing)")


def test_a_category_called_missing_is_a_category():
    state = Variable("state", "categorical", categories=("missing", "here"))
    f = build(
        [state, gap_variable("state missing", "state")], [Dictionary.categories(2)] * 2, [1.0], [[[0.3], [0.7]]] * 2
    )
    assert float(f.ask("P(state = missing)")) == pytest.approx(0.3)
    assert float(f.ask("P(state = NaN)")) == pytest.approx(0.7)


@pytest.mark.parametrize("which", ["product", "block"])
def test_a_check_compares_the_values_that_are_shown(which, block):
    """Values that are missing more often when large are no error; a model without gaps would seem wrong."""
    f = product(6) if which == "product" else block
    found = f.check(f.sample(4000, rng=1), rng=0)
    assert found.is_clean, str(found)
    wrong = f.sample(4000, rng=2)
    wrong["pay"] = np.where(np.isnan(wrong["pay"]), 0.0, wrong["pay"])
    assert not f.check(wrong, rng=0).is_clean


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_how_odd_a_gap_is(seed):
    f = product(seed)
    row = {"job": ["nurse"], "pay": [None], "age": [0.2]}
    odd = f.surprisal(row)[0]
    assert np.isnan(odd[f.names.index("pay")])
    p = f.probability({"pay": None}, row)[0]
    usual = f._usual[f.names.index("pay missing")]
    assert odd[f.names.index("pay missing")] == pytest.approx(-np.log(p) - usual)
