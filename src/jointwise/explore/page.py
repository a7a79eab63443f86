"""One HTML file with the model, the script and the style in it, which fetches nothing and runs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from typing import Any

from jointwise.explore.container import packed
from jointwise.explore.export import exported
from jointwise.joint import JointDensity
from jointwise.plots.texts import visible

# Most characters of a title.
LONGEST = 120

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="jw">
<div id="explore"></div>
<noscript><p>This page computes with JavaScript, which is switched off.</p></noscript>
<script type="application/octet-stream" id="model">{model}</script>
<script>{script}</script>
</body>
</html>
"""


def page(density: JointDensity, title: str, rows: Any = None) -> str:
    """Return the page of a density as HTML.

    A content security policy names the script and the style by their hashes, so that the browser runs nothing else,
    even if a name or category got through as markup, and connects to nothing.

    Parameters
    ----------
    density : JointDensity
    title : str
        Heading of the page.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> "<title>&lt;b&gt;</title>" in page(hybrid(rng=0), "<b>")
    True
    """
    script, style = bundled("page.js"), bundled("page.css")
    policy = "; ".join([
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    words = visible(title, LONGEST)
    return _PAGE.format(
        policy=policy,
        title=html.escape(words),
        style=style,
        model=packed(exported(density, words)),
        script=script,
    )


@cache
def bundled(name: str) -> str:
    """Return a file of the bundle, which `npm run build` in web/ makes."""
    return (files("jointwise.explore") / "bundle" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
