r"""Mixtures of trees whose states are hidden: each state of a column is an atom, and atoms overlap.

.. math:: f(x) = \sum_r \lambda_r \sum_z \prod_n p_r(z_n \mid z_{\mathrm{parent}_r(n)}) \, d_{n, z_n}(x_n)

It is the rival of :class:`jointwise.TreeMixture`, whose states are bins that do not overlap. Every pair of columns
first has a table T, the law of two states that maximises :math:`\sum_i \log \sum_{l,m} T[l,m] d_{j,l} d_{k,m}`, by EM.
The pairs that gain most likelihood over independence make the tree. EM on whole rows, by messages along the trees, then
fits all tables together. The prior is that of `TreeMixture`: in each component, `alpha` rows of independent columns and
`gamma` rows of the whole table.

All densities are ratios to the columns' own 1-D fits, so that messages need no logarithms; a table may have some fifty
columns. It is a prototype: no gaps, no weights, rows in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numba import njit
from scipy.interpolate import BSpline
from scipy.special import ndtri
from sklearn.cluster import KMeans

from jointwise import JUPAD, Dictionary
from jointwise.exceptions import MisfitWarning
from jointwise.fitting.choice.uphill import climb, nearest
from jointwise.solvers.trees_em import best_trees
from jointwise.tables import encode, read_table

# What is tried: splines of a column of numbers, numbers of trees, and the prior.
ATOMS = (8, 16, 32)
NUMBERS = (1, 2, 4, 8, 16)
PRIORS = ((1.0, 3.0), (3.0, 10.0), (10.0, 30.0), (30.0, 100.0), (100.0, 300.0))
FIRST_ATOMS, FIRST_PRIOR, FIRST_NUMBER = 16, 2, 4
# Smallest gain that counts, in nats per row, and folds of tables with fewer rows than this; a larger one has one.
LEAST_GAIN, SMALL_TABLE, N_FOLDS = 5e-3, 4_000, 3
# Choices are made on at most this many rows.
SEARCH_ROWS = 5_000
# Instead of a number of splines: the atoms of the columns' own dictionaries.
OWN = 0
# A tree needs this many rows.
ROWS_PER_TREE = 16
# Degree of splines.
DEGREE = 2
# Steps of EM for the tables of pairs: of the whole table, and of a component.
POOLED_STEPS, PAIR_STEPS = 20, 5
# Steps of EM between looks for trees, and most steps with the last ones.
STAGES, MOST_STEPS = (4, 8), 200
SEARCH_TOL, SEARCH_STEPS = 1e-3, 25
# Starts that are averaged.
N_MODELS = 3
# Smallest share of a row that an atom needs to be kept there.
LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Cells:
    """Densities of atoms at the cells of some rows, as ratios to the columns' own 1-D fits.

    Parameters
    ----------
    index : array of shape (n, N, K)
        The atoms that have a density at a cell.
    value : array of shape (n, N, K)
        Their ratios.
    count : array of shape (n, N)
        How many they are; the rest of `index` and `value` is not used.
    log_margins : array of shape (n,)
        Log-density of rows with independent columns.
    """

    index: np.ndarray
    value: np.ndarray
    count: np.ndarray
    log_margins: np.ndarray

    def take(self, rows: np.ndarray) -> Cells:
        """Return some of the rows."""
        return Cells(self.index[rows], self.value[rows], self.count[rows], self.log_margins[rows])

    def __len__(self) -> int:
        return len(self.index)


class Margins:
    """The 1-D fits of all columns of a table, and atoms made from them.

    Parameters
    ----------
    table : mapping of column names to arrays
    kinds : mapping of column names to str, optional
    """

    def __init__(self, table: dict[str, np.ndarray], kinds: dict[str, str] | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MisfitWarning)  # one component says nothing of pairs, and is not meant to
            density = JUPAD(1, kinds=kinds, random_state=0).fit(table).density_
        self.schema = density.schema
        self.dictionaries: Sequence[Dictionary] = density.mixture.dictionaries
        self.shares = [b[:, 0] for b in density.mixture.coefficients]

    def cells(self, table: dict[str, np.ndarray], n_atoms: int) -> Cells:
        """Return the densities of atoms at the cells of a table; for `OWN`, those of the dictionaries."""
        X = encode(read_table(table), self.schema)
        found = [self._column(n, x, n_atoms) for n, x in enumerate(X.T)]
        width = max(int((ratio > 0).sum(axis=1).max()) for ratio, _ in found)
        index, value = np.zeros((*X.shape, width), dtype=np.int32), np.zeros((*X.shape, width))
        for n, (ratio, _) in enumerate(found):
            order = np.argsort(-ratio, axis=1, kind="stable")[:, :width]
            index[:, n, : order.shape[1]] = order
            value[:, n, : order.shape[1]] = np.take_along_axis(ratio, order, axis=1)
        return Cells(index, value, (value > 0).sum(axis=2), np.sum([log_f for _, log_f in found], axis=0))

    def masses(self, n_atoms: int) -> list[np.ndarray]:
        """Return the law of each column's atoms that gives its own 1-D fit."""
        return [self._spline_masses(n, n_atoms) if self._splined(n, n_atoms) else q for n, q in enumerate(self.shares)]

    def scores(self, table: dict[str, np.ndarray]) -> np.ndarray:
        """Return columns as standard Gaussians, and each category as a column; shape (n, columns)."""
        X = encode(read_table(table), self.schema)
        found = []
        for n, x in enumerate(X.T):
            d, q = self.dictionaries[n], self.shares[n]
            found.append(ndtri(np.clip(d.cdf(x) @ q, 1e-3, 1 - 1e-3))[:, None] if self._splined(n, 1) else d.pdf(x))
        return np.hstack(found)

    def _splined(self, n: int, n_atoms: int) -> bool:
        d = self.dictionaries[n]
        return n_atoms != OWN and not d.is_identity and not d.lists_values

    def _spiked(self, n: int) -> np.ndarray:
        """Whether each atom of a dictionary is a spike."""
        d = self.dictionaries[n]
        return np.concatenate([np.full(f.n_atoms, f.is_discrete and d.is_continuous) for f in d.families])

    def _spline_masses(self, n: int, n_atoms: int) -> np.ndarray:
        spiked = self._spiked(n)
        smooth = self.shares[n][~spiked].sum()
        return np.concatenate([smooth * spline_masses(n_atoms), self.shares[n][spiked]])

    def _column(self, n: int, x: np.ndarray, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ratios of atoms to the 1-D fit at values, shape (len(x), L), and its log-density."""
        d, q = self.dictionaries[n], self.shares[n]
        pdf = d.pdf(x)
        f = pdf @ q
        if not self._splined(n, n_atoms):
            ratio = pdf / f[:, None]
            return np.where(ratio * q > LEAST_SHARE, ratio, 0.0), np.log(f)
        spiked = self._spiked(n)
        smooth = q[~spiked] / q[~spiked].sum()
        at_spike = np.isin(x, d.spikes) if spiked.any() else np.zeros(len(x), dtype=bool)
        low = high = np.clip(d.cdf(x)[:, ~spiked] @ smooth, 0.0, 1.0)
        if not d.is_continuous:
            low = np.clip(high - pdf[:, ~spiked] @ smooth, 0.0, 1.0)
        ratio = splines(low, high, n_atoms) / q[~spiked].sum()
        ratio[at_spike] = 0.0
        return np.hstack([ratio, pdf[:, spiked] / f[:, None] * at_spike[:, None]]), np.log(f)


def _knots(n_atoms: int) -> np.ndarray:
    return np.concatenate([np.zeros(DEGREE), np.linspace(0, 1, n_atoms - DEGREE + 1), np.ones(DEGREE)])


def spline_masses(n_atoms: int) -> np.ndarray:
    """Return the law of splines whose mixture is uniform on [0, 1]; shape (n_atoms,)."""
    t = _knots(n_atoms)
    return (t[DEGREE + 1 :] - t[: -DEGREE - 1]) / (DEGREE + 1)


def splines(low: np.ndarray, high: np.ndarray, n_atoms: int) -> np.ndarray:
    """Return the mean density of each spline over [low, high] within [0, 1]; shape (len(low), n_atoms).

    >>> u = np.array([0.0, 0.3, 1.0])
    >>> (splines(u, u, 8) @ spline_masses(8)).round(12)
    array([1., 1., 1.])
    """
    t, masses = _knots(n_atoms), spline_masses(n_atoms)
    found = BSpline.design_matrix(low, t, DEGREE).toarray() / masses
    wide = high - low > 1e-9
    if wide.any():
        areas = BSpline(t, np.eye(n_atoms), DEGREE).antiderivative()
        found[wide] = (areas(high[wide]) - areas(low[wide])) / (high - low)[wide, None] / masses
        found[found < 1e-9] = 0.0
    return found


# ---- passes over rows ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _pair_counts(index, value, count, j, k, weights, T):  # noqa: ANN001, ANN202
    """Return expected counts of pairs of states under their law T, and the log-likelihood."""
    counts = np.zeros_like(T)
    total = 0.0
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        f = 0.0
        for a in range(count[i, j]):
            for b in range(count[i, k]):
                f += value[i, j, a] * value[i, k, b] * T[index[i, j, a], index[i, k, b]]
        total += weights[i] * np.log(f)
        for a in range(count[i, j]):
            for b in range(count[i, k]):
                la, lb = index[i, j, a], index[i, k, b]
                counts[la, lb] += weights[i] / f * value[i, j, a] * value[i, k, b] * T[la, lb]
    return counts, total


@njit(cache=True)
def _own_likelihood(index, value, count, j, weights, q):  # noqa: ANN001, ANN202
    """Return the log-likelihood of one column whose states have the law q."""
    total = 0.0
    for i in range(len(weights)):
        f = 0.0
        for a in range(count[i, j]):
            f += value[i, j, a] * q[index[i, j, a]]
        total += weights[i] * np.log(f)
    return total


@njit(cache=True)
def _tree_pass(index, value, count, parents, order, weights, tables, learn):  # noqa: ANN001, ANN202
    """Return log f of rows, responsibilities, and expected counts of the edges of all trees.

    Messages go up each tree, from leaves to the root, and down again: `inner` is what a column and all below it say of
    its states, `up` what that says of its parent's, and `down` what the rest of the tree says of its own.
    """
    n, N, K = index.shape
    R = len(weights)
    log_f, shares, counts = np.empty(n), np.empty((n, R)), np.zeros_like(tables)
    inner, up, down = np.empty((R, N, K)), np.empty((R, N, K)), np.empty((N, K))
    like = np.empty(R)
    for i in range(n):
        for r in range(R):
            for m in range(N):
                for a in range(count[i, m]):
                    inner[r, m, a] = value[i, m, a]
            for at in range(N - 1, 0, -1):
                m = order[r, at]
                p = parents[r, m]
                for a in range(count[i, p]):
                    s = 0.0
                    for b in range(count[i, m]):
                        s += tables[r, m, index[i, p, a], index[i, m, b]] * inner[r, m, b]
                    up[r, m, a] = s
                    inner[r, p, a] *= s
            root = order[r, 0]
            s = 0.0
            for a in range(count[i, root]):
                s += tables[r, root, 0, index[i, root, a]] * inner[r, root, a]
            like[r] = s
        f = 0.0
        for r in range(R):
            f += weights[r] * like[r]
        log_f[i] = np.log(f)
        for r in range(R):
            shares[i, r] = weights[r] * like[r] / f
        if not learn:
            continue
        for r in range(R):
            if shares[i, r] < 1e-12:
                continue
            scale = shares[i, r] / like[r]
            root = order[r, 0]
            for a in range(count[i, root]):
                down[root, a] = tables[r, root, 0, index[i, root, a]]
                counts[r, root, 0, index[i, root, a]] += scale * down[root, a] * inner[r, root, a]
            for at in range(1, N):
                m = order[r, at]
                p = parents[r, m]
                for b in range(count[i, m]):
                    down[m, b] = 0.0
                for a in range(count[i, p]):
                    if up[r, m, a] <= 0.0:
                        continue
                    g = down[p, a] * inner[r, p, a] / up[r, m, a]
                    la = index[i, p, a]
                    for b in range(count[i, m]):
                        lb = index[i, m, b]
                        joint = g * tables[r, m, la, lb]
                        down[m, b] += joint
                        counts[r, m, la, lb] += scale * joint * inner[r, m, b]
    return log_f, shares, counts


# ---- the fit ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AtomTrees:
    """A mixture of trees of atoms.

    Parameters
    ----------
    weights : array of shape (R,)
    parents : array of shape (R, N)
        -1 for the root of each tree.
    tables : array of shape (R, N, L, L)
        ``tables[r, n, a, b]`` is the probability of state b of column n given state a of its parent; ``[r, n, 0]`` the
        law of a root. What exceeds a column's states is not used.
    """

    weights: np.ndarray
    parents: np.ndarray
    tables: np.ndarray

    def log_ratio(self, cells: Cells) -> np.ndarray:
        """Return the log-density of rows beyond that of independent columns; shape (n,)."""
        return self._pass(cells, learn=False)[0]

    def logpdf(self, cells: Cells) -> np.ndarray:
        """Return the log-density of rows; shape (n,)."""
        return np.asarray(self.log_ratio(cells) + cells.log_margins)

    def _pass(self, cells: Cells, *, learn: bool) -> Any:
        order = np.array([top_down(tree) for tree in self.parents])
        return _tree_pass(
            cells.index, cells.value, cells.count, self.parents, order, self.weights, self.tables, learn
        )  # fmt: skip


def top_down(parents: np.ndarray) -> np.ndarray:
    """Return the columns of a tree with each after its parent.

    >>> top_down(np.array([2, 0, -1])).tolist()
    [2, 0, 1]
    """
    order = [int(np.flatnonzero(parents < 0)[0])]
    for n in order:
        order += np.flatnonzero(parents == n).tolist()
    return np.array(order)


@dataclass(frozen=True, eq=False)
class Pairs:
    """What all rows say of pairs of columns, and the prior that follows.

    Parameters
    ----------
    cells : Cells
    masses : sequence of arrays of shape (L_n,)
        Law of each column's atoms where nothing else is known.
    alpha, gamma : float
        Rows of independent columns, and of the whole table, in each component.
    tables : mapping of (j, k), j < k, to arrays of shape (L_j, L_k)
        Laws of pairs of states in the whole table.
    gains : array of shape (P,)
        Log-likelihood of all rows that each pair gains over independence.
    """

    cells: Cells
    masses: Sequence[np.ndarray]
    alpha: float
    gamma: float
    tables: dict[tuple[int, int], np.ndarray]
    gains: np.ndarray

    @classmethod
    def of(cls, cells: Cells, masses: Sequence[np.ndarray], alpha: float, gamma: float) -> Pairs:
        """Find the tables of all pairs by EM."""
        pairs = list(combinations(range(len(masses)), 2))
        empty = cls(cells, masses, alpha, 0.0, {(j, k): np.outer(masses[j], masses[k]) for j, k in pairs}, np.zeros(0))
        found = [empty.fit(j, k, np.ones(len(cells)), POOLED_STEPS) for j, k in pairs]
        gains = np.array([gain for _, gain in found])
        return cls(cells, masses, alpha, gamma, dict(zip(pairs, [T for T, _ in found], strict=True)), gains)

    def fit(self, j: int, k: int, weights: np.ndarray, n_steps: int) -> tuple[np.ndarray, float]:
        """Return the law of the states of two columns in weighted rows, and what it gains over independence."""
        c, T, prior = self.cells, self.tables[j, k], self.prior(j, k)
        for _ in range(n_steps):
            T = prior + _pair_counts(c.index, c.value, c.count, j, k, weights, T)[0]
            T /= T.sum()
        both = _pair_counts(c.index, c.value, c.count, j, k, weights, T)[1]
        own = [_own_likelihood(c.index, c.value, c.count, m, weights, T.sum(axis=a)) for m, a in ((j, 1), (k, 0))]
        return T, both - sum(own)

    def prior(self, j: int, k: int) -> np.ndarray:
        """Return the rows of the prior at the states of a pair, j < k."""
        return self.gamma * self.tables[j, k] + self.alpha * np.outer(self.masses[j], self.masses[k])

    def trees(self, shares: np.ndarray) -> AtomTrees:
        """Return the best tree of each component, by the gains of pairs in rows shared out; shape (n, R)."""
        pairs = np.array(list(self.tables))
        R, N = shares.shape[1], len(self.masses)
        if R == 1:
            fits = [[(T, g) for T, g in zip(self.tables.values(), self.gains, strict=True)]]
        else:
            fits = [[self.fit(j, k, w, PAIR_STEPS) for j, k in self.tables] for w in shares.T.copy()]
        pooled = self.gamma / len(self.cells) * self.gains
        gains = np.maximum([[gain for _, gain in fit] + pooled for fit in fits], 0.0)
        parents = best_trees(N, pairs, gains.T)
        counts = self._empty(R)
        for r, fit in enumerate(fits):
            at = dict(zip(self.tables, [T for T, _ in fit], strict=True))
            for n, p in enumerate(parents[r]):
                if p >= 0:
                    T = at[min(n, p), max(n, p)]
                    counts[r, n, : len(self.masses[p]), : len(self.masses[n])] = T if p < n else T.T
                else:
                    counts[r, n, 0, : len(self.masses[n])] = self.masses[n]
        return AtomTrees(shares.mean(axis=0), parents, _normalised(counts))

    def step(self, model: AtomTrees) -> tuple[float, AtomTrees, np.ndarray]:
        """Return the mean log-ratio of rows, the model after one EM step, and the shares of rows."""
        log_f, shares, counts = model._pass(self.cells, learn=True)  # noqa: SLF001
        counts += self._prior_counts(model.parents)
        return log_f.mean(), replace(model, weights=shares.mean(axis=0), tables=_normalised(counts)), shares

    def _prior_counts(self, parents: np.ndarray) -> np.ndarray:
        counts = self._empty(len(parents))
        for r, tree in enumerate(parents):
            for n, p in enumerate(tree):
                width = len(self.masses[n])
                if p < 0:
                    counts[r, n, 0, :width] = (self.alpha + self.gamma) * self.masses[n]
                else:
                    prior = self.prior(p, n) if p < n else self.prior(n, p).T
                    counts[r, n, : len(prior), :width] = prior
        return counts

    def _empty(self, R: int) -> np.ndarray:
        L = max(len(q) for q in self.masses)
        return np.zeros((R, len(self.masses), L, L))


def _normalised(counts: np.ndarray) -> np.ndarray:
    sums = counts.sum(axis=3, keepdims=True)
    return np.asarray(np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0))


def fit_trees(pairs: Pairs, groups: np.ndarray, tol: float = 1e-4, most_steps: int = MOST_STEPS) -> AtomTrees:
    """Return trees after EM from groups of rows.

    Parameters
    ----------
    pairs : Pairs
    groups : int array of shape (n,)
        The component that each row begins in.
    tol : float
        Stop when a step gains less than this, in nats per row.
    most_steps : int
        Most steps with the last trees.
    """
    shares = np.eye(int(groups.max()) + 1)[groups]
    model = pairs.trees(shares)
    if len(model.weights) > 1:
        for stage in STAGES:
            for _ in range(stage):
                _, model, shares = pairs.step(model)
            model = pairs.trees(shares)
    last = -np.inf
    for _ in range(most_steps):
        score, new, _ = pairs.step(model)
        if score - last < tol:
            break
        model, last = new, score
    return model


# ---- choices ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """What is fitted: atoms of a column, trees, and the number of the prior."""

    n_atoms: int
    n_components: int
    prior: int


class AtomTreeMixture:
    """Trees of atoms with all choices made by held-out rows, as `TreeMixture` makes its own.

    Parameters
    ----------
    n_components : sequence of int
        Numbers of trees that are tried.
    n_models : int
        Starts whose fits are averaged.
    kinds : mapping of column names to str, optional
    random_state : int
    """

    def __init__(
        self,
        n_components: Sequence[int] = NUMBERS,
        n_models: int = N_MODELS,
        kinds: dict[str, str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_models = n_models
        self.kinds = kinds
        self.random_state = random_state

    def fit(self, table: dict[str, np.ndarray]) -> AtomTreeMixture:
        """Choose and fit."""
        rng = np.random.default_rng(self.random_state)
        self.margins_ = Margins(table, self.kinds)
        self._cells = {n: self.margins_.cells(table, n) for n in (OWN, *ATOMS)}
        self._scores = self.margins_.scores(table)
        order = rng.permutation(len(self._scores))[:SEARCH_ROWS]
        parts = np.array_split(order, N_FOLDS if len(order) < SMALL_TABLE else 4)
        folds = [(part, np.setdiff1d(order, part)) for part in parts]
        self._folds = folds if len(order) < SMALL_TABLE else folds[:1]
        self._found: dict[Choice, float] = {}
        self._pairs: dict[tuple[int, int, bytes], Pairs] = {}
        self.choice_ = self._climb()
        self.models_ = self._fitted(self.choice_)
        return self

    def logpdf(self, table: dict[str, np.ndarray]) -> np.ndarray:
        """Return the log-density of rows; shape (n,)."""
        cells = self.margins_.cells(table, self.choice_.n_atoms)
        logs = [model.logpdf(cells) for model in self.models_]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))

    def _climb(self) -> Choice:
        """Go uphill with splines, and then with the atoms of dictionaries if these score higher."""
        most = max(len(self._scores) // ROWS_PER_TREE, 1)
        numbers = [number for number in self.n_components if number <= most]
        ladders: Any = {"n_components": numbers, "prior": range(len(PRIORS)), "n_atoms": ATOMS}
        first = Choice(FIRST_ATOMS, numbers[nearest(numbers, FIRST_NUMBER)], FIRST_PRIOR)
        best = self._uphill(first, ladders)
        other = replace(best, n_atoms=OWN)
        if self._held_out(other) <= self._held_out(best):
            return best
        return self._uphill(other, {name: ladders[name] for name in ("n_components", "prior")})

    def _uphill(self, choice: Choice, ladders: Any) -> Choice:
        tried: set[Choice] = set()
        while choice not in tried:
            tried.add(choice)
            for name, ladder in ladders.items():
                at = climb(ladder, ladder.index(getattr(choice, name)), partial(self._varied, choice, name), LEAST_GAIN)
                choice = replace(choice, **{name: ladder[at]})
        return choice

    def _varied(self, choice: Choice, name: str, rung: int) -> float:
        return self._held_out(replace(choice, **{name: rung}))

    def _held_out(self, choice: Choice) -> float:
        """Return the mean log-ratio of held-out rows after short runs on the others."""
        if choice not in self._found:
            logs = []
            for fold, (held, rest) in enumerate(self._folds):
                groups = self._groups(choice, rest, self.random_state + fold)
                model = fit_trees(self._pairs_of(choice, rest), groups, SEARCH_TOL, SEARCH_STEPS)
                logs.append(model.log_ratio(self._cells[choice.n_atoms].take(held)))
            self._found[choice] = float(np.concatenate(logs).mean())
        return self._found[choice]

    def _fitted(self, choice: Choice) -> list[AtomTrees]:
        rows = np.arange(len(self._scores))
        pairs = self._pairs_of(choice, rows)
        n_models = self.n_models if choice.n_components > 1 else 1
        return [fit_trees(pairs, self._groups(choice, rows, self.random_state + m)) for m in range(n_models)]

    def _pairs_of(self, choice: Choice, rows: np.ndarray) -> Pairs:
        key = choice.n_atoms, choice.prior, rows.tobytes()
        if key not in self._pairs:
            cells, masses = self._cells[choice.n_atoms].take(rows), self.margins_.masses(choice.n_atoms)
            self._pairs[key] = Pairs.of(cells, masses, *PRIORS[choice.prior])
        return self._pairs[key]

    def _groups(self, choice: Choice, rows: np.ndarray, seed: int) -> np.ndarray:
        return KMeans(choice.n_components, n_init=1, random_state=seed).fit_predict(self._scores[rows]).astype(int)
