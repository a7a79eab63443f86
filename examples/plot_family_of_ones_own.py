"""
A family of one's own
=====================

An atom may have any shape. A family is a small class that gives the formulas of its standard form; everything else,
from fitting to exact conditionals, follows.
"""

# %%
# The hyperbolic secant
# ---------------------
# Its density is sech(πz/2)/2: a bell with tails between those of a Gaussian and of a Laplacian. Location and scale come
# from the base class, and so does the accuracy of the upper tail, by symmetry.
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, Dictionary
from jointwise.families.location_scale import LocationScale
from jointwise.plots import plot_marginal


@dataclass(frozen=True, eq=False)
class HyperbolicSecant(LocationScale):
    """Atoms with the density sech(πz/2) / 2, z = (x - loc) / scale."""

    name: ClassVar[str] = "hyperbolic_secant"
    loc: np.ndarray
    scale: np.ndarray

    def _standard_logpdf(self, z):
        return -np.logaddexp(0.5 * np.pi * z, -0.5 * np.pi * z)

    def _standard_cdf(self, z):
        return 2 / np.pi * np.arctan(np.exp(0.5 * np.pi * z))

    def _standard_ppf(self, q):
        return 2 / np.pi * np.log(np.tan(0.5 * np.pi * q))

    def _standard_sample(self, atoms, rng):
        return self._standard_ppf(rng.uniform(size=len(atoms)))

    def _standard_var(self):
        return np.ones(self.n_atoms)


# %%
# A check before use: the density sums to one, and its sums are the cdf.
atom = HyperbolicSecant(loc=[1.0], scale=[0.5])
x = np.linspace(-9, 11, 20_001)
mass = np.cumsum(atom.pdf(x)[:, 0]) * (x[1] - x[0])
print(f"total {mass[-1]:.6f}, largest difference from the cdf {np.abs(mass - atom.cdf(x)[:, 0]).max():.1e}")

# %%
# Two kinds of days
# -----------------
# Returns of a quiet and of a nervous market. Two atoms, one narrow and one wide, are the whole dictionary.
rng = np.random.default_rng(0)
n = 2000
nervous = rng.random(n) < 0.3
spread = np.where(nervous, 2.0, 0.6)
table = {
    "market": np.where(nervous, "nervous", "quiet"),
    "first": HyperbolicSecant(np.zeros(1), np.ones(1)).sample(np.zeros(n, int), rng) * spread,
    "second": HyperbolicSecant(np.zeros(1), np.ones(1)).sample(np.zeros(n, int), rng) * spread,
}
atoms = Dictionary((HyperbolicSecant(loc=[0.0, 0.0], scale=[0.6, 2.0]),))
model = JUPAD(2, dictionaries={"first": atoms, "second": atoms}, learn_dictionary=False, random_state=0).fit(table)
density = model.density_
print(density.ask("P(market = nervous | first > 3)"))
print(density.ask("sd(second | first > 3)"))

# %%
# The sum of both atoms follows the sharp peak and the long tails.
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plot_marginal(density, "first", data=table, ax=ax)
plt.show()

# %%
# To keep such a model in a file, the reader must know the family too: ``families.FAMILIES["hyperbolic_secant"] =
# HyperbolicSecant`` before ``jointwise.load``.
