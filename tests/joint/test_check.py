"""The check of a density: no findings if it is right, and the worst error first if it is wrong."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.joint.cases import KINDS, build, random_density, single

from jointwise import JointDensity
from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian, Uniform
from jointwise.joint import Check, check_columns, check_pairs
from jointwise.joint import check as module
from jointwise.joint.cells import axis_of_values, cells_of_bins
from jointwise.joint.check import check_bins, check_rows
from jointwise.joint.check_pairs import PairChecks
from jointwise.joint.comparison import FALSE_ALARM, LEAST_ERROR, Comparison, Noise
from jointwise.joint.events import Interval, Point
from jointwise.joint.findings import Finding
from jointwise.joint.language import parse_question
from jointwise.tables.variables import Variable

PAY = Variable("pay", "continuous")
GAIN = Variable("gain", "integer", dtype="int64")
JOB = Variable("job", "categorical", categories=("cook", "nurse", "smith"), dtype="string")


def gaussian(loc=0.0, scale=1.0):
    return Dictionary((Gaussian(loc, scale),))


def dependent(sharpness, n_values=5):
    """Return the density of two categorical columns that agree with a probability."""
    names = tuple("abcde"[:n_values])
    variables = [Variable(name, "categorical", categories=names, dtype="string") for name in ("left", "right")]
    agree = sharpness * np.eye(n_values) + (1 - sharpness) / n_values
    categories = Dictionary.categories(n_values)
    return build(variables, [categories, categories], np.full(n_values, 1 / n_values), [np.eye(n_values), agree])


# ---- a right model -------------------------------------------------------------------------


def test_samples_of_the_density_itself_are_clean():
    """At most a share `FALSE_ALARM` of checks of a right model find an error; fails once in 10,000 runs."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        kinds = rng.choice(KINDS, size=rng.integers(1, 4))
        density = random_density(rng, kinds, int(rng.integers(1, 4)))
        rows = density.mixture.sample(400, rng)
        alarms += not check_rows(density.schema, density.mixture, rows, rng).is_clean
    assert alarms <= stats.binom.isf(1e-4, 200, FALSE_ALARM)


def test_the_verdict_of_a_right_model_counts_what_was_compared():
    density = dependent(0.5)
    check = density.check(density.sample(500, rng=0), rng=0)
    assert check.is_clean
    assert not check.is_far
    assert check.columns == ()
    assert check.verdict == str(check) == "Nothing beyond noise in 500 rows: 2 columns, 1 pair."


@pytest.mark.parametrize("k", [0, 1, 7, 30])
def test_intervals_are_those_of_clopper_and_pearson(k):
    noise, n = Noise(100), 30
    low, high = stats.binomtest(k, n).proportion_ci(1 - 2 * noise.level, method="exact")
    for p in (0.0, 0.3, 0.5, 1.0):
        found = noise.exact(np.array([p]), np.array([k / n]), np.array([float(n)]))[0]
        assert found == pytest.approx(max(low - p, p - high, 0.0), abs=1e-9)
        # the quick interval, which chooses where the exact one is computed, misses no error
        assert noise.approximate(np.array(p), np.array(k / n), np.array(n)) > 0 or found < LEAST_ERROR


def test_findings_do_not_depend_on_how_many_answers_are_compared_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    names, n = [f"x{k}" for k in range(6)], 1500
    X = np.where(rng.random((n, 6)) < 0.1, np.nan, rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 6)))
    variables = [Variable(name, "continuous") for name in names]
    density = build(variables, [gaussian()] * 6, [1.0], [np.ones((1, 1))] * 6)
    together = check_rows(density.schema, density.mixture, X, np.random.default_rng(0)).findings
    monkeypatch.setattr(check_pairs, "TOGETHER", 1)
    apart = check_rows(density.schema, density.mixture, X, np.random.default_rng(0)).findings
    assert len(together) > 6
    assert [f.question for f in together] == [f.question for f in apart]
    np.testing.assert_allclose([f.error for f in together], [f.error for f in apart])


# ---- a wrong model -------------------------------------------------------------------------------


def test_a_spike_that_is_not_modelled():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(5000) < 0.9, 0, rng.integers(1000, 99999, 5000))
    wide = Dictionary.grid("gaussian", 0, 99999, n=9, scale=12000).on_lattice()
    check = single(GAIN, wide).check({"gain": gain})
    worst = check.findings[0]
    assert (worst.question, worst.kind, worst.columns) == ("P(gain=0)", "value", ("gain",))
    assert worst.rows == np.mean(gain == 0)
    assert worst.model < 0.01
    assert worst.error > 0.85
    assert check.is_far
    assert "'gain': a value that repeats" in check.verdict


def test_a_spike_among_numbers_is_not_taken_for_rounding():
    rng = np.random.default_rng(0)
    smooth = rng.normal(size=3000)
    spiked = np.where(rng.random(3000) < 0.2, 0.5, smooth)
    density = single(PAY, gaussian())
    assert density.check({"pay": np.round(smooth, 1)}).is_clean
    worst = density.check({"pay": spiked}).findings[0]
    assert worst.question == "P(pay=0.5)"
    assert worst.model == 0


def test_mass_beyond_the_rows():
    rng = np.random.default_rng(0)
    check = single(PAY, gaussian(3.0, 2.0)).check({"pay": np.abs(rng.normal(3, 2, 4000))})
    beyond = next(finding for finding in check.findings if finding.kind == "range")
    assert beyond.question == "P(pay < 0)"
    assert beyond.model == pytest.approx(stats.norm.cdf(0, 3, 2), abs=1e-3)
    assert beyond.rows == 0
    # in a small sample an interval with a twentieth of the mass may be empty
    few = single(PAY, Dictionary((Uniform(0.0, 1.0),))).check({"pay": np.linspace(0.0, 0.95, 40)})
    assert few.is_clean


def test_a_shifted_density():
    rng = np.random.default_rng(0)
    rows = {"pay": rng.normal(0.5, 1, 2000), "job": rng.choice(["cook", "nurse", "smith"], 2000)}
    right = build(
        [PAY, JOB], [gaussian(0.5), Dictionary.categories(3)], [1.0], [np.ones((1, 1)), np.full((3, 1), 1 / 3)]
    )
    assert right.check(rows).is_clean
    wrong = JointDensity(right.schema, replace(right.mixture, dictionaries=(gaussian(), Dictionary.categories(3))))
    check = wrong.check(rows)
    assert check.columns[0] == "pay"
    assert check.findings[0].columns == ("pay",)
    assert {"interval", "mean"} & {check.findings[0].kind}
    # given the job the error is the column's own, and is not reported again
    assert all(finding.error < check.findings[0].error for finding in check.findings[1:])


def test_diluted_answers():
    truth, diluted = dependent(0.95), dependent(0.4)
    check = diluted.check(truth.sample(3000, rng=0))
    assert [finding.kind for finding in check.findings] == ["given"]
    worst = check.findings[0]
    assert set(worst.columns) == {"left", "right"}
    assert worst.model == pytest.approx(0.52)
    assert worst.rows == pytest.approx(0.96, abs=0.02)
    assert 0.3 < worst.error < 0.44
    assert "raise n_components" in check.verdict


def test_a_rare_condition_in_the_tail():
    """The job is certain for the 100 of 5,000 rows above 10, but not in the model."""
    rng = np.random.default_rng(0)
    tail = np.arange(5000) < 100
    rows = {
        "pay": np.where(tail, rng.uniform(10, 11, 5000), rng.normal(0, 1, 5000)),
        "job": np.where(tail, "smith", rng.choice(["cook", "nurse", "smith"], 5000, p=[0.5, 0.4, 0.1])),
    }
    pay = Dictionary((Gaussian([0.0], [1.0]), Uniform([10.0], [11.0])))
    shares = np.array([np.mean(rows["job"] == job) for job in JOB.categories])[:, None]
    density = build([PAY, JOB], [pay, Dictionary.categories(3)], [1.0], [np.array([[0.98], [0.02]]), shares])
    check = density.check(rows)
    assert check.findings[0].question.startswith("P(job=smith | pay > ")
    assert check.findings[0].rows > 0.9
    assert check.is_far


def test_conditional_means():
    rng = np.random.default_rng(0)
    job = rng.integers(3, size=3000)
    rows = {"pay": rng.normal(0.35 * job, 1), "job": np.array(JOB.categories)[job]}
    alone = build(
        [PAY, JOB], [gaussian(0.35, 1.05), Dictionary.categories(3)], [1.0], [np.ones((1, 1)), np.full((3, 1), 1 / 3)]
    )
    found = [
        f for f in PairChecks(comparison(alone, rows), np.random.default_rng(0)).findings() if f.question[0] == "E"
    ]
    worst = max(found, key=lambda f: f.error)
    assert worst.question in {"E[pay | job=cook]", "E[pay | job=smith]"}
    here = rows["pay"][rows["job"] == worst.question[-6:-1].strip("=")]
    assert worst.rows == pytest.approx(here.mean())
    assert worst.model == pytest.approx(0.35)
    assert worst.noise == pytest.approx(1.05 / np.sqrt(len(here)), rel=0.1)


def comparison(density, rows):
    X = density._encode(rows)
    cells, numbers = [], []
    for n, variable in enumerate(density.schema):
        axis = axis_of_values(variable, X[:, n])
        masses = density.mixture.dictionaries[n].masses(axis) @ density.mixture.coefficients[n]
        cells.append(cells_of_bins(variable, axis, masses, axis.index(X[:, n]), None))
        if variable.categories is None:
            numbers += module._numbers(variable, n, density.mixture, X[:, n])
    return Comparison(tuple(cells), density.mixture, numbers=tuple(numbers))


def test_unseen_categories_are_an_error_of_the_model():
    density = single(JOB, Dictionary.categories(3))
    rng = np.random.default_rng(0)
    rows = rng.choice(["cook", "nurse", "smith", "baker"], 1000)
    worst = density.check({"job": rows}).findings[0]
    assert (worst.question, worst.kind, worst.model) == ("P(job=(new))", "new", 0.0)
    assert worst.rows == np.mean(rows == "baker")
    assert "fit it again" in density.check({"job": rows}).verdict


# ---- against a plain loop ------------------------------------------------------------------------------------


def holds(region, x):
    if isinstance(region, Point):
        return x == region.value
    if isinstance(region, Interval):
        return region.low <= x <= region.high
    return x in set(region.values)


@pytest.mark.parametrize("seed", range(6))
def test_a_question_is_answered_as_the_command_would(seed, monkeypatch):
    """Each finding agrees with the model's exact answer to its question and with a plain loop over the rows."""
    for part in (module, check_columns):
        monkeypatch.setattr(part, "LEAST_ERROR", -1.0)  # everything is a finding
    rng = np.random.default_rng(seed)
    density = random_density(rng, rng.choice(KINDS, size=3), 2)
    rows = random_density(rng, [name.split("_")[1] for name in density.names], 2).mixture.sample(600, rng)
    for n, variable in enumerate(density.schema):
        if variable.categories is not None:
            rows[:, n] %= len(variable.categories)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    check = check_rows(density.schema, density.mixture, rows, rng)
    asked = [f for f in check.findings if f.question[0] == "P" and " without " not in f.question and f.kind != "new"]
    assert len(asked) >= 3
    for finding in asked:
        bound = parse_question(finding.question, density.schema)
        assert finding.model == pytest.approx(density.condition(bound.given).probability(bound.asked), abs=1e-6)
        ((name, region),), met, hits = bound.asked.items(), 0, 0
        k = density.schema.index(name)
        for row in rows:
            cells = dict(zip(density.names, row, strict=True))
            if np.isnan(row[k]) or not all(holds(r, cells[other]) for other, r in bound.given.items()):
                continue
            met += 1
            hits += holds(region, row[k])
        assert (finding.n_rows, finding.rows) == (met, pytest.approx(hits / met))
        assert finding.noise == pytest.approx(np.sqrt(finding.model * (1 - finding.model) / met))


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    density, truth = dependent(0.3), dependent(0.8)
    X = truth.mixture.sample(400, rng)
    weights = rng.integers(1, 4, 400).astype(float)
    axes = [axis_of_values(v, X[:, n]) for n, v in enumerate(density.schema)]
    codes = np.column_stack([axis.index(X[:, n]) for n, axis in enumerate(axes)])
    many = np.repeat(codes, weights.astype(int), axis=0)
    weighted = check_bins(density.schema, density.mixture, axes, codes, weights, rng)
    repeated = check_bins(density.schema, density.mixture, axes, many, None, rng)
    assert weighted.findings
    assert weighted == repeated
    # weights that do not stand for more rows leave more room for noise
    fewer = check_bins(density.schema, density.mixture, axes, codes, weights, rng, repeats=2.0)
    assert fewer.findings[0].error < weighted.findings[0].error


# ---- any table -----------------------------------------------------------------------------------------------


def test_gaps_and_empty_columns():
    density = dependent(0.8)
    rows = density.sample(1000, rng=0).astype(object)
    rows[::3, 0] = None
    assert density.check(rows).is_clean
    rows[:, 1] = None
    assert density.check(rows).is_clean
    assert density.check(rows[:0]).verdict.startswith("Nothing beyond noise in 0 rows")


def test_one_column_and_dates():
    day = Variable("day", "continuous", dtype="date")
    density = single(day, gaussian(19000.0, 100.0))
    rng = np.random.default_rng(0)
    days = [dt.date(1970, 1, 1) + dt.timedelta(days=round(n)) for n in rng.normal(19000, 100, 1000)]
    assert density.check({"day": days}).verdict == "Nothing beyond noise in 1,000 rows: 1 column, 0 pairs."
    later = [when + dt.timedelta(days=200) for when in days]
    question = density.check({"day": later}).findings[0].question
    assert question.startswith("P(day <= 2022-")
    parse_question(question, density.schema)


def test_infinite_numbers_count_as_gaps():
    density = single(PAY, gaussian())
    assert density.check({"pay": np.r_[np.random.default_rng(0).normal(size=500), np.inf]}).is_clean


def test_many_categories_are_merged_and_names_with_signs_quoted():
    n = 40
    names = tuple(f"c={i}" for i in range(n))
    variable = Variable("a|b", "categorical", categories=names, dtype="string")
    skewed = np.r_[0.5, np.full(n - 1, 0.5 / (n - 1))]
    density = single(variable, Dictionary.categories(n))
    rows = np.random.default_rng(0).choice(names, 2000, p=skewed)
    worst = density.check({"a|b": rows}).findings[0]
    assert worst.question in {"P('a|b'='c=0')", "P('a|b' in {26 rarer ones})"}


def test_many_rows_are_sampled_and_the_sample_is_drawn_by_rng(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 300)
    density, rows = dependent(0.3), dependent(0.9).sample(2000, rng=0)
    first, again, other = (density.check(rows, rng=seed) for seed in (0, 0, 1))
    assert first.n_rows == 300
    assert first == again
    assert first != other


def test_wide_tables_compare_some_pairs(monkeypatch):
    monkeypatch.setattr(check_pairs, "MOST_PARTNERS", 2)
    density = random_density(np.random.default_rng(0), ["label"] * 6, 2)
    check = density.check(density.sample(200, rng=0))
    assert 6 <= check.n_pairs <= 12  # out of 15


def test_findings_as_table_and_text():
    check = dependent(0.2).check(dependent(0.9).sample(2000, rng=0))
    frame = pd.DataFrame(check.table())
    assert list(frame) == ["question", "kind", "columns", "model", "rows", "n_rows", "noise", "error"]
    assert len(frame) == len(check.findings)
    assert (frame["error"] > LEAST_ERROR).all()
    lines = str(check).splitlines()
    assert lines[0] == check.verdict
    assert lines[2].split() == ["question", "model", "rows", "of", "noise", "error"]
    assert lines[3].startswith(check.findings[0].question)


def test_a_small_error_is_reported_as_such():
    small = Finding("P(a=0)", "value", ("a",), 0.5, 0.52, 20000.0, 0.003, 0.012)
    check = Check((small,), 20000, 1, 0)
    assert not check.is_clean
    assert not check.is_far
    assert check.columns == ("a",)
    assert check.verdict == (
        "The largest error that noise does not explain in 20,000 rows (1 column, 0 pairs) is 0.012: P(a=0) is 0.5 in "
        "the model and 0.52 in 20,000 rows."
    )


@pytest.mark.parametrize("name", ["age", "born in city", "a<b", "more > less"])
def test_a_single_integer_is_a_value_whatever_the_name(name):
    variable = Variable(name, "integer", observed=(0, 100), dtype="int64")
    column = np.repeat([3.0, 40.0, 90.0], [400, 300, 400])
    axis = axis_of_values(variable, column)
    cells = cells_of_bins(variable, axis, np.full((axis.n_bins, 1), 1 / axis.n_bins), axis.index(column), None)
    assert {s.kind for s in cells.asked if s.text.endswith("=40")} == {"value"}
    assert all(s.kind == "value" for s in cells.asked if "=" in s.text.removeprefix(f'"{name}"').removeprefix(name)[:1])
