"""One density from several experts, weighted by how well they predict held-out rows and crosstabs of these.

Each expert is learned without some rows (`learners`) and gives the log-densities of these (`asking`); `weighing` finds
the weights. Experts with next to no weight are dropped, the others are fitted to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jointwise._checks import check_real, shown
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.engines.threads import both
from jointwise.exceptions import InputError
from jointwise.fitting.asking import Asked, Fold, ask, weaken, weights_for_answers, weights_for_target
from jointwise.fitting.blocks import BlockOptions
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.choice.folds import row_folds
from jointwise.fitting.crosstabs import Crosstabs
from jointwise.fitting.fits import AnyFit
from jointwise.fitting.held_out import Repeated, check_part
from jointwise.fitting.learners import Callback, Known, Learner, Work
from jointwise.fitting.models import n_side_by_side
from jointwise.fitting.options import Options, check_run
from jointwise.fitting.order import in_canonical_order, with_columns
from jointwise.fitting.result import Ended
from jointwise.fitting.trees import TreeOptions
from jointwise.fitting.weighing import MOST_LOSS, by_crosstabs
from jointwise.joint.check import Check
from jointwise.joint.density import MOST_VERDICT, JointDensity
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Solution

# Options that identify a fit: its result depends on them.
IDENTIFYING = ("plan", "max_iter", "tol", "device", "random_state", "most_loss", "target")


@dataclass(frozen=True)
class StackOptions:
    """What a stack is asked to do, checked on construction.

    Parameters are those of :class:`jointwise.JointEstimator` with the same names. `random_state` only tells the fit
    from others in its checkpoint.
    """

    experts: Any
    max_iter: int = 500
    tol: float = 1e-4
    device: Literal["cpu", "cuda"] = "cpu"
    checkpoint: str | Path | None = None
    random_state: int | np.random.RandomState | None = None
    most_loss: float = MOST_LOSS
    target: str | None = None
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_run(self)
        if not 0 <= check_real("most_loss", self.most_loss) < np.inf:
            raise InputError(f"`most_loss` must be a number of nats, zero or more; got {shown(self.most_loss)}.")
        if not (self.target is None or isinstance(self.target, str)):
            raise InputError(f"`target` must be the name of a column, or None; got {shown(self.target)}.")

    @property
    def plan(self) -> str:
        """The experts and their parameters, as text that identifies the fit."""
        return repr([(name, sorted(expert.get_params().items(), key=str)) for name, expert in self.experts])


@dataclass(frozen=True)
class Judged:
    """An expert, and what held-out rows say of it.

    Parameters
    ----------
    name : str
    weight : float
        Zero if it was dropped.
    held_out : float, optional
        Mean log-density of the held-out rows it was asked about; None where no rows were held out.
    fit : Fit, optional
        Its fit to all rows; None if it was dropped.
    """

    name: str
    weight: float
    held_out: float | None
    fit: AnyFit | None


@dataclass(frozen=True)
class StackFit(Ended):
    """A density stacked from experts.

    Parameters
    ----------
    density : JointDensity
    experts : tuple of Judged
        In the order they were given.
    n_rows : float
        Number of rows, or the sum of their weights.
    held_out : float, optional
        Mean log-density of held-out rows under the weighted sum; None where none were held out.
    loss : float, optional
        How far `held_out` is below that of the weights that predict rows best, for better answers; None where rows
        alone decide.
    target : str, optional
        The column whose prediction decides on the weights.
    check : Check, optional
        How experts learned without some rows answer questions about these.
    """

    density: JointDensity
    experts: tuple[Judged, ...]
    n_rows: float
    held_out: float | None
    loss: float | None
    target: str | None
    check: Check | None

    @property
    def fits(self) -> dict[str, AnyFit]:
        """The fits of the experts that were kept, by name."""
        return {each.name: each.fit for each in self.experts if each.fit is not None}

    @property
    def options(self) -> Options | BlockOptions | TreeOptions:
        """Options of an expert; those of the last run are the same in all."""
        return next(iter(self.fits.values())).options

    @property
    def stages(self) -> dict[str, Solution[Any]]:
        """How each stage of the fits to all rows went."""
        return {f"{name}: {stage}": run for name, fit in self.fits.items() for stage, run in fit.stages.items()}

    @property
    def level_counts(self) -> Mapping[str, FloatArray]:
        """Rows at each level of each categorical column, by name; all experts have met the same."""
        return next(iter(self.fits.values())).level_counts

    @property
    def final(self) -> tuple[Solution[Any], ...]:  # type: ignore[override]  # a property here
        """The runs whose answers the experts are."""
        return tuple(run for fit in self.fits.values() for run in fit.final)


def fit_stack(
    rows: Rows,
    axes: Sequence[Axis],
    learners: Sequence[Learner],
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    repeated: Repeated | None = None,
    most_loss: float = MOST_LOSS,
    target: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> StackFit:
    """Fit experts to coded rows and weigh them by held-out rows.

    Parameters
    ----------
    rows : Rows
        With axes that suit every learner, fine ones for columns of numbers.
    axes : sequence of Axis
        The same without fine bins, on which the fit is checked.
    learners : sequence of Learner
    rng : numpy.random.Generator
        Deals rows to folds, and seeds the experts' own generators.
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the last runs.
    checkpoint : Checkpoint, optional
        Keeps what was chosen, the log-densities of held-out rows, and where fits stand.
    repeated : mapping, optional
        What `Profile.repeated` found in the table, for the check of the fit; without it the fit is not checked.
    most_loss : float
        Most nats of a row of a large table that are given up for better answers.
    target : str, optional
        The column that experts are weighed by: how well they predict it from the others. Crosstabs then do not count.
    tell : callable
        Told in words what is going on.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    # one expert puts rows in order itself, and is checked with them as they came
    several = len(learners) > 1
    ordered, columns = in_canonical_order(rows) if several else (rows, np.arange(len(axes)))
    folds = _folds(ordered, rng) if several else []
    seed, checkpoint = int(rng.integers(2**32)), checkpoint or Checkpoint()
    work = Work(
        {each.name: each for each in learners},
        ordered,
        seed,
        checkpoint,
        tell,
        _known(ordered, [axes[n] for n in columns], np.random.default_rng(seed)),
        target=None if target is None else ordered.schema.index(target),
        tables=None
        if target is not None
        else _crosstabs(ordered, folds, most_loss, np.random.default_rng([seed, len(learners)])),
        most_loss=most_loss,
        n_threads=n_side_by_side(ordered, checkpoint, callback),
    )
    work, asked = weaken(work, ask(work, folds), folds)
    weights, by_rows = _weights(work, asked, folds)

    def look_back() -> Check | None:
        if not folds or repeated is None:
            return None
        tell("checking the sum of experts against held-out rows")
        density = work.without_first(weights).marginal(rows.schema.names)
        return check_part(rows, axes, with_columns(folds[0][0], np.argsort(columns)), density, repeated)

    check, fits = both(look_back, lambda: _fit_all(work, weights, callback), work.n_threads)
    if not several:
        check = getattr(fits[learners[0].name], "check", None)
    density = JointDensity.mix([fit.density for fit in fits.values()], [weights[name] for name in fits])
    return StackFit(
        replace(density.marginal(rows.schema.names), verdict=check.verdict[:MOST_VERDICT] if check else ""),
        tuple(Judged(name, weights.get(name, 0.0), asked.mean(name), fits.get(name)) for name in work.learners),
        ordered.n_rows,
        asked.mean_of_sum(weights),
        None if by_rows else asked.loss(weights),
        target if folds else None,
        check,
    )


def _crosstabs(rows: Rows, folds: Sequence[Fold], most_loss: float, rng: np.random.Generator) -> Crosstabs | None:
    """Draw crosstabs of the first held-out rows to weigh experts by; none where rows alone weigh them."""
    if not (folds and by_crosstabs(rows, most_loss)):
        return None
    part, _ = folds[0]
    return Crosstabs.draw(part.values(), part.schema, rng)


def _folds(rows: Rows, rng: np.random.Generator) -> list[Fold]:
    """Return held-out rows and the others; the columns of all rows are in order, so those of the others are too."""
    ordered = isinstance(rows, CodedRows) and rows.is_ordered
    return [(part, replace(rest, is_ordered=ordered)) for part, rest in row_folds(rows, rng)]


def _weights(work: Work, asked: Asked, folds: Sequence[Fold]) -> tuple[dict[str, float], bool]:
    """Return the weights of the experts that are kept, and whether they are those that predict rows best."""
    if not folds:
        return dict.fromkeys(work.learners, 1.0), True
    if work.target is not None:
        return weights_for_target(work, asked, range(len(folds))), False
    if work.tables is not None:
        return weights_for_answers(work, asked, work.tables), False
    return asked.last_weights, True


def _known(rows: Rows, axes: Sequence[Axis], rng: np.random.Generator) -> Known:
    """Return the dictionaries that fit the columns best by themselves."""
    chosen = choose_dictionaries(rows.regrouped(axes), {}, rng, slack=0.0)
    return dict(zip(rows.schema.names, chosen, strict=True))


def _fit_all(work: Work, names: Iterable[str], callback: Callback | None) -> dict[str, AnyFit]:
    """Fit experts to all rows; none begins after one that is interrupted, and where that stands is kept."""
    fits: dict[str, AnyFit] = {}

    def fit(name: str) -> None:
        if not any(fit.was_interrupted for fit in list(fits.values())):
            fits[name] = work.fit(name, work.rows, "all rows", callback)

    work.for_each(names, fit)
    if any(fit.was_interrupted for fit in fits.values()):
        work.checkpoint.flush()
    else:
        work.checkpoint.remove()
    return {name: fits[name] for name in names if name in fits}
