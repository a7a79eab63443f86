"""Fits in which gaps are part of the model."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from tests.estimators.cases import CONTAINERS, QUICK, mixed_columns, same_model, table

import jointwise
from jointwise import JUPAD, GaussianBlocks, JointClassifier, JointEstimator, JointImputer
from jointwise.exceptions import InputError, MisfitWarning
from jointwise.marginals import PairwiseMarginals, Profile

JOBS = np.array(["cook", "nurse", "pilot"])


def gaps_by_job(n=3000, seed=0):
    """The pay of some jobs is missing more often; gaps of age depend on nothing. Return table, gaps and jobs."""
    rng = np.random.default_rng(seed)
    job = rng.integers(3, size=n)
    pay, age = rng.normal(size=n) + job, rng.normal(size=n)
    gaps = rng.random(n) < np.array([0.05, 0.2, 0.5])[job]
    pay[gaps] = np.nan
    age[rng.random(n) < 0.2] = np.nan
    return {"job": JOBS[job], "pay": pay, "age": age}, gaps, job


def hidden_class(n=3000, seed=0):
    """A hidden class makes pay high, mostly missing, and tax likely: the gap itself tells of the value behind it."""
    rng = np.random.default_rng(seed)
    rich = rng.random(n) < 0.4
    pay = np.where(rich, 6.0, 0.0) + rng.normal(size=n)
    tax = rich + 0.7 * rng.normal(size=n)
    cars = rng.poisson(np.where(rich, 2.0, 0.7))
    gaps = rng.random(n) < np.where(rich, 0.7, 0.05)
    return {"pay": np.where(gaps, np.nan, pay), "tax": tax, "cars": cars}, gaps, pay


@pytest.mark.parametrize("estimator", [JUPAD, GaussianBlocks])
def test_the_law_of_gaps_given_another_column_is_learned(estimator):
    data, gaps, job = gaps_by_job()
    density = estimator(missing="informative", random_state=0).fit(data).density_
    assert density.schema.names == ("job", "pay", "pay missing", "age", "age missing")
    assert density.probability({"pay": None}) == pytest.approx(gaps.mean(), abs=0.005)
    for k, name in enumerate(JOBS):  # five standard errors of the truth
        p = density.probability({"pay": None}, {"job": name})[0]
        truth, n = (0.05, 0.2, 0.5)[k], (job == k).sum()
        assert abs(p - truth) < 5 * np.sqrt(truth * (1 - truth) / n)
    drawn = density.sample(3000, rng=1)
    again = np.isnan(drawn["pay"])
    for name in JOBS:  # a two-sample test at one in a thousand each; seeds are fixed
        here, there = again[drawn["job"] == name], gaps[data["job"] == name]
        counts = [[here.sum(), (~here).sum()], [there.sum(), (~there).sum()]]
        assert stats.fisher_exact(counts).pvalue > 1e-3


def test_auto_tells_the_gaps_that_depend_on_other_columns():
    data, *_ = gaps_by_job()
    assert JUPAD(**QUICK, missing="auto").fit(data).density_.schema.names == ("job", "pay", "pay missing", "age")


def test_the_default_ignores_gaps():
    data, *_ = gaps_by_job(300)
    first = JUPAD(**QUICK).fit(data)
    assert first.density_.names == ("job", "pay", "age")
    assert same_model(first, JUPAD(**QUICK, missing="ignorable").fit(data))
    untold = {"job": data["job"]}
    assert same_model(JUPAD(**QUICK, missing="auto").fit(untold), JUPAD(**QUICK).fit(untold))
    assert same_model(JUPAD(**QUICK, missing="informative").fit(untold), JUPAD(**QUICK).fit(untold))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [JUPAD, partial(GaussianBlocks, n_components=6)], ids=["products", "blocks"])
def test_values_behind_gaps_are_guessed_better_where_gaps_mean_something(estimator):
    data, gaps, pay = hidden_class()
    errors, means = {}, {}
    for missing in ("ignorable", "informative"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MisfitWarning)
            density = estimator(missing=missing, random_state=0).fit(data).density_
        errors[missing] = np.sqrt(np.mean((density.impute(data)["pay"] - pay)[gaps] ** 2))
        means[missing] = density.mean()["pay"]
    assert errors["informative"] < 0.8 * errors["ignorable"]
    assert abs(means["informative"] - pay.mean()) < 0.5 * abs(means["ignorable"] - pay.mean())


def test_a_stack_tells_gaps_and_is_checked():
    rng = np.random.default_rng(0)
    skill = rng.normal(size=1500)
    pay = 2 * skill + 0.5 * rng.normal(size=1500)
    shown = np.where(rng.random(1500) < 1 / (1 + np.exp(-3 * skill)), np.nan, pay)
    experts = [("jupad", JUPAD(8)), ("blocks", GaussianBlocks("none", n_components=2))]
    model = JointEstimator(experts, missing="auto", random_state=0).fit({"skill": skill, "pay": shown})
    assert model.density_.schema.names == ("skill", "pay", "pay missing")
    assert model.check_ is not None
    assert not model.check_.is_far, model.check_.verdict
    assert "gaps: part of the model for pay" in model.summary()


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_kind_of_table_with_gaps(container):
    data = table(container, mixed_columns(gaps=True))
    model = JUPAD(**QUICK, missing="informative").fit(data)
    density = model.density_
    assert len(density.schema.gaps) == 5
    assert np.isfinite(model.score_samples(data)).all()
    drawn = model.sample(40, random_state=0)
    assert type(drawn) is type(data)
    assert np.isfinite(density.logpdf(drawn)).all()
    filled = density.impute(data)
    assert type(filled) is type(data)
    codes = jointwise.tables.encode(filled, density.schema.select(density.schema.columns))
    assert not np.isnan(codes).any()


def test_blocks_of_a_table_give_the_same_model():
    data, *_ = gaps_by_job(600)
    parts = [{name: column[i : i + 200] for name, column in data.items()} for i in (0, 200, 400)]
    for missing in ("informative", "auto"):
        whole = JUPAD(**QUICK, missing=missing).fit(data)
        assert same_model(JUPAD(**QUICK, missing=missing).fit_blocks(lambda: parts), whole)


def test_an_imputer_and_a_classifier_use_gaps():
    data, _, pay = hidden_class(1500)
    inner = JUPAD(4, missing="informative", random_state=0)
    filled = JointImputer(inner).fit_transform(data)
    assert list(filled) == ["pay", "tax", "cars"]
    assert not np.isnan(filled["pay"]).any()
    rich = np.where(pay > 3, "yes", "no")
    X = np.column_stack([data["pay"], data["tax"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)
        plain, told = (JointClassifier(each).fit(X, rich) for each in (JUPAD(4, random_state=0), inner))
    assert told.score(X, rich) > plain.score(X, rich) + 0.05
    assert told.density_.schema.names == ("x0", "x0 missing", "x1", "target")


def test_rows_without_any_value_count():
    data = {"a": [1.0, None] * 50, "b": [2.0, None] * 50}
    density = JUPAD(**QUICK, missing="informative").fit(data).density_
    assert density.probability({"a": None}) == pytest.approx(0.5, abs=0.02)
    assert density.probability({"a": None, "b": None}) == pytest.approx(0.5, abs=0.05)


def test_a_column_that_is_left_out_tells_no_gaps():
    data, *_ = gaps_by_job(200)
    model = JUPAD(**QUICK, missing="informative", drop=["pay"]).fit(data)
    assert model.density_.schema.names == ("job", "age", "age missing")


@pytest.mark.parametrize("method", ["pairs", "paper"])
def test_pairs_cannot_tell_gaps(method):
    data, *_ = gaps_by_job(200)
    with pytest.raises(InputError, match="needs whole rows"):
        JUPAD(2, method=method, missing="informative").fit(data)
    experts = [("jupad", JUPAD(2, method=method))]
    with pytest.raises(InputError, match="needs whole rows"):
        JointEstimator(experts, missing="informative").fit(data)


def test_counts_of_pairs_cannot_tell_gaps():
    profile = Profile.of({"a": [1, 2, 2], "b": [1, 1, 2]})
    schema = profile.schema()
    marginals = PairwiseMarginals.of({"a": [1, 2, 2], "b": [1, 1, 2]}, schema, profile.axes(schema, 4))
    with pytest.raises(InputError, match="needs whole rows, but fit_marginals"):
        JUPAD(2, missing="auto").fit_marginals(marginals)


def test_other_words_are_refused():
    with pytest.raises(InputError, match="`missing` must be one of 'ignorable', 'informative', 'auto'"):
        JUPAD(missing="mnar").fit({"a": [1.0, 2.0]})


def test_the_summary_counts_columns_of_the_table():
    data, *_ = gaps_by_job(300)
    lines = JUPAD(**QUICK, missing="informative").fit(data).summary().splitlines()
    assert lines[0] == "JUPAD: joint density of 3 columns"
    assert "gaps: part of the model for pay, age" in lines
