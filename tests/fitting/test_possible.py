"""Every row that the kinds of its columns allow has a positive density."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import JUPAD, Dictionary, PairwiseMarginals, Profile
from jointwise.fitting.choice.folds import row_folds
from jointwise.fitting.choice.search import choose_model
from jointwise.fitting.options import Options
from jointwise.fitting.possible import TRACE, UNMET_ROWS, made_possible, unmet_rows
from jointwise.joint.product import ProductMixture
from jointwise.rows.coded import CodedRows

LEVELS = ["a", "b", "c", "d"]


def table(rng, n):
    """Rows of every kind of column: some levels, whole numbers and repeated values may be missing."""
    hidden = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "level": pd.Categorical(np.array(LEVELS)[hidden + rng.integers(0, 2, n)], categories=LEVELS),
            "count": hidden * 3 + rng.integers(0, 2, n),
            "wide": hidden * 500 + rng.integers(0, 200, n),
            "repeated": np.array([0.5, 1.75, 4.25])[hidden + rng.integers(0, 2, n)],
            "number": hidden + rng.normal(size=n),
            "constant": np.full(n, 7),
        }
    )


def any_rows(rng, n):
    """Rows of the same kinds with values that no table holds."""
    return pd.DataFrame(
        {
            "level": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS),
            "count": rng.integers(-40, 40, n),
            "wide": rng.integers(-5000, 5000, n),
            "repeated": rng.choice([0.5, 1.75, 3.0, -100.0, 1e6], n),
            "number": 100 * rng.normal(size=n),
            "constant": rng.integers(0, 10, n),
        }
    )


EVERYWHERE = dict.fromkeys(["wide", "number", "repeated"])


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    options=st.sampled_from(
        [{"beta": 0.0}, {"beta": 0.1}, {"method": "pairs"}, {"method": "paper"}, {"n_components": 1}]
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_any_row_that_the_kinds_allow_is_possible(seed, n, options):
    rng = np.random.default_rng(seed)
    chosen = {"n_components": 3, "random_state": 0, "max_iter": 20, "supports": EVERYWHERE} | options
    density = JUPAD(**chosen, keep=["constant"]).fit(table(rng, n)).density_
    assert np.isfinite(density.logpdf(any_rows(rng, 40))).all()
    means = density.mean()
    assert all(np.isfinite(means[name]) for name in density.names if name != "level")


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.filterwarnings("ignore")
def test_a_fit_of_one_fold_can_score_the_others(seed):
    rng = np.random.default_rng(seed)
    rows = table(rng, 90)
    model = JUPAD(random_state=0, n_models=1, supports=EVERYWHERE).fit(rows[:30])
    assert np.isfinite(model.score(rows[30:]))


def test_the_held_out_score_of_a_choice_is_not_spoiled_by_a_category_met_once():
    data = pd.DataFrame({"c": ["x"] * 50 + ["y"] * 49 + ["z"], "d": ["u", "v"] * 50})
    profile = Profile.of(data)
    schema = profile.schema()
    rows = CodedRows.of(data, schema, profile.axes(schema, 32)).canonical()
    assert len(row_folds(rows, np.random.default_rng(0))) == 3
    choice = choose_model(rows, Options(), np.random.default_rng(0))
    # a row of one of two equal categories in each column, and one row in a hundred worth log(1 / 133)
    assert -1.6 < choice.independence < -2 * np.log(2)
    assert choice.held_out >= choice.independence


def oracle(counts):
    """Half a row for each unmet value, together at most as many rows as values met once, and at least half a row."""
    unmet = [c == 0 for c in counts]
    if not any(unmet):
        return [0.0] * len(counts)
    together = min(0.5 * sum(unmet), max(sum(0 < c <= 1 for c in counts), 0.5))
    return [together / sum(unmet) if u else 0.0 for u in unmet]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_rows_of_unmet_values(counts):
    np.testing.assert_allclose(unmet_rows(np.array(counts, dtype=float)), oracle(counts))


def test_unmet_levels_share_alike_and_met_ones_keep_their_proportions():
    data = pd.DataFrame({"c": pd.Categorical(list("aab"), categories=LEVELS), "x": [1.0, 2.0, 3.5]})
    density = JUPAD(1, random_state=0).fit(data).density_
    found = [density.probability({"c": level}) for level in LEVELS]
    # one level was met once, so the two unmet ones share one row of four
    np.testing.assert_allclose(found, [2 / 4, 1 / 4, 1 / 8, 1 / 8])


@pytest.mark.parametrize("weight", [0.0, 1e-9])
def test_a_category_without_weight_is_rare(weight):
    data = pd.DataFrame({"c": pd.Categorical(["x", "y", "z"] * 20), "x": np.arange(60.0)})
    weights = np.where(data["c"] == "z", weight, 1.0)
    density = JUPAD(2, random_state=0).fit(data, sample_weight=weights).density_
    assert 0 < density.probability({"c": "z"}) <= UNMET_ROWS / 40


def test_where_all_was_met_nothing_changes():
    data = {"c": ["x", "y"] * 30, "x": np.random.default_rng(0).normal(size=60)}
    profile = Profile.of(data)
    schema = profile.schema()
    rows = CodedRows.of(data, schema, profile.axes(schema, 8))
    gaussians = Dictionary.grid("gaussian", -2, 2, n=3, scale=1)
    mixture = ProductMixture([1.0], [[[0.5], [0.5]], [[0.2], [0.3], [0.5]]], [Dictionary.categories(2), gaussians])
    assert made_possible(mixture, rows) is mixture


def test_whole_numbers_stay_within_a_declared_support():
    data = {"k": [0, 1, 3] * 20, "x": np.linspace(0, 1, 60)}
    density = JUPAD(1, supports={"k": (0, 4)}, random_state=0).fit(data).density_
    inside = [density.probability({"k": k}) for k in range(5)]
    assert min(inside) > 0
    assert sum(inside) == pytest.approx(1)
    assert density.probability({"k": (5, None)}) == 0
    exact = JUPAD(1, supports={"k": (0, 3)}, random_state=0).fit(data).density_
    assert exact.mixture.dictionaries[0].is_identity


def test_means_of_whole_numbers_stay_those_of_the_rows():
    counts = np.random.default_rng(0).poisson(2.0, 400)
    density = JUPAD(1, random_state=0).fit({"k": counts}).density_
    assert density.mean()["k"] == pytest.approx(counts.mean(), abs=0.02)
    assert density.mode()["k"] == np.bincount(counts).argmax()
    assert density.quantile("k", 0.5) == np.median(counts)


def test_components_of_pairs_keep_a_trace_of_the_margin():
    data = pd.DataFrame({"a": list("xy") * 40, "b": list("uv") * 40})
    profile = Profile.of(data)
    schema = profile.schema()
    marginals = PairwiseMarginals.of(data, schema, profile.axes(schema, 8))
    crossed = ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], [Dictionary.categories(2)] * 2)
    mixture = made_possible(crossed, marginals)
    np.testing.assert_allclose(mixture.coefficients[0], [[1 - TRACE / 2, TRACE / 2], [TRACE / 2, 1 - TRACE / 2]])
