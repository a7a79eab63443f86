"""A page of HTML in one file: every text escaped, figures as data, no scripts, nothing fetched."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from jointwise.plots.texts import visible
from jointwise.tables.variables import as_text

# Most characters of a name or value on the page.
LONGEST = 80
# Most characters of a paragraph.
MOST_LETTERS = 3_000

# Nothing but the page's own style and figures may be used, even if a text got through unescaped.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #5c5c5c; --line: #d9d9d9; --paper: #fff; --card: #fff;
  --accent: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a5a5a5; --line: #3a3a3a; --paper: #161616; --card: #1e1e1e; --accent: #56b4e9; }
  figure img { filter: invert(0.885) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .25rem; }
p { margin: .4rem 0; max-width: 48rem; }
.soft, figcaption { color: var(--soft); font-size: .875rem; }
nav a { margin-right: 1rem; } a { color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .75rem 0; }
dt { color: var(--soft); } dd { margin: 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(21rem, 100%), 1fr)); gap: 1rem; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; background: var(--card); min-width: 0; }
figure { margin: 0; } figure img { width: 100%; height: auto; display: block; }
figure.wide img { width: auto; max-width: 100%; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; margin-bottom: 1.5rem; }
.beside > * { max-width: 100%; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: normal; max-width: 24rem; }
th { color: var(--soft); font-weight: 600; } td.number, th.number { text-align: right; }
ul { margin: 0; padding-left: 1.1rem; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  .card, tr, figure { break-inside: avoid; } h2 { break-after: avoid; }
  .grid { grid-template-columns: 1fr 1fr; } .table { overflow: visible; } }
""".strip()


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(words: object) -> Markup:
    """Return any text as HTML that shows it: short, visible, and apart from the text around it.

    >>> escaped("</b><script>")
    '<bdi>&lt;/b&gt;&lt;script&gt;</bdi>'
    """
    if isinstance(words, Markup):
        return words
    return Markup(f"<bdi>{html.escape(visible(words, LONGEST), quote=True)}</bdi>")


def sentence(words: str) -> Markup:
    """Return a text of our own, which may name columns, as a paragraph of any length."""
    return Markup(f"<p>{html.escape(visible(words, MOST_LETTERS), quote=True)}</p>")


def page(title: str, parts: Sequence[tuple[str, str, Markup]], head: Markup) -> str:
    """Return the whole page: a title, a head, and sections, each with the name of its place, its title and content."""
    links = "".join(f'<a href="#{place}">{html.escape(name)}</a>' for place, name, _ in parts)
    sections = "".join(
        f'<section id="{place}"><h2>{html.escape(name)}</h2>{content}</section>\n' for place, name, content in parts
    )
    shown = html.escape(visible(title, LONGEST), quote=True)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{shown}</title>\n<style>\n{_STYLE}\n</style></head>\n"
        f"<body><header><h1>{shown}</h1>{head}<nav>{links}</nav></header>\n<main>\n{sections}</main></body></html>\n"
    )


def facts(pairs: Mapping[str, object]) -> Markup:
    """Return names and values as a list of definitions; empty values are left out."""
    rows = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(visible(value, MOST_LETTERS), quote=True)}</dd>"
        for name, value in pairs.items()
        if value
    )
    return Markup(f"<dl>{rows}</dl>")


def table(columns: Mapping[str, Sequence[Any]]) -> Markup:
    """Return columns as a table; numbers stand at the right."""
    numeric = [bool(len(cells)) and all(isinstance(c, int | float) for c in cells) for cells in columns.values()]
    classes = [' class="number"' if right else "" for right in numeric]
    head = "".join(f"<th{c}>{escaped(name)}</th>" for c, name in zip(classes, columns, strict=True))
    rows = "".join(
        f"<tr>{''.join(f'<td{c}>{_text(cell)}</td>' for c, cell in zip(classes, row, strict=True))}</tr>\n"
        for row in zip(*columns.values(), strict=True)
    )
    return Markup(f'<div class="table"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>')


def listing(items: Sequence[str]) -> Markup:
    """Return texts as a list of points."""
    return Markup(f"<ul>{''.join(f'<li>{html.escape(visible(item, 300), quote=True)}</li>' for item in items)}</ul>")


def grid(cards: Sequence[Markup]) -> Markup:
    """Return cards side by side, as many as there is room for."""
    return Markup(f'<div class="grid">{"".join(cards)}</div>')


def card(title: object, about: str, content: str) -> Markup:
    """Return a card with a title, a soft line about it, and its content."""
    soft = html.escape(visible(about, 300), quote=True)
    return Markup(f'<div class="card"><h3>{escaped(title)}</h3><p class="soft">{soft}</p>{content}</div>')


def beside(parts: Sequence[Markup]) -> Markup:
    """Return parts beside each other, or below where there is no room."""
    return Markup(f'<div class="beside">{"".join(parts)}</div>')


def figure(drawn: Any, alt: str, *, wide: bool = False, scale: float = 1.0) -> Markup:
    """Return a matplotlib figure as a picture inside the page, of another size in inches, and close it."""
    from matplotlib import pyplot as plt

    data = io.BytesIO()
    drawn.set_size_inches(drawn.get_size_inches() * scale)
    with plt.rc_context({"svg.hashsalt": "jointwise"}):  # the same page each time
        drawn.savefig(data, format="svg", dpi=150, metadata={"Date": None})
    plt.close(drawn)
    source = base64.b64encode(data.getvalue()).decode()
    shown = html.escape(visible(alt, 300), quote=True)
    kind = ' class="wide"' if wide else ""
    return Markup(f'<figure{kind}><img alt="{shown}" src="data:image/svg+xml;base64,{source}"></figure>')


def _text(cell: Any) -> Markup:
    if cell is None:
        return Markup("")
    return escaped(cell if isinstance(cell, str) else f"{cell:.4g}" if isinstance(cell, float) else as_text(cell))
