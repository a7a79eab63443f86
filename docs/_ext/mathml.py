"""Formulas as MathML, which browsers draw themselves: no script and no network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

PARAGRAPH = re.compile(r"\n\s*\n")
LARGE_NORM = re.compile(r"\\[bB]igg?[lr]?\\\|")
# What the converter leaves as it was.
UNREAD = re.compile(r"<m[io]>(\\[^<]*|&)<")
# A function before its argument without brackets, such as log N.
OPERATOR = re.compile(r"<mi>(log|exp|min|max)</mi>(?!<mo)")


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own; it may be scrolled where it is wider than the page."""
    translator.body.append(f'<div class="math-block">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def _mathml(latex: str, display: str) -> str:
    text = LARGE_NORM.sub(r"\\|", PARAGRAPH.sub(r" \\\\ ", latex.strip()))
    if r"\\" in text and r"\begin" not in text:  # several lines are aligned at &
        text = rf"\begin{{split}}{text}\end{{split}}"
    found = OPERATOR.sub(r'\g<0><mspace width="0.17em"/>', convert(text, display=display))
    if unread := UNREAD.search(found):
        logger.warning("the formula %s has %s, which is not read", latex, unread[1])
    return found.replace("<math ", f'<math aria-label="{escape(latex.strip())}" ', 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer as `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
