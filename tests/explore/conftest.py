"""Node packages for the tests of the page, from the lock file."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.fixture(scope="session")
def node_modules():
    """The folder of the packages; skips where Node, or the registry, is not there."""
    folder = WEB / "node_modules"
    if not WEB.exists():
        pytest.skip("no web/: it is in a checkout of the source only")
    if not shutil.which("npm"):
        pytest.skip("no Node: the page's own tests need node and npm")
    mark = folder / ".package-lock.json"
    if not mark.exists() or mark.stat().st_mtime < (WEB / "package-lock.json").stat().st_mtime:
        done = subprocess.run(["npm", "ci"], cwd=WEB, capture_output=True, text=True, check=False)
        assert "EUSAGE" not in done.stderr, done.stderr  # the lock file does not fit package.json
        if done.returncode:
            pytest.skip(f"npm ci failed: {done.stderr.strip()[-300:]}")
    return folder


# the command is tried with the model that the tests of the other commands use
from tests.cli.conftest import model, table  # noqa: E402, F401
