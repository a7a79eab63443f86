"""A small table of people with text, numbers and gaps, and the command as typed."""

import csv
import io

import numpy as np
from typer.testing import CliRunner

from jointwise.cli.app import app

N_ROWS = 240


def people(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    age = rng.integers(20, 60, n)
    job = np.where(rng.random(n) < np.where(woman, 0.8, 0.2), "nurse", "cook")
    pay = np.where(job == "nurse", 40.0, 25.0) + rng.normal(0, 2, n)
    columns = {
        "sex": np.where(woman, "F", "M").tolist(),
        "age": [str(a) for a in age],
        "job": job.tolist(),
        "monthly pay": [f"{p:.1f}" for p in pay],
    }
    for cells in columns.values():
        for i in np.flatnonzero(rng.random(n) < 0.08):
            cells[i] = ""
    return columns


def typed(columns):
    """The columns as numbers and text, gaps as None."""
    number = {"age": int, "monthly pay": float}
    return {
        name: np.array([number.get(name, str)(cell) if cell else None for cell in cells], dtype=object)
        for name, cells in columns.items()
    }


def write_csv(path, columns):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return str(path)


def run(*args, code=0, input=None, foreign=()):  # noqa: A002
    """Run the command, check its exit code, and return its result."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=input)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    expected = (SystemExit, *foreign)  # any other exception would be a traceback
    assert result.exception is None or isinstance(result.exception, expected), result.exception
    return result


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))
