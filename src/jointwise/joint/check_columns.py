"""The check of each column on its own: shares of sets, range and means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jointwise.joint.cells import Cells
from jointwise.joint.comparison import GIVEN_ROWS, LEAST_ERROR, Aside, Comparison, Noise, Numbers, standard_error
from jointwise.joint.findings import Finding
from jointwise.joint.questions import shortened


def column_findings(comparison: Comparison) -> Iterator[Finding]:
    """Yield what is wrong with each column on its own."""
    n_sets = sum(len(cells.asked) for cells in comparison.cells)
    noise = Noise(n_sets + len(comparison.asides) + len(comparison.numbers))
    for cells in comparison.cells:
        yield from _shares(comparison, cells, noise)
    for aside in comparison.asides:
        yield _aside(comparison, aside, noise)
    for numbers in comparison.numbers:
        yield from _mean(comparison, numbers, noise)


def _shares(comparison: Comparison, cells: Cells, noise: Noise) -> Iterator[Finding]:
    counts = comparison.counts(cells)
    total = counts.sum()
    if not total > 0:
        return
    members = cells.members(cells.asked)
    share, p = members @ counts / total, np.clip(members @ cells.masses @ comparison.mixing, 0.0, 1.0)
    n = np.full(len(p), total / comparison.repeats)
    error, deviation = noise.exact(p, share, n), standard_error(p, n)
    for i in np.flatnonzero(error > LEAST_ERROR):
        kind = "interval" if cells.asked[i].kind == "side" else cells.asked[i].kind
        numbers = map(float, (p[i], share[i], n[i], deviation[i], error[i]))
        yield Finding(f"P({cells.asked[i].text})", kind, (cells.name,), *numbers)


def _aside(comparison: Comparison, aside: Aside, noise: Noise) -> Finding:
    p = float(np.clip(aside.masses @ comparison.mixing, 0.0, 1.0))
    n = aside.n_rows / comparison.repeats
    error = float(noise.exact(*(np.array([v]) for v in (p, aside.share, n)))[0])
    deviation = float(standard_error(np.array(p), np.array(n)))
    return Finding(f"P({aside.text})", aside.kind, (aside.column,), p, aside.share, n, deviation, error)


def _mean(comparison: Comparison, numbers: Numbers, noise: Noise) -> Iterator[Finding]:
    present = ~np.isnan(numbers.values)
    x = numbers.values[present]
    w = np.ones(len(x)) if comparison.weights is None else comparison.weights[present]
    n = w.sum() / comparison.repeats
    mean, model = np.average(x, weights=w), numbers.means @ comparison.mixing
    spread = np.sqrt(np.average((x - mean) ** 2, weights=w))
    variance = max(spread**2, numbers.squares @ comparison.mixing - model**2)
    if not (n >= GIVEN_ROWS and spread > 0 and np.isfinite(variance)):
        return
    deviation = np.sqrt(variance / n)
    error = noise.of_means((model - mean) / spread, deviation / spread)
    name = comparison.cells[numbers.position].name
    yield Finding(f"E[{shortened(name)}]", "mean", (name,), *map(float, (model, mean, n, deviation, error)))
