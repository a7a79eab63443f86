"""Random densities of every kind and events, with what Python says of them: the page must say the same.

`python -m tests.explore.parity FILE --densities 300` writes a JSON object a line; web/tests/parity.test.ts reads them.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
from tests.joint.block_cases import BEND, covariances
from tests.joint.block_cases import mixture as small_block
from tests.joint.cases import KINDS, random_density
from tests.joint.forest_cases import ALL, random_forest

from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, JointwiseError
from jointwise.explore.container import packed
from jointwise.explore.export import LARGE, all_cells, exported
from jointwise.families import Beta, Cauchy, Gamma, GeneralizedGaussian, Logistic, LogNormal
from jointwise.joint import JointDensity, ProductMixture
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.events import Interval, Point, Values
from jointwise.tables.variables import Kind, Schema, Variable
from jointwise.warps import Warp

# "short" is a product whose coefficients are written as those of large matrices are.
SORTS = ("product", "forest", "block", "sum", "given", "short")


def random_any(rng, sort):
    """A density of one sort."""
    if sort in ("product", "short"):
        density = random_density(rng, rng.choice(KINDS, rng.integers(2, 6)), int(rng.integers(1, 9)))
        return with_families(rng, density) if rng.random() < 0.5 else density
    if sort == "forest":
        return random_forest(rng, rng.choice(ALL, rng.integers(2, 6)), int(rng.integers(1, 5)))
    if sort == "block":
        return random_block(rng)
    if sort == "sum":
        kinds = rng.choice(("smooth", "label"), rng.integers(2, 5))
        seed = int(rng.integers(1 << 30))
        # of the same variables: names, kinds and numbers of categories come from one seed
        parts = [
            random_forest(np.random.default_rng(seed), kinds, 2),
            random_density(np.random.default_rng(seed), kinds, 3),
        ]
        parts = [
            JointDensity(parts[0].schema, part.mixture) for part in parts if part.schema.names == parts[0].schema.names
        ]
        return JointDensity.mix(parts, rng.dirichlet(np.ones(len(parts))))
    return conditioned(rng, random_any(rng, rng.choice(("block", "forest"))))


def with_families(rng, density):
    """Two more columns, with atoms of the families that are rarer."""
    families = (
        Gamma(rng.uniform(0.5, 5, 2), rng.uniform(0.5, 2, 2)),
        LogNormal(rng.normal(0, 1, 2), rng.uniform(0.3, 1, 2)),
        Beta(rng.uniform(0.6, 4, 2), rng.uniform(0.6, 4, 2), -1.0, 3.0),
        Cauchy(rng.normal(0, 2, 2), rng.uniform(0.3, 1, 2)),
        Logistic(rng.normal(0, 2, 2), rng.uniform(0.3, 1, 2)),
        GeneralizedGaussian(rng.uniform(0.8, 4, 2), rng.normal(0, 2, 2), rng.uniform(0.3, 1, 2)),
    )
    chosen = [Dictionary(tuple(families[i] for i in rng.choice(6, 2, replace=False))) for _ in range(2)]
    old = density.mixture
    more = [rng.dirichlet(np.ones(d.n_atoms) * 0.3, old.n_components).T for d in chosen]
    mixture = ProductMixture(old.weights, (*old.coefficients, *more), (*old.dictionaries, *chosen))
    schema = Schema((*density.schema, Variable("rare", "continuous"), Variable("rarer", "continuous", step=0.25)))
    return JointDensity(schema, mixture)


def random_block(rng):
    """A block of two to six columns, some bent, whole or spiked, and a column outside it."""
    if rng.random() < 0.2:
        mixture = small_block(int(rng.integers(1 << 30)))
        variables = (
            Variable("spiked", "continuous", spikes=(-0.5, 1.0)),
            Variable("label", "categorical", categories=("a", "b", "c")),
            Variable("count", "integer"),
            Variable("bent", "continuous"),
            Variable("loose", "continuous", spikes=(0.25,)),
        )
        return JointDensity(Schema(variables), mixture)
    d, n = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    whole = tuple(bool(each) for each in rng.random(d) < 0.2)
    warps = tuple(Warp.line(0.0, 1.0) if each or rng.random() < 0.5 else BEND for each in whole)
    scale = np.where(whole, 4.0, 1.0)
    sigma = covariances(rng, n, d) * scale[:, None] * scale
    sigma[:, np.arange(d), np.arange(d)] += np.where(whole, 1.5, 0.0)
    spikes = tuple(np.array([1.0]) if not w and rng.random() < 0.2 else np.empty(0) for w in whole)
    weights = tuple(rng.uniform(0, 0.6, (len(s), n)) for s in spikes)
    block = GaussianBlock(warps, rng.normal(size=(n, d)) * scale, sigma, spikes, weights, whole)
    columns = tuple(int(c) for c in rng.permutation(d + 1)[:d])
    mixture = BlockMixture(
        rng.dirichlet(np.ones(n)), block, columns, [rng.dirichlet(np.ones(3), n).T], [Dictionary.categories(3)]
    )
    variables = []
    for k in range(d + 1):
        if k not in columns:
            variables.append(Variable(f"v{k}", "categorical", categories=("a", "b", "c")))
            continue
        c = columns.index(k)
        variables.append(Variable(f"v{k}", "integer" if whole[c] else "continuous", spikes=tuple(spikes[c])))
    return JointDensity(Schema(tuple(variables)), mixture)


def conditioned(rng, density):
    """The density given something, which leaves windows and hidden nodes."""
    name = str(rng.choice(density.names))
    n = density.schema.index(name)
    event = {n: random_region(rng, density, n, value=False)}
    if len(density.names) < 3:
        return density
    rest = JointDensity(density.schema, density.mixture.condition(event))
    keep = [other for other in density.names if other != name]
    return rest.marginal(keep) if rng.random() < 0.7 else rest


def random_region(rng, density, n, *, value=True):
    """A region of one variable, mostly of a fair probability."""
    variable = density.schema.variables[n]
    drawn = np.sort(density.mixture.marginal([n]).sample(2, rng)[:, 0])
    if variable.categories is not None:
        codes = {float(code) for code in drawn}
        return Point(codes.pop()) if value and len(codes) == 1 else Values(tuple(sorted(codes)))
    kind = rng.random()
    if value and kind < 0.3:
        return Point(float(drawn[0]))
    if variable.kind is Kind.INTEGER and kind < 0.5:
        return Values(tuple(sorted({float(each) for each in drawn})))
    if drawn[0] == drawn[1]:
        drawn[1] += 1.0
    low, high = (-np.inf if kind < 0.65 else drawn[0]), (np.inf if kind > 0.85 else drawn[1])
    return Interval(float(low), float(high))


def plain(region):
    if isinstance(region, Point):
        return {"kind": "point", "value": region.value}
    if isinstance(region, Values):
        return {"kind": "values", "values": list(region.values)}
    ends = [None if np.isinf(end) else end for end in (region.low, region.high)]
    return {"kind": "interval", "low": ends[0], "high": ends[1]}


def cells(density):
    """The cells of each column, as regions."""
    found = []
    for variable, own in zip(density.schema, all_cells(density), strict=True):
        codes = range(len(variable.categories or ()))
        found.append([Point(float(code)) for code in codes] if own is None else own.regions())
    return found


def answers(rng, density, regions):
    """One random event, and the cells of all columns given it; None if it is impossible."""
    n_columns = len(density.names)
    chosen = rng.choice(n_columns, size=rng.integers(1, min(n_columns, 4) + 1), replace=False)
    event = {int(n): random_region(rng, density, int(n)) for n in chosen}
    left = [n for n in range(n_columns) if not isinstance(event.get(n), Point)]
    if not left:
        return None
    try:
        given = density.mixture.condition(event)
        margins = {n: given.crosstab({k: regions[n]}).tolist() for k, n in enumerate(left)}
    except ImpossibleEventError:
        return None
    points = any(isinstance(region, Point) for region in event.values())
    windows = sum(not isinstance(region, Point) for region in event.values())
    return {
        "evidence": [[n, plain(region)] for n, region in event.items()],
        "log": None if points else float(density.mixture.log_probability(event)),
        "windows": windows,
        "margins": margins,
    }


def write(path, n_densities, n_events, seed):
    """Write the densities and answers of every sort."""
    with Path(path).open("w") as file:
        for k, sort in enumerate(SORTS):
            for i in range(n_densities):
                rng = np.random.default_rng([seed, k, i])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        density = random_any(rng, sort)
                    except JointwiseError:
                        continue
                    regions = cells(density)
                    found = [each for each in (answers(rng, density, regions) for _ in range(n_events)) if each]
                with patch("jointwise.explore.export.LARGE", 0 if sort == "short" else LARGE):
                    line = {"sort": sort, "seed": i, "model": packed(exported(density)), "answers": found}
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--densities", type=int, default=300)
    parser.add_argument("--events", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    write(options.path, options.densities, options.events, options.seed)
