"""
Intervals for a regression
==========================

A joint density gives more than a best guess of a column: its whole law given the row. Intervals are as wide as the row
deserves, and lopsided where the truth is.
"""

# %%
# Prices whose spread grows with size, and are skewed
# ---------------------------------------------------
import matplotlib.pyplot as plt
import numpy as np

from jointwise import GaussianBlocks

rng = np.random.default_rng(0)


def flats(n):
    """Return a table of flats; the spread of prices depends on size and on the town."""
    size = rng.gamma(6, 12, n) + 15
    town = rng.choice(["port", "hills"], n)
    spread = np.where(town == "port", 0.15, 0.4)
    price = 2.5 * size * np.exp(rng.normal(0, spread))
    return {"size": size.round(), "town": town, "price": price.round()}


train, test = flats(1500), flats(1500)
model = GaussianBlocks("power", n_components=6, random_state=0).fit(train)
density = model.density_

# %%
# ``predict`` with an interval returns a table: the mean, and the ends of the middle 80%.
guesses = density.predict("price", test, interval=0.8)
inside = (guesses["price 10%"] <= test["price"]) & (test["price"] <= guesses["price 90%"])
print(f"inside the interval of 80%: {inside.mean():.1%} of {len(inside):,} new flats")
for town in ("port", "hills"):
    chosen = test["town"] == town
    width = np.median((guesses["price 90%"] - guesses["price 10%"])[chosen])
    print(f"{town}: {inside[chosen].mean():.1%} inside, intervals {width:.0f} wide")

# %%
# The same density predicts the other way round: which town, from price and size?
print(density.ask("town | size = 80, price = 140"))

# %%
# Below, lines are the mean and quantiles at 10% and 90% of the price given size and town.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
sizes = np.arange(20, 190)
for ax, town in zip(axes, ("port", "hills"), strict=True):
    lines = density.predict("price", {"size": sizes, "town": np.full(len(sizes), town)}, interval=0.8)
    chosen = test["town"] == town
    ax.plot(test["size"][chosen], test["price"][chosen], ".", color="#d95f02", ms=3, alpha=0.6)
    ax.fill_between(sizes, lines["price 10%"], lines["price 90%"], color="#1b6ca8", alpha=0.25, lw=0)
    ax.plot(sizes, lines["price"], color="#1b6ca8")
    ax.set(xlabel="size", title=town, ylim=(0, 900), xlim=(15, 190))
axes[0].set_ylabel("price")
plt.show()
