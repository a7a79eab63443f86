"""PairwiseMarginals: the second pass over a table. It counts every pair of variables on their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import check_weights, read_only, reading, shown
from jointwise.axes import Axis
from jointwise.engines import bin_starts, pair_counts
from jointwise.exceptions import FileFormatError, InputError
from jointwise.marginals.base import MEMORY_LIMIT, Marginals, check_codes
from jointwise.marginals.coding import code_table
from jointwise.tables.variables import Schema

if TYPE_CHECKING:
    from jointwise._typing import AnyArray, CodeArray, IntArray

FORMAT, VERSION = "jointwise.pairwise", 1


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseMarginals(Marginals):
    """Counts of all pairs of variables: axes plus counts, a commutative monoid under `+`.

    Parameters
    ----------
    schema : Schema of N variables
    axes : tuple of N axes
    counts : array of shape (I, I), I the sum of the axes' bins
        Block (j, k) is the table of counts of variables j and k over the rows that have both, block (n, n)
        the diagonal matrix of the counts of variable n; symmetric. int64, or float64 with sample weights.
    n_rows : float
        Number of rows, or sum of their weights, rows with missing values included.

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> data = {"x": [0, 1, 1], "job": ["cook", "cook", "nurse"]}
    >>> profile = Profile.of(data)
    >>> schema = profile.schema()
    >>> marginals = PairwiseMarginals.of(data, schema, profile.axes(schema, n_bins=8))
    >>> marginals.pair("x", "job")
    array([[1, 0],
           [1, 1]])
    >>> (marginals + marginals).marginal("job")
    array([4, 2])
    """

    counts: AnyArray

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "counts", read_only(self.counts))
        n_bins = sum(axis.n_bins for axis in self.axes)
        if self.counts.shape != (n_bins, n_bins):
            raise InputError(f"`counts` must have shape {(n_bins, n_bins)}; got {self.counts.shape}.")

    @classmethod
    def empty(cls, schema: Schema, axes: Sequence[Axis]) -> PairwiseMarginals:
        """Return the counts of no rows."""
        _check_memory(schema, axes)
        n_bins = sum(axis.n_bins for axis in axes)
        return cls(schema, tuple(axes), np.zeros((n_bins, n_bins), dtype=np.int64), 0.0)

    @classmethod
    def of(cls, data: Any, schema: Schema, axes: Sequence[Axis], sample_weight: Any = None) -> PairwiseMarginals:
        """Return the counts of a table, with weights of its rows if any."""
        _check_memory(schema, axes)
        return cls.from_codes(code_table(data, schema, axes), schema, axes, sample_weight)

    @classmethod
    def from_codes(
        cls, codes: CodeArray, schema: Schema, axes: Sequence[Axis], sample_weight: Any = None, device: str = "cpu"
    ) -> PairwiseMarginals:
        """Return the counts of coded rows of shape (n, N), as `encode_rows` makes them; counted on the device."""
        _check_memory(schema, axes)
        n_bins = [axis.n_bins for axis in axes]
        check_codes(codes, n_bins)
        weights = check_weights(sample_weight, len(codes))
        counts = pair_counts(codes, n_bins, weights, device)
        counts.flags.writeable = False  # nobody else has it, so it needs no copy
        return cls(schema, tuple(axes), counts, len(codes) if weights is None else weights.sum())

    def __add__(self, other: object) -> PairwiseMarginals:
        if not isinstance(other, PairwiseMarginals):
            return NotImplemented
        self._check_addable(other)
        return PairwiseMarginals(self.schema, self.axes, self.counts + other.counts, self.n_rows + other.n_rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PairwiseMarginals)
            and (self.schema, self.axes, self.n_rows) == (other.schema, other.axes, other.n_rows)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = Marginals.__hash__

    @cached_property
    def _starts(self) -> IntArray:
        return bin_starts([axis.n_bins for axis in self.axes])

    def _bins(self, variable: str | int) -> slice:
        position = self.schema.index(variable) if isinstance(variable, str) else range(len(self.axes))[variable]
        return slice(int(self._starts[position]), int(self._starts[position + 1]))

    def marginal(self, variable: str | int) -> AnyArray:
        """Return the counts of one variable, by name or position, shape (n_bins,)."""
        bins = self._bins(variable)
        return self.counts[bins, bins].diagonal()

    def pair(self, first: str | int, second: str | int) -> AnyArray:
        """Return the table of counts of two variables, shape (n_bins of the first, n_bins of the second)."""
        return self.counts[self._bins(first), self._bins(second)]

    def select(self, names: Iterable[str]) -> PairwiseMarginals:
        """Return the counts of some variables, in the given order."""
        names = list(names)
        schema = self.schema.select(names)
        bins = np.concatenate([np.r_[self._bins(name)] for name in names])
        axes = tuple(self.axes[self.schema.index(name)] for name in names)
        return PairwiseMarginals(schema, axes, self.counts[np.ix_(bins, bins)], self.n_rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema.to_dict(),
            "axes": [axis.to_dict() for axis in self.axes],
            "counts": self.counts.tolist(),
            "n_rows": self.n_rows,
        }

    @classmethod
    @reading("pairwise marginals as written by `PairwiseMarginals.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> PairwiseMarginals:
        """Return the marginals that `to_dict` wrote, checked; raise FileFormatError for anything else."""
        if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
            raise FileFormatError(f"Pairwise marginals are a mapping with 'format': {FORMAT!r}.")
        if fields.get("version") != VERSION:
            raise FileFormatError(
                f"These pairwise marginals are of version {shown(fields.get('version'))}; this package reads "
                f"version {VERSION}."
            )
        schema = Schema.from_dict(fields["schema"])
        axes = tuple(Axis.from_dict(axis) for axis in fields["axes"])
        marginals = cls(schema, axes, np.array(fields["counts"]), float(fields["n_rows"]))
        _check_counts(marginals.counts, marginals.n_rows)
        return marginals

    def __repr__(self) -> str:
        bins = sum(axis.n_bins for axis in self.axes)
        return f"PairwiseMarginals({len(self.schema)} variables, {bins} bins, {self.n_rows:g} rows)"


def _check_counts(counts: AnyArray, n_rows: float) -> None:
    if counts.dtype.kind not in "if":
        raise InputError("`counts` must be numbers.")
    if not np.all(np.isfinite(counts)) or np.any(counts < 0) or not 0 <= n_rows < np.inf:
        raise InputError("`counts` and `n_rows` must be finite and not negative.")
    if not np.array_equal(counts, counts.T):
        raise InputError("`counts` must be symmetric.")


def _check_memory(schema: Schema, axes: Sequence[Axis]) -> None:
    n_bins = sum(axis.n_bins for axis in axes)
    if 8 * n_bins**2 > MEMORY_LIMIT:
        widest = sorted(zip(axes, schema.names, strict=True), key=lambda pair: -pair[0].n_bins)[:3]
        named = ", ".join(f"{shown(name)} ({axis.n_bins} bins)" for axis, name in widest)
        raise InputError(
            f"Counts of all pairs of {n_bins} bins would take {8 * n_bins**2 / 2**30:.1f} GiB. Most bins: "
            f"{named}. Drop such columns, merge rare categories, or use fewer bins."
        )
