"""Histories of fits."""

import numpy as np
import pytest
from tests.plots.cases import legend, mixed

from jointwise import JUPAD
from jointwise.exceptions import InputError
from jointwise.plots import plot_convergence

ROWS = {name: column for name, column in mixed().sample(200, rng=0).items() if name in {"height", "tree", "count"}}


@pytest.mark.parametrize("options", [{"method": "paper"}, {"method": "pairs"}, {"n_models": 2}])
def test_every_stage_is_a_line(options):
    model = JUPAD(2, random_state=0, **options).fit(ROWS)
    ax = plot_convergence(model)
    assert [text.split(":")[0] for text in legend(ax)] == list(model.stages_)
    for line, solution in zip(ax.lines[::2], model.stages_.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), solution.history)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(solution.n_steps + 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "objective")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_did_not_converge_says_so():
    model = JUPAD(2, n_models=1, max_iter=1, tol=0.0, random_state=0).fit(ROWS)
    assert legend(plot_convergence(model)) == ["likelihood: 1 step, not converged"]


def test_without_stages_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="needs a fitted estimator"):
        plot_convergence(JUPAD())
    with pytest.raises(InputError, match="took no steps"):
        plot_convergence(JUPAD(1).fit(ROWS))
