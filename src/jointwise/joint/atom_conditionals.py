"""Conditionals that mix the atoms of one dictionary, with weights of their own in each row."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.expert import BLOCK
from jointwise.joint.margin import weighted


class AtomConditionals(Conditionals):
    r"""Law of one variable in each of n rows, as a mixture of atoms.

    .. math:: f_i(x) = \sum_l W[i, l] \, d_l(x)

    Attributes
    ----------
    dictionary : Dictionary of L atoms
    """

    dictionary: Dictionary

    @property
    @abstractmethod
    def atom_weights(self) -> FloatArray:
        """Weight of each atom in each row; shape (n, L)."""

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""
        return np.asarray(self.atom_weights @ self.dictionary.pdf(points).T)

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""
        return self.cdf_in(np.arange(len(x)), x)

    def cdf_in(self, rows: IntArray, x: FloatArray) -> FloatArray:
        """P(X <= x[k]) in row rows[k]; shape (len(rows),)."""
        out = np.empty(len(x))
        for start in range(0, len(x), BLOCK):
            at = slice(start, start + BLOCK)
            out[at] = np.einsum("nl,nl->n", self.dictionary.cdf(x[at]), self.atom_weights[rows[at]])
        return out

    @property
    def whole(self) -> bool:
        """Whether the variable holds integers alone."""
        return not self.dictionary.is_continuous and bool((self.jumps == np.round(self.jumps)).all())

    @property
    def jumps(self) -> FloatArray:
        """The point masses."""
        return self.dictionary.spikes

    def mean(self) -> FloatArray:
        """Mean in each row, NaN where an atom with weight has none; shape (n,)."""
        return weighted(self.atom_weights.T, self.dictionary.mean())

    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest q-quantile of the atoms; shapes (n,)."""
        ends = self.dictionary.ppf(np.array([q]))[0]
        return np.full(len(self.log_evidence), ends.min()), np.full(len(self.log_evidence), ends.max())


class MixedAtoms(AtomConditionals):
    """Law of one variable in each of n rows, with given weights of the atoms.

    Parameters
    ----------
    dictionary : Dictionary of L atoms
    atom_weights : array of shape (n, L)
        The rows on the simplex.
    log_evidence : array of shape (n,)
        Log-density of the other cells.

    Examples
    --------
    >>> law = MixedAtoms(Dictionary.points([0.0, 1.0]), np.array([[0.25, 0.75]]), np.zeros(1))
    >>> law.mean(), law.quantile(0.2)
    (array([0.75]), array([0.]))
    """

    def __init__(self, dictionary: Dictionary, atom_weights: FloatArray, log_evidence: FloatArray) -> None:
        self.dictionary, self.log_evidence = dictionary, log_evidence
        self._atom_weights = atom_weights

    @property
    def atom_weights(self) -> FloatArray:
        """Weight of each atom in each row; shape (n, L)."""
        return self._atom_weights
