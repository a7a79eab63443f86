"""Layout of one variable along an axis of a picture: range, cells, ticks, and the places of values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import PointMass
from jointwise.joint import JointDensity
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.margin import Margin
from jointwise.plots._figure import LONGEST_TEXT, text
from jointwise.tables.dtypes import is_temporal, parse_datetime
from jointwise.tables.times import END_DAY, FIRST_DAY, time_zone
from jointwise.tables.variables import Kind, Variable

if TYPE_CHECKING:
    from matplotlib.axis import Axis

# Cells of a heat map along a continuous variable: finer than the eye can see on a page.
N_CELLS = 150
# Up to this many integers are drawn one by one.
MOST_INTEGERS = 120
# Width of the strip of a spike and of the gap beside it, as shares of the range.
STRIP, GAP = 0.05, 0.025
# The range ends at the quantiles TAIL and 1 - TAIL, or REACH times the distance of the quartiles beyond them if that is
# nearer (heavy tails would squeeze the rest into a needle), but never inside the quantiles of LEAST_TAIL.
TAIL, REACH, LEAST_TAIL = 0.004, 4.0, 0.02
# Rows beyond the range widen it if they lie no further outside than this share of it.
NEAR = 0.3
MARGIN = 0.04
# With so few ticks, a panel is small.
FEW = 3
# Size of the letters at the strips of a small panel, in points: as high as a strip with its gap is wide.
SMALLEST = 5.0
# Category names with more characters than this in total do not fit side by side.
LONGEST_ROW = 55
# Most spikes with a strip; the others count in the cells that they lie in.
MOST_STRIPS = 4
# Numbers from this one on are written as 10k where there is little room.
LARGE = 10_000


@dataclass(frozen=True, eq=False)
class Ruler:
    """Layout of a variable."""

    variable: Variable
    dictionary: Dictionary  # its atoms in use
    coefficients: FloatArray  # of the atoms in each component, (L, F)
    mixing: FloatArray  # weights of the components, (F,)
    edges: FloatArray  # ends of the cells, (K + 1,)
    values: FloatArray | None  # the value of each cell, if each cell is one value, (K,)
    spikes: FloatArray  # values drawn in strips beside the range, (S,)

    @classmethod
    def of(cls, density: JointDensity, name: str) -> Ruler:
        """Lay out a variable of a density."""
        n = density.schema.index(name)
        variable, mixture = density.schema.variables[n], density.mixture
        atoms, shares = mixture.factor(n)
        used = shares @ mixture.weights > 0
        dictionary, coefficients = atoms.take(used), shares[used]
        edges, values = _cells(variable, dictionary, coefficients @ mixture.weights)
        spikes = np.empty(0)
        if values is None and len(dictionary.spikes):
            masses = dictionary.point_mass(dictionary.spikes) @ coefficients @ mixture.weights
            spikes = _with_strips(dictionary.spikes, np.asarray(masses), edges)
        return cls(variable, dictionary, coefficients, mixture.weights, edges, values, spikes)

    @property
    def label(self) -> str:
        """Name of the variable."""
        return text(self.variable.name, 40)

    @property
    def is_list(self) -> bool:
        """Whether the values are categories without an order, which are listed from top to bottom."""
        return self.variable.categories is not None and not self.variable.ordered

    @property
    def names_room(self) -> float:
        """Inches that category names need below an axis beyond one line; zero if they fit side by side."""
        lengths = [len(str(c)) for c in self.variable.categories or ()]
        fit = sum(lengths) + 2 * len(lengths) <= LONGEST_ROW
        return 0.0 if fit else 0.07 * min(max(lengths), LONGEST_TEXT)

    @property
    def weights(self) -> FloatArray:
        """Weight of each atom in the marginal; shape (L,)."""
        return np.asarray(self.coefficients @ self.mixing)

    @cached_property
    def is_smooth(self) -> BoolArray:
        """Which atoms are not point masses; shape (L,)."""
        return _is_smooth(self.dictionary)

    @property
    def spike_masses(self) -> FloatArray:
        """Probability of each spike; shape (S,)."""
        return np.asarray(self.dictionary.point_mass(self.spikes) @ self.weights)

    # ---- places ------------------------------------------------------------------------------------------

    @cached_property
    def strips(self) -> FloatArray:
        """Ends of the strip of each spike, on the nearer side of the range; shape (S, 2)."""
        low, high = self.edges[0], self.edges[-1]
        pitch, width = (STRIP + GAP) * (high - low), STRIP * (high - low)
        on_left = self.spikes <= (low + high) / 2
        n_left = int(on_left.sum())
        starts = np.where(
            on_left,
            low - pitch * (n_left - np.arange(len(self.spikes))),
            high + pitch * (np.arange(len(self.spikes)) - n_left + 1) - width,
        )
        return np.column_stack([starts, starts + width])

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of everything that is drawn."""
        ends = np.concatenate([self.edges[[0, -1]], self.strips.ravel()])
        return float(ends.min()), float(ends.max())

    def inside(self, values: FloatArray) -> BoolArray:
        """Which encoded values can be drawn."""
        return np.asarray(((values >= self.edges[0]) & (values <= self.edges[-1])) | np.isin(values, self.spikes))

    def places(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Positions of encoded values as points; values that share a place are spread around it."""
        shift = rng.uniform(-0.35, 0.35, len(values))
        if self.values is not None:
            return values + shift * float(np.diff(self.edges).min())
        out = np.array(values)
        if self.variable.kind is Kind.INTEGER:
            out += shift
        for spike, (left, right) in zip(self.spikes, self.strips, strict=True):
            here = values == spike
            out[here] = (left + right) / 2 + shift[here] * (right - left)
        return out

    # ---- numbers -----------------------------------------------------------------------------------------

    @property
    def regions(self) -> list[Region]:
        """The cells, then the spikes."""
        spikes: list[Region] = [Point(float(spike)) for spike in self.spikes]
        if self.values is not None:
            return [*(Point(float(value)) for value in self.values), *spikes]
        return [*(Interval(float(a), float(b)) for a, b in pairwise(self.edges)), *spikes]

    @property
    def widths(self) -> FloatArray:
        """What turns the probability of each region into what is drawn: the width of a cell, one for single values."""
        cells = np.diff(self.edges) if self.values is None else np.ones(len(self.values))
        return np.concatenate([cells, np.ones(len(self.spikes))])

    def conditionals(self) -> FloatArray:
        """Mean density in each cell, or probability of its value, given each component; shape (K, F).

        The mass of a cell is exact, from distribution functions, so that no peak is missed.
        """
        if self.values is not None:
            return np.asarray(self.dictionary.pdf(self.values) @ self.coefficients)
        smooth = self.dictionary.take(self.is_smooth)
        masses = smooth.mass(self.edges[:-1], self.edges[1:]) @ self.coefficients[self.is_smooth]
        folded = self.folded
        cells = np.searchsorted(self.edges[1:-1], folded)
        np.add.at(masses, cells, self.dictionary.point_mass(folded) @ self.coefficients)
        return np.asarray(masses / np.diff(self.edges)[:, None])

    @cached_property
    def folded(self) -> FloatArray:
        """Spikes within the range that have no strip; shape (K,)."""
        if self.values is not None:
            return np.empty(0)
        rest = np.setdiff1d(self.dictionary.spikes, self.spikes)
        return np.asarray(rest[(rest >= self.edges[0]) & (rest <= self.edges[-1])])

    @property
    def folded_masses(self) -> FloatArray:
        """Probability of each spike without a strip; shape (K,)."""
        return np.asarray(self.dictionary.point_mass(self.folded) @ self.weights)

    def spike_conditionals(self) -> FloatArray:
        """Probability of each spike given each component; shape (S, F)."""
        return np.asarray(self.dictionary.point_mass(self.spikes) @ self.coefficients)

    # ---- ticks -------------------------------------------------------------------------------------------

    def dress(self, axis: Axis, most: int = 7) -> None:
        """Label an axis with the name of the variable and its ticks, at most ``most`` unless they are categories."""
        from matplotlib import ticker

        axis.set_label_text(self.label)
        if self.variable.categories is not None:
            axis.set_ticks(range(len(self.variable.categories)), [text(c) for c in self.variable.categories])
        elif is_temporal(self.variable.dtype):
            self._date_ticks(axis, most)
        elif self.values is not None and len(self.values) <= most:
            axis.set_ticks(self.values)
        else:
            axis.set_major_locator(ticker.MaxNLocator(most, integer=self.variable.kind is Kind.INTEGER))
            if most <= FEW and np.abs(self.edges[[0, -1]]).max() >= LARGE:
                axis.set_major_formatter(ticker.EngFormatter(sep=""))
        if len(self.spikes):
            self._strip_ticks(axis, most)

    def _date_ticks(self, axis: Axis, most: int) -> None:
        from matplotlib import dates as untyped_dates

        dates: Any = untyped_dates
        if np.datetime64(dates.get_epoch()) != np.datetime64(0, "D"):
            raise InputError(
                f"Dates are drawn as days since 1970-01-01, but matplotlib counts days from {dates.get_epoch()}; "
                'leave rcParams["date.epoch"] as it is.'
            )
        _, zone = parse_datetime(self.variable.dtype) or ("D", None)
        locator = dates.AutoDateLocator(tz=time_zone(zone) if zone else None, minticks=2, maxticks=most + 1)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=locator.tz))

    def _strip_ticks(self, axis: Axis, most: int) -> None:
        """Put numbers along the range only, and the value and probability of each spike at its strip."""
        from matplotlib import ticker

        low, high = self.edges[0], self.edges[-1]
        shown_low, shown_high = axis.get_view_interval()
        axis.set_view_interval(low, high, ignore=True)
        away = STRIP * (high - low)  # a number beside a strip would overlap the number of the strip
        near_low, near_high = np.any(self.strips < low), np.any(self.strips > high)
        ticks = np.asarray(axis.get_major_locator()())
        axis.set_view_interval(shown_low, shown_high, ignore=True)
        keep = (ticks >= low + away * near_low) & (ticks <= high - away * near_high)
        axis.set_major_locator(ticker.FixedLocator(ticks[keep]))
        across = axis is axis.axes.xaxis
        alone = len(self.spikes) == 1 and most > FEW
        between = ":\n" if across and alone else ": "
        axis.set_minor_locator(ticker.FixedLocator(self.strips.mean(axis=1)))
        axis.set_minor_formatter(ticker.FixedFormatter([
            f"{_shown(self.variable.decode_value(spike))}{between}{percent(p)}"
            for spike, p in zip(self.spikes, self.spike_masses, strict=True)
        ]))  # fmt: skip
        size = SMALLEST if most <= FEW else "medium" if alone else "small"
        axis.set_tick_params(which="minor", length=0, labelsize=size, labelrotation=90 if across and not alone else 0)


def _with_strips(spikes: FloatArray, masses: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the spikes that get strips: the most probable, then those beyond the range, then others by probability."""
    beyond = (spikes < edges[0]) | (spikes > edges[-1])
    first = masses == masses.max()
    return np.sort(spikes[np.lexsort((-masses, ~beyond, ~first))[:MOST_STRIPS]])


def percent(share: float) -> str:
    """Write a share as a percentage of at most two digits.

    >>> percent(0.314), percent(0.0314), percent(0.00002), percent(0.9999)
    ('31%', '3.1%', '<0.1%', '>99%')
    """
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{100 * share:.{0 if share >= 0.0995 or share == 0 else 1}f}%"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_smooth(dictionary: Dictionary) -> BoolArray:
    sizes = [family.n_atoms for family in dictionary.families]
    return np.repeat([not isinstance(family, PointMass) for family in dictionary.families], sizes)


def _cells(variable: Variable, dictionary: Dictionary, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Edges of the cells, and their values if each cell is one value."""
    if variable.categories is not None:
        return _around(np.arange(float(len(variable.categories))))
    if dictionary.lists_values:
        points = dictionary.spikes
        low, high = points[0], points[-1]
        every = variable.kind is Kind.INTEGER and high - low < MOST_INTEGERS
        return _around(np.arange(low, high + 1) if every else points)
    low, high = _range(variable, dictionary, weights)
    if variable.kind is not Kind.INTEGER:
        return np.linspace(low, high, N_CELLS + 1), None
    low, high = np.floor(low), np.ceil(high)
    if high - low < MOST_INTEGERS:
        return _around(np.arange(low, high + 1))
    return np.unique(np.linspace(low, high + 1, N_CELLS + 1, dtype=np.float64).round()) - 0.5, None


def _around(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Edges midway between values, and the values; the outer cells are as wide as their neighbours."""
    gaps = np.diff(values) if len(values) > 1 else np.ones(1)
    middles = (values[:-1] + values[1:]) / 2
    return np.concatenate([[values[0] - gaps[0] / 2], middles, [values[-1] + gaps[-1] / 2]]), values


def _range(variable: Variable, dictionary: Dictionary, weights: FloatArray) -> tuple[float, float]:
    """Ends of the range that is drawn, for a variable that is not drawn value by value."""
    smooth = _is_smooth(dictionary)
    atoms = dictionary.take(smooth)
    alone = Margin(atoms, weights[smooth] / weights[smooth].sum())
    levels = np.array([TAIL, LEAST_TAIL, 0.25, 0.75, 1 - LEAST_TAIL, 1 - TAIL])
    tail, least, lower, upper, most, far = alone.quantiles(levels)
    reach = REACH * (upper - lower)
    low, high = min(least, max(tail, lower - reach)), max(most, min(far, upper + reach))
    seen_low, seen_high = variable.observed
    support_low, support_high = atoms.ppf([0.0]).min(), atoms.ppf([1.0]).max()
    near = NEAR * (high - low)
    if low - near <= seen_low < low:
        low = max(seen_low, support_low)
    if high < seen_high <= high + near:
        high = min(seen_high, support_high)
    margin = MARGIN * (high - low)
    if is_temporal(variable.dtype):
        # one day stays free at both ends of the calendar, for the ticks of a time zone
        return max(low - margin, FIRST_DAY + 1), min(high + margin, END_DAY - 2)
    return low - margin, high + margin
