"""SubsetMarginals: counts of chosen subsets of variables, such as triples, on their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from jointwise._checks import check_weights, listed, read_only, shown
from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.axes import Axis
from jointwise.engines import Subset, subset_counts
from jointwise.exceptions import InputError
from jointwise.marginals.base import MEMORY_LIMIT, Marginals, check_codes
from jointwise.marginals.coding import code_table
from jointwise.tables.variables import Schema


@dataclass(frozen=True, eq=False, repr=False)
class SubsetMarginals(Marginals):
    """Counts of some subsets of variables: axes plus one table for each subset; counts on equal axes add up.

    Exact marginals of a known joint have the same form, with masses instead of counts.

    Parameters
    ----------
    schema, axes, n_rows
        As those of `PairwiseMarginals`.
    counts : mapping from subsets to arrays of shape (n_bins of the first, n_bins of the second, ...)
        A subset is a tuple of increasing positions of variables, such as (0, 2, 3). Each table counts the rows in
        which no variable of its subset is missing.

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> data = {"x": [0, 1, 1], "job": ["cook", "cook", "nurse"], "y": [1, 1, None]}
    >>> profile = Profile.of(data)
    >>> schema = profile.schema()
    >>> marginals = SubsetMarginals.of(data, schema, profile.axes(schema, n_bins=8), [(0, 1), (0, 1, 2)])
    >>> marginals.counts[0, 1, 2].sum(), marginals.masses()[0, 1].round(2).tolist()
    (np.int64(2), [[0.33, 0.0], [0.33, 0.33]])
    >>> (marginals + marginals).n_rows
    6.0
    """

    counts: Mapping[Subset, AnyArray]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "counts", {s: read_only(table) for s, table in sorted(self.counts.items())})
        check_subsets(self.counts, len(self.axes))
        for subset, table in self.counts.items():
            expected = tuple(self.axes[n].n_bins for n in subset)
            if table.shape != expected or not np.all(np.isfinite(table)) or np.any(table < 0):
                raise InputError(
                    f"`counts[{subset}]` must be a table of shape {expected} of finite numbers that are not negative; "
                    f"got shape {table.shape}."
                )

    @classmethod
    def of(
        cls, data: Any, schema: Schema, axes: Sequence[Axis], subsets: Iterable[Subset], sample_weight: Any = None
    ) -> SubsetMarginals:
        """Return the counts of a table, with weights of its rows if any."""
        return cls.from_codes(code_table(data, schema, axes), schema, axes, subsets, sample_weight)

    @classmethod
    def from_codes(
        cls,
        codes: CodeArray,
        schema: Schema,
        axes: Sequence[Axis],
        subsets: Iterable[Subset],
        sample_weight: Any = None,
    ) -> SubsetMarginals:
        """Return the counts of coded rows of shape (n, N), as `encode_rows` makes them."""
        subsets = list(subsets)
        n_bins = [axis.n_bins for axis in axes]
        check_subsets(subsets, len(n_bins))
        _check_memory(n_bins, subsets)
        check_codes(codes, n_bins)
        weights = check_weights(sample_weight, len(codes))
        counts = subset_counts(codes, n_bins, subsets, weights)
        return cls(schema, tuple(axes), counts, len(codes) if weights is None else weights.sum())

    def masses(self) -> dict[Subset, FloatArray]:
        """Return the table of each subset divided by its sum; subsets without rows are left out."""
        totals = {subset: float(table.sum()) for subset, table in self.counts.items()}
        return {subset: table / totals[subset] for subset, table in self.counts.items() if totals[subset] > 0}

    def __add__(self, other: object) -> SubsetMarginals:
        if not isinstance(other, SubsetMarginals):
            return NotImplemented
        self._check_addable(other)
        if self.counts.keys() != other.counts.keys():
            raise InputError("Counts of different subsets do not add; count the same subsets of both tables.")
        counts = {subset: table + other.counts[subset] for subset, table in self.counts.items()}
        return SubsetMarginals(self.schema, self.axes, counts, self.n_rows + other.n_rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SubsetMarginals)
            and (self.schema, self.axes, self.n_rows) == (other.schema, other.axes, other.n_rows)
            and self.counts.keys() == other.counts.keys()
            and all(np.array_equal(table, other.counts[subset]) for subset, table in self.counts.items())
        )

    __hash__ = Marginals.__hash__

    def __repr__(self) -> str:
        return f"SubsetMarginals({len(self.schema)} variables, {len(self.counts)} subsets, {self.n_rows:g} rows)"


def check_subsets(subsets: Iterable[Subset], n_variables: int) -> None:
    """Raise unless each subset is a tuple of increasing positions of variables."""
    for subset in subsets:
        known = all(0 <= n < n_variables for n in subset)
        if not subset or not known or list(subset) != sorted(set(subset)):
            raise InputError(
                f"A subset is a tuple of increasing positions from 0 to {n_variables - 1}, such as (0, 1); "
                f"got {shown(subset)}."
            )


def _check_memory(n_bins: Sequence[int], subsets: Sequence[Subset]) -> None:
    size = 8 * sum(prod(n_bins[n] for n in subset) for subset in subsets)
    if size > MEMORY_LIMIT:
        widest = sorted(enumerate(n_bins), key=lambda item: -item[1])[:3]
        raise InputError(
            f"Counts of {len(subsets)} subsets would take {size / 2**30:.1f} GiB; the widest columns, as (position, "
            f"bins), are {listed(widest)}. Use fewer bins or fewer subsets."
        )
