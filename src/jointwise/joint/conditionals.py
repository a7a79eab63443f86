"""Conditionals: the law of one variable in each of many rows, given their other cells."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from jointwise._numerics import smallest_true
from jointwise._typing import FloatArray


class Conditionals(ABC):
    """Law of one variable in each of n rows.

    Attributes
    ----------
    log_evidence : array of shape (n,)
        Log-density of the other cells of each row.
    """

    log_evidence: FloatArray

    @abstractmethod
    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""

    @abstractmethod
    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean in each row, NaN where there is none; shape (n,)."""

    @abstractmethod
    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Numbers between which the q-quantile of each row lies; shapes (n,)."""

    def quantile(self, q: float) -> FloatArray:
        """Smallest x with P(X <= x) >= q in each row; shape (n,)."""
        low, high = self.bracket(q)
        return smallest_true(lambda x: np.asarray(self.cdf(x) >= q * (1 - 1e-14)), low, high)
