r"""One density for each class, and their sum.

.. math:: f(x, y) = P(y) \, f_y(x)

An expert of all rows learns the class as one column among many, and its components may hold several classes. Here each
class is learned from its own rows, and has components of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.fits import ClassFit
from jointwise.fitting.learners import Callback, Known, Learner
from jointwise.fitting.result import level_counts
from jointwise.joint.density import JointDensity
from jointwise.joint.events import Values
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

# Each class has at least this many rows, and there are at most so many classes: each takes a search in every fit.
LEAST_ROWS, MOST_CLASSES = 20, 10


def has_classes(rows: Rows, target: str) -> bool:
    """Whether a column has several categories, but not many, one in every row, and enough rows in each that has any."""
    n = rows.schema.index(target)
    if rows.schema[target].categories is None:
        return False
    counts = rows.marginal(n)
    met = counts[counts > 0]
    return (
        1 < len(met) <= MOST_CLASSES
        and bool(met.min() >= LEAST_ROWS)
        and bool(np.isclose(met.sum(), rows.n_rows))
        and isinstance(rows, CodedRows)
        and not isinstance(rows.codes, np.memmap)
    )


def by_class(learner: Learner, target: str) -> Learner:
    """Return a learner that learns the rows of each class by themselves.

    Parameters
    ----------
    learner : Learner
        Of one class. It is one at which a short look is taken, and whose prior stays.
    target : str
        The column of the class.
    """
    learned = learner.look
    assert learned is not None

    def look(rows: Rows, rng: np.random.Generator, known: Known) -> JointDensity:
        return joined({c: learned(part, own, known) for c, part, own in classes(rows, target, rng)}, rows, target)

    def fit(
        rows: Rows, plan: _Plan, rng: np.random.Generator, callback: Callback | None, checkpoint: Checkpoint
    ) -> ClassFit:
        fits: dict[int, Any] = {}
        for c, part, own in classes(rows, target, rng):
            section = checkpoint.section(f"class {c}", own)
            choice = plan.kept.get(c) or learner.choose(part, own, section, plan.known, {})
            if plan.is_single:
                plan.kept[c], choice = choice, learner.single(choice)
            fits[c] = learner.fit(part, choice, own, callback, section)
        density = joined({c: fit.density for c, fit in fits.items()}, rows, target)
        return ClassFit(density, fits, level_counts(rows.schema, rows.column_counts))

    return replace(
        learner,
        name=f"{learner.name}_by_class",
        look=look,
        choose=lambda _rows, _rng, _checkpoint, known, _others: _Plan(known, {}),
        single=lambda plan: plan._replace(is_single=True),
        fit=fit,
        in_folds=lambda plan: plan,
        weaker=lambda _: None,
    )


class _Plan(NamedTuple):
    """What is decided before any rows are seen: each class chooses from its rows in every fit.

    The rows of a class are few, so a choice from all of them would tell of those that a fold holds out. A large table
    has one fold, and what its classes choose is kept for the fit to all rows.
    """

    known: Known
    kept: dict[int, Any]
    is_single: bool = False


def classes(rows: Rows, target: str, rng: np.random.Generator) -> Iterator[tuple[int, CodedRows, np.random.Generator]]:
    """Yield the code of each class that has rows, these rows, and a generator for it."""
    assert isinstance(rows, CodedRows)
    n = rows.schema.index(target)
    met = np.flatnonzero(rows.marginal(n))
    for c, seed in zip(met.tolist(), rng.integers(2**32, size=len(met)), strict=True):
        part = rows.take(np.flatnonzero(rows.codes[:, n] == c))
        yield c, replace(part, is_ordered=rows.is_ordered), np.random.default_rng(seed)


def joined(densities: Mapping[int, JointDensity], rows: Rows, target: str) -> JointDensity:
    """Return the sum of the densities of classes, each given its class, with the shares that classes have of rows."""
    n = rows.schema.index(target)
    pure = [replace(f, mixture=f.mixture.condition({n: Values((float(c),))})) for c, f in densities.items()]
    return JointDensity.mix(pure, rows.marginal(n)[list(densities)])
