"""
XOR, and why pairs cannot see it
================================

Three columns, the third the exclusive or of the first two. Each pair of them is independent, so every method that looks
at pairs alone sees noise. Rows show the law at once.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, TreeMixture

a, b = np.random.default_rng(0).integers(2, size=(2, 2000))
table = {"a": a, "b": b, "c": a ^ b}

# %%
# Four models
# -----------
# The first is fitted to counts of pairs. One tree sees rows, but has room for what pairs say and no more. A mixture of
# two trees and a mixture of four products have room for the law.
models = {
    "pairs, 4 products": JUPAD(4, method="pairs", random_state=0),
    "rows, 1 tree": TreeMixture(1, random_state=0),
    "rows, 2 trees": TreeMixture(2, random_state=0),
    "rows, 4 products": JUPAD(4, random_state=0),
}
densities = {name: model.fit(table).density_ for name, model in models.items()}
for name, density in densities.items():
    information = density.mutual_information(["a", "b"], "c").value
    print(f"{name:18s} I(a, b; c) = {information:.3f} nats of {np.log(2):.3f}")

# %%
# P(c = 1) given both others: the truth is 0, 1, 1, 0. Given one of them it is one half, in the truth and in every
# model.
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained", sharey=True)
for ax, (name, density) in zip(axes, densities.items(), strict=True):
    shares = [[density.condition({"a": x, "b": y}).probability({"c": 1}) for x in (0, 1)] for y in (0, 1)]
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, origin="lower")
    for x, y in np.ndindex(2, 2):
        ax.text(x, y, f"{shares[y][x]:.2f}", ha="center", va="center", color="white" if shares[y][x] > 0.6 else "black")
    ax.set(title=name, xlabel="a", xticks=[0, 1], yticks=[0, 1])
axes[0].set_ylabel("b")
figure.suptitle("P(c = 1 | a, b)")
plt.show()
