"""Which columns of a table are fitted, of what kind, and on which bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise._checks import check_choice, check_integer, check_names, listed, unknown_name, warn_caller
from jointwise.axes import Axis, BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, LeftOutWarning
from jointwise.fitting.gaps import telling_gaps
from jointwise.fitting.held_out import Repeated
from jointwise.joint.cells import HEAVY
from jointwise.marginals import Profile
from jointwise.rows.base import Rows
from jointwise.tables.gaps import MISSING_KINDS, with_gap_variables
from jointwise.tables.variables import EVERYWHERE, Kind, Schema, Variable

# The end bins, and one in between.
LEAST_BINS = 3
# Pair counts grow with the square of all columns' bins; this many take half a gigabyte.
MOST_BINS_OF_ALL = 8192


@dataclass(frozen=True)
class Columns:
    """The columns of a table as they are fitted.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
        On which rows are coded.
    coarse : tuple of Axis
        The same without fine bins.
    left_out : tuple of str
        Columns that are not fitted.
    repeated : mapping
        Values that many rows share, by column.
    """

    schema: Schema
    axes: tuple[Axis, ...]
    coarse: tuple[Axis, ...]
    left_out: tuple[str, ...]
    repeated: Repeated

    def coarse_of(self, rows: Rows) -> tuple[Axis, ...]:
        """Return the axes without fine bins in the order of the columns of some rows."""
        coarse = dict(zip(self.schema.names, self.coarse, strict=True))
        return tuple(coarse[name] for name in rows.schema.names)

    def telling(self, rows: Rows) -> Columns:
        """Return the columns with variables for those gaps alone that other columns predict; rows are of all."""
        told = telling_gaps(rows, self.coarse)
        gone = {gap for column, gap in self.schema.gaps.items() if column not in told}
        kept = [n for n, name in enumerate(self.schema.names) if name not in gone]
        schema = self.schema.select([self.schema.names[n] for n in kept])
        axes, coarse = (tuple(each[n] for n in kept) for each in (self.axes, self.coarse))
        return replace(self, schema=schema, axes=axes, coarse=coarse)


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says about columns; see :class:`jointwise.JUPAD` for the parameters.

    With `fine`, columns of numbers are coded on as many bins as they have values, up to some 65,000. If gaps are not
    `missing` = "ignorable", each column with gaps is followed by a variable that tells them.
    """

    kinds: Mapping[str, str] | None
    supports: Mapping[str, tuple[Any, Any] | None] | None
    steps: Mapping[str, float] | None
    drop: Sequence[str]
    keep: Sequence[str]
    n_bins: int
    dictionaries: Mapping[str, Dictionary]
    fine: bool = False
    missing: str = "ignorable"

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, MISSING_KINDS)
        check_integer("n_bins", self.n_bins, LEAST_BINS)
        for argument in ("drop", "keep"):
            check_names(argument, getattr(self, argument))

    def settle(self, profile: Profile) -> Columns:
        """Decide on the columns of a table."""
        left_out = self._left_out(profile)
        profile = profile.without(left_out)
        schema = profile.schema(self.kinds, supports=self.supports, steps=self.steps)
        schema = Schema(tuple(self._with_given_atoms(v) for v in schema), schema.container)
        if self.missing != "ignorable":
            schema = with_gap_variables(schema, profile.with_gaps())
        n_bins = most_bins(schema, self.n_bins)
        axes = coarse = profile.axes(schema, n_bins)
        if self.fine:
            numbers = [variable.name for variable in schema if variable.categories is None]
            fine = profile.axes(schema, n_bins, fine=numbers)
            axes = tuple(_with_spikes(axis, variable) for axis, variable in zip(fine, schema, strict=True))
        return Columns(schema, axes, coarse, left_out, profile.repeated(HEAVY))

    def _left_out(self, profile: Profile) -> tuple[str, ...]:
        """Return the columns to leave out: those to be dropped, and those that only name the rows, with a warning."""
        for argument in ("drop", "keep"):
            for name in getattr(self, argument):
                if name not in profile.names:
                    raise unknown_name(f"column in `{argument}`:", name, profile.names)
        both = [name for name in self.drop if name in self.keep]
        if both:
            raise InputError(f"`drop` and `keep` must not share columns; both name {listed(both)}.")
        if len(set(self.drop)) == len(profile.names):
            raise InputError("`drop` names every column, so there is nothing to learn from; keep at least one.")
        told = {*self.keep, *(self.kinds or {}), *self.dictionaries, *(self.supports or {}), *(self.steps or {})}
        named = [name for name in profile.without(self.drop).identifiers() if name not in told]
        if named:
            warn_caller(
                f"Left out, because they name the rows and tell nothing of other columns: {listed(named)}. Pass "
                f"keep=[{listed(named)}] to have them in, or the same as drop= to leave them out without this warning.",
                LeftOutWarning,
            )
        return tuple(name for name in profile.names if name in self.drop or name in named)

    def _with_given_atoms(self, variable: Variable) -> Variable:
        """Return a variable whose given atoms settle its spikes, and its support unless that is given too."""
        if variable.name not in self.dictionaries or variable.categories is not None:
            return variable
        spikes = tuple(self.dictionaries[variable.name].spikes) if variable.kind is Kind.CONTINUOUS else ()
        bounded = variable.name in (self.supports or {})
        return replace(variable, spikes=spikes, support=variable.support if bounded else EVERYWHERE)


def _with_spikes(axis: Axis, variable: Variable) -> Axis:
    """Return a fine axis on which integers that are spikes have bins of their own too."""
    if not isinstance(axis, BinnedAxis) or len(axis.spikes) == len(variable.spikes):
        return axis
    return replace(axis, spikes=np.array(variable.spikes))


def most_bins(schema: Schema, n_bins: int) -> int:
    """Return the most bins of a column, where all columns that are not categorical share a limited number."""
    share = MOST_BINS_OF_ALL // max(sum(v.categories is None for v in schema), 1)
    return min(n_bins, max(share, LEAST_BINS))
