r"""A mixture whose components are Gaussian over a block of columns and products over the others.

.. math::
    f(x) = \sum_r \lambda_r \, N(w(x_C); \mu_r, \Sigma_r) \, |w'(x_C)| \prod_{n \notin C} \sum_l B_n[l, r] \, d_{n,l}(x_n)

C are the columns of the block and w their warps. Components follow the correlations of the block, which a product of
one-dimensional laws cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from jointwise._checks import reading
from jointwise._numerics import log_dot
from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint.block_density import log_density
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_sampling import sample_block
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.events import Region
from jointwise.joint.expert import Expert
from jointwise.joint.product import _log, _simplex, draw_atoms


@dataclass(frozen=True, eq=False)
class BlockMixture(Expert):
    """Weights, a Gaussian block, and the coefficients and dictionaries of the other columns.

    Parameters
    ----------
    weights : array of shape (F,)
        Mixing weights, on the simplex.
    block : GaussianBlock
        The Gaussian laws of d columns.
    columns : tuple of int
        Positions of the block's columns among the N variables, in the order of the block.
    coefficients : sequence of arrays of shape (L_n, F)
        ``B_n`` of each other column, in the order of their positions.
    dictionaries : sequence of Dictionary
        The atoms of each other column.

    Examples
    --------
    >>> from jointwise.warps import Warp
    >>> covariance = [[[1.0, 0.8], [0.8, 1.0]]]
    >>> lines = (Warp.line(0.0, 1.0), Warp.line(0.0, 1.0))
    >>> block = GaussianBlock(lines, [[0.0, 0.0]], covariance, ([], []), (np.empty((0, 1)),) * 2, (False, False))
    >>> f = BlockMixture([1.0], block, (0, 1), (), ())
    >>> f.logpdf(np.array([[0.0, 0.0], [1.0, np.nan]])).round(3)
    array([-1.327, -1.419])
    """

    KIND: ClassVar[str] = "block"

    weights: FloatArray
    block: GaussianBlock
    columns: tuple[int, ...]
    coefficients: tuple[FloatArray, ...]
    dictionaries: tuple[Dictionary, ...]

    def __post_init__(self) -> None:
        weights = _simplex(self.weights, "weights", 1)
        coefficients = tuple(_simplex(b, f"coefficients[{n}]", 2) for n, b in enumerate(self.coefficients))
        dictionaries, columns = tuple(self.dictionaries), tuple(self.columns)
        if not isinstance(self.block, GaussianBlock) or self.block.n_components != len(weights):
            raise InputError(f"block must be a GaussianBlock with {len(weights)} components, one for each weight.")
        if len(coefficients) != len(dictionaries):
            raise InputError(
                f"A mixture needs one coefficient matrix per dictionary, got {len(coefficients)} and {len(dictionaries)}."
            )
        n_variables = self.block.n_columns + len(dictionaries)
        whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) for c in columns)
        if (
            not whole
            or len(set(columns) & set(range(n_variables))) != self.block.n_columns
            or len(columns) != len(set(columns))
        ):
            raise InputError(
                f"columns must be {self.block.n_columns} different positions from 0 to {n_variables - 1}, one for each "
                f"column of the block, got {columns}."
            )
        for n, (b, d) in enumerate(zip(coefficients, dictionaries, strict=True)):
            if b.shape != (d.n_atoms, len(weights)):
                raise InputError(
                    f"coefficients[{n}] must have shape (atoms, components) = ({d.n_atoms}, {len(weights)}), "
                    f"got {b.shape}."
                )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "columns", tuple(int(c) for c in columns))
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "dictionaries", dictionaries)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return self.block.n_columns + len(self.dictionaries)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Positions of the columns that are not in the block."""
        return tuple(n for n in range(self.n_variables) if n not in self.columns)

    # ---- density -----------------------------------------------------------------------------------------

    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log lam[r] + log f(x | r) of encoded rows (n, N), missing cells integrated out; shape (n, F)."""
        out = _log(self.weights) + log_density(self.block, X[:, self.columns])
        for k, n in enumerate(self.others):
            out += self._log_other(k, X[:, n])
        return out

    def _log_other(self, k: int, x: FloatArray) -> FloatArray:
        """Log-density of the k-th column outside the block at ``x`` given each component, zero for NaN; (n, F)."""
        values, where = np.unique(x, return_inverse=True)  # sorts NaN last; each value is evaluated once
        table = log_dot(self.dictionaries[k].logpdf(values), self.coefficients[k])
        table[np.isnan(values)] = 0.0
        return np.asarray(table[where])

    # ---- samples -----------------------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""
        counts = rng.multinomial(n, self.weights)
        return self._sample(rng.permutation(np.repeat(np.arange(self.n_components), counts)), rng)

    def _sample(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """One row from each of the given components; shape (n, N)."""
        out = np.empty((len(component), self.n_variables))
        out[:, self.columns] = sample_block(self.block, component, rng)
        for n, b, d in zip(self.others, self.coefficients, self.dictionaries, strict=True):
            out[:, n] = d.sample(draw_atoms(b, component, rng), rng)
        return out

    # ---- plain form --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {
            "kind": self.KIND,
            "weights": self.weights,
            "block": self.block.to_dict(),
            "columns": list(self.columns),
            "coefficients": list(self.coefficients),
            "dictionaries": [d.to_dict() for d in self.dictionaries],
        }

    @classmethod
    @reading("a block mixture as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> BlockMixture:
        """Read what `to_dict` returned."""
        parts = {"kind", "weights", "block", "columns", "coefficients", "dictionaries"}
        if not isinstance(data, Mapping) or set(data) != parts or data["kind"] != cls.KIND:
            raise FileFormatError(f"an expert of kind {cls.KIND} must have the parts {', '.join(sorted(parts))}")
        return cls(
            data["weights"],
            GaussianBlock.from_dict(data["block"]),
            tuple(data["columns"]),
            tuple(data["coefficients"]),
            tuple(Dictionary.from_dict(d) for d in data["dictionaries"]),
        )

    # ---- to come -----------------------------------------------------------------------------------------

    def cdf(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError

    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        raise NotImplementedError

    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        raise NotImplementedError

    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        raise NotImplementedError

    def log_probability(self, event: Mapping[int, Region]) -> float:
        raise NotImplementedError

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        raise NotImplementedError

    def marginal(self, keep: Sequence[int]) -> Expert:
        raise NotImplementedError

    def condition(self, event: Mapping[int, Region]) -> Expert:
        raise NotImplementedError

    def covariance(self) -> FloatArray:
        raise NotImplementedError

    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        raise NotImplementedError
