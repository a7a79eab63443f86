"""
A dictionary written by hand
============================

The conditionals of each column are mixtures of atoms from a dictionary. Dictionaries are chosen from the rows by
default. Who knows more about a column can write its dictionary down, as the paper does.
"""

# %%
# A column with two sharp edges
# -----------------------------
# Arrivals at a counter that opens at 9 and closes at 17. Some people come by train, shortly after each full hour.
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, Dictionary
from jointwise.families import Gamma
from jointwise.plots import plot_marginal

rng = np.random.default_rng(0)


def arrivals(n):
    """Return a table of arrivals, two in five by train."""
    by_train = rng.random(n) < 0.4
    arrival = np.where(by_train, rng.integers(9, 17, n) + rng.gamma(2, 0.06, n), rng.uniform(9, 17, n))
    return {"arrival": arrival, "by": np.where(by_train, "train", "foot")}


table, fresh = arrivals(1500), arrivals(1500)

# %%
# Recipes
# -------
# Dictionaries add up. Uniform atoms have the sharp edges; narrow gamma atoms start at each full hour.
hours = np.arange(9, 17)
by_hand = Dictionary.uniforms([9, 13, 17]) + Dictionary((Gamma(shape=2.0, scale=0.06, origin=hours),))
print(by_hand)

# %%
# One fit with the dictionary, one without. Both have two components.
chosen = JUPAD(2, random_state=0).fit(table).density_
written = JUPAD(2, dictionaries={"arrival": by_hand}, learn_dictionary=False, random_state=0).fit(table).density_

# %%
# Fresh rows decide which is better. Knowledge of the opening hours and of the trains pays.
for name, density in [("chosen", chosen), ("written", written)]:
    print(f"{name:8s} mean log-density of fresh rows {density.logpdf(fresh).mean():.3f}")

# %%
# The model in blue over its atoms, the rows in grey. Bars are wider than the peaks; fresh rows are the better judge.
figure, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained", sharex=True)
for ax, density, title in [(axes[0], chosen, "dictionary chosen"), (axes[1], written, "dictionary written by hand")]:
    plot_marginal(density, "arrival", data=table, ax=ax)
    ax.set_title(title, loc="right")
plt.show()
