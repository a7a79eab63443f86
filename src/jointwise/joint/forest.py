r"""A mixture whose components are trees over the states of the columns.

.. math:: f(x) = \sum_r \lambda_r \sum_s \prod_n p_r(s_n \mid s_{parent_r(n)}) \, d_{n, s_n}(x_n)

Each column n has states; state s emits the atom :math:`d_{n,s}` of the column's dictionary. Each component has a tree
of its own, which says on which other column the states of a column depend. Atoms may overlap; answers are faster where
each value belongs to one state.

All answers are finite sums, exact up to rounding: messages along the edges add up all combinations of states. Given an
event, each component stays a tree. An interval or a set reweighs the states of its variable and truncates their atoms.
A value takes its variable out, and so does a marginal: the node goes, or stays as a hidden one if the others depend on
each other through it. What is left of one or two variables, or without any edge, is a mixture of products.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from jointwise._checks import reading
from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, ImpossibleEventError, InputError
from jointwise.joint.atom_conditionals import MixedAtoms
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.crosstab import atom_masses, partition_atom_masses
from jointwise.joint.events import Region
from jointwise.joint.expert import BLOCK, Expert, in_blocks
from jointwise.joint.forest_events import Restriction, conditioned, log_likelihoods
from jointwise.joint.forest_messages import Evidence, Messages, log_sum, settled_log_likelihood
from jointwise.joint.forest_moments import products
from jointwise.joint.forest_reduce import marginal
from jointwise.joint.forest_sampling import draw_states, draw_states_given
from jointwise.joint.forest_tables import mixed_table, pair_table
from jointwise.joint.forest_tree import ROOT, Tree
from jointwise.joint.product import ProductMixture, draw_positions
from jointwise.joint.simplex import log, simplex

# Most pairs of states of two variables that become a mixture of products.
MOST_PAIRS = 1 << 20
# Most likelihoods of states held at once, of all nodes in a block of rows (16 MB, and as much for each temporary).
MOST_LIKELIHOODS = 1 << 21


@dataclass(frozen=True, eq=False, repr=False)
class ForestMixture(Expert):
    """Weights, dictionaries and trees of a mixture of trees.

    Parameters
    ----------
    weights : array of shape (F,)
        Mixing weights, on the simplex.
    dictionaries : sequence of N Dictionary
        The atoms of each variable, one for each of its states.
    trees : sequence of F Tree
        Each has every variable once.

    Examples
    --------
    >>> noisy = [[0.9, 0.1], [0.2, 0.8]]
    >>> chain = Tree([0, 1, 2], [-1, 0, 1], ([[0.5, 0.5]], noisy, noisy))
    >>> f = ForestMixture([1.0], [Dictionary.categories(2)] * 3, [chain])
    >>> np.exp(f.logpdf(np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]]))).round(3)
    array([0.405, 0.415])
    """

    KIND: ClassVar[str] = "forest"

    weights: FloatArray
    dictionaries: tuple[Dictionary, ...]
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        weights = simplex(self.weights, "weights", 1)
        dictionaries, trees = tuple(self.dictionaries), tuple(self.trees)
        if not dictionaries or not all(isinstance(d, Dictionary) for d in dictionaries):
            raise InputError("A mixture of trees needs a Dictionary for each of one or more variables.")
        if len(trees) != len(weights) or not all(isinstance(tree, Tree) for tree in trees):
            raise InputError(f"A mixture of trees needs a Tree for each of the {len(weights)} weights.")
        for r, tree in enumerate(trees):
            if tree.n_variables != len(dictionaries):
                raise InputError(f"trees[{r}] has {tree.n_variables} variables; there are {len(dictionaries)}.")
            for n, (node, d) in enumerate(zip(tree.nodes, dictionaries, strict=True)):
                if tree.states[node] != d.n_atoms:
                    raise InputError(
                        f"trees[{r}] has {tree.states[node]} states for variable {n}, whose dictionary has {d.n_atoms} "
                        "atoms; each state needs one."
                    )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "dictionaries", dictionaries)
        object.__setattr__(self, "trees", trees)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return len(self.dictionaries)

    @cached_property
    def has_independent_components(self) -> bool:
        """Whether the variables are independent given the component: only if no tree has an edge."""
        return all((tree.parents == ROOT).all() for tree in self.trees)

    # ---- density -----------------------------------------------------------------------------------------

    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log lam[r] + log f(x | r) of encoded rows (n, N), missing cells integrated out; shape (n, F)."""
        return in_blocks(lambda rows: self._component_logs(self._evidence(rows), len(rows)), X, self._block)

    @cached_property
    def _block(self) -> int:
        """Rows evaluated at once."""
        return max(1, min(BLOCK, MOST_LIKELIHOODS // max(sum(tree.states) for tree in self.trees)))

    def _evidence(self, X: FloatArray) -> list[Evidence]:
        return [Evidence.of(d.logpdf, X[:, n]) for n, d in enumerate(self.dictionaries)]

    def _component_logs(self, evidence: list[Evidence], n: int) -> FloatArray:
        """Log-likelihood of evidence of n rows with each component, its weight included; shape (n, F)."""
        out = np.tile(log(self.weights), (n, 1))
        out += settled_log_likelihood(evidence)[:, None]
        for r, tree in enumerate(self.trees):
            out[:, r] += Messages(tree, evidence, n).gather()
        return out

    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,)."""
        return np.minimum(np.exp(in_blocks(self._log_cdf, X, self._block)), 1.0)

    def _log_cdf(self, X: FloatArray) -> FloatArray:
        evidence = [Evidence.of(partial(_log_cdf, d), X[:, n]) for n, d in enumerate(self.dictionaries)]
        return log_sum(self._component_logs(evidence, len(X)))

    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        """Density at every combination of points, one array of points per variable; of one or two variables only."""
        factors = {n: self.dictionaries[n].pdf(each) for n, each in enumerate(points)}
        return mixed_table(self.trees, self.weights, factors)

    # ---- one variable ------------------------------------------------------------------------------------

    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: its atoms, and the probabilities of its states in each tree."""
        return self.dictionaries[n], np.column_stack([tree.marginals[tree.nodes[n]] for tree in self.trees])

    def dictionary(self, n: int) -> Dictionary:
        """Atoms of variable ``n``."""
        return self.dictionaries[n]

    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored."""
        others = X.copy()
        others[:, n] = np.nan
        return self._law(n, in_blocks(lambda rows: self._state_logs(n, rows), others, self._block))

    def _law(self, n: int, logs: FloatArray) -> Conditionals:
        """Law of variable ``n`` in rows, from the log-density of their cells jointly with each of its states."""
        log_evidence = log_sum(logs)
        logs[np.isneginf(log_evidence)] = log(self.margin(n).weights)
        return MixedAtoms(self.dictionaries[n], np.asarray(softmax(logs, axis=1)), log_evidence)

    def _state_logs(self, n: int, X: FloatArray) -> FloatArray:
        """Log-density of each row's cells jointly with each state of variable ``n``, whose cells are missing."""
        evidence = self._evidence(X)
        out = np.full((len(X), self.dictionaries[n].n_atoms), -np.inf)
        for log_weight, tree in zip(log(self.weights), self.trees, strict=True):
            np.logaddexp(out, Messages(tree, evidence, len(X)).gather_at(tree.nodes[n]) + log_weight, out=out)
        return out + settled_log_likelihood(evidence)[:, None]

    def gaps(self, X: FloatArray) -> Iterator[tuple[int, IntArray, Conditionals]]:
        """Yield each variable with missing cells, the rows that miss it, and its law in those rows.

        The messages of a row serve all its gaps.
        """
        missing = np.isnan(X)
        incomplete = np.flatnonzero(missing.any(axis=1))
        parts = [
            self._gap_logs(X[rows]) for rows in np.split(incomplete, range(self._block, len(incomplete), self._block))
        ]
        for n in np.flatnonzero(missing.any(axis=0)).tolist():
            yield n, np.flatnonzero(missing[:, n]), self._law(n, np.concatenate([part[n] for part in parts]))

    def _gap_logs(self, X: FloatArray) -> list[FloatArray]:
        """For each variable, as `_state_logs` of the rows that miss it."""
        evidence, rows = self._evidence(X), [np.flatnonzero(gaps) for gaps in np.isnan(X).T]
        settled = settled_log_likelihood(evidence)
        out = [np.full((len(own), d.n_atoms), -np.inf) for own, d in zip(rows, self.dictionaries, strict=True)]
        for log_weight, tree in zip(log(self.weights), self.trees, strict=True):
            messages = Messages(tree, evidence, len(X))
            total = log_weight + settled + messages.gather(keep=True)
            posteriors = messages.posteriors()
            for n, node in enumerate(tree.nodes):
                posterior = posteriors[node]
                if posterior is not None and len(rows[n]):
                    np.logaddexp(out[n], posterior[rows[n]] + total[rows[n], None], out=out[n])
        return out

    # ---- events ------------------------------------------------------------------------------------------

    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""
        logs = {n: log(atom_masses(self.dictionaries[n], region)) for n, region in event.items()}
        found = [log_likelihoods(tree, {tree.nodes[n]: each for n, each in logs.items()})[0] for tree in self.trees]
        return min(float(log_sum((log(self.weights) + found)[None])[0]), 0.0)

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``.

        An interval does not count the points that are regions of their own.
        """
        return mixed_table(self.trees, self.weights, self._masses(regions))

    def pair_tables(
        self, regions: Mapping[int, Sequence[Region]], pairs: Sequence[tuple[int, int]]
    ) -> list[FloatArray]:
        """`crosstab` of each of many pairs of different variables."""
        masses = self._masses(regions)
        return [mixed_table(self.trees, self.weights, {a: masses[a], b: masses[b]}) for a, b in pairs]

    def _masses(self, regions: Mapping[int, Sequence[Region]]) -> dict[int, FloatArray]:
        """Mass of each region of some variables under each of their atoms; shapes (regions, L_n)."""
        return {n: partition_atom_masses(self.dictionaries[n], each) for n, each in regions.items()}

    def marginal(self, keep: Sequence[int]) -> Expert:
        """Expert of the variables at the positions ``keep``; of products if these are one or two."""
        if len(keep) == 1:
            return ProductMixture(self.weights, (self.factor(keep[0])[1],), (self.dictionaries[keep[0]],))
        dictionaries = tuple(self.dictionaries[n] for n in keep)
        return simplest(self.weights, dictionaries, tuple(marginal(tree, keep) for tree in self.trees))

    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Expert given ``event``; a point takes its variable out, an interval or a set truncates it."""
        return self.given(event)[1]

    def given(self, event: Mapping[int, Region]) -> tuple[float, Expert]:
        """Log-probability of an event without points, and the expert given it."""
        restrictions = {n: Restriction.of(self.dictionaries[n], region) for n, region in event.items()}
        logs, trees = zip(*(conditioned(tree, restrictions) for tree in self.trees), strict=True)
        log_weights = log(self.weights) + logs
        alive = np.isfinite(log_weights)
        if not alive.any():
            raise ImpossibleEventError("The event has probability zero, so there is nothing to condition on.")
        dictionaries = [restrictions[n].dictionary if n in event else d for n, d in enumerate(self.dictionaries)]
        left = tuple(d for d in dictionaries if d is not None)
        chosen = tuple(tree for tree, lives in zip(trees, alive.tolist(), strict=True) if lives)
        expert = simplest(np.asarray(softmax(log_weights[alive])), left, chosen)
        return min(float(log_sum(log_weights[None])[0]), 0.0), expert

    # ---- moments and samples -----------------------------------------------------------------------------

    def covariance(self) -> FloatArray:
        """Cov[X_j, X_k] = sum_r lam[r] E[(X_j - E[X_j]) (X_k - E[X_k]) | r]; shape (N, N)."""
        margins = [self.margin(n) for n in range(self.n_variables)]
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: what has no mean stays NaN
            # states without weight have no say, whatever their mean
            centred = [np.where(m.weights > 0, m.dictionary.mean() - m.mean(), 0.0) for m in margins]
            out = sum(w * products(tree, centred) for w, tree in zip(self.weights, self.trees, strict=True) if w > 0)
        out = np.asarray(out)
        np.fill_diagonal(out, [margin.var() for margin in margins])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""
        rows = np.split(rng.permutation(n), np.cumsum(rng.multinomial(n, self.weights))[:-1])
        states = np.empty((self.n_variables, n), dtype=np.int64)
        for tree, own in zip(self.trees, rows, strict=True):
            drawn = draw_states(tree, len(own), rng)
            for variable, node in enumerate(tree.nodes):
                states[variable, own] = drawn[node]
        return np.column_stack([d.sample(own, rng) for d, own in zip(self.dictionaries, states, strict=True)])

    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N).

        A row's component is drawn from its posterior, then the states of that tree from the root down.
        """
        out = X.copy()
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        for start in range(0, len(incomplete), self._block):
            rows = incomplete[start : start + self._block]
            out[rows] = np.where(np.isnan(X[rows]), self._completed(X[rows], rng), X[rows])
        return out

    def _completed(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        evidence = self._evidence(X)
        logs = self._component_logs(evidence, len(X))
        impossible = np.isneginf(logs.max(axis=1))
        if impossible.any():
            X = X.copy()
            X[impossible] = self.without_impossible_cells(X[impossible])
            evidence = self._evidence(X)
            logs = self._component_logs(evidence, len(X))
        component = draw_positions(np.asarray(softmax(logs, axis=1)), rng)
        states = np.empty((self.n_variables, len(X)), dtype=np.int64)
        for r, tree in enumerate(self.trees):
            own = np.flatnonzero(component == r)
            messages = Messages(tree, [each.take(own) for each in evidence], len(own))
            messages.gather(keep=True)
            drawn = draw_states_given(messages, rng)
            for variable, node in enumerate(tree.nodes):
                states[variable, own] = drawn[node]
        out = X.copy()
        for n, d in enumerate(self.dictionaries):
            gaps = np.isnan(X[:, n])
            out[gaps, n] = d.sample(states[n, gaps], rng)
        return out

    # ---- sums and plain form -----------------------------------------------------------------------------

    @cached_property
    def merge_key(self) -> Hashable:
        """What two mixtures must share to be merged: their dictionaries."""
        return tuple(_fingerprint(d.to_dict()) for d in self.dictionaries)

    @classmethod
    def mix(cls, experts: Sequence[ForestMixture], weights: FloatArray) -> ForestMixture:
        """Weighted sum of mixtures with equal `merge_key`, as one mixture: all their trees."""
        mixing = np.concatenate([w * expert.weights for w, expert in zip(weights, experts, strict=True)])
        return cls(mixing, experts[0].dictionaries, tuple(tree for expert in experts for tree in expert.trees))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {
            "kind": self.KIND,
            "weights": self.weights,
            "dictionaries": [d.to_dict() for d in self.dictionaries],
            "trees": [tree.to_dict() for tree in self.trees],
        }

    @classmethod
    @reading("a mixture of trees as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> ForestMixture:
        """Read what `to_dict` returned."""
        parts = {"kind", "weights", "dictionaries", "trees"}
        if not isinstance(data, Mapping) or set(data) != parts or data["kind"] != cls.KIND:
            raise FileFormatError(f"an expert of kind {cls.KIND} must have the parts {', '.join(sorted(parts))}")
        return cls(
            data["weights"],
            tuple(Dictionary.from_dict(d) for d in data["dictionaries"]),
            tuple(Tree.from_dict(tree) for tree in data["trees"]),
        )


def simplest(weights: FloatArray, dictionaries: tuple[Dictionary, ...], trees: tuple[Tree, ...]) -> Expert:
    r"""Mixture of trees, as one of products if no tree has an edge or there are two variables.

    Two variables are independent given the state of one of them, so the states are the components:

    .. math:: f(x, y) = \sum_s P(s) \, d_s(x) \sum_t P(t \mid s) \, d_t(y)
    """
    mixture = ForestMixture(weights, dictionaries, trees)
    if mixture.has_independent_components:
        coefficients = tuple(mixture.factor(n)[1] for n in range(len(dictionaries)))
        return ProductMixture(weights, coefficients, dictionaries)
    sizes = [d.n_atoms for d in dictionaries]
    if len(sizes) != 2 or sizes[0] * sizes[1] > MOST_PAIRS:
        return mixture
    joint = np.asarray(sum(w * pair_table(tree, 0, 1) for w, tree in zip(weights, trees, strict=True)))
    few = int(sizes[1] < sizes[0])  # the variable with fewer states
    by_state = joint if few == 0 else joint.T
    used = by_state.sum(axis=1) > 0
    probabilities = by_state[used].sum(axis=1)
    coefficients = (np.eye(sizes[few])[:, used], (by_state[used] / probabilities[:, None]).T)
    return ProductMixture(
        probabilities / probabilities.sum(), coefficients if few == 0 else coefficients[::-1], dictionaries
    )


def _log_cdf(dictionary: Dictionary, x: FloatArray) -> FloatArray:
    return log(dictionary.cdf(x))


def _fingerprint(plain: Any) -> Hashable:
    """Return a hashable form of plain values and arrays."""
    if isinstance(plain, Mapping):
        return tuple((key, _fingerprint(value)) for key, value in plain.items())
    if isinstance(plain, list | tuple):
        return tuple(_fingerprint(value) for value in plain)
    return (plain.shape, plain.tobytes()) if isinstance(plain, np.ndarray) else plain
