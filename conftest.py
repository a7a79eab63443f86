"""No example leaves a figure open for the next one; those of data loaders read stand-ins for the published files."""

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


@pytest.fixture(autouse=True)
def files_of_loaders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the examples in the docstrings of `jointwise.datasets` run without the published files."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.name.startswith("jointwise.datasets."):
        from tests.datasets.standins import stand_in

        stand_in(monkeypatch)
