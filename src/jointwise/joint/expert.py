"""What a density asks of a mixture: the contract of an expert."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.events import Region
from jointwise.joint.margin import Margin


class Expert(ABC):
    """A mixture that answers questions about encoded values, without names.

    A :class:`jointwise.JointDensity` is a weighted sum of experts. Each is closed under `marginal` and `condition`, and
    conditioning reweighs its components by the likelihood of the event.
    """

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Number of variables N."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of components F."""

    @abstractmethod
    def logpdf(self, X: FloatArray) -> FloatArray:
        """Log-density of encoded rows ``X`` of shape (n, N), missing cells integrated out; shape (n,)."""

    @abstractmethod
    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,)."""

    @abstractmethod
    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""

    @abstractmethod
    def marginal(self, keep: Sequence[int]) -> Expert:
        """Expert of the variables at the positions ``keep``."""

    @abstractmethod
    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Expert given ``event``; a point takes its variable out, an interval or a set truncates it."""

    @abstractmethod
    def margin(self, n: int) -> Margin:
        """Law of variable ``n`` alone: its cdf, quantiles, mode and moments."""

    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance matrix; shape (N, N)."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values and arrays, which a file can hold, with the ``kind`` of expert."""
