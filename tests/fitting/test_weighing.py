"""Weights of experts, by held-out rows, by crosstabs of these and by one column of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from jointwise.fitting.crosstabs import Crosstabs
from jointwise.fitting.weighing import (
    LEAST_LOSS,
    LEAST_WEIGHT,
    PRIOR_ROWS,
    TARGET_PRIOR,
    answering_weights,
    changes_without,
    kept_weights,
    losses_without,
    mean_log,
    predicting_weights,
    stacking_weights,
)


def objective(weights: np.ndarray, logs: np.ndarray, counts: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(counts @ logsumexp(logs + np.log(weights), axis=1) + PRIOR_ROWS * np.log(weights).sum())


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 60))
def test_weights_are_the_most_likely(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    logs, counts = rng.normal(-20, 3, (n, k)), rng.integers(1, 4, n).astype(float)
    found = stacking_weights(logs, counts)
    best = minimize(lambda t: -objective(softmax(t), logs, counts), np.zeros(k), method="BFGS")
    assert found.sum() == pytest.approx(1)
    assert objective(found, logs, counts) >= -best.fun - 1e-4 * counts.sum()


def test_an_impossible_row_is_no_verdict_alone() -> None:
    logs = np.full((50, 2), -1.0)
    logs[:, 1] = -3.0
    logs[7, 0] = -np.inf
    found = stacking_weights(logs, np.ones(50))
    assert 0.9 < found[0] < 1


def test_a_row_impossible_for_all_says_nothing() -> None:
    logs = np.array([[-1.0, -2.0], [-1.0, -2.0], [-np.inf, -np.inf]])
    assert np.isfinite(stacking_weights(logs, np.ones(3))).all()


# ---- one column ------------------------------------------------------------------------------------------------------


def with_classes(seed: int, k: int, n: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log-densities of rows under experts, the same without their class, and counts."""
    rng = np.random.default_rng(seed)
    sharpness = rng.uniform(0.3, 3.0, k)  # of what experts say about the class
    every = rng.normal(-20, 1, (n, 1, k)) + sharpness * rng.normal(0, 1, (n, n_classes, k))
    every[:, 0] += rng.uniform(0, 2, k)  # the class of all rows, which experts know more or less well
    return every[:, 0], np.asarray(logsumexp(every, axis=1)), rng.integers(1, 4, n).astype(float)


def target_objective(weights: np.ndarray, rows: np.ndarray, others: np.ndarray, counts: np.ndarray) -> float:
    """A slow twin: sum_i c_i log p(class | row) and the prior, row by row."""
    total = 0.0
    for f, g, count in zip(np.exp(rows), np.exp(others), counts, strict=True):
        joint = sum(w * value for w, value in zip(weights, f, strict=True))
        alone = sum(w * value for w, value in zip(weights, g, strict=True))
        total += count * np.log(joint / alone)
    prior = stacking_weights(rows, counts)
    return total + TARGET_PRIOR * sum(v * np.log(w) for v, w in zip(prior, weights, strict=True))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 40))
def test_weights_predict_a_column_best(seed: int, k: int, n: int) -> None:
    """No start of a general solver near the weights finds better ones, and the slopes are zero."""
    rows, others, counts = with_classes(seed, k, n)
    found = predicting_weights(rows, others, counts)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    best = minimize(lambda t: -target_objective(softmax(t), rows, others, counts), np.log(found), method="BFGS")
    assert target_objective(found, rows, others, counts) >= -best.fun - 1e-4 * counts.sum()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_weights_are_no_worse_than_either_start(seed: int, k: int) -> None:
    rows, others, counts = with_classes(seed, k, 30)
    density = np.random.default_rng(seed).normal(0, 20, k)  # some experts are far denser than others
    rows, others = rows + density, others + density
    even = softmax(-np.average(others, axis=0, weights=counts))
    found = target_objective(predicting_weights(rows, others, counts), rows, others, counts)
    for start in (stacking_weights(rows, counts), even):
        assert found >= target_objective(start, rows, others, counts) - 1e-6


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 40))
def test_changes_are_those_of_the_sum_without_each_expert(seed: int, k: int, n: int) -> None:
    rows, others, counts = with_classes(seed, k, n)
    weights = np.random.default_rng(seed).dirichlet(np.ones(k))
    found = changes_without(rows, others, counts, weights)
    told = np.log(np.exp(rows) @ weights / (np.exp(others) @ weights))
    for without in range(k):
        left = np.where(np.arange(k) == without, 0.0, weights)
        alone = np.log(np.exp(rows) @ left / (np.exp(others) @ left))
        assert found[without] == pytest.approx(counts @ np.abs(told - alone) / counts.sum(), rel=1e-6, abs=1e-9)


def test_the_best_expert_of_rows_need_not_predict_a_column_best() -> None:
    """The first expert is ten times as dense wherever rows are, and knows nothing of the class."""
    others = np.tile(np.log([10.0, 1.0]), (200, 1))
    rows = others + np.log([0.5, 0.95])
    assert stacking_weights(rows, np.ones(200))[0] > 0.98
    assert predicting_weights(rows, others, np.ones(200))[1] > 0.9


def test_few_rows_change_the_weights_of_rows_little() -> None:
    others = np.tile(np.log([10.0, 1.0]), (1, 1))
    rows = others + np.log([0.5, 0.95])
    by_rows = stacking_weights(rows, np.ones(1))
    np.testing.assert_allclose(predicting_weights(rows, others, np.ones(1)), by_rows, atol=0.1)


def test_experts_that_predict_a_column_alike_keep_the_weights_of_rows() -> None:
    rows, _, counts = with_classes(0, 3, 50)
    np.testing.assert_allclose(predicting_weights(rows, rows - 0.7, counts), stacking_weights(rows, counts))


def test_a_repeated_row_counts_as_often() -> None:
    rows, others, counts = with_classes(1, 3, 50)
    often = [np.repeat(each, counts.astype(int), axis=0) for each in (rows, others)]
    found = predicting_weights(*often, np.ones(int(counts.sum())))
    np.testing.assert_allclose(found, predicting_weights(rows, others, counts), rtol=1e-6)


def test_an_impossible_class_is_no_verdict_alone() -> None:
    rows, others, counts = with_classes(2, 2, 50)
    rows[7] = others[7] = -np.inf
    without = np.arange(50) != 7
    found = predicting_weights(rows, others, counts)
    np.testing.assert_allclose(found, predicting_weights(rows[without], others[without], counts[without]), rtol=0.02)
    rows[8, 0] = -np.inf
    assert np.isfinite(predicting_weights(rows, others, counts)).all()


# ---- crosstabs -------------------------------------------------------------------------------------------------------

N_CELLS = 12


def held_out(seed: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Crosstabs]:
    """Return log-densities of rows and cells under experts of which some suit rows and some cells, counts, tables."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(-20, 1, (n, k)) + rng.normal(0, 0.5, k)
    cells = np.log(rng.dirichlet(np.full(N_CELLS, 5.0), k).T)
    tables = Crosstabs((), rng.integers(-1, N_CELLS, (n, 2)), N_CELLS)
    return rows, cells, rng.integers(1, 4, n).astype(float), tables


@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0.0, 0.5))
def test_rows_lose_no_more_than_stated(seed: int, k: int, loss: float) -> None:
    rows, cells, counts, tables = held_out(seed, k, 200)
    best = stacking_weights(rows, counts)
    found = answering_weights(rows, cells, counts, tables, loss)
    assert found.sum() == pytest.approx(1)
    assert mean_log(rows, counts, found) >= mean_log(rows, counts, best) - loss - 1e-9


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_a_larger_loss_serves_cells_better(seed: int, k: int) -> None:
    rows, cells, counts, tables = held_out(seed, k, 200)
    met = tables.counts(counts)
    losses = (0.0, 0.05, 0.2, 9.0)
    scores = [mean_log(cells, met, answering_weights(rows, cells, counts, tables, loss)) for loss in losses]
    best = mean_log(cells, met, stacking_weights(cells, met))
    assert (np.diff(scores) >= -0.02).all()  # a step back where a gain is noise
    assert scores[-1] >= best - 0.05


@pytest.mark.parametrize("n_tabled", [300, 100])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_the_best_of_cells_within_the_loss(seed: int, n_tabled: int) -> None:
    """A slow twin: a general solver of the constrained problem, with tables of all rows or of the first."""
    rows, cells, counts, tables = held_out(seed, 3, 300)
    tables = Crosstabs((), tables.cells[:n_tabled], N_CELLS)
    met, loss = tables.counts(counts[:n_tabled]), 0.05
    least = mean_log(rows, counts, stacking_weights(rows, counts)) - loss
    bound = {"type": "ineq", "fun": lambda t: mean_log(rows, counts, softmax(t)) - least}
    best = minimize(lambda t: -mean_log(cells, met, softmax(t)), np.zeros(3), method="SLSQP", constraints=[bound])
    found = answering_weights(rows, cells, counts, tables, loss)
    assert mean_log(cells, met, found) == pytest.approx(-best.fun, abs=3e-3)


def test_without_a_gain_beyond_noise_rows_decide() -> None:
    rows, cells, counts, tables = held_out(0, 3, 200)
    same = np.repeat(cells[:, :1], 3, axis=1)
    assert (answering_weights(rows, same, counts, tables) == stacking_weights(rows, counts)).all()


def test_a_row_in_many_tables_is_one_row() -> None:
    """The same table a hundred times tells no more than once: noise is that of rows."""
    rows, cells, counts, tables = held_out(3, 2, 60)
    often = Crosstabs((), np.repeat(tables.cells, 100, axis=1), tables.n_cells)
    found = [answering_weights(rows, cells, counts, each, 0.3) for each in (tables, often)]
    np.testing.assert_allclose(found[0], found[1])


def test_experts_with_too_little_weight_are_dropped_one_by_one() -> None:
    asked: list[list[str]] = []

    def weigh(names: list[str]) -> np.ndarray:
        asked.append(list(names))
        return {3: np.array([0.99, LEAST_WEIGHT / 2, 0.004]), 2: np.array([0.7, 0.3])}[len(names)]

    assert kept_weights(["a", "b", "c"], weigh) == {"a": 0.7, "b": 0.3}
    assert asked == [["a", "b", "c"], ["a", "b"]]


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 40))
def test_losses_are_those_of_the_sum_without_each_expert(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    logs, counts, weights = rng.normal(-20, 5, (n, k)), rng.integers(1, 4, n).astype(float), rng.dirichlet(np.ones(k))
    found = losses_without(logs, counts, weights)
    for without in range(k):
        left = [other for other in range(k) if other != without]
        rest = logsumexp(logs[:, left] + np.log(weights[left] / weights[left].sum()), axis=1)
        loss = np.average(logsumexp(logs + np.log(weights), axis=1) - rest, weights=counts)
        assert found[without] == pytest.approx(loss, rel=1e-9, abs=1e-9)


def test_an_expert_that_another_stands_for_is_dropped() -> None:
    logs = np.random.default_rng(0).normal(-20, 1, (200, 2))
    logs[:, 1] = logs[:, 0] - 1e-3

    def of(names: list[str]) -> np.ndarray:
        return logs[:, [ord(name) - ord("a") for name in names]]

    def weigh(names: list[str]) -> np.ndarray:
        return stacking_weights(of(names), np.ones(200))

    def worth(names: list[str], weights: np.ndarray) -> np.ndarray:
        return losses_without(of(names), np.ones(200), weights) / LEAST_LOSS

    assert set(kept_weights(["a", "b"], weigh)) == {"a", "b"}
    assert kept_weights(["a", "b"], weigh, worth) == {"a": 1.0}


def test_losses_are_known_where_one_expert_has_nearly_all_of_the_weight() -> None:
    logs, weights = np.log([[1e-20, 0.5], [1e-20, 0.25]]), np.array([1.0, 1e-20])
    expected = [np.log([1.5e-20 / 0.5, 1.25e-20 / 0.25]).mean(), np.log([1.5, 1.25]).mean()]
    np.testing.assert_allclose(losses_without(logs, np.ones(2), weights), expected)
