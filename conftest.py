"""No test, and no example of a docstring or a page, leaves a figure open for the next one."""

import sys
from collections.abc import Iterator

import pytest

# What makes the site needs Sphinx, and `make docs` writes scripts of the gallery and pages of the reference.
collect_ignore_glob = ["docs/conf.py", "docs/_ext/*", "docs/api/*", "docs/gallery/*"]


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close all figures after a test that drew any."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
