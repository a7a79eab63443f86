"""What a fit shows while it runs, and what an interrupt leaves."""

import io
import logging
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.cases import QUICK, make_classifier, make_imputer

from jointwise import JUPAD, Dictionary, _progress
from jointwise.solvers import PairwiseEM, RowsEM, Status
from jointwise.solvers.pairs_alternating import AlternatingMirrorDescent

X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 40, axis=0) + np.random.default_rng(0).normal(size=(80, 2))
Y = np.arange(80) // 40
ATOMS = Dictionary.grid("gaussian", -3, 6, n=10, scale=1)
METHODS = {
    # nothing is left to choose, so that the first steps taken are those of the fit itself
    "rows": ({"beta": 1.0, "dictionaries": {"x0": ATOMS, "x1": ATOMS}}, RowsEM),
    "pairs": ({"method": "pairs"}, PairwiseEM),
    "paper": ({"method": "paper"}, AlternatingMirrorDescent),
}


@pytest.fixture(autouse=True)
def compiled_before(monkeypatch):
    monkeypatch.setattr("jointwise.engines.compiled.is_compiled", lambda: True)


def test_the_first_fit_says_what_it_waits_for(monkeypatch, capfd):
    monkeypatch.setattr("jointwise.engines.compiled.is_compiled", lambda: False)
    JUPAD(**QUICK, verbose=True).fit(X)
    assert "compiles its loops" in capfd.readouterr().err.splitlines()[0]


def test_loops_that_have_run_are_compiled(tmp_path):
    program = (
        "import numpy as np; from jointwise.engines import compiled; before = compiled.is_compiled(); "
        "engine = compiled.CompiledEngine(np.zeros((3, 1), dtype=np.uint8), [2]); "
        "engine.posterior_counts(np.full((2, 1), 0.5), np.ones(1)); print(before, compiled.is_compiled())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("estimator", [JUPAD, make_classifier, make_imputer])
def test_fits_are_silent_unless_asked(estimator, capfd):
    estimator(**QUICK).fit(X, Y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("parameters", [{}, {"method": "pairs"}])
@pytest.mark.parametrize("estimator", [JUPAD, make_classifier, make_imputer])
def test_verbose_fits_write_to_stderr(estimator, parameters, capfd):
    model = estimator(**QUICK, **parameters, verbose=True).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("JUPAD: choosing dictionaries and starts\n")
    assert err.splitlines()[-1].startswith(
        f"JUPAD: step {getattr(model, 'estimator_', model).n_iter_} of at most 500, objective "
    )


def test_readings_of_a_table_that_is_not_in_memory_are_told(capfd):
    JUPAD(**QUICK, verbose=True).fit_blocks(lambda: np.array_split(X, 3))
    told = capfd.readouterr().err.splitlines()
    assert told[:3] == [
        "JUPAD: reading the table, for its profile",
        "JUPAD: reading it again, for its codes",
        "JUPAD: 80 rows of 2 columns are coded",
    ]
    JUPAD(**QUICK).fit_blocks(lambda: np.array_split(X, 3))
    assert capfd.readouterr() == ("", "")


def test_lines_go_to_the_logger_where_it_is_listened_to(capfd, caplog):
    with caplog.at_level(logging.INFO, logger="jointwise"):
        JUPAD(**QUICK, verbose=True).fit(X)
    assert caplog.records[0].name == "jointwise"
    assert "step" in caplog.messages[-1]
    assert capfd.readouterr() == ("", "")


def test_lines_come_at_most_once_a_second(monkeypatch, capsys):
    clock = iter(np.arange(0, 100, 0.25))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with _progress._lines("fit", 20) as callback:
        for step in range(20):
            callback(step, -float(step))
    err = capsys.readouterr().err.splitlines()
    assert len(err) < 8
    assert err[-1] == "fit: step 19 of at most 20, objective -19.00000"


def test_a_terminal_gets_a_bar(monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert _progress._has_bar()
    with _progress.progress("fit", 20, enabled=True) as callback:
        callback(3, -0.5)
    assert "objective -0.50000" in terminal.getvalue()


def test_without_rich_there_are_lines(monkeypatch):
    monkeypatch.setattr(_progress, "find_spec", lambda name: None)
    assert not _progress._has_bar()


def interrupted_after(monkeypatch, solver, n_steps):
    """Let the solver's next steps work and then raise once, as Ctrl-C would."""
    taken, step = [], solver.step

    def interrupting(self, problem, state):
        taken.append(self)
        if len(taken) == n_steps + 1:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(solver, "step", interrupting)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_fit_is_kept_with_a_warning(monkeypatch, method):
    parameters, solver = METHODS[method]
    interrupted_after(monkeypatch, solver, 2)
    model = JUPAD(**{**QUICK, **parameters, "tol": 0.0}, on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"was interrupted after 2 steps.*reached by then"):
        model.fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2
    assert list(model.stages_.values())[-1].status is Status.INTERRUPTED
    assert np.isfinite(model.score(X))
    assert "steps: 2, interrupted" in model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        monkeypatch.undo()
        two_steps = JUPAD(**{**QUICK, **parameters, "tol": 0.0}, max_iter=2).fit(X)
    if method != "paper":  # there, two steps end the first stage too
        assert model.score(X) == two_steps.score(X)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_is_raised_by_default(monkeypatch, method):
    parameters, solver = METHODS[method]
    interrupted_after(monkeypatch, solver, 2)
    with pytest.raises(KeyboardInterrupt):
        JUPAD(**{**QUICK, **parameters, "tol": 0.0}).fit(X)


def test_an_interrupted_choice_of_starts_runs_no_further_start(monkeypatch):
    first = JUPAD(n_components=2, n_init=1, method="pairs", random_state=0).fit(X)
    interrupted_after(monkeypatch, PairwiseEM, first.n_iter_ + 1)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 step"):
        kept = JUPAD(n_components=2, n_init=5, method="pairs", random_state=0, on_interrupt="keep").fit(X)
    assert kept.score(X) == first.score(X)
    assert kept.stages_["likelihood"].status is Status.INTERRUPTED


def test_an_interrupt_before_the_last_stage_is_raised(monkeypatch):
    interrupted_after(monkeypatch, RowsEM, 0)  # the prior's strength is being chosen
    with pytest.raises(KeyboardInterrupt):
        JUPAD(**QUICK, on_interrupt="keep").fit(X)
