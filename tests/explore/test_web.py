"""The page's own tests in Node: types, format, the bundle as built, unit tests, and its answers beside Python's."""

import os
import subprocess

import pytest
from tests.explore.conftest import WEB
from tests.explore.parity import write

pytestmark = pytest.mark.page
# Densities of each sort and events of each: `JOINTWISE_PARITY=300` is the whole comparison, of some minutes.
N_DENSITIES, N_EVENTS = int(os.environ.get("JOINTWISE_PARITY", "5")), 10


def run(*words, **variables):
    done = subprocess.run(
        words, cwd=WEB, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def test_types_and_format(node_modules):
    run("npm", "run", "check")


def test_the_bundle_is_what_the_sources_give(node_modules):
    run("node", "build.mjs", "--check")


def test_the_lock_file_names_no_registry(node_modules):
    assert "resolved" not in (WEB / "package-lock.json").read_text()


def test_the_page_says_what_python_says(node_modules, tmp_path):
    write(tmp_path / "cases.jsonl", N_DENSITIES, N_EVENTS, seed=0)
    print(run("npx", "vitest", "run", PARITY_FILE=str(tmp_path / "cases.jsonl")))
