"""The arithmetic of a mixture of products, on encoded values and without names.

    f(x) = sum_r lam[r] prod_n sum_l B_n[l, r] d_{n,l}(x_n)

Everything is a finite sum over components and atoms, taken in log space. :class:`ProductMixture` is closed under
``marginal`` and ``condition``; :class:`jointwise.JointDensity` adds names, kinds and data frames.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from jointwise._numerics import log_dot
from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, ImpossibleEventError, InputError
from jointwise.families import Category, PointMass
from jointwise.joint.atom_conditionals import AtomConditionals
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.crosstab import crosstab, partition_masses, region_masses, value_masses
from jointwise.joint.events import Interval, Point, Region, Values
from jointwise.joint.expert import Expert, in_blocks
from jointwise.joint.simplex import log, simplex

# Most numbers in the coefficients of a merged mixture (128 MB); larger sums stay apart.
MOST_MERGED = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class ProductMixture(Expert):
    """Weights, coefficients and dictionaries of a mixture of products.

    Parameters
    ----------
    weights : array of shape (F,)
        Mixing weights ``lam``, on the simplex.
    coefficients : sequence of arrays of shape (L_n, F)
        ``B_n``; column ``r`` mixes the atoms of variable ``n`` given component ``r``.
    dictionaries : sequence of Dictionary
        The atoms of each variable.
    """

    KIND: ClassVar[str] = "product"

    weights: FloatArray
    coefficients: tuple[FloatArray, ...]
    dictionaries: tuple[Dictionary, ...]

    def __post_init__(self) -> None:
        weights = simplex(self.weights, "weights", 1)
        coefficients = tuple(simplex(b, f"coefficients[{n}]", 2) for n, b in enumerate(self.coefficients))
        dictionaries = tuple(self.dictionaries)
        if not dictionaries or len(coefficients) != len(dictionaries):
            raise InputError(
                f"A mixture needs one coefficient matrix per dictionary and at least one of each, got "
                f"{len(coefficients)} and {len(dictionaries)}."
            )
        for n, (b, d) in enumerate(zip(coefficients, dictionaries, strict=True)):
            if b.shape != (d.n_atoms, len(weights)):
                raise InputError(
                    f"coefficients[{n}] must have shape (atoms, components) = ({d.n_atoms}, {len(weights)}), "
                    f"got {b.shape}."
                )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "dictionaries", dictionaries)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return len(self.dictionaries)

    @property
    def has_independent_components(self) -> bool:
        """Whether the variables are independent given the component: they are."""
        return True

    # ---- evaluation --------------------------------------------------------------------------------------

    def log_conditionals(self, n: int, x: FloatArray) -> FloatArray:
        """Log-density of variable ``n`` at ``x`` given each component, a NaN counting as zero; shape (len(x), F)."""
        values, where = np.unique(x, return_inverse=True)  # sorts NaN last; each value is evaluated once
        table = self._log_table(n, values)
        table[np.isnan(values)] = 0.0
        return np.asarray(table[where])

    def _log_table(self, n: int, values: FloatArray) -> FloatArray:
        """Log-density of variable ``n`` at rising values given each component; shape (len(values), F)."""
        dictionary, coefficients = self.dictionaries[n], self.coefficients[n]
        if not dictionary.is_identity:
            return log_dot(dictionary.logpdf(values), coefficients)
        # each value is an atom or impossible: it is looked up
        points, where = np.unique(dictionary.mode(), return_inverse=True)
        position = np.minimum(np.searchsorted(points, values), len(points) - 1)
        if len(points) < len(where):  # atoms at the same point add up
            sums = np.zeros((len(points), coefficients.shape[1]))
            np.add.at(sums, where, coefficients)
            found = sums[position]
        else:
            found = coefficients[np.argsort(where)[position]]
        return log(np.where((points[position] == values)[:, None], found, 0.0))

    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log lam[r] + log f(x | r) for encoded rows ``X`` of shape (n, N); shape (n, F)."""
        out = np.tile(log(self.weights), (len(X), 1))
        for n in range(self.n_variables):
            out += self.log_conditionals(n, X[:, n])
        return out

    def posterior(self, X: FloatArray) -> FloatArray:
        """P(component | observed cells) of each row; shape (n, F).

        A row of density zero says nothing about its component, so its cells without any density are left out.
        """
        return in_blocks(self._posterior, X)

    def _posterior(self, X: FloatArray) -> FloatArray:
        log_joint = self.component_logpdf(X)
        impossible = np.isneginf(log_joint.max(axis=1))
        if impossible.any():
            log_joint[impossible] = self.component_logpdf(self.without_impossible_cells(X[impossible]))
        return np.asarray(softmax(log_joint, axis=1))

    def without_impossible_cells(self, X: FloatArray) -> FloatArray:
        """Empty, from left to right, each cell that would make the density of its row zero; shape (n, N)."""
        X = X.copy()
        total = np.tile(log(self.weights), (len(X), 1))
        for n in range(self.n_variables):
            here = self.log_conditionals(n, X[:, n])
            dead = np.isneginf((total + here).max(axis=1))
            X[dead, n] = np.nan
            total += np.where(dead[:, None], 0.0, here)
        return X

    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,)."""
        return in_blocks(self._cdf, X)

    def _cdf(self, X: FloatArray) -> FloatArray:
        total = np.tile(log(self.weights), (len(X), 1))
        for n in range(self.n_variables):
            values, where = np.unique(X[:, n], return_inverse=True)
            below = self.dictionaries[n].cdf(values) @ self.coefficients[n]
            below[np.isnan(values)] = 1.0
            total += log(below)[where]
        return np.minimum(np.exp(_log_sum_exp(total)), 1.0)

    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        """Density at every combination of points, one array of points per variable; of one or two variables only."""
        with np.errstate(over="ignore"):  # a density may grow beyond the largest number
            factors = [np.exp(self.log_conditionals(n, each)) for n, each in enumerate(points)]
        return crosstab(factors, self.weights)

    # ---- one variable ------------------------------------------------------------------------------------

    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: its atoms, and B_n."""
        return self.dictionaries[n], self.coefficients[n]

    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored."""
        others = X.copy()
        others[:, n] = np.nan
        return ProductConditionals(self, n, *self._posterior_and_evidence(others))

    def gaps(self, X: FloatArray) -> Iterator[tuple[int, IntArray, Conditionals]]:
        """Yield each variable with missing cells, the rows that miss it, and its law in those rows."""
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        # the posterior of a row is that of all its gaps
        posterior, log_evidence = self._posterior_and_evidence(X[incomplete])
        for n in range(self.n_variables):
            here = np.isnan(X[incomplete, n])
            if here.any():
                yield n, incomplete[here], ProductConditionals(self, n, posterior[here], log_evidence[here])

    def _posterior_and_evidence(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(component | observed cells) of each row, and their log-density; the prior where that is -inf."""
        log_joint = in_blocks(self.component_logpdf, X)
        rows, best = np.arange(len(X)), log_joint.argmax(axis=1)
        top = log_joint[rows, best]
        impossible = np.isneginf(top)
        log_joint[impossible] = log(self.weights)
        posterior = np.asarray(softmax(log_joint, axis=1))
        # log f(x) = log f(x, r) - log P(r | x) for any r; the most probable one loses no digits
        return posterior, top - np.log(np.where(impossible, 1.0, posterior[rows, best]))

    # ---- new mixtures ------------------------------------------------------------------------------------

    def marginal(self, keep: Sequence[int]) -> ProductMixture:
        """Mixture of the variables at the positions ``keep``: the others integrate to one and drop out."""
        return ProductMixture(
            self.weights, tuple(self.coefficients[n] for n in keep), tuple(self.dictionaries[n] for n in keep)
        )

    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""
        log_masses = [log(region_masses(*self.factor(n), region)) for n, region in event.items()]
        total = float(_log_sum_exp(np.sum([log(self.weights), *log_masses], axis=0)[None])[0])
        return min(total, 0.0)

    def condition(self, event: Mapping[int, Region]) -> ProductMixture:
        """Mixture given ``event``.

        A point leaves its variable out, P(x_rest | x_n = v); an interval or a set of values keeps the variable,
        truncated. Components reweigh by the likelihood of the event: lam'[r] ~ lam[r] P(event | r).
        """
        log_weights = log(self.weights)
        coefficients, dictionaries = list(self.coefficients), list(self.dictionaries)
        for n, region in event.items():
            if isinstance(region, Point):
                log_weights = log_weights + self.log_conditionals(n, np.array([region.value]))[0]
            else:
                log_masses, coefficients[n], dictionaries[n] = self.restrict(n, region)
                log_weights = log_weights + log_masses
        alive = np.isfinite(log_weights)
        if not alive.any():
            raise ImpossibleEventError("The event has probability zero, so there is nothing to condition on.")
        keep = [n for n in range(self.n_variables) if not isinstance(event.get(n), Point)]
        return ProductMixture(
            softmax(log_weights[alive]),
            tuple(coefficients[n][:, alive] for n in keep),
            tuple(dictionaries[n] for n in keep),
        )

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``.

        An interval does not count the points that are regions of their own.
        """
        return crosstab([partition_masses(*self.factor(n), each) for n, each in regions.items()], self.weights)

    def pair_tables(
        self, regions: Mapping[int, Sequence[Region]], pairs: Sequence[tuple[int, int]]
    ) -> list[FloatArray]:
        """`crosstab` of each of many pairs of different variables."""
        masses = {n: partition_masses(*self.factor(n), each) for n, each in regions.items()}
        return [crosstab([masses[a], masses[b]], self.weights) for a, b in pairs]

    def restrict(self, n: int, region: Interval | Values) -> tuple[FloatArray, FloatArray, Dictionary]:
        """Log-mass of the region under each component, and the coefficients and atoms truncated to it."""
        b, d = self.coefficients[n], self.dictionaries[n]
        if isinstance(region, Interval):
            mass = d.closed_mass(region.low, region.high)
            keep, joint = mass > 0, b * mass[:, None]
        else:
            values = np.array(region.values)
            joint = value_masses(d, values, region.half) @ b
            keep = joint.sum(axis=1) > 0
        if not keep.any():
            return np.full(self.n_components, -np.inf), b, d
        if isinstance(region, Interval):
            restricted = d.take(keep).truncate(region.low, region.high)
        else:
            family = Category if isinstance(d.families[0], Category) else PointMass
            restricted = Dictionary((family(values[keep]),))
        total = joint.sum(axis=0)
        with np.errstate(invalid="ignore"):  # 0 / 0 in components that the region rules out, dropped by the caller
            return log(total), joint[keep] / total, restricted

    # ---- moments -----------------------------------------------------------------------------------------

    def covariance(self) -> FloatArray:
        """Cov[X_j, X_k] = sum_r lam[r] (E[X_j | r] - E[X_j]) (E[X_k | r] - E[X_k]) off the diagonal; shape (N, N)."""
        used = self.weights > 0
        by_component = np.stack([self.component_means(n)[used] for n in range(self.n_variables)])
        margins = [self.margin(n) for n in range(self.n_variables)]
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: what has no mean stays NaN
            centred = by_component - np.array([margin.mean() for margin in margins])[:, None]
            out = np.asarray((centred * self.weights[used]) @ centred.T)
        np.fill_diagonal(out, [margin.var() for margin in margins])
        return out

    # ---- samples -----------------------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""
        counts = rng.multinomial(n, self.weights)
        component = rng.permutation(np.repeat(np.arange(self.n_components), counts))
        out = np.empty((n, self.n_variables))
        for v, (b, d) in enumerate(zip(self.coefficients, self.dictionaries, strict=True)):
            out[:, v] = d.sample(draw_atoms(b, component, rng), rng)
        return out

    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N).

        A row's component is drawn once from its posterior, then each gap from that component: gaps of one row depend
        on each other as the mixture says.
        """
        out = X.copy()
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        if not incomplete.size:
            return out
        component = draw_positions(self.posterior(X[incomplete]), rng)
        for n, (coefficients, dictionary) in enumerate(zip(self.coefficients, self.dictionaries, strict=True)):
            gaps = np.isnan(X[incomplete, n])
            out[incomplete[gaps], n] = dictionary.sample(draw_atoms(coefficients, component[gaps], rng), rng)
        return out

    # ---- sums and plain form --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {
            "kind": self.KIND,
            "weights": self.weights,
            "coefficients": list(self.coefficients),
            "dictionaries": [d.to_dict() for d in self.dictionaries],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProductMixture:
        """Read what `to_dict` returned."""
        parts = {"kind", "weights", "coefficients", "dictionaries"}
        if not isinstance(data, Mapping) or set(data) != parts or data["kind"] != cls.KIND:
            raise FileFormatError(f"an expert of kind {cls.KIND} must have the parts {', '.join(sorted(parts))}")
        dictionaries = tuple(Dictionary.from_dict(d) for d in data["dictionaries"])
        return cls(data["weights"], tuple(data["coefficients"]), dictionaries)

    @property
    def merge_key(self) -> Hashable:
        """Any two mixtures of products of the same variables can be merged."""
        return self.n_variables

    @classmethod
    def mix(cls, experts: Sequence[ProductMixture], weights: FloatArray) -> ProductMixture | None:
        """Weighted sum of mixtures of the same variables, as one mixture: all their components.

        A dictionary that several mixtures share appears once. The result is None if it would be very large.
        """
        if len(experts) == 1:
            return experts[0]
        models = [m.dictionaries for m in experts]
        n_atoms = sum(d.n_atoms for column in zip(*models, strict=True) for d in {id(d): d for d in column}.values())
        if n_atoms * sum(m.n_components for m in experts) > MOST_MERGED:
            return None
        dictionaries, coefficients = stacked(models, [m.coefficients for m in experts])
        mixing = np.concatenate([w * m.weights for w, m in zip(weights, experts, strict=True)])
        return cls(mixing, tuple(coefficients), tuple(dictionaries))


class ProductConditionals(AtomConditionals):
    r"""Law of variable ``n`` in each of some rows: its conditionals, mixed by the posterior of the component.

    .. math:: f(x_n \mid \text{other cells}) = \sum_r P(r \mid \text{other cells}) \sum_l B_n[l, r] \, d_{n,l}(x_n)

    Parameters
    ----------
    mixture : ProductMixture
    n : int
        Position of the variable.
    posterior : array of shape (rows, F)
        P(component | other cells).
    log_evidence : array of shape (rows,)
        Log-density of the other cells.
    """

    def __init__(self, mixture: ProductMixture, n: int, posterior: FloatArray, log_evidence: FloatArray) -> None:
        self.dictionary, self._coefficients = mixture.factor(n)
        self.log_evidence = log_evidence
        self._mixture, self._n, self._posterior = mixture, n, posterior

    @cached_property
    def atom_weights(self) -> FloatArray:
        """Weight of each atom in each row; shape (rows, L)."""
        return np.asarray(self._posterior @ self._coefficients.T)

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (rows, points)."""
        given_component = self.dictionary.pdf(points) @ self._coefficients
        return np.asarray(self._posterior @ given_component.T)

    def mean(self) -> FloatArray:
        """Mean in each row, NaN in all if a component in use has none; shape (rows,)."""
        # a component without weight has no say, whatever its mean
        means = np.where(self._mixture.weights > 0, self._mixture.component_means(self._n), 0.0)
        return np.asarray(self._posterior @ (means if np.isfinite(means).all() else np.full_like(means, np.nan)))


def stacked(
    models: Sequence[Sequence[Dictionary]], coefficients: Sequence[Sequence[FloatArray]]
) -> tuple[list[Dictionary], list[FloatArray]]:
    """Dictionaries and coefficients of several models as those of one, with the components of all.

    Parameters
    ----------
    models : sequence of sequences of Dictionary
        One dictionary per variable for each model; the same one may stand in several.
    coefficients : sequence of sequences of arrays of shape (L_n, F)
        B_n of each model.
    """
    ends = np.cumsum([own[0].shape[1] for own in coefficients])
    out_dictionaries, out_coefficients = [], []
    for n in range(len(models[0])):
        used = [model[n] for model in models]
        distinct = list({id(d): d for d in used}.values())
        starts = dict(zip(map(id, distinct), np.cumsum([0, *(d.n_atoms for d in distinct)]), strict=False))
        block = np.zeros((sum(d.n_atoms for d in distinct), ends[-1]))
        for d, own, end in zip(used, coefficients, ends, strict=True):
            start = starts[id(d)]
            block[start : start + d.n_atoms, end - own[n].shape[1] : end] = own[n]
        block.flags.writeable = False  # so that a mixture needs no copy
        out_dictionaries.append(reduce(add, distinct))
        out_coefficients.append(block)
    return out_dictionaries, out_coefficients


def draw_positions(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """One column per row, drawn with the probabilities of the row, which need not sum to one exactly; shape (n,)."""
    ladder = np.cumsum(probabilities, axis=1)
    return np.asarray(np.sum(ladder / ladder[:, -1:] <= rng.random((len(ladder), 1)), axis=1))


def draw_atoms(coefficients: FloatArray, component: IntArray, rng: np.random.Generator) -> IntArray:
    """One atom per row, from the column of coefficients of the row's component; shape (n,)."""
    uniform = rng.random(len(component))
    atoms = np.empty(len(component), dtype=np.int64)
    cumulative = np.cumsum(coefficients, axis=0)
    for r in range(coefficients.shape[1]):
        here = component == r
        ladder = cumulative[:, r] / cumulative[-1, r]  # ends at one exactly, so no draw falls off the end
        atoms[here] = np.searchsorted(ladder, uniform[here], side="right")
    return atoms


def _log_sum_exp(values: FloatArray) -> FloatArray:
    return np.asarray(logsumexp(values, axis=1))
