"""A small still picture of a density for notebooks: the marginals, as HTML without scripts."""

from __future__ import annotations

import html

import numpy as np

from jointwise._typing import FloatArray
from jointwise.explore.cells import Cells, DrawnLaw, Law, MarginLaw
from jointwise.explore.export import all_cells, drawn_laws, is_windowed
from jointwise.joint import JointDensity
from jointwise.plots.texts import visible
from jointwise.tables.variables import Variable, as_text

# Most columns, most bars of one, and most characters of a name or label.
MOST_COLUMNS, MOST_BARS, LONGEST = 12, 5, 24
WIDTH, HEIGHT = 200, 48
# Legible on white and on black.
_COLOUR = "#3a87b7"


def picture(density: JointDensity) -> str:
    """Return the marginals of the first twelve columns as HTML.

    >>> from jointwise.datasets import hybrid
    >>> found = picture(hybrid(rng=0))
    >>> found.count("<svg"), "<script" in found
    (4, False)
    """
    shown = density.names
    some = density.marginal(shown[:MOST_COLUMNS])
    # the columns of a block inside windows are drawn from a sample, since their laws take seconds to find
    drawn = drawn_laws(some) if is_windowed(some) else None
    cells = all_cells(some)
    cards = ""
    for n, variable in enumerate(some.schema):
        own = None if drawn is None else drawn[n]
        each = cells[n]
        card = _bars(variable, _shares(some, n, own)) if each is None else _curve(variable, some, n, each, own)
        cards += f'<div style="width:{WIDTH}px"><b>{_text(variable.name)}</b>{card}</div>'
    rest = f" {len(shown) - MOST_COLUMNS} more columns." if len(shown) > MOST_COLUMNS else ""
    words = f"{len(shown)} columns, {density.n_components:,} components.{rest}"
    layout = "display:flex;flex-wrap:wrap;gap:12px 24px;font:12px/1.4 system-ui,sans-serif"
    return f'<div style="{layout}">{cards}<div style="width:100%;opacity:.7">{words}</div></div>'


def _text(words: object) -> str:
    return f"<bdi>{html.escape(visible(words, LONGEST))}</bdi>"


def _svg(inside: str, words: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" style="display:block">'
        f"{inside}</svg><span style='opacity:.7'>{words}</span>"
    )


def _curve(variable: Variable, density: JointDensity, n: int, cells: Cells, drawn: DrawnLaw | None) -> str:
    law: Law = drawn or MarginLaw(density.mixture.margin(n))
    mass = _counted(cells, drawn) if drawn else np.asarray(density.mixture.crosstab({n: cells.regions()}))
    edges, spikes = cells.edges, mass[len(cells.edges) + 1 :]
    tall = mass[1 : len(edges)] / np.diff(edges)
    tall = tall / max(tall.max(initial=0.0), 1e-300) * (HEIGHT - 4)
    x = _places(cells, edges)
    steps = "".join(f"V{HEIGHT - h:.1f}H{right:.1f}" for h, right in zip(tall, x[1:], strict=True))
    area = f'<path d="M{x[0]:.1f} {HEIGHT}{steps}V{HEIGHT}Z" fill="{_COLOUR}" fill-opacity=".45" stroke="{_COLOUR}"/>'
    stems = "".join(
        f'<path d="M{place:.1f} {HEIGHT}V{HEIGHT - (HEIGHT - 4) * share:.1f}" stroke="{_COLOUR}" stroke-width="2"/>'
        for place, share in zip(_places(cells, cells.spikes), spikes, strict=True)
    )
    low, middle, high = (_text(_short(variable, value)) for value in law.quantiles(np.array([0.1, 0.5, 0.9])).tolist())
    return _svg(area + stems, f"median {middle}, 80% {low} to {high}")


def _places(cells: Cells, values: FloatArray) -> FloatArray:
    low, high = cells.edges[0], cells.edges[-1]
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0) * WIDTH)


def _counted(cells: Cells, drawn: DrawnLaw) -> FloatArray:
    """Shares of draws in the intervals, then at the spikes."""
    at_spikes = np.isin(drawn.values, cells.spikes)
    counts = np.bincount(np.searchsorted(cells.edges, drawn.values[~at_spikes]), minlength=len(cells.edges) + 1)
    spikes = [np.count_nonzero(drawn.values == spike) for spike in cells.spikes]
    return np.concatenate([counts, spikes]) / len(drawn.values)


def _shares(density: JointDensity, n: int, drawn: DrawnLaw | None) -> FloatArray:
    """Probability of each category."""
    size = len(density.schema.variables[n].categories or ())
    if drawn is not None:
        return np.bincount(drawn.values.astype(int), minlength=size) / len(drawn.values)
    return density.mixture.margin(n).pdf(np.arange(size, dtype=float))


def _bars(variable: Variable, shares: FloatArray) -> str:
    labels = variable.categories or ()
    order = np.argsort(-shares, kind="stable")[:MOST_BARS]
    high = HEIGHT / max(len(order), 1)
    bars = "".join(
        f'<rect x="0" y="{k * high + 1:.1f}" width="{WIDTH * shares[i]:.1f}" height="{high - 2:.1f}" fill="{_COLOUR}" '
        f'fill-opacity=".7"/>'
        for k, i in enumerate(order)
    )
    words = ", ".join(f"{_text(as_text(labels[i]))} {shares[i]:.0%}" for i in order[:3])
    return _svg(bars, words)


def _short(variable: Variable, value: float) -> str:
    decoded = variable.decode_value(value)
    return f"{decoded:.4g}" if isinstance(decoded, float) else str(decoded)
