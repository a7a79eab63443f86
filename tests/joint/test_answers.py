"""Answers: what `ask` returns is what the density's own methods say."""

import datetime as dt
import json

import numpy as np
import pytest
from hypothesis import given, settings
from tests.joint.cases import cases

from jointwise import Dictionary, JointDensity
from jointwise.exceptions import ImpossibleEventError, InputError, QuestionError
from jointwise.joint import Answer
from jointwise.joint.product import ProductMixture
from jointwise.joint.questions import in_quotes
from jointwise.tables.variables import Schema, Variable


@pytest.fixture(scope="module")
def density():
    schema = Schema(
        (
            Variable("job", "categorical", categories=("cook", "nurse", "sales & ads"), dtype="string"),
            Variable("age", "integer", dtype="int64"),
            Variable("pay", "continuous", observed=(0, 90)),
            Variable("day", "continuous", dtype="date"),
            Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string"),
        )
    )
    dictionaries = (
        Dictionary.categories(3),
        Dictionary.grid("gaussian", 30, 50, n=2, scale=8).on_lattice(),
        Dictionary.grid("gaussian", 20, 60, n=3, scale=5),
        Dictionary.grid("gaussian", 19_000, 20_000, n=2, scale=90),
        Dictionary.categories(3),
    )
    rng = np.random.default_rng(0)
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), 3).T for d in dictionaries]
    return JointDensity(schema, ProductMixture(np.array([0.2, 0.3, 0.5]), coefficients, dictionaries))


def test_probabilities(density):
    answer = density.ask("P(job = nurse or cook | 30 <= age <= 40, pay > 20)")
    given_ = {"age": (30, 40), "pay": (np.nextafter(20, 21), None)}
    assert float(answer) == pytest.approx(density.condition(given_).probability({"job": {"nurse", "cook"}}))
    assert answer.evidence == pytest.approx(density.probability(given_))
    assert answer.kind == "probability"
    assert repr(answer) == f"P(job in {{cook, nurse}} | age in 30..40, pay > 20) = {answer.value:.4g}"


def test_measures(density):
    given_ = density.condition({"job": "sales & ads"})
    assert density.ask("mean(pay | job = sales & ads)").value == pytest.approx(given_.mean()["pay"])
    assert density.ask("sd(pay | job = sales & ads)").value == pytest.approx(given_.var()["pay"] ** 0.5)
    assert density.ask("variance(pay | job = sales & ads)").value == pytest.approx(given_.var()["pay"])
    assert density.ask("median(pay | job = sales & ads)").value == pytest.approx(given_.quantile("pay", 0.5))
    assert density.ask("q10(age | job = sales & ads)").value == given_.quantile("age", 0.1)
    assert density.ask("mode(size | job = sales & ads)").value == given_.mode()["size"]
    assert density.ask("median(size)").value in {"S", "M", "L"}
    assert density.ask("mean(pay, age)").value == pytest.approx({n: density.mean()[n] for n in ("pay", "age")})
    assert isinstance(density.ask("mean(day)").value, dt.date)


def test_distributions(density):
    answer = density.ask("job | age > 40")
    expected = density.condition({"age": (41, None)})
    assert answer.value == pytest.approx({job: expected.probability({"job": job}) for job in answer.value})
    both = density.ask("job, size")
    assert both.value["nurse", "M"] == pytest.approx(density.probability({"job": "nurse", "size": "M"}))
    assert sum(both.value.values()) == pytest.approx(1)
    text = repr(density.ask("pay | job = nurse"))
    assert text.startswith("pay | job=nurse\n  ")
    assert "pay: mean " in text
    long = repr(density.ask("pay, age, day"))
    assert "... the 20 most probable of" in long
    assert len(long.splitlines()) == 1 + 20 + 1 + 3


def test_a_summary_has_mean_sd_and_quantiles(density):
    summary = density.ask("pay, job, day | size=S").summary
    assert set(summary) == {"pay", "day"}
    rest = density.condition({"size": "S"})
    assert summary["pay"]["mean"] == pytest.approx(rest.mean()["pay"])
    assert summary["pay"]["sd"] == pytest.approx(rest.var()["pay"] ** 0.5)
    assert [summary["pay"][q] for q in ("q05", "q25", "median", "q75", "q95")] == pytest.approx(
        rest.quantile("pay", [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    )


def test_the_evidence_of_a_single_number_is_a_density(density):
    answer = density.ask("P(job = nurse | pay = 30, age > 40)")
    pay = density.marginal("pay").pdf([[30.0]])[0]
    assert answer.evidence == pytest.approx(pay * density.condition({"pay": 30.0}).probability({"age": (41, None)}))
    assert density.ask("job").evidence == 1.0


def test_several_questions_get_a_list(density):
    answers = density.ask(["job", "mean(pay)", "P(age > 40)"])
    assert [answer.kind for answer in answers] == ["distribution", "mean", "probability"]
    assert all(isinstance(answer, Answer) for answer in answers)
    assert density.ask([]) == []


def test_an_answer_in_plain_types(density):
    for text in ("day, pay | job=cook", "mean(day)", "P(age > 40)", "mean(pay, age)"):
        plain = json.loads(json.dumps(density.ask(text).to_dict(), allow_nan=False))
        assert list(plain)[:2] == ["question", "evidence"]
    assert density.ask("P(age > 40)").to_dict().keys() == {"question", "evidence", "probability"}
    table = density.ask("job | day > 2022-01-01").to_dict()
    assert [row["job"] for row in table["rows"]] == ["cook", "nurse", "sales & ads"]
    assert len(density.ask("job, pay").to_dict(top=3)["rows"]) == 3


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ("mean(job)", InputError, "'job' has categories, so it has no mean"),
        ("mean(size)", InputError, "has no mean"),
        ("median(job)", InputError, "has no median"),
        ("P(wage > 3)", QuestionError, "Unknown variable 'wage'"),
        (3, InputError, "A question is text"),
        ([3], InputError, "A question is text"),
        ("job | pay > inf", ImpossibleEventError, "probability zero"),
    ],
)
def test_refusals(density, question, error, words):
    with pytest.raises(error, match=words):
        density.ask(question)


def test_what_is_no_number_is_not_converted(density):
    with pytest.raises(TypeError, match="no single number"):
        float(density.ask("job"))
    with pytest.raises(TypeError, match="no single number"):
        float(density.ask("mode(job)"))
    assert density.ask("P(pay = 30)").note.startswith("a single value of a continuous variable")


@settings(deadline=None, max_examples=30)
@given(cases())
def test_total_probability_of_any_density(case):
    """The probabilities of a condition and of its negation sum to one, whatever is given."""
    density, rng = case.density, case.rng
    name = density.names[0]
    variable = density.schema[name]
    x = density.marginal(name).mixture.sample(1, rng)[0, 0]
    label = variable.decode_value(x)
    condition = f"{in_quotes(name)} = {in_quotes(str(label))}"
    if variable.categories is not None and len(variable.categories) == 1:
        return
    total = sum(float(density.ask(f"P({text})")) for text in (condition, f"not {condition}"))
    assert total == pytest.approx(1, abs=1e-9)
