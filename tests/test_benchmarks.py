"""The benchmarks `answers` and `decisions`, on tables small enough to count by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from jointwise import JUPAD
from jointwise.datasets import hybrid
from jointwise.joint.events import Interval
from jointwise.marginals import column
from jointwise.tables import encode, read_table, variables

answers = pytest.importorskip("benchmarks.answers", reason="benchmarks are in a checkout of the source only")
from benchmarks import decisions  # noqa: E402
from benchmarks.generated import generated  # noqa: E402
from benchmarks.questions import (  # noqa: E402
    FORMS,
    Counted,
    Question,
    count,
    halves,
    ignoring_conditions,
    make_questions,
    noise,
)


def texts(*cells):
    return np.array(cells, dtype=object)


SMALL = {
    "job": texts("cook", None, "nurse", "cook", "clerk", "nurse"),
    "gain": np.array([0, 0, 0, 50, 900, 0]),
    "pay": np.array([1.5, 2.0, np.nan, 3.5, 4.0, 2.5]),
}


def plainly(table, question):
    """Return the share of the event and the number of rows, counted row by row."""

    def holds(cell, region):
        if cell is None or cell != cell:  # noqa: PLR0124  # NaN is the one number that differs from itself
            return False
        if isinstance(region, frozenset):
            return cell in region
        if isinstance(region, tuple):
            low, high = region
            return (low is None or cell >= low) and (high is None or cell <= high)
        return cell == region

    ((name, region),) = question.event.items()
    n_rows = len(table[name])
    known = [i for i in range(n_rows) if table[name][i] is not None and table[name][i] == table[name][i]]
    chosen = [i for i in known if all(holds(table[n][i], r) for n, r in question.given.items())]
    return sum(holds(table[name][i], region) for i in chosen or known) / len(chosen or known), len(chosen)


@pytest.mark.parametrize(
    ("event", "given", "share", "n_rows"),
    [
        ({"gain": 0}, {"job": "nurse"}, 1.0, 2),
        ({"gain": (50, None)}, {"job": frozenset({"cook", "clerk"}), "pay": (1.5, 4.0)}, 2 / 3, 3),
        ({"job": "cook"}, {"gain": 0}, 1 / 3, 3),  # the row without a job does not count
        ({"pay": (None, 2.0)}, {"job": "nurse"}, 0.0, 1),  # nor the one without a pay
        ({"pay": (2.0, 2.5)}, {"gain": 50, "job": "clerk"}, 2 / 5, 0),  # no row: the share of all rows with a pay
    ],
)
def test_rows_are_counted_without_their_gaps(event, given, share, n_rows):
    question = Question(event, given, "any")
    counted = count(SMALL, [question])
    assert (counted.shares[0], counted.n_rows[0]) == (pytest.approx(share), n_rows)
    assert plainly(SMALL, question) == (pytest.approx(share), n_rows)


def test_questions_are_written_in_plain_notation():
    given = {"gain": (None, 50), "pay": (2.0, 2.5), "job": frozenset({"nurse", "cook"})}
    assert str(Question({"x": (1, None)}, {"y": "a"} | given, "side")) == (
        "P(x >= 1 | y = a, gain <= 50, pay in 2..2.5, job in {cook, nurse})"
    )


@pytest.fixture(scope="module")
def table():
    return generated(3, n=2_000)


def test_a_generated_table_has_spikes_bounds_a_sentinel_steps_and_gaps(table):
    assert 0.7 < np.mean(table["claims"] == 0) < 0.95
    assert table["claims"].max() > 1_000
    assert all(0.05 < np.mean(table["share"] == bound) < 0.3 for bound in (0, 1))
    assert (table["share"].min(), table["share"].max()) == (0, 1)
    assert 0.1 < np.mean(table["days"] == -1) < 0.6
    assert table["days"].min() == -1
    assert (table["grade"] * 2 % 1 == 0).all()
    assert 0 < np.isnan(table["income"]).mean() < 0.06
    assert len(set(table["region"])) == 5
    again = generated(3, n=2_000)
    assert all(np.array_equal(table[name], again[name], equal_nan=name == "income") for name in table)


def test_halves_share_no_row():
    train, held_out = halves({"x": np.arange(7), "y": np.arange(7) * 10}, seed=0)
    assert sorted([*train["x"], *held_out["x"]]) == list(range(7))
    assert (len(train["x"]), len(held_out["x"])) == (3, 4)
    np.testing.assert_array_equal(train["y"], train["x"] * 10)


def test_questions_have_enough_rows_and_name_each_column_once(table):
    train, held_out = halves(table, 0)
    questions = make_questions(train, held_out, seed=0, n_questions=25, min_rows=50)
    assert [question.form for question in questions] == list(FORMS) * 5
    for question in questions:
        assert len(question.event) == 1
        assert len(question.given) in {2, 3}
        assert not set(question.event) & set(question.given)
        share, n_rows = plainly(held_out, question)
        assert n_rows >= 50
        counted = count(held_out, [question])
        assert (counted.shares[0], counted.n_rows[0]) == (pytest.approx(share), n_rows)
        assert 0.01 <= ignoring_conditions(train, [question])[0] <= 0.99
    assert questions == make_questions(train, held_out, seed=0, n_questions=25, min_rows=50)
    assert questions != make_questions(train, held_out, seed=1, n_questions=25, min_rows=50)


def test_sides_and_intervals_do_not_end_at_spikes(table):
    train, held_out = halves(table, 0)
    questions = make_questions(train, held_out, seed=0, n_questions=100, min_rows=20)
    said = [(question.event | question.given).get("claims") for question in questions]
    ends = [end for region in said if isinstance(region, tuple) for end in region if end is not None]
    assert 0 in said
    assert ends
    assert min(ends) > 0


def test_a_table_too_small_is_refused(monkeypatch, table):
    train, held_out = halves({name: column[:100] for name, column in table.items()}, 0)
    monkeypatch.setattr("benchmarks.questions.MOST_DRAWS", 10)
    with pytest.raises(ValueError, match=r"Only 0 of 5 questions have 51 held-out rows"):
        make_questions(train, held_out, seed=0, n_questions=5, min_rows=51)


@pytest.mark.parametrize(("n", "p"), [(7, 0.3), (100, 0.01), (100, 0.99), (50, 0.5), (20, 0.0), (20, 1.0)])
def test_noise_is_the_mean_error_of_a_binomial_share(n, p):
    k = np.arange(n + 1)
    expected = (np.abs(k / n - p) * binom.pmf(k, n, p)).sum()
    found = noise(Counted(np.array([0.0]), np.array([n])), np.array([p]))
    np.testing.assert_allclose(found, [expected], rtol=1e-10, atol=1e-15)


@pytest.fixture(scope="module")
def law_and_exam():
    law = hybrid(0)
    X = law.sample(40_000, rng=1)
    table = {f"x{n}": X[:, n] for n in range(3)} | {"x3": X[:, 3].astype(int).astype(object)}
    return law, answers.Exam.of(*halves(table, 0), seed=0, n_questions=40, min_rows=500)


def test_the_error_of_the_law_itself_is_noise(law_and_exam):
    law, exam = law_and_exam
    # 40 errors, each with a standard deviation of three quarters of its mean: within four standard errors
    expected = pytest.approx(exam.noise.mean(), rel=4 * 0.75 / np.sqrt(40))
    assert np.abs(answers.answer(law, exam.questions) - exam.truth.shares).mean() == expected
    assert np.abs(exam.ignoring - exam.truth.shares).mean() != expected


def test_answers_are_conditional_probabilities(law_and_exam):
    law, exam = law_and_exam
    for question, found in zip(exam.questions, answers.answer(law, exam.questions), strict=True):
        assert found == pytest.approx(law.condition(question.given).probability(question.event), rel=1e-9)


def test_an_impossible_condition_is_ignored(law_and_exam):
    law, _ = law_and_exam
    question = Question({"x3": 4}, {"x0": 1.5}, "category")  # a single number of a continuous column
    assert answers.answer(law, [question])[0] == law.probability({"x3": 4})


def test_errors_are_reported_for_all_and_for_each_form(law_and_exam):
    law, exam = law_and_exam
    found = answers.answer(law, exam.questions)
    rows = answers.report(exam, found)
    assert [row["event"] for row in rows] == ["all", "category", "set", "side", "interval"]
    assert rows[0]["questions"] == sum(row["questions"] for row in rows[1:]) == 40
    assert float(rows[0]["model"]) == pytest.approx(np.abs(found - exam.truth.shares).mean(), abs=1e-4)
    assert float(rows[0]["counting"]) == pytest.approx(np.abs(exam.counted.shares - exam.truth.shares).mean(), abs=1e-4)
    found[7] = 2.0
    shown = answers.worst(exam, found)
    assert len(shown) == 5
    assert shown[0]["question"] == str(exam.questions[7])
    assert shown[0]["model"] == "2.000"


@pytest.mark.slow
def test_the_benchmark_runs(monkeypatch, tmp_path, capsys, table):
    monkeypatch.chdir(tmp_path)  # results are saved below the working folder
    few = {name: table[name][:400] for name in ("age", "claims", "plan", "member")}
    monkeypatch.setitem(answers.TABLES, "penguins", lambda: few)
    rows = answers.run("penguins", seed=1)
    assert rows[0]["questions"] == 60
    assert float(rows[0]["seconds of fit"]) > 0
    assert "P(" in capsys.readouterr().out
    assert (tmp_path / "out/benchmarks/answers-worst-penguins.json").is_file()


# ---- decisions -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task(table):
    few = {name: table[name][:300] for name in ("age", "claims", "plan", "income")}
    return decisions.Task.of("generated", few, seed=1)


@pytest.fixture(scope="module")
def base(task):
    return decisions.refit(task)


def test_decisions_measures_each_constant_of_the_page_with_other_values():
    page = (Path(__file__).parents[1] / "docs" / "how-it-decides.md").read_text().splitlines()
    for constant in decisions.CONSTANTS:
        assert any(f"| `{constant.name}` |" in line and line.endswith(f"| `{constant.where}` |") for line in page)
        parameter = constant.parameter
        old = getattr(JUPAD(), parameter) if parameter else getattr(decisions.module_of(constant.where), constant.name)
        assert old not in constant.others.values()
        assert set(constant.acts) <= set(decisions.STAGES)


def test_decisions_sets_a_constant_wherever_it_is_held():
    with decisions.patched("tables/variables.py", "MAX_ENUMERATED", 7):
        assert variables.MAX_ENUMERATED == column.MAX_ENUMERATED == 7
    assert variables.MAX_ENUMERATED == column.MAX_ENUMERATED == 32


def test_decisions_fits_what_jupad_fits(task, base):
    expected = JUPAD(random_state=1).fit(task.train).density_.logpdf(task.held_out)
    np.testing.assert_array_equal(base.density.logpdf(task.held_out), expected)
    for stage in decisions.STAGES:
        again = decisions.refit(task, (stage,), base)
        np.testing.assert_array_equal(again.density.logpdf(task.held_out), expected)
        assert (again.density is base.density) == (stage != "density")


def test_decisions_scores_the_probability_of_cells(task, base):
    X = encode(read_table(task.held_out), base.density.schema)
    half = [task.widths[name] / 2 for name in base.density.names]
    boxes = [{n: Interval(row[n] - half[n], row[n] + half[n]) for n in np.flatnonzero(~np.isnan(row))} for row in X]
    expected = np.mean([base.density.mixture.log_probability(box) for box in boxes])
    assert decisions.log_likelihood(base.density, task) == pytest.approx(expected, rel=1e-9)


def test_decisions_reports_gains_and_times(task, table):
    chosen = [c for c in decisions.CONSTANTS if c.name in {"JUPAD(tol)", "LEARNING_GAIN", "SKEW"}]
    few = {name: table[name][:300] for name in task.train}
    rows = decisions.run([1, 2], chosen, {"generated": lambda: few})
    assert len(rows) == sum(len(c.others) for c in chosen)
    assert {row["nats"] for row in rows if row["constant"] == "LEARNING_GAIN"} == {"+0.0000"}  # too few rows to learn
    assert all(0 <= row["tables worse"] + row["tables better"] <= 1 for row in rows)
    assert all(row["time"].endswith("%") for row in rows)
