"""A small still picture of a density for notebooks: the marginals, as HTML without scripts."""

from __future__ import annotations

import html

import numpy as np

from jointwise._typing import FloatArray
from jointwise.explore.cells import Cells
from jointwise.explore.export import column_cells
from jointwise.joint import JointDensity
from jointwise.joint.events import Region
from jointwise.joint.margin import Margin
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
    told = set(density.schema.gaps.values())
    shown = [n for n, name in enumerate(density.names) if name not in told]
    cards = "".join(_card(density, n) for n in shown[:MOST_COLUMNS])
    rest = f" {len(shown) - MOST_COLUMNS} more columns." if len(shown) > MOST_COLUMNS else ""
    words = f"{len(shown)} columns, {density.n_components:,} components.{rest}"
    layout = "display:flex;flex-wrap:wrap;gap:12px 24px;font:12px/1.4 system-ui,sans-serif"
    return f'<div style="{layout}">{cards}<div style="width:100%;opacity:.7">{words}</div></div>'


def _card(density: JointDensity, n: int) -> str:
    variable, margin = density.schema.variables[n], density.mixture.margin(n)
    drawn = _bars(variable, margin) if variable.categories is not None else _curve(variable, margin, density, n)
    return f'<div style="width:{WIDTH}px"><b>{_text(variable.name)}</b>{drawn}</div>'


def _text(words: object) -> str:
    return f"<bdi>{html.escape(visible(words, LONGEST))}</bdi>"


def _svg(inside: str, words: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" style="display:block">'
        f"{inside}</svg><span style='opacity:.7'>{words}</span>"
    )


def _curve(variable: Variable, margin: Margin, density: JointDensity, n: int) -> str:
    cells = column_cells(density, n)
    mass = _masses(density, n, cells.regions())
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
    low, middle, high = (
        _text(_short(variable, value)) for value in margin.quantiles(np.array([0.1, 0.5, 0.9])).tolist()
    )
    return _svg(area + stems, f"median {middle}, 80% {low} to {high}")


def _places(cells: Cells, values: FloatArray) -> FloatArray:
    low, high = cells.edges[0], cells.edges[-1]
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0) * WIDTH)


def _bars(variable: Variable, margin: Margin) -> str:
    labels = variable.categories or ()
    shares = margin.pdf(np.arange(len(labels), dtype=float))
    order = np.argsort(-shares, kind="stable")[:MOST_BARS]
    high = HEIGHT / max(len(order), 1)
    bars = "".join(
        f'<rect x="0" y="{k * high + 1:.1f}" width="{WIDTH * shares[i]:.1f}" height="{high - 2:.1f}" fill="{_COLOUR}" '
        f'fill-opacity=".7"/>'
        for k, i in enumerate(order)
    )
    words = ", ".join(f"{_text(as_text(labels[i]))} {shares[i]:.0%}" for i in order[:3])
    return _svg(bars, words)


def _masses(density: JointDensity, n: int, regions: list[Region]) -> FloatArray:
    """Probabilities of the cells of one column; an interval does not count the points that are cells."""
    return np.asarray(density.mixture.crosstab({n: regions}))


def _short(variable: Variable, value: float) -> str:
    decoded = variable.decode_value(value)
    return f"{decoded:.4g}" if isinstance(decoded, float) else str(decoded)
