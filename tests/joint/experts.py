"""An expert of a kind of its own, whose answers are known: a mixture of products that shows one component only."""

from dataclasses import dataclass

import numpy as np

from jointwise.joint import Expert, JointDensity, ProductMixture, WeightedSum


@dataclass(frozen=True, eq=False)
class Opaque(Expert):
    """A mixture of products as one component, given which the variables depend on each other. It cannot be merged."""

    KIND = "opaque"

    inside: ProductMixture

    @property
    def weights(self):
        return np.ones(1)

    @property
    def n_variables(self):
        return self.inside.n_variables

    def component_logpdf(self, X):
        return self.inside.logpdf(X)[:, None]

    def cdf(self, X):
        return self.inside.cdf(X)

    def pdf_table(self, points):
        return self.inside.pdf_table(points)

    def factor(self, n):
        margin = self.inside.margin(n)
        return margin.dictionary, margin.weights[:, None]

    def conditionals(self, n, X):
        return self.inside.conditionals(n, X)

    def log_probability(self, event):
        return self.inside.log_probability(event)

    def crosstab(self, regions):
        return self.inside.crosstab(regions)

    def marginal(self, keep):
        return Opaque(self.inside.marginal(keep))

    def condition(self, event):
        return Opaque(self.inside.condition(event))

    def covariance(self):
        return self.inside.covariance()

    def sample(self, n, rng):
        return self.inside.sample(n, rng)

    def complete(self, X, rng):
        return self.inside.complete(X, rng)

    def to_dict(self):
        return {"kind": self.KIND, "inside": self.inside.to_dict()}

    @classmethod
    def from_dict(cls, data):
        return cls(ProductMixture.from_dict(data["inside"]))


def taken_apart(density):
    """The same density as a sum: the first component hidden, then all others as a mixture of products."""
    mixture = density.mixture
    first, rest = [0], list(range(1, mixture.n_components))
    products = [
        ProductMixture(
            mixture.weights[own] / mixture.weights[own].sum(),
            [b[:, own] for b in mixture.coefficients],
            mixture.dictionaries,
        )
        for own in (first, rest)
    ]
    shares = [mixture.weights[own].sum() for own in (first, rest)]
    return JointDensity(density.schema, WeightedSum((Opaque(products[0]), products[1]), shares), density.verdict)
