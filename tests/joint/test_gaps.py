"""Densities in which gaps are a part: laws of rows with gaps, events, samples, fillings, questions and files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.joint.cases import build

import jointwise
from jointwise import GaussianBlocks, TreeMixture
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, QuestionError
from jointwise.families import Gaussian
from jointwise.joint.oddness import CellOddness
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
    assert f.names == ("job", "pay", "age")
    assert f.gaps == {"age": "age missing"}
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


# ---- gaps are no columns -------------------------------------------------------------------------------------------


def test_what_goes_through_columns_goes_through_those_of_the_table():
    f = product(0)
    assert f.names == ("job", "pay", "age")
    assert f.gaps == {"pay": "pay missing", "age": "age missing"}
    assert repr(f) == "JointDensity(3 variables: job, pay, age; gaps of 2; 3 components)"
    assert list(f.mean()) == list(f.var()) == list(f.mode()) == list(f.names)
    assert f.cov().shape == (3, 3)
    assert f.cov()[2, 2] == pytest.approx(f.var()["age"])
    rows = f.sample(5, rng=0)
    assert list(rows) == list(f.names)
    assert f.surprisal(rows).shape == f.contributions("job", rows).shape == (5, 3)
    assert {cell.name for cell in f.explain({"job": "cook", "pay": None, "age": 0.1}).cells} == set(f.names)
    found = f.divergence(product(1), rng=0, n_samples=200)
    assert set(found.columns) == set(f.names)
    assert len(found.pairs) == 3


def test_a_value_takes_its_column_out_and_what_is_left_behind_is_not_shown():
    f = product(0)
    given_ = f.condition({"pay": 0.3})
    assert given_.names == ("job", "age")
    assert list(given_.sample(2, rng=0)) == ["job", "age"]
    assert given_.surprisal({"job": ["cook"], "age": [None]}).shape == (1, 2)
    told = float(f.ask("P(pay missing | pay = 0.3)"))
    assert told == pytest.approx(given_.probability({"pay missing": True}))


def test_a_gap_can_be_named():
    f = product(0)
    alone = f.marginal(["job", "pay missing"])
    assert alone.names == ("job", "pay missing")
    assert list(alone.sample(2, rng=0)) == ["job", "pay missing"]
    assert f.mutual_information("job", "pay missing").value >= 0
    both = f.marginal(["pay", "pay missing"])
    assert both.names == ("pay",)
    assert both.logpdf({"pay": [None]})[0] == pytest.approx(np.log(f.probability({"pay": None})))


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_how_odd_cells_and_gaps_are(seed):
    f = product(seed)
    judge = CellOddness(f.schema, f.mixture)
    k = f.names.index("pay")
    rest = {"job": ["nurse"], "age": [0.2]}
    p = f.probability({"pay": None}, rest)[0]
    shown, gap = f.surprisal({**rest, "pay": [0.7]})[0, k], f.surprisal({**rest, "pay": [None]})[0, k]
    assert gap == pytest.approx(-np.log(p) - judge.usual[1][k])
    law = f.condition({"job": "nurse", "age": 0.2, "age missing": False, "pay missing": False}).marginal("pay")
    value = -law.logpdf({"pay": 0.7})[0]
    assert shown == pytest.approx(value - judge.usual[0][k] - np.log1p(-p) - judge.usual[1][k])


@pytest.mark.parametrize("which", ["product", "block"])
def test_usual_cells_and_rows_are_not_odd_whether_or_not_they_have_gaps(which, block):
    """The means of 4,000 rows and those of 2,000 drawn ones: each fails less than once in a million, seed fixed."""
    f = product(3) if which == "product" else block
    rows = f.sample(4000, rng=1)
    cells = f.surprisal(rows)
    error = np.nanstd(cells, axis=0) * np.sqrt(1 / 4000 + 1 / 2000)
    assert (np.abs(np.nanmean(cells, axis=0)) < 5 * error).all()
    odd, gaps = f.oddness(rows), np.isnan(rows["pay"]) + 2 * np.isnan(rows["age"])
    assert abs(odd.mean()) < 5 * odd.std() * np.sqrt(1 / 4000 + 1 / 2000)
    presence = -f.marginal(["pay missing", "age missing"]).logpdf(
        {"pay missing": np.isnan(rows["pay"]), "age missing": np.isnan(rows["age"])}
    )
    for pattern in range(4):  # given its gaps, the values of a row are as odd as others
        here = gaps == pattern
        values = odd[here] - (presence[here] - presence.mean())
        assert abs(values.mean()) < 5 * values.std() * np.sqrt(1 / max(here.sum(), 1) + 1 / 2000) + 0.1


def test_the_oddness_of_a_row_does_not_depend_on_units():
    """With pay in cents instead of euros, rows with and without it keep their places."""
    jobs, gap = Variable("job", "categorical", categories=JOBS), gap_variable("pay missing", "pay")
    found = []
    for unit in (1.0, 100.0):
        atoms = [Dictionary.categories(3), Dictionary((Gaussian([0.0], [unit]),)), Dictionary.categories(2)]
        coefficients = [[[0.2], [0.3], [0.5]], [[1.0]], [[0.7], [0.3]]]
        f = build([jobs, Variable("pay", "continuous"), gap], atoms, [1.0], coefficients, "dict")
        rows = {"job": ["cook", "cook", "pilot"], "pay": [2 * unit, None, 0.0]}
        found.append((f.oddness(rows), f.surprisal(rows)))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-9)


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_the_divergence_of_a_column_with_gaps(seed):
    """A cell is a value or a gap: quadrature over the values that are there, and the gaps."""
    f, g = product(seed), product(seed + 1)

    def part(a, b):
        return (a * np.log(2 * a / (a + b)) + b * np.log(2 * b / (a + b))) / 2

    def shown(pay):
        return part(*(d.marginal(["pay", "pay missing"]).pdf({"pay": [pay]})[0] for d in (f, g)))

    there = integrate.quad(shown, -12, 12, limit=200)[0]
    missing = part(*(d.probability({"pay": None}) for d in (f, g)))
    found = f.divergence(g, rng=0, n_samples=100)
    assert found.columns["pay"].value == pytest.approx(there + missing, abs=1e-6)
    assert found.pairs["job", "pay"] >= found.columns["pay"].value - 0.05  # numbers are cut into intervals


def test_the_entropy_is_that_of_rows_with_gaps():
    f = product(2)
    found = f.entropy(rng=0, n_samples=4000)
    logs = -f.logpdf(f.sample(4000, rng=1))
    assert found.value == pytest.approx(logs.mean(), abs=5 * (found.error + logs.std() / 4000**0.5))


def test_a_gap_that_is_odd_is_explained():
    jobs, gap = Variable("job", "categorical", categories=JOBS), gap_variable("pay missing", "pay")
    atoms = [Dictionary.categories(3), Dictionary((Gaussian([0.0, 9.0], [1.0, 1.0]),)), Dictionary.categories(2)]
    coefficients = [np.array([[1, 0], [0, 1], [0, 0]]), np.eye(2), np.array([[0.999, 0.2], [0.001, 0.8]])]
    f = build([jobs, Variable("pay", "continuous"), gap], atoms, [0.5, 0.5], coefficients, "dict")
    found = f.explain({"job": "cook", "pay": None})
    cell = next(cell for cell in found.cells if cell.name == "pay")  # the job is as odd, given the gap
    assert cell.value is None
    assert cell.probability == pytest.approx(0.001)
    assert cell.expected == pytest.approx(0.0, abs=1e-6)
    assert "pay missing" in str(found)
    assert found.share < 0.01
    moved = f.explain({"job": "cook", "pay": None}, "job")
    assert [(reason.name, reason.value) for reason in moved.cells] == [("pay", None)]


def test_trees_tell_gaps_too():
    rng = np.random.default_rng(0)
    job = rng.integers(3, size=900)
    pay = rng.normal(size=900)
    pay[rng.random(900) < 0.3 * job] = np.nan
    table = {"job": np.array(JOBS)[job], "pay": pay, "age": rng.normal(size=900)}
    f = TreeMixture(1, n_models=1, missing="informative", random_state=0).fit(table).density_
    assert f.gaps == {"pay": "pay missing"}
    for code, name in enumerate(JOBS):
        share = np.isnan(pay[job == code]).mean()
        assert f.probability({"pay": None}, {"job": name})[0] == pytest.approx(share, abs=0.05)
