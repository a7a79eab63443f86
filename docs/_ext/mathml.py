"""Formulas as MathML, which browsers draw themselves: no script, no font and no network."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own; it may be scrolled where it is wider than the page."""
    translator.body.append(f'<div class="math-block">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def _mathml(latex: str, display: str) -> str:
    text = latex.strip()
    if "\\\\" in text and "\\begin" not in text:  # several lines are aligned at &
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    return convert(text, display=display).replace("<math ", f'<math aria-label="{escape(latex.strip())}" ', 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer as `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
