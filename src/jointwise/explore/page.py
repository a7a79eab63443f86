"""One HTML file with the model, the script and the style in it, which fetches nothing and runs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import warn_caller
from jointwise._files import replacing
from jointwise._typing import FloatArray
from jointwise.exceptions import DataOnPageWarning
from jointwise.explore.container import packed
from jointwise.explore.export import exported
from jointwise.joint import JointDensity
from jointwise.plots.texts import visible
from jointwise.tables import encode, read_table
from jointwise.tables.variables import OUTSIDE, Schema

# Most rows that are drawn.
MOST_ROWS = 300
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
<script type="application/octet-stream" id="jointwise-model">{model}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def write_page(density: JointDensity, path: str | Path, *, title: str | None = None, data: Any = None) -> Path:
    """Write the page of a density to one HTML file; return its path.

    Parameters
    ----------
    density : JointDensity
    path : str or Path
    title : str, optional
        Heading of the page; by default the name of the file.
    data : frame, array or mapping of names to columns, optional
        Rows of which a sample of 300 is drawn as dots, with a warning, since the page then holds data. By default it
        holds the model alone.
    """
    place = Path(path)
    rows = None
    if data is not None:
        X = encode(read_table(data), density.schema, unseen="missing")
        rows = sampled(X, density.schema, np.random.default_rng(0))
        warn_caller(f"The page holds {len(rows)} rows of the data: whoever has it can read them.", DataOnPageWarning)
    text = page(density, place.stem if title is None else title, rows)
    with replacing(place) as file:
        file.write(text.encode())
    return place


def sampled(X: FloatArray, schema: Schema, rng: np.random.Generator) -> FloatArray:
    """Return at most 300 of some encoded rows, in random order, as the page takes them; unknown categories are gaps."""
    rows = X[rng.permutation(len(X))[:MOST_ROWS]]
    is_category = np.array([variable.categories is not None for variable in schema])
    return np.where(is_category & (rows == OUTSIDE), np.nan, rows)


def page(density: JointDensity, title: str, rows: FloatArray | None = None) -> str:
    """Return the page of a density as HTML.

    A content security policy names the script and the style by their hashes, so that the browser runs nothing else,
    even if a name or category got through as markup, and connects to nothing.

    Parameters
    ----------
    density : JointDensity
    title : str
        Heading of the page.
    rows : array of shape (n, N), optional
        Encoded rows that are drawn as dots; see `sampled`.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> "<title>&lt;b&gt;</title>" in page(hybrid(rng=0), "<b>")
    True
    """
    script, style = bundled("explore.js"), bundled("explore.css")
    policy = "; ".join([
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "worker-src blob:",  # the script itself, in a second thread
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    words = visible(title, LONGEST)
    return _PAGE.format(
        policy=policy,
        title=html.escape(words),
        style=style,
        model=packed(exported(density, words, rows)),
        script=script,
    )


@cache
def bundled(name: str) -> str:
    """Return a file of the bundle, which `npm run build` in web/ makes."""
    return (files("jointwise.explore") / "bundle" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
