"""What differs between two densities, by column and by pair of columns, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from jointwise._checks import listed, shown
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.joint import Check, Estimate, JointDensity
from jointwise.joint.classes import renumbered
from jointwise.joint.divergence import Cells, crosstab, jensen_shannon, of_all, of_column
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.expert import Expert
from jointwise.joint.language import Question
from jointwise.joint.questions import interval_text, question_text, quoted, value_text
from jointwise.joint.sum import mixed
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.gaps import column_positions
from jointwise.tables.variables import Kind, Schema, Variable, as_text

# Places at which the distributions of a number are compared.
N_PLACES = 99
# A shift of the mean by a standard deviation moves about this probability across a place in the middle.
PER_DEVIATION = 0.4
# A mean tells more than a share, if what it explains is at least this part of the largest difference of shares.
PREFERRED = 0.6
# A part of a column with less mass than this in one of the densities tells nothing of how columns depend.
LEAST_MASS = 1e-6
# Steps of scaling a table to margins; a few dozen suffice unless cells are empty.
MOST_STEPS = 200


@dataclass(frozen=True)
class Change:
    """An answer that differs between two densities.

    Parameters
    ----------
    question : str
        In the language of the command, such as ``mean(pay)`` or ``P(job=nurse | sex=F)``.
    old, new : object
        Its answers: a probability, a number or a date.
    """

    question: str
    old: Any
    new: Any

    def __str__(self) -> str:
        old, new = (_figure(value, share=self.question.startswith("P(")) for value in (self.old, self.new))
        return f"{self.question} from {old} to {new}"


@dataclass(frozen=True)
class Drift:
    """What differs in one column, or in how two columns depend on each other.

    Parameters
    ----------
    columns : tuple of str
    divergence : float
        In nats; of a pair, what its columns alone do not explain: see `dependence_drift`.
    change : Change
        The answer that shows it best.
    beyond_noise : bool or None
        Whether rows show that it is no noise; None without rows.
    """

    columns: tuple[str, ...]
    divergence: float
    change: Change
    beyond_noise: bool | None


@dataclass(frozen=True)
class Sizes:
    """Divergences of two densities: in all, and of columns and pairs, the largest first."""

    total: Estimate
    parts: Mapping[tuple[str, ...], float]


def sizes(old: JointDensity, new: JointDensity, rng: np.random.Generator, n_samples: int = 20_000) -> Sizes:
    """Return how far two densities of the same variables are apart, in nats; pairs by `dependence_drift`."""
    pair, places = (old.mixture, new.mixture), column_positions(old.schema)
    found: dict[tuple[str, ...], float] = {
        (name,): of_column(*pair, place).value for name, place in zip(old.names, places, strict=True)
    }
    cells = [Cells.of(old.schema, mixed(pair, [0.5, 0.5]), place) for place in places]
    for i, k in combinations(range(len(old.names)), 2):
        found[old.names[i], old.names[k]] = dependence_drift(*(crosstab(f, cells[i], cells[k]) for f in pair))
    return Sizes(of_all(old.schema, *pair, rng, n_samples), dict(sorted(found.items(), key=lambda item: -item[1])))


def dependence_drift(p: FloatArray, q: FloatArray) -> float:
    """Divergence of two tables of probabilities that their margins do not explain, in nats.

    The first table is scaled to the margins of the second, which keeps its odds ratios, and then compared with it.

    >>> p = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> scaled = np.diag([0.2, 2.0]) @ p @ np.diag([1.0, 0.4])  # other margins, the same odds ratio
    >>> round(dependence_drift(p, scaled / scaled.sum()), 9), round(dependence_drift(p, np.full((2, 2), 0.25)), 3)
    (0.0, 0.051)
    """
    scaled, q = raked(p, q)
    return float(jensen_shannon(scaled, q))


def raked(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a table with the odds ratios of ``p`` and the margins of ``q``, and ``q``, both without mass elsewhere.

    Rows and columns that have no mass in one of the tables are emptied in both: they tell nothing of dependence.
    """
    for axis in (0, 1):
        kept = np.minimum(p.sum(axis=axis), q.sum(axis=axis)) > LEAST_MASS
        p, q = (np.where(kept if axis == 0 else kept[:, None], table, 0.0) for table in (p, q))
    if not (p.sum() > 0 and q.sum() > 0):
        return q, q
    p, q = np.maximum(p, 0.0) / p.sum(), np.maximum(q, 0.0) / q.sum()
    for _ in range(MOST_STEPS):
        before = p
        for axis in (0, 1):
            own, wanted = (table.sum(axis=axis, keepdims=True) for table in (p, q))
            p = p * np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)
        if np.abs(p - before).max() < 1e-9:
            break
    return p, q


def drifts(old: JointDensity, new: JointDensity, found: Sizes, check: Check | None) -> Iterator[Drift]:
    """Yield what differs between two densities of the same variables, the largest divergence first."""
    told = {gap: column for column, gap in old.gaps.items()}
    beyond = None if check is None else {frozenset(told.get(n, n) for n in f.columns) for f in check.findings}
    for names, size in found.parts.items():
        yield Drift(names, size, change_of(old, new, names), None if beyond is None else frozenset(names) in beyond)


def change_of(old: JointDensity, new: JointDensity, names: tuple[str, ...]) -> Change:
    """Return the answer about one column, or about one given another, that differs most."""
    places = [old.schema.index(name) for name in names]
    experts = [density.mixture.marginal(places) for density in (old, new)]
    variables = [old.schema[name] for name in names]
    if len(names) == 1:
        values, moved = _of_column(variables[0], *experts)
        gap = _of_gaps(old, new, names[0])
        return gap if gap is not None and abs(gap.new - gap.old) > moved else values
    return _of_pair(variables, *experts)


def aligned(old: JointDensity, new: JointDensity) -> tuple[JointDensity, JointDensity, list[str]]:
    """Return both densities of the columns that can be compared, with the same categories, and notes on the others."""
    names = [name for name in old.names if name in new.names]
    notes = [
        f"Only in the {which} one: {listed(lacking)}."
        for which, lacking in (
            ("old", [name for name in old.names if name not in names]),
            ("new", [name for name in new.names if name not in names]),
        )
        if lacking
    ]
    alike = [name for name in names if _are_alike(old.schema[name], new.schema[name])]
    notes += [
        f"{shown(name)} is {_kind(old.schema[name])} in the old one and {_kind(new.schema[name])} in the new one, so "
        "it is not compared."
        for name in names
        if name not in alike
    ]
    if not alike:
        raise InputError(
            f"There is no column to compare: the old one has {listed(old.names)}, the new one {listed(new.names)}."
        )
    gaps = [gap for name, gap in old.gaps.items() if name in alike and new.gaps.get(name) == gap]
    both = old.marginal([*alike, *gaps]), new.marginal([*alike, *gaps])
    joined = [_joined(a, b) for a, b in zip(*(density.schema for density in both), strict=True)]
    first, second = (_with_variables(density, joined) for density in both)
    return first, second, notes


def _are_alike(a: Variable, b: Variable) -> bool:
    return a.kind is b.kind and is_temporal(a.dtype) == is_temporal(b.dtype)


def _kind(variable: Variable) -> str:
    return "a time" if is_temporal(variable.dtype) else str(variable.kind)


def _joined(a: Variable, b: Variable) -> Variable:
    """Return a variable with the values of both."""
    dtype = a.dtype if a.dtype == b.dtype or a.categories is None else "categorical"
    common: dict[str, Any] = {"dtype": dtype, "step": a.step, "ordered": a.ordered and b.ordered}
    if a.categories is not None:
        common["categories"] = tuple(dict.fromkeys([*a.categories, *(b.categories or ())]))
        common["observed"] = (0.0, len(common["categories"]) - 1.0)
        common["dtype"] = dtype if common["categories"] == a.categories else "categorical"
        return replace(a, **common)
    return replace(a, **common).joined(replace(b, **common))


def _with_variables(density: JointDensity, variables: list[Variable]) -> JointDensity:
    mixture = density.mixture
    for n, (own, wanted) in enumerate(zip(density.schema, variables, strict=True)):
        if own.categories is not None and own.categories != wanted.categories:
            place = {category: code for code, category in enumerate(wanted.categories or ())}
            mixture = renumbered(mixture, n, np.array([place[category] for category in own.categories]))
    return JointDensity(Schema(tuple(variables), "dict"), mixture)


# ---- one column ------------------------------------------------------------------------------------------------------


def _of_gaps(old: JointDensity, new: JointDensity, name: str) -> Change | None:
    """Return the share of gaps of a column, if it is part of the densities."""
    if name not in old.gaps:
        return None
    return Change(f"P({quoted(old.gaps[name])})", *(density.probability({name: None}) for density in (old, new)))


def _of_column(variable: Variable, old: Expert, new: Expert) -> tuple[Change, float]:
    """Return the answer about the values of a column that differs most, and how large that is, as a share."""
    if variable.categories is not None:
        p, q = (_shares(f, len(variable.categories)) for f in (old, new))
        code = int(np.argmax(np.abs(q - p)))
        return Change(f"P({_category(variable, code)})", float(p[code]), float(q[code])), float(abs(q[code] - p[code]))
    share, moved = _largest_share(variable, old, new)
    means, sds = ([f.margin(0).mean() for f in (old, new)], [f.margin(0).var() ** 0.5 for f in (old, new)])
    pooled = float(np.hypot(*sds)) / 2**0.5
    if np.isfinite([*means, pooled]).all() and pooled > 0:
        shift = PER_DEVIATION * abs(means[1] - means[0]) / pooled
        if min(shift, 1.0) >= PREFERRED * moved:
            return Change(f"mean({quoted(variable.name)})", *(_number(variable, mean) for mean in means)), moved
    return share, moved


def _shares(f: Expert, n_categories: int) -> FloatArray:
    return f.crosstab({0: [Point(float(code)) for code in range(n_categories)]})


def _largest_share(variable: Variable, old: Expert, new: Expert) -> tuple[Change, float]:
    """Return the probability of a spike, or of the values above some place, that differs most, and by how much."""
    both = mixed([old, new], [0.5, 0.5])
    places = np.unique(_rounded(variable, both.margin(0).quantiles(np.arange(1, N_PLACES + 1) / (N_PLACES + 1))))
    above, spikes = [[1 - f.cdf(places[:, None]) for f in (old, new)], np.asarray(both.dictionary(0).spikes)]
    candidates = [(interval_text(variable, place, np.inf), *p) for place, *p in zip(places, *above, strict=True)]
    if len(spikes):
        at = [f.crosstab({0: [Point(float(spike)) for spike in spikes]}) for f in (old, new)]
        candidates += [(value_text(variable, spike), *p) for spike, *p in zip(spikes, *at, strict=True)]
    text, p, q = max(candidates, key=lambda each: abs(each[2] - each[1]))
    return Change(f"P({text})", float(p), float(q)), abs(float(q - p))


def _rounded(variable: Variable, places: FloatArray) -> FloatArray:
    """Return places with few digits, for their range; integers lie halfway between two."""
    if variable.kind is Kind.INTEGER:
        return np.floor(places) + 0.5
    spread = float(np.subtract(*np.quantile(places, [0.9, 0.1])))
    if is_temporal(variable.dtype) or not spread > 0:
        return places
    digits = 1 - int(np.floor(np.log10(spread)))
    return np.asarray(np.round(places, digits))


# ---- two columns -----------------------------------------------------------------------------------------------------


def _of_pair(variables: list[Variable], old: Expert, new: Expert) -> Change:
    """Return the share of a part of one column, given a part of the other, that differs most beyond their margins."""
    both = mixed([old, new], [0.5, 0.5])
    parts = [_parts(variable, both, n) for n, variable in enumerate(variables)]
    regions: Mapping[int, list[Region]] = {n: list(part.values()) for n, part in enumerate(parts)}
    tables = [f.crosstab(regions) for f in (old, new)]
    found = []
    for asked, given in ((0, 1), (1, 0)):
        p, q = (table if asked == 0 else table.T for table in tables)  # asked by given
        expected, seen = (_given(table) for table in raked(p, q))
        size = np.minimum(p.sum(axis=0), q.sum(axis=0)) * np.abs(seen - expected)
        i, k = np.unravel_index(int(np.argmax(size)), size.shape)
        shares = _given(p), _given(q)
        text = f"P({list(parts[asked])[i]} | {list(parts[given])[k]})"
        found.append((float(size[i, k]), Change(text, float(shares[0][i, k]), float(shares[1][i, k]))))
    return max(found, key=lambda each: each[0])[1]


def _given(table: FloatArray) -> FloatArray:
    """Return the shares within each column of a table; zero in an empty one."""
    total = table.sum(axis=0, keepdims=True)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0))


def _parts(variable: Variable, both: Expert, n: int) -> dict[str, Region]:
    """Return the categories of a variable, or the numbers up to about its median and above, by their texts."""
    if variable.categories is not None:
        return {_category(variable, code): Point(float(code)) for code in range(len(variable.categories))}
    middle = float(both.margin(n).quantiles(np.array([0.5]))[0])
    if variable.kind is Kind.INTEGER:
        middle = np.floor(middle) + 0.5
    elif not is_temporal(variable.dtype):
        middle = float(f"{middle:.3g}")
    return {
        interval_text(variable, -np.inf, middle): Interval(-np.inf, middle),
        interval_text(variable, middle, np.inf): Interval(float(np.nextafter(middle, np.inf)), np.inf),
    }


# ---- texts -----------------------------------------------------------------------------------------------------------


def _category(variable: Variable, code: int) -> str:
    """Return a category as a condition."""
    text = question_text(Question(asked={variable.name: Point(float(code))}), Schema((variable,)))
    return text.removeprefix("P(").removesuffix(")")


def _number(variable: Variable, number: float) -> Any:
    """Return a mean as a number, not rounded to an integer, or as a date."""
    return variable.decode_value(number) if is_temporal(variable.dtype) else float(number)


def _figure(value: Any, *, share: bool) -> str:
    if not isinstance(value, float):
        return as_text(value)
    if not share:
        return f"{value:.4g}"
    if value in {0.0, 1.0}:
        return f"{value:.0%}"
    return f"{value:.1%}" if 0.0005 <= value <= 0.9995 else f"{100 * value:.3g}%"
