"""Random small densities of every kind, and the plain-loop twin that answers the same questions from scipy.stats."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from jointwise.dictionary import Dictionary
from jointwise.families import (
    Category,
    Exponential,
    Gaussian,
    Laplace,
    Lattice,
    PointMass,
    StudentT,
    Uniform,
)
from jointwise.joint import JointDensity, ProductMixture
from jointwise.tables.variables import Schema, Variable

KINDS = ("smooth", "spiky", "counts", "lattice", "inflated", "label", "grade")
LABELS = ("ash", "birch", "cedar", "dogwood")


def build(variables, dictionaries, weights, coefficients, container="numpy"):
    return JointDensity(Schema(tuple(variables), container), ProductMixture(weights, coefficients, dictionaries))


def single(variable, dictionary, coefficients=None, container="numpy"):
    """One variable, one component."""
    n = dictionary.n_atoms
    column = np.full(n, 1 / n) if coefficients is None else np.asarray(coefficients, dtype=float)
    return build([variable], [dictionary], [1.0], [column[:, None]], container)


# ---- random densities ------------------------------------------------------------------------------------


def random_simplex(rng, size, columns=None, power=1):
    """Columns on the simplex with some exact zeros, the less even the higher ``power``."""
    shape = (size,) if columns is None else (size, columns)
    raw = rng.exponential(size=shape) ** power * (rng.random(shape) < 0.75)
    raw[0] += (raw.sum(axis=0) == 0) * 1.0
    return raw / raw.sum(axis=0)


def random_continuous(rng):
    """One to three batches of continuous atoms."""
    makers = (
        lambda: Gaussian(rng.normal(0, 4, 2), rng.uniform(0.3, 2, 2)),
        lambda: Laplace(rng.normal(0, 4, 2), rng.uniform(0.3, 2, 2)),
        lambda: Uniform(*np.sort(rng.normal(0, 4, 2))),
        lambda: StudentT(rng.uniform(4.5, 8, 1), rng.normal(0, 4, 1), rng.uniform(0.3, 2, 1)),
        lambda: Exponential(rng.normal(0, 2, 1), rng.uniform(0.3, 2, 1), rng.choice([-1, 1], 1)),
    )
    chosen = rng.choice(len(makers), size=rng.integers(1, 4), replace=False)
    return tuple(makers[i]() for i in chosen)


def random_variable(rng, name, kind):
    if kind == "smooth":
        return Variable(name, "continuous"), Dictionary(random_continuous(rng))
    if kind == "spiky":
        spikes = np.unique(rng.choice([-1.0, 0.0, 0.5], size=2))
        variable = Variable(name, "continuous", spikes=tuple(spikes))
        return variable, Dictionary((*random_continuous(rng), PointMass(spikes)))
    if kind == "counts":
        values = np.sort(rng.choice(np.arange(-3, 7), size=rng.integers(1, 5), replace=False))
        return Variable(name, "integer", dtype="int64"), Dictionary.points(values)
    if kind in {"lattice", "inflated"}:
        lattice = Dictionary(random_continuous(rng)).on_lattice()
        dictionary = lattice + Dictionary.points([0.0]) if kind == "inflated" else lattice
        return Variable(name, "integer", dtype="int64"), dictionary
    size = int(rng.integers(2, 5))
    variable = Variable(name, "categorical", categories=LABELS[:size], ordered=kind == "grade", dtype="string")
    return variable, Dictionary.categories(size)


def random_density(rng, kinds, n_components, container="numpy"):
    named = [random_variable(rng, f"v{n}_{kind}", kind) for n, kind in enumerate(kinds)]
    # uneven columns, so that components differ and variables tell of each other
    coefficients = [random_simplex(rng, d.n_atoms, n_components, power=3) for _, d in named]
    weights = random_simplex(rng, n_components)
    return build([v for v, _ in named], [d for _, d in named], weights, coefficients, container)


@dataclass(frozen=True)
class Case:
    """A random density and the generator that goes on from it."""

    density: JointDensity
    rng: np.random.Generator


@st.composite
def cases(draw, min_variables=1, max_variables=4, kinds=KINDS):
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=min_variables, max_size=max_variables))
    n_components = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Case(random_density(rng, chosen, n_components), rng)


def random_rows(rng, density, n, missing=0.2):
    """Encoded rows: samples, some cells off the support or missing."""
    rows = density.mixture.sample(n, rng)
    shifted = rng.random(rows.shape) < 0.15
    rows = np.where(shifted, rows + rng.choice([-40.0, -1.0, 0.25, 1.0, 1e6], rows.shape), rows)
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def random_region(rng, density, name, shapes=("value", "interval", "set")):
    """What a user may say of one variable, mostly of positive probability."""
    variable = density.schema[name]
    drawn = density.marginal(name).mixture.sample(3, rng)[:, 0]
    values = [variable.decode_value(x) for x in drawn]
    spiky = density.mixture.dictionaries[density.schema.index(name)].spikes
    if variable.kind == "continuous" and len(spiky):
        values[0] = float(rng.choice(spiky))
    shape = rng.choice(list(shapes))
    if shape == "set":
        return set(values)
    if shape == "value" or (variable.categories is not None and not variable.ordered):
        return values[0] if shape == "value" else set(values[:2])
    low, high = sorted(drawn[:2]) if variable.categories is not None else np.sort([values[0], drawn[1]])
    ends = [variable.decode_value(low), variable.decode_value(high)]
    for end in rng.permutation(2)[: rng.integers(0, 2)]:
        ends[end] = None
    return tuple(ends)


def random_event(rng, density, names, **options):
    return {name: random_region(rng, density, name, **options) for name in names}


# ---- the plain-loop twin ---------------------------------------------------------------------------------


class PlainAtom:
    """One atom as scipy.stats has it; a point, a law on the line, or such a law rounded to integers."""

    def __init__(self, family, index):
        self.point = None
        self.lattice = isinstance(family, Lattice)
        base = family.base if self.lattice else family
        self.sign = 1.0
        if isinstance(base, PointMass | Category):
            self.point = float((base.loc if isinstance(base, PointMass) else base.code)[index])
            self.named = isinstance(base, Category)
        elif isinstance(base, Gaussian):
            self.law = stats.norm(base.loc[index], base.scale[index])
        elif isinstance(base, Laplace):
            self.law = stats.laplace(base.loc[index], base.scale[index])
        elif isinstance(base, Uniform):
            self.law = stats.uniform(base.low[index], base.high[index] - base.low[index])
        elif isinstance(base, StudentT):
            self.law = stats.t(base.df[index], base.loc[index], base.scale[index])
        else:
            assert isinstance(base, Exponential)
            self.sign = float(base.direction[index])
            self.law = stats.expon(self.sign * base.origin[index], base.scale[index])

    @property
    def discrete(self):
        return self.point is not None or self.lattice

    def _law_cdf(self, x):
        return self.law.cdf(x) if self.sign > 0 else self.law.sf(-x)

    def density(self, x):
        if self.point is not None:
            return float(x == self.point)
        if self.lattice:
            return self._law_mass(x - 0.5, x + 0.5) if x == math.floor(x) else 0.0
        return float(self.law.pdf(self.sign * x))

    def _law_mass(self, low, high):
        """P(low < Y <= high), from the tail where it is accurate."""
        if self.sign < 0:
            low, high = -high, -low
        if low > self.law.median():
            return float(self.law.sf(low) - self.law.sf(high))
        return float(self.law.cdf(high) - self.law.cdf(low))

    def cdf(self, x):
        if self.point is not None:
            return float(x >= self.point)
        return float(self._law_cdf(math.floor(x) + 0.5 if self.lattice and math.isfinite(x) else x))

    def closed(self, low, high):
        """P(low <= X <= high)."""
        if self.point is not None:
            return float(low <= self.point <= high)
        if not self.lattice:
            return self._law_mass(low, high)
        first = math.ceil(low) - 0.5 if math.isfinite(low) else low
        last = math.floor(high) + 0.5 if math.isfinite(high) else high
        return self._law_mass(first, last) if first < last else 0.0

    def moment(self, power):
        """E[X^power]; of a category NaN."""
        if self.point is not None:
            return math.nan if self.named else self.point**power
        if not self.lattice:
            return self.sign**power * float(self.law.moment(power))
        reach = min(math.ceil(np.abs(self.law.ppf([1e-13, 1 - 1e-13])).max()) + 2, 20_000)
        k = np.arange(-reach, reach + 1)
        return float((k**power * self._masses(k)).sum())

    def _masses(self, k):
        k = self.sign * k
        lower = self.law.cdf(k + 0.5) - self.law.cdf(k - 0.5)
        return np.where(k > self.law.median(), self.law.sf(k - 0.5) - self.law.sf(k + 0.5), lower)


class PlainJoint:
    """The joint law by loops over components, variables and atoms."""

    def __init__(self, density):
        mixture = density.mixture
        self.density = density
        self.schema = density.schema
        self.weights = mixture.weights.tolist()
        self.coefficients = [b.tolist() for b in mixture.coefficients]
        self.atoms = [
            [PlainAtom(f, i) for f in dictionary.families for i in range(f.n_atoms)]
            for dictionary in mixture.dictionaries
        ]

    @property
    def n_variables(self):
        return len(self.atoms)

    def factor(self, n, r, value_of):
        """Sum over atoms of B[l, r] times what ``value_of`` says of the atom."""
        total = 0.0
        for l, atom in enumerate(self.atoms[n]):
            if self.coefficients[n][l][r] > 0:
                total += self.coefficients[n][l][r] * value_of(atom)
        return total

    def mixed(self, functions):
        """Sum over components of the product of factors; None stands for a factor one."""
        total = 0.0
        for r, weight in enumerate(self.weights):
            product = weight
            for n, value_of in enumerate(functions):
                if value_of is not None:
                    product *= self.factor(n, r, value_of)
            total += product
        return total

    def density_of(self, n, x):
        """Density of an atom with respect to the base measure: at a spike only point masses count."""
        spiked = any(atom.point == x for atom in self.atoms[n] if atom.point is not None)
        continuous = any(not atom.discrete for atom in self.atoms[n])

        def value_of(atom):
            return 0.0 if spiked and continuous and not atom.discrete else atom.density(x)

        return None if math.isnan(x) else value_of

    def pdf(self, row):
        return self.mixed([self.density_of(n, x) for n, x in enumerate(row)])

    def cdf(self, row):
        return self.mixed([None if math.isnan(x) else (lambda a, x=x: a.cdf(x)) for x in row])

    def region(self, n, given):
        """P(atom in region) as a function of the atom."""
        encode = self.schema.variables[n].encode_value
        if isinstance(given, tuple):
            low = -math.inf if given[0] is None else encode(given[0])
            high = math.inf if given[1] is None else encode(given[1])
            return lambda a: a.closed(low, high)
        values = {encode(v) for v in (given if isinstance(given, set) else {given})}
        return lambda a: sum(a.density(v) for v in values) if a.discrete else 0.0

    def probability(self, event):
        functions = [None] * self.n_variables
        for name, given in event.items():
            functions[self.schema.index(name)] = self.region(self.schema.index(name), given)
        return self.mixed(functions)

    def posterior(self, row):
        """P(component | row), None where the row has no density."""
        joint = []
        for r, weight in enumerate(self.weights):
            product = weight
            for n, x in enumerate(row):
                if not math.isnan(x):
                    product *= self.factor(n, r, self.density_of(n, x))
            joint.append(product)
        total = sum(joint)
        return [j / total for j in joint] if total > 0 else None

    def moment(self, n, power, r):
        return self.factor(n, r, lambda atom: atom.moment(power))

    def mean(self, n):
        return sum(w * self.moment(n, 1, r) for r, w in enumerate(self.weights) if w > 0)

    def var(self, n):
        return sum(w * self.moment(n, 2, r) for r, w in enumerate(self.weights) if w > 0) - self.mean(n) ** 2

    def cov(self, j, k):
        both = sum(w * self.moment(j, 1, r) * self.moment(k, 1, r) for r, w in enumerate(self.weights) if w > 0)
        return both - self.mean(j) * self.mean(k)

    def support(self, n):
        """Values of a discrete variable that hold all but 1e-9 of its mass."""
        values = {a.point for a in self.atoms[n] if a.point is not None}
        for atom in self.atoms[n]:
            if atom.lattice:
                ends = sorted(atom.sign * atom.law.ppf([1e-10, 1 - 1e-10]))
                values |= set(map(float, range(math.floor(max(ends[0], -3000)), math.ceil(min(ends[1], 3000)) + 1)))
        return sorted(values)
