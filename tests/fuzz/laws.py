"""What must hold of every density that a fit returns."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.case import is_probability, law

import jointwise
from jointwise import JointDensity
from jointwise.exceptions import ImpossibleEventError
from jointwise.tables.dtypes import is_missing

# Sums of products of probabilities, all of them positive: rounding alone.
TOLERANCE = 1e-7
N_SAMPLES = 12


def check(density: JointDensity, rng: Random, folder: Path) -> None:
    """Check the laws of probability, that a file gives the same answers, and that no gap stays."""
    rows = density.sample(N_SAMPLES, rng=rng.getrandbits(32))
    scores = density.logpdf(rows)
    law(np.isfinite(scores).all(), f"log-densities of samples: {scores.tolist()} of {cells_of(rows)!s:.500}")
    _whole_ranges(density)
    for _ in range(2):
        _chain_rule(density, rng)
    density.save(folder / "law.jw")
    again = jointwise.load(folder / "law.jw")
    law(np.array_equal(again.logpdf(rows), scores), "a file gives other log-densities")
    _no_gap_stays(density, rows, rng)
    _moments(density)


def cells_of(frame: Any) -> dict[str, list[Any]]:
    """Return any table as lists by name; columns of an array are named x0, x1, ..."""
    if isinstance(frame, np.ndarray):
        return {f"x{n}": frame[:, n].tolist() for n in range(frame.shape[1])}
    if isinstance(frame, dict):
        return {name: list(column) for name, column in frame.items()}
    if hasattr(frame, "to_pydict"):
        return frame.to_pydict()
    columns = frame.columns
    return {str(name): frame[name].to_list() for name in columns}


def _whole_ranges(density: JointDensity) -> None:
    for variable in density.schema:
        whole = (None, None) if variable.categories is None else set(variable.categories)
        p = density.probability({variable.name: whole})
        law(abs(p - 1) < TOLERANCE, f"P({variable.name!a} is anything) = {p}")


def _chain_rule(density: JointDensity, rng: Random) -> None:
    """P(A, B) = P(B) P(A | B), also of the marginal of the two."""
    names = rng.sample(density.names, min(2, len(density.names)))
    row = density.mixture.sample(1, np.random.default_rng(rng.getrandbits(32)))[0]
    event = {name: _region(density, name, row, rng) for name in names}
    p, given = density.probability(event), {names[-1]: event[names[-1]]}
    law(is_probability(p), f"P({event!a}) = {p}")
    law(abs(density.marginal(names).probability(event) - p) < TOLERANCE, f"the marginal has another P({event!a})")
    try:
        rest = density.condition(given)
    except ImpossibleEventError:
        law(p == 0, f"P({event!a}) = {p} and what is given is impossible")
        return
    product = density.probability(given) * rest.probability(event)
    law(abs(product - p) < TOLERANCE, f"P(A, B) = {p} and P(B) P(A | B) = {product} for {event!a}")


def _region(density: JointDensity, name: str, row: Any, rng: Random) -> Any:
    variable = density.schema[name]
    value = variable.decode_value(float(row[density.names.index(name)]))
    if variable.categories is not None:
        return {value}
    return rng.choice([(None, value), (value, None)])


def _no_gap_stays(density: JointDensity, rows: Any, rng: Random) -> None:
    kinds = [{type(label) for label in variable.categories or ()} for variable in density.schema]
    if any(len(types) > 1 for types in kinds):
        return  # labels of several types are held by categoricals alone, not by plain cells
    cells = dict(zip(density.names, cells_of(rows).values(), strict=True))
    for column in cells.values():
        for i in range(len(column)):
            if rng.random() < 0.3:
                column[i] = None
    gapped = {name: objects(column) for name, column in cells.items()}
    filled = density.impute(gapped)
    left = {name: column for name, column in cells_of(filled).items() if any(is_missing(cell) for cell in column)}
    law(not left, f"gaps stay in {left!s:.300}")


def objects(cells: list[Any]) -> Any:
    """Return cells as an array that leaves each as it is."""
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _moments(density: JointDensity) -> None:
    density.mean()
    density.var()
    for name, value in density.mode().items():
        law(value is not None, f"{name!a} has no mode")
    for variable in density.schema:
        if variable.categories is None:
            low, middle, high = (density.quantile(variable.name, q) for q in (0.1, 0.5, 0.9))
            law(None not in {low, middle, high}, f"{variable.name!a} has no quantiles: {low}, {middle}, {high}")
            law(low <= middle <= high, f"quantiles of {variable.name!a} fall: {low}, {middle}, {high}")
