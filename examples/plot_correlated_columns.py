"""
Correlated columns: products, blocks, trees and their stack
===========================================================

No single model suits every table. A mixture of products needs many components along a diagonal; one Gaussian covers
it. Where shapes are odd, it is the other way round. A stack weighs the experts by held-out rows, so that the better one
counts.
"""

# %%
# Three tables
# ------------
# A narrow diagonal, two boxes with sharp edges, and a chain in which each column depends on the one before it.
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, GaussianBlocks, JointEstimator, TreeMixture
from jointwise.plots import plot_pair


def diagonal(n, rng):
    """Two columns with a correlation of 0.97, and a third that depends on both."""
    a, b = rng.multivariate_normal([0, 0], [[1, 0.97], [0.97, 1]], n).T
    return {"a": a, "b": b, "c": a - b + rng.normal(0, 0.2, n)}


def boxes(n, rng):
    """Columns that are uniform on one of two boxes."""
    side = rng.integers(2, size=n)
    return {name: rng.uniform(0, 1, n) + side * shift for name, shift in [("a", 1.2), ("b", 1.5), ("c", -1.1)]}


def chain(n, rng):
    """Twelve columns with three states; each copies the one before it three times out of four."""
    states = rng.integers(3, size=(n, 12))
    for k in range(1, 12):
        states[:, k] = np.where(rng.random(n) < 0.75, states[:, k - 1], states[:, k])
    return {chr(97 + k): states[:, k] for k in range(12)}


# %%
# Experts with given sizes, alone and stacked. Without ``n_components`` they choose their sizes by held-out rows, which
# takes longer.
experts = {
    "products": JUPAD(8, random_state=0),
    "block": GaussianBlocks("none", n_components=2, random_state=0),
    "trees": TreeMixture(1, random_state=0),
}
tables = {"diagonal": diagonal, "boxes": boxes, "chain": chain}
scores, stacks, trains = {}, {}, {}
for name, law in tables.items():
    rng = np.random.default_rng(0)
    train, test = law(600, rng), law(2000, rng)
    usable = {key: expert for key, expert in experts.items() if not (name == "chain" and key == "block")}
    found = {key: expert.fit(train).density_.logpdf(test).mean() for key, expert in usable.items()}
    stack = JointEstimator(list(usable.items()), random_state=0).fit(train)
    scores[name] = found | {"stack": stack.density_.logpdf(test).mean()}
    stacks[name], trains[name] = stack, train
    weights = ", ".join(f"{key} {weight:.2f}" for key, weight in stack.expert_weights_.items())
    print(f"{name:9s} weights: {weights}")

# %%
# The held-out log-likelihood of each expert, less that of the best one. No expert is best three times; the stack is
# never far from the best.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
colours = {"products": "#7a9cc6", "block": "#d9903d", "trees": "#6aa84f", "stack": "#1b4f72"}
for ax, (name, found) in zip(axes, scores.items(), strict=True):
    best = max(found.values())
    for place, (key, value) in enumerate(found.items()):
        ax.bar(place, value - best, color=colours[key])
        ax.text(place, value - best, f"{value:.2f}", ha="center", va="top")
    low = min(found.values()) - best
    ax.set(title=name, xticks=range(len(found)), xticklabels=list(found), ylim=(low * 1.15, -low * 0.03))
axes[0].set_ylabel("nats per row below the best")

# %%
# What the products see of the diagonal, what the stack sees of it, and the boxes.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
products = JUPAD(8, random_state=0).fit(trains["diagonal"]).density_
plot_pair(products, "a", "b", data=trains["diagonal"], ax=axes[0])
plot_pair(stacks["diagonal"].density_, "a", "b", data=trains["diagonal"], ax=axes[1])
plot_pair(stacks["boxes"].density_, "a", "b", data=trains["boxes"], ax=axes[2])
for ax, title in zip(axes, ("products", "stack", "stack, boxes"), strict=True):
    ax.set_title(title, loc="left")
plt.show()
