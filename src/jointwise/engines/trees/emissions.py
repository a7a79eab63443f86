"""Emissions: states that overlap, each with its own law of the codes of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.exceptions import InputError


class PossibleStates(NamedTuple):
    """The states from the first that each code leaves possible to the last, end to end; a missing cell leaves all.

    Attributes
    ----------
    firsts : array of shape (N + 1,)
        Where the codes of each column begin, the last one being "missing".
    starts : array of shape (codes + 1,)
        Where the states of each code begin.
    lows : array of shape (codes,)
        The first of them.
    values : array of shape (entries,)
        Probability of the code given each state, zero for some between the first and the last.
    """

    firsts: IntArray
    starts: IntArray
    lows: IntArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Emissions:
    r"""What hidden states say of the codes: :math:`P(c \mid s)` for each column.

    Parameters
    ----------
    tables : sequence of N arrays of shape (S_n, C_n)
        Law of the codes of each column given each of its states; each code is possible in some state.

    Examples
    --------
    >>> emissions = Emissions((np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), np.eye(2)))
    >>> emissions.n_states, emissions.n_codes
    ((2, 2), (3, 2))
    >>> emissions.logs(0)[[0, 3]].round(2)  # of the first code, and of a missing cell
    array([[-0.69,  -inf],
           [ 0.  ,  0.  ]])
    """

    tables: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(np.asarray(table, dtype=np.float64) for table in self.tables))
        for n, table in enumerate(self.tables):
            if table.ndim != 2 or not table.size or not ((table >= 0).all() and (table.max(axis=0) > 0).all()):
                raise InputError(
                    f"`tables[{n}]` must have shape (states, codes), with each code possible in some state."
                )

    @property
    def n_states(self) -> tuple[int, ...]:
        """Number of states of each column."""
        return tuple(len(table) for table in self.tables)

    @property
    def n_codes(self) -> tuple[int, ...]:
        """Number of codes of each column; the next one means missing."""
        return tuple(table.shape[1] for table in self.tables)

    def check(self, n_codes: Sequence[int]) -> None:
        """Raise unless the columns of rows have these numbers of codes."""
        if self.n_codes != tuple(n_codes):
            raise InputError("The states emit other codes than the rows have.")

    def logs(self, n: int) -> FloatArray:
        """Return log P(c | s) of a column, with zeros for a missing cell; shape (C_n + 1, S_n)."""
        with np.errstate(divide="ignore"):
            return np.log(_with_missing(self.tables[n]))

    @cached_property
    def possible(self) -> PossibleStates:
        """The states from the first that each code leaves possible to the last."""
        found = [_with_missing(table) for table in self.tables]
        lows = [np.argmax(table > 0, axis=1) for table in found]
        ends = [table.shape[1] - np.argmax(table[:, ::-1] > 0, axis=1) for table in found]
        return PossibleStates(
            bin_starts([len(table) for table in found]),
            bin_starts((np.concatenate(ends) - np.concatenate(lows)).tolist()),
            np.concatenate(lows),
            np.concatenate([_between(*each) for each in zip(found, lows, ends, strict=True)]),
        )


def _with_missing(table: FloatArray) -> FloatArray:
    """Return probabilities (C + 1, S) of a column's codes, one for a missing cell."""
    return np.vstack([table.T, np.ones((1, len(table)))])


def _between(table: FloatArray, lows: IntArray, ends: IntArray) -> FloatArray:
    """Return the entries of each row from its own column `lows` to before `ends`, one row after the other."""
    columns = np.arange(table.shape[1])
    return np.asarray(table[(columns >= lows[:, None]) & (columns < ends[:, None])])
