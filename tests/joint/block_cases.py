"""Block mixtures to test with, and slow and obvious computations of their answers."""

from itertools import product

import numpy as np
from scipy.stats import multivariate_normal

from jointwise.dictionary import Dictionary
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.warps import Warp

INF = np.inf
BEND = Warp([-2.0, 0.0, 1.0, 5.0], [-3.0, 0.0, 0.5, 4.0], [1.0, 1.0, 0.4, 2.0])
# Positions of the variables of `mixture`.
SPIKED, CATEGORY, INTEGER, BENT, PRODUCT = range(5)


def covariances(rng, n, d):
    """Positive definite, with correlations of all sizes and no tiny eigenvalue."""
    a = rng.normal(size=(n, d, d))
    return a @ a.transpose(0, 2, 1) / d + 0.2 * np.eye(d)


def gaussian_block(seed, n_components=2):
    """Three columns: a spiked one, integers with a spike, and one with a bent warp."""
    rng = np.random.default_rng(seed)
    scale = np.array([1.0, 4.0, 1.0])
    sigma = covariances(rng, n_components, 3) * scale[:, None] * scale
    sigma[:, 1, 1] += 1.5
    spikes = (np.array([-0.5, 1.0]), np.array([2.0]), np.empty(0))
    weights = tuple(rng.dirichlet(np.ones(len(s) + 1), n_components).T[:-1] for s in spikes)
    warps = (Warp.line(0.5, 2.0), Warp.line(0.0, 1.0), BEND)
    means = rng.normal(size=(n_components, 3)) * scale
    return GaussianBlock(warps, means, sigma, spikes, weights, (False, True, False))


def mixture(seed, n_components=2):
    """A block of three columns, a category and a continuous column outside it."""
    rng = np.random.default_rng([seed, 1])
    atoms = (Dictionary.categories(3), Dictionary.grid("gaussian", -1, 1, n=3, scale=0.7) + Dictionary.points([0.25]))
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), n_components).T for d in atoms]
    weights = rng.dirichlet(np.ones(n_components) * 3)
    return BlockMixture(weights, gaussian_block(seed, n_components), (SPIKED, INTEGER, BENT), coefficients, atoms)


def plain(seed, d=2, n_components=2, warps=None):
    """A block alone, continuous and without spikes."""
    rng = np.random.default_rng(seed)
    warps = warps or (Warp.line(0.0, 1.0),) * d
    none = ((np.empty(0),) * d, (np.empty((0, n_components)),) * d, (False,) * d)
    block = GaussianBlock(warps, rng.normal(size=(n_components, d)), covariances(rng, n_components, d), *none)
    return BlockMixture(rng.dirichlet(np.ones(n_components) * 3), block, tuple(range(d)), (), ())


def rows(f, seed, n=6, gaps=0.3):
    """Rows of a mixture with gaps."""
    rng = np.random.default_rng([seed, 2])
    X = f.sample(n, rng)
    X[rng.random(X.shape) < gaps] = np.nan
    return X


def slow_density(f, row):
    """Density of one row: a sum over components, and over what each integer at a spike may be."""
    block, total = f.block, 0.0
    for r, weight in enumerate(f.weights):
        value = weight
        for n, b, d in zip(f.others, f.coefficients, f.dictionaries, strict=True):
            if not np.isnan(row[n]):
                value *= d.pdf([row[n]])[0] @ b[:, r]
        total += value * slow_block(block, r, row[list(f.columns)])
    return total


def slow_block(block, r, x):
    options = []
    for c, v in enumerate(x):
        spikes, weights = block.spikes[c], block.spike_weights[c][:, r]
        if np.isnan(v):
            options.append([("missing", 1.0)])
            continue
        number = [("number", 1 - weights.sum())] if not block.whole[c] or v == round(v) else []
        if v in spikes:
            at = [("missing", weights[list(spikes).index(v)])]
            options.append(at + number if block.whole[c] else at)
        else:
            options.append(number)
    total = 0.0
    for choice in product(*options):
        seen = [c for c, (kind, _) in enumerate(choice) if kind == "number"]
        value = np.prod([p for _, p in choice])
        if seen:
            z = [float(block.warps[c](x[c])) for c in seen]
            value *= np.exp(sum(float(block.warps[c].log_slope(x[c])) for c in seen))
            value *= multivariate_normal.pdf(z, block.means[r, seen], block.covariances[r][np.ix_(seen, seen)])
        total += value
    return total
