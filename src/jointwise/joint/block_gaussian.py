"""Gaussian components over warped columns, with spikes, integers and windows: arrays and their algebra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise._checks import cause, reading, shown
from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint.window import log_window
from jointwise.warps import Warp

# Most coordinates of a block, and most spikes of one column, in a file too.
MOST_COORDINATES = 1024
MOST_SPIKES = 4096
# An integer that is a spike also comes from the Gaussian, so a row has two terms for each such cell. Their number
# doubles with each column, so there may be at most this many integer columns with spikes.
MOST_WHOLE_SPIKED = 8
PARTS = ("warps", "means", "covariances", "spikes", "spike_weights", "whole", "low", "high")
# How far spike weights may add up beyond one, and a covariance be from its transpose, before it is refused.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class GaussianBlock:
    r"""F Gaussian laws of d columns, each column seen through a warp.

    Given component r, a latent vector :math:`z \sim N(\mu_r, \Sigma_r)` lies in the window :math:`(l_r, h_r]`. Column c
    is at its k-th spike with probability ``spike_weights[c][k, r]``. Otherwise it is :math:`w_c^{-1}(z_c)`, rounded if
    the column holds integers. Coordinates after the first d are hidden: only their windows matter.

    The mass of an integer k is :math:`N(w(k)) w'(k)`. In windows and draws an integer is the rounding of a latent
    number whose variance is less by that of rounding, :math:`w'^2 / 12` with the slope at the component's mean. Sums of
    masses and windows then agree to about 1e-4, provided that the variance of integers given all other coordinates is
    at least 1.5 units of the lattice. An integer that is a spike comes from both, the spike and the Gaussian.

    Parameters
    ----------
    warps : tuple of Warp
        One for each of the d columns.
    means : array of shape (F, D)
        D is at least d.
    covariances : array of shape (F, D, D)
        Symmetric and positive definite.
    spikes : tuple of arrays of shape (S_c,)
        Increasing values of each column that have a probability of their own; empty for none.
    spike_weights : tuple of arrays of shape (S_c, F)
        Probability of each spike given each component; the sum over a column's spikes is at most one.
    whole : tuple of bool
        Which columns hold integers.
    low, high : array of shape (F, D), optional
        Windows of the latent vector; infinite where there is none.

    Examples
    --------
    >>> block = GaussianBlock((Warp.line(10.0, 2.0),), [[0.0]], [[[1.0]]], ([12.0],), ([[0.5]],), (False,))
    >>> block.n_components, block.n_columns, block.n_coordinates
    (1, 1, 1)
    """

    warps: tuple[Warp, ...]
    means: FloatArray
    covariances: FloatArray
    spikes: tuple[FloatArray, ...]
    spike_weights: tuple[FloatArray, ...]
    whole: tuple[bool, ...]
    low: FloatArray = None  # type: ignore[assignment]  # an array once checked
    high: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        warps = tuple(self.warps)
        if not warps or not all(isinstance(warp, Warp) for warp in warps):
            raise InputError(f"warps must be one or more Warp objects, one for each column, got {shown(warps)}.")
        means = _numbers(self.means, "means")
        if means.ndim != 2 or not means.shape[0] or not len(warps) <= means.shape[1] <= MOST_COORDINATES:
            raise InputError(
                f"means must have shape (components, coordinates) with {len(warps)} to {MOST_COORDINATES} coordinates, "
                f"got {means.shape}."
            )
        if not np.isfinite(means).all():
            raise InputError("means must be finite.")
        covariances = _checked_covariances(self.covariances, means.shape)
        low, high = _checked_windows(self.low, self.high, means.shape)
        whole = tuple(bool(each) for each in self.whole)
        if len(whole) != len(warps):
            raise InputError(f"whole must say of each of the {len(warps)} columns whether it holds integers.")
        spikes, weights = _checked_spikes(self.spikes, self.spike_weights, whole, len(means))
        parts = {"warps": warps, "means": means, "covariances": covariances, "low": low, "high": high}
        parts |= {"spikes": spikes, "spike_weights": weights, "whole": whole}
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return len(self.means)

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        return len(self.warps)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates D, visible and hidden."""
        return int(self.means.shape[1])

    @cached_property
    def has_window(self) -> BoolArray:
        """Which coordinates have a window in some component; shape (D,)."""
        return np.asarray(((self.low > -np.inf) | (self.high < np.inf)).any(axis=0))

    @cached_property
    def no_spike(self) -> FloatArray:
        """Probability that a column is at none of its spikes given each component; shape (d, F)."""
        free = [np.maximum(1 - weights.sum(axis=0), 0.0) for weights in self.spike_weights]
        return np.array(free).reshape(self.n_columns, self.n_components)

    @cached_property
    def rounding(self) -> FloatArray:
        """Variance that rounding adds to each coordinate of each component, zero but for integers; shape (F, D)."""
        out = np.zeros(self.means.shape)
        for c in np.flatnonzero(self.whole):
            slope = np.exp(self.warps[c].log_slope(self.warps[c].inverse(self.means[:, c])))
            out[:, c] = slope**2 / 12
        if out.any():
            # what is left must be positive definite: at most half the variance given all others is taken away
            root = np.sqrt(out)
            inner = root[:, :, None] * np.linalg.inv(self.covariances) * root[:, None, :]
            largest = np.linalg.eigvalsh(inner)[:, -1:]
            out *= np.minimum(1.0, 0.5 / np.maximum(largest, 1e-300))
        return out

    @cached_property
    def latent_covariances(self) -> FloatArray:
        """Covariances of the latent vector before rounding; shape (F, D, D)."""
        out = self.covariances.copy()
        at = np.arange(self.n_coordinates)
        out[:, at, at] -= self.rounding
        return out

    @cached_property
    def latent(self) -> GaussianBlock:
        """The block with all columns continuous, as they are before rounding."""
        return self.changed(covariances=self.latent_covariances, whole=(False,) * self.n_columns)

    @cached_property
    def log_inside(self) -> tuple[FloatArray, FloatArray]:
        """Log-probability of each component's window before it is given, and its relative error; shapes (F,)."""
        return log_window(self.means, self.latent_covariances, self.low, self.high)

    @cached_property
    def nodes(self) -> dict[int, tuple[IntArray, FloatArray, FloatArray]]:
        """Points and weights of components in their windows, once asked for; see `jointwise.joint.block_nodes`."""
        return {}

    @cached_property
    def places(self) -> dict[int, tuple[FloatArray, FloatArray]]:
        """Centres and spreads of components in their windows, once asked for; see `jointwise.joint.block_margins`."""
        return {}

    # ---- new blocks --------------------------------------------------------------------------------------

    def changed(self, **parts: Any) -> GaussianBlock:
        """Return the block with some parts replaced, which are not checked again."""
        new = object.__new__(GaussianBlock)
        for name in PARTS:
            object.__setattr__(new, name, parts.get(name, getattr(self, name)))
        return new

    def take(self, components: ArrayLike) -> GaussianBlock:
        """Return the block of some components, by positions or by a mask of length F."""
        at = np.asarray(components)
        new = self.changed(
            means=self.means[at],
            covariances=self.covariances[at],
            spike_weights=tuple(weights[:, at] for weights in self.spike_weights),
            low=self.low[at],
            high=self.high[at],
        )
        if "log_inside" in self.__dict__:  # it may have been costly
            new.__dict__["log_inside"] = tuple(part[at] for part in self.log_inside)
        return new

    def marginal(self, columns: Sequence[int]) -> GaussianBlock:
        """Return the block of some columns. Others become hidden if they have a window and are dropped if not."""
        hidden = [int(k) for k in np.flatnonzero(self.has_window) if k not in columns]
        covariances = self.covariances
        if any(self.rounding[:, hidden].ravel()):
            covariances = covariances.copy()
            covariances[:, hidden, hidden] -= self.rounding[:, hidden]  # it is seen through its window alone
        at = [*columns, *hidden]
        return self.changed(
            warps=tuple(self.warps[c] for c in columns),
            means=self.means[:, at],
            covariances=covariances[:, at][:, :, at],
            spikes=tuple(self.spikes[c] for c in columns),
            spike_weights=tuple(self.spike_weights[c] for c in columns),
            whole=tuple(self.whole[c] for c in columns),
            low=self.low[:, at],
            high=self.high[:, at],
        )

    # ---- plain form --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays of at most two dimensions, which a file can hold."""
        windowed = bool(self.has_window.any())
        return {
            "warps": [warp.to_dict() for warp in self.warps],
            "means": self.means,
            "covariances": self.covariances.reshape(self.n_components, -1),
            "spikes": [spikes.tolist() for spikes in self.spikes],
            "spike_weights": [weights if len(weights) else None for weights in self.spike_weights],
            "whole": list(self.whole),
            "low": self.low if windowed else None,
            "high": self.high if windowed else None,
        }

    @classmethod
    @reading("a Gaussian block as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> GaussianBlock:
        """Read what `to_dict` returned."""
        if not isinstance(data, Mapping) or set(data) != set(PARTS):
            raise FileFormatError(f"a Gaussian block must have the parts {', '.join(PARTS)}")
        means = _numbers(data["means"], "means")
        if means.ndim != 2 or not all(type(each) is bool for each in data["whole"]):
            raise FileFormatError("the means of a block must be a matrix, and whole must hold true and false")
        n, d = means.shape
        weights = [np.empty((0, n)) if each is None else each for each in data["spike_weights"]]
        return cls(
            tuple(Warp.from_dict(warp) for warp in data["warps"]),
            means,
            _numbers(data["covariances"], "covariances").reshape(n, d, d),
            tuple(data["spikes"]),
            tuple(weights),
            tuple(data["whole"]),
            data["low"],
            data["high"],
        )


def _numbers(values: Any, name: str) -> FloatArray:
    """Return a copy as float64, or a sentence that says what is wrong."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be an array of numbers: {cause(error)}.") from error


def _checked_covariances(given: Any, shape: tuple[int, ...]) -> FloatArray:
    covariances = _numbers(given, "covariances")
    expected = (*shape, shape[1])
    if covariances.shape != expected:
        raise InputError(f"covariances must have shape {expected}, as the means have {shape}; got {covariances.shape}.")
    if not np.isfinite(covariances).all():
        raise InputError("covariances must be finite.")
    turned = covariances.transpose(0, 2, 1)
    if (np.abs(covariances - turned).max(axis=(1, 2)) > SLACK * np.abs(covariances).max(axis=(1, 2))).any():
        raise InputError("covariances must be symmetric.")
    covariances = 0.5 * (covariances + turned)
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise InputError(
            "covariances must be positive definite; add a small number to the variances of a component with few rows."
        ) from None
    return covariances


def _checked_windows(low: Any, high: Any, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    low = np.full(shape, -np.inf) if low is None else _numbers(low, "low")
    high = np.full(shape, np.inf) if high is None else _numbers(high, "high")
    if low.shape != shape or high.shape != shape:
        raise InputError(f"low and high must have the shape of the means, {shape}; got {low.shape} and {high.shape}.")
    if not ((low < high) & (low < np.inf) & (high > -np.inf)).all():  # false for NaN
        raise InputError("Each entry of low must be below that of high, without NaN.")
    return low, high


def _checked_spikes(
    spikes: Any, weights: Any, whole: tuple[bool, ...], n: int
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    spikes = tuple(_numbers(each, "spikes") for each in spikes)
    weights = tuple(_numbers(each, "spike_weights") for each in weights)
    if not len(spikes) == len(weights) == len(whole):
        raise InputError(f"spikes and spike_weights must have an array for each of the {len(whole)} columns.")
    for c, (values, each) in enumerate(zip(spikes, weights, strict=True)):
        if values.ndim != 1 or len(values) > MOST_SPIKES or not (np.diff(values) > 0).all():
            raise InputError(f"spikes[{c}] must be at most {MOST_SPIKES} increasing numbers.")
        if not np.isfinite(values).all() or (whole[c] and (values != np.round(values)).any()):
            raise InputError(f"spikes[{c}] must be finite, and whole numbers if the column holds integers.")
        if each.shape != (len(values), n):
            raise InputError(f"spike_weights[{c}] must have shape {(len(values), n)}, got {each.shape}.")
        if not ((each >= 0).all() and (each.sum(axis=0) <= 1 + SLACK).all()):
            raise InputError(f"spike_weights[{c}] must not be negative and must add up to at most one per component.")
        np.divide(each, np.maximum(each.sum(axis=0), 1.0), out=each)
        for array in (values, each):
            array.flags.writeable = False
    both = sum(w and len(values) > 0 for w, values in zip(whole, spikes, strict=True))
    if both > MOST_WHOLE_SPIKED:
        raise InputError(
            f"At most {MOST_WHOLE_SPIKED} columns of a block may hold integers with spikes, got {both}. Leave the "
            "others to the dictionaries."
        )
    return spikes, weights
