"""Experts of a stack: who is asked, and with which priors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.fitting.asking import (
    FAR_BEHIND,
    Asked,
    _gain,
    ask,
    far_behind,
    looked,
    weaken,
    weights_for_answers,
    weights_for_target,
)
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.crosstabs import Crosstabs
from jointwise.fitting.learners import Learner, Work
from jointwise.fitting.weighing import LEAST_ERRORS, MOST_LOSS
from jointwise.joint.events import Region
from jointwise.tables.variables import Schema, Variable


def test_a_look_leaves_experts_that_serve_odd_rows_alone() -> None:
    good, far = np.full(100, -1.0), np.full(100, -1.0 - 3 * FAR_BEHIND)
    odd = np.where(np.arange(100) < 2, -1.0, far)  # as good as the best on two rows
    often = np.where(np.arange(100) < 50, 0.0, -9.0)
    close = good - 0.5 * FAR_BEHIND
    logs = {"good": np.where(np.arange(100) < 2, -9.0, good), "odd": odd, "often": often, "close": close}
    assert looked(logs, np.ones(100), list(logs)).near == ["good", "close", "often"]  # the best of the look first


def test_experts_are_left_that_rows_gain_little_by() -> None:
    rng = np.random.default_rng(0)
    good = rng.normal(-1.0, 0.1, 400)
    noise = np.where(rng.random(400) < 0.06, good + 0.3, good - 3.0)  # at times a little better
    helps = np.where(np.arange(400) < 60, good + 3.0, good - 3.0)
    for other, is_left in ((noise, True), (helps, False)):
        logs = {"good": good, "other": other}
        scores = {name: float(log.mean()) for name, log in logs.items()}
        assert far_behind(logs, scores, np.ones(400)) == ["other"] * is_left
        assert far_behind(logs, {**scores, "other": scores["good"]}, np.ones(400)) == []  # it is not behind
    assert far_behind({}, {}, np.ones(400)) == []


def test_an_expert_without_a_look_is_asked() -> None:
    logs = {"good": np.full(9, -1.0), "far": np.full(9, -99.0)}
    assert looked(logs, np.ones(9), ["good", "far", "unseen"]).near == ["good", "unseen"]
    assert looked({}, np.ones(9), ["unseen"]).near == ["unseen"]


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 40))
def test_a_gain_and_its_error_are_those_of_repeated_rows(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, n)
    sums = []
    for _ in range(2):
        logs = {str(name): rng.normal(-3, 1, n) for name in range(k)}
        weights = Asked(logs, counts.astype(float), {}, []).weights
        sums.append([np.log(sum(w * np.exp(logs[name][i]) for name, w in weights.items())) for i in range(n)])
        sums[-1] = (Asked(logs, counts.astype(float), {}, []), np.repeat(sums[-1], counts))
    (before, low), (after, high) = sums
    gain, error = _gain(before, after)
    assert gain == pytest.approx(np.mean(high - low), abs=1e-12)
    assert error == pytest.approx(np.std(high - low) / np.sqrt(len(low)), abs=1e-12)


class Scripted:
    """An expert whose log-density of every row is a function of the strength of its prior, and the fits asked for."""

    def __init__(self, score) -> None:
        self.score = score
        self.fits: list[tuple[float, int]] = []

    def learner(self, name: str) -> Learner:
        return Learner(
            name,
            look=lambda rows, rng, known: Density(0.0, np.zeros),
            choose=lambda rows, rng, checkpoint, known, others: 16.0,
            single=lambda choice: choice,
            fit=self.fit,
            weaker=lambda choice: choice / 2 if choice > 1 else None,
        )

    def fit(self, rows, choice, rng, callback, checkpoint):
        self.fits.append((choice, len(rows)))
        return Fitted(Density(choice, lambda n: self.score(choice, n)))


class Fitted:
    def __init__(self, density) -> None:
        self.density, self.was_interrupted = density, False


class Density:
    def __init__(self, choice: float, logs) -> None:
        self.mixture, self.choice, self.logs = self, choice, logs

    def logpdf(self, X: np.ndarray) -> np.ndarray:
        return self.logs(len(X))


def weakened(*scores, n_rows: int = 60):
    """Return the choices of experts with scripted scores, the densities without the first rows, and the experts."""
    experts = {str(k): Scripted(score) for k, score in enumerate(scores)}
    folds = [(Some(n_rows), Some(2 * n_rows + fold)) for fold in range(3)]
    learners = {name: expert.learner(name) for name, expert in experts.items()}
    work = Work(learners, Some(3 * n_rows), 0, Checkpoint(), lambda _: None, {})
    work, asked = weaken(work, ask(work, folds), folds)
    return work, asked, list(experts.values())


class Some:
    """So many rows."""

    weights = None

    def __init__(self, n: int, n_columns: int = 1) -> None:
        self.n, self.n_columns = n, n_columns
        self.schema = Schema(tuple(Variable(f"x{k}", "continuous") for k in range(n_columns)))

    def __len__(self) -> int:
        return self.n

    def values(self) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(self.n, self.n_columns))


def test_what_the_best_says_may_leave_others_behind() -> None:
    """The second is better on some rows at a look: the first gains on these rows, or as much on all."""
    odd = np.arange(60) < 20
    for gain, expected in ((np.where(odd, 6.0, 0.0), ["0"]), (np.full(60, 2.0), ["0", "1"])):
        looks = [np.zeros(60), np.where(odd, 3.0, -9.0)]
        experts = [Scripted(lambda choice, n, gain=gain: gain), Scripted(best_at(1.0))]
        learners = {
            str(k): replace(expert.learner(str(k)), look=lambda *_, log=log: Density(0.0, lambda n: log))
            for k, (expert, log) in enumerate(zip(experts, looks, strict=True))
        }
        work = Work(learners, Some(180), 0, Checkpoint(), lambda _: None, {})
        asked = ask(work, [(Some(60), Some(120))])
        assert asked.known == expected
        assert asked.mean("1") is not None  # by its look, if it was left


def best_at(strength: float):
    """Return a score that is highest at a strength of the prior."""
    return lambda choice, n: np.full(n, -abs(np.log2(choice / strength)))


def test_priors_are_weakened_together_while_held_out_rows_gain() -> None:
    work, asked, experts = weakened(best_at(4.0), best_at(4.0))
    assert work.choices == {"0": 4.0, "1": 4.0}
    assert {name: density.choice for name, density in work.first.items()} == work.choices
    assert asked.mean_of_sum(asked.weights) == pytest.approx(0.0)
    assert [len(log) for log in asked.logs.values()] == [180, 180]
    # the step too far is left after the first fold
    assert [choice for choice, _ in experts[0].fits] == [16.0] * 3 + [8.0] * 3 + [4.0] * 3 + [2.0]


def test_priors_end_with_the_weakest() -> None:
    work, _, _ = weakened(best_at(0.1), best_at(0.1))
    assert work.choices == {"0": 1.0, "1": 1.0}


def test_experts_that_are_dropped_are_not_asked_again() -> None:
    work, asked, experts = weakened(best_at(8.0), lambda choice, n: np.full(n, -50.0))
    assert set(asked.weights) == {"0"}
    assert work.choices == {"0": 8.0, "1": 16.0}
    assert len(experts[1].fits) == 1  # after the first fold it has no weight


@pytest.mark.parametrize(("errors", "kept"), [(0.7 * LEAST_ERRORS, 16.0), (1.4 * LEAST_ERRORS, 8.0)])
def test_a_gain_within_noise_is_none(errors: float, kept: float) -> None:
    n = 60

    def noisy(choice: float, n: int) -> np.ndarray:
        spread = np.where(np.arange(n) % 2, 1.0, -1.0)  # standard error 1 / sqrt(3 n)
        return spread + errors / np.sqrt(3 * n) if choice == 8.0 else np.full(n, float(-9 * (choice < 8.0)))

    work, _, _ = weakened(noisy, noisy, n_rows=n)
    assert work.choices == {"0": kept, "1": kept}


class Telling(Density):
    """A density of rows, and of the chance of their class."""

    def __init__(self, log_density: float, chance: float) -> None:
        self.mixture, self.log_density, self.chance = self, log_density, chance

    def logpdf(self, X: np.ndarray) -> np.ndarray:
        return self.log_density + np.where(np.isnan(X[:, -1]), 0.0, np.log(self.chance))


def telling_work(target: int | None, **experts: Telling) -> Work:
    learners = {
        name: Learner(
            name,
            look=lambda rows, rng, known, density=density: density,
            choose=lambda rows, rng, checkpoint, known, others: None,
            single=lambda choice: choice,
            fit=lambda rows, choice, rng, callback, checkpoint, density=density: Fitted(density),
        )
        for name, density in experts.items()
    }
    return Work(learners, Some(300, 2), 0, Checkpoint(), lambda _: None, {}, target=target)


@pytest.mark.parametrize("n_folds", [1, 3])
def test_experts_far_behind_are_asked_if_they_tell_of_the_target(n_folds: int) -> None:
    folds = [(Some(100, 2), Some(200, 2))] * n_folds
    experts = {"dense": Telling(-1.0, 0.5), "telling": Telling(-3.0, 0.9), "neither": Telling(-3.0, 0.4)}
    by_rows = telling_work(None, **experts)
    assert ask(by_rows, folds).known == ["dense"]
    work = telling_work(1, **experts)
    asked = ask(work, folds)
    assert asked.known == ["dense", "telling"]
    assert list(asked.weights) == ["dense"]
    assert weights_for_target(work, asked, range(n_folds))["telling"] > 0.9


def test_an_expert_is_kept_for_what_it_tells_of_the_target_not_for_its_weight() -> None:
    """Each of two experts knows half of the rows well. One is 30 nats denser, so its weight must be tiny."""
    first, counts = np.arange(100) < 50, np.full(100, 20.0)
    chances = {"dense": np.where(first, 0.99, 0.4), "telling": np.where(first, 0.4, 0.99), "silent": np.full(100, 0.3)}
    others = {"dense": np.zeros(100), "telling": np.full(100, -30.0), "silent": np.full(100, -30.0)}
    asked = Asked({name: others[name] + np.log(chances[name]) for name in chances}, counts, {}, [])
    work = telling_work(1, **{name: Telling(-1.0, 0.5) for name in chances})
    work.others.update({(name, 0): log for name, log in others.items()})
    found = weights_for_target(work, asked, [0])
    assert set(found) == {"dense", "telling"}
    assert found["dense"] < 1e-9


def test_log_densities_without_the_target_are_those_of_the_last_priors() -> None:
    work = telling_work(1, a=Telling(-1.0, 0.5), b=Telling(-1.0, 0.6))
    ask(work, [(Some(100, 2), Some(200, 2))])
    weaker = work.with_weaker({})
    weaker.others["a", 0] = np.zeros(100)
    np.testing.assert_array_equal(work.others["a", 0], np.full(100, -1.0))


class Tabled(Density):
    """A density that says one thing of whole rows and another of crosstabs."""

    def __init__(self, rows: np.ndarray, rng: np.random.Generator) -> None:
        self.mixture, self.rows, self.rng = self, rows, rng

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> np.ndarray:
        shape = [len(each) for each in regions.values()]
        return self.rng.dirichlet(np.full(int(np.prod(shape)), 5.0)).reshape(shape)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_a_stack_loses_no_more_than_stated_on_rows(seed: int, k: int) -> None:
    rng, n = np.random.default_rng(seed), 150
    densities = {str(name): Tabled(rng.normal(rng.normal(-9, 2), 1, n), rng) for name in range(k)}
    asked = Asked({name: density.rows for name, density in densities.items()}, np.ones(n), {}, [])
    part = Some(n, 5)
    tables = Crosstabs.draw(part.values(), part.schema, rng)
    work = Work(
        dict.fromkeys(densities), Some(n), 0, Checkpoint(), lambda _: None, {}, first=densities, most_loss=MOST_LOSS
    )
    weights = weights_for_answers(work, asked, tables)
    assert sum(weights.values()) == pytest.approx(1)
    assert asked.mean_of_sum(weights) >= asked.mean_of_sum(asked.weights) - MOST_LOSS


class Knowing(Density):
    """A density of rows, and of the first of two regions of each column."""

    def __init__(self, log_density: float, first: float) -> None:
        self.mixture, self.log_density, self.first = self, log_density, first

    def logpdf(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.log_density)

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> np.ndarray:
        return np.array([self.first, 1 - self.first])


@pytest.mark.parametrize(("tabled", "known"), [(True, ["dense", "knowing"]), (False, ["dense"])])
def test_experts_that_answers_need_are_asked_about_all_rows(tabled: bool, known: list[str]) -> None:
    folds = [(Some(600, 2), Some(1200, 2))] * 3
    tables = Crosstabs(({},), np.zeros((600, 1), dtype=int), 2)
    experts = {"dense": Knowing(-1.0, 0.3), "knowing": Knowing(-1.2, 0.9)}
    work = replace(telling_work(None, **experts), tables=tables if tabled else None, most_loss=MOST_LOSS)
    asked = ask(work, folds)
    assert asked.known == known
    assert list(asked.weights) == ["dense"]
    if tabled:
        assert weights_for_answers(work, asked, tables)["knowing"] > 0.9


def test_cells_are_those_of_the_last_priors() -> None:
    tables = Crosstabs(({},), np.zeros((100, 1), dtype=int), 2)
    work = telling_work(None, a=Telling(-1.0, 0.5))
    work.first["a"] = Knowing(-1.0, 0.3)
    weaker = work.with_weaker({})
    weaker.first["a"] = Knowing(-1.0, 0.5)
    for each, first in ((work, 0.3), (weaker, 0.5), (work, 0.3)):
        np.testing.assert_allclose(np.exp(each.log_masses("a", tables)), [first, 1 - first])
        assert each.log_masses("a", tables) is each.log_masses("a", tables)
