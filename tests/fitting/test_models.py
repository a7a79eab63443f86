"""Models side by side: the same whatever the number of threads; what Ctrl-C leaves."""

import threading

import numpy as np
import pytest

from jointwise.fitting import models
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.models import fit_models, n_side_by_side
from jointwise.solvers import Solution, Status


def solution(value, status=Status.CONVERGED):
    return Solution(value, status, "", np.zeros(1), 0)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_models_are_named_in_order_and_have_seeds_of_their_own(n_threads):
    def fit(model, seed):
        return solution((model, seed))

    found = fit_models(4, np.random.default_rng(0), fit, keep_on_interrupt=False, n_threads=n_threads)
    seeds = np.random.default_rng(0).integers(2**32, size=4)
    assert list(found) == [f"likelihood {model}" for model in (1, 2, 3, 4)]
    assert [run.value for run in found.values()] == [(model, seed) for model, seed in enumerate(seeds, start=1)]
    assert list(fit_models(1, np.random.default_rng(0), fit, keep_on_interrupt=False)) == ["likelihood"]


def interrupted(model, others):
    """A fit that Ctrl-C ends in the calling thread once another thread has fitted a model."""
    if threading.current_thread() is threading.main_thread():
        assert others.wait(timeout=20)
        raise KeyboardInterrupt
    others.set()
    return solution(model)


def test_ctrl_c_keeps_what_other_threads_have_fitted():
    others = threading.Event()
    found = fit_models(
        50, np.random.default_rng(0), lambda model, _: interrupted(model, others), keep_on_interrupt=True, n_threads=2
    )
    assert [run.status for run in found.values()][-1] is Status.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        fit_models(
            50, np.random.default_rng(0), lambda model, _: interrupted(model, others), keep_on_interrupt=False,
            n_threads=2,
        )  # fmt: skip


def test_no_model_begins_after_one_that_was_interrupted():
    begun = []

    def fit(model, _):
        begun.append(model)
        return solution(model, Status.INTERRUPTED if model == 2 else Status.CONVERGED)

    assert list(fit_models(5, np.random.default_rng(0), fit, keep_on_interrupt=True)) == [
        "likelihood 1",
        "likelihood 2",
    ]
    assert begun == [1, 2]


def test_what_is_watched_or_large_is_fitted_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "n_cores", lambda: 3)
    rows, nothing = range(100), Checkpoint()
    assert n_side_by_side(rows, nothing, None) == 3
    assert n_side_by_side(rows, nothing, lambda *_: None) == 1
    assert n_side_by_side(range(10**6), nothing, None) == 1
    assert n_side_by_side(rows, Checkpoint(tmp_path / "fit.ck"), None) == 1
