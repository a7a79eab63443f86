"""States of discrete columns: one bin and one atom for each value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.joint.density import JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.solvers import Factors
from jointwise.tables.variables import Schema, Variable


def state_axis(variable: Variable, column: FloatArray) -> DiscreteAxis:
    """Return all categories, or all integers that occur in an encoded column (n,), as states."""
    if variable.categories is not None:
        values = np.arange(len(variable.categories), dtype=np.float64)
    else:
        values = np.unique(column[~np.isnan(column)])
    if not len(values):
        raise InputError(f"Column {variable.name!r} holds no value at all, so it has no states; drop it.")
    return DiscreteAxis(values)


def state_axes(schema: Schema, rows: FloatArray) -> tuple[DiscreteAxis, ...]:
    """Return the states of each column of encoded rows (n, N)."""
    return tuple(state_axis(variable, rows[:, n]) for n, variable in enumerate(schema))


def state_density(schema: Schema, axes: Sequence[Axis], factors: Factors) -> JointDensity:
    """Return the joint whose factors are masses of states: each dictionary has one atom for each state."""
    dictionaries = tuple(
        Dictionary.points(_values(variable, axis))
        if variable.categories is None
        else Dictionary.categories(axis.n_bins)
        for variable, axis in zip(schema, axes, strict=True)
    )
    return JointDensity(schema, ProductMixture(factors.weights, factors.coefficients, dictionaries))


def _values(variable: Variable, axis: Axis) -> FloatArray:
    """Return the value in each bin of an integer variable."""
    if isinstance(axis, DiscreteAxis):
        return axis.values
    assert isinstance(axis, BinnedAxis)  # the only other kind of axis
    low, high = variable.observed
    values = np.append(axis.edges - 0.5, axis.edges[-1:] + 0.5) if len(axis.edges) else np.array([low])
    if len(axis.spikes) or np.any(np.diff(values) != 1) or (low, high) != (values[0], values[-1]):
        raise InputError(
            f"The bins of {variable.name!r} hold more than one value each, but every value must be a state here. Use "
            "a DiscreteAxis, or more bins."
        )
    return np.asarray(values)
