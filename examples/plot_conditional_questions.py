"""
Conditional questions
=====================

A joint density answers questions in any direction: what is likely given what is known. This script asks about wines,
in text and in Python, and draws one answer.
"""

# %%
# A density of 178 wines, with the cultivar as one more column. A Gaussian block of four components is set here; the
# default would choose.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from jointwise import GaussianBlocks

data = load_wine()
columns = dict(zip(data.feature_names, data.data.T, strict=True))
names = ["alcohol", "flavanoids", "color_intensity", "hue", "proline"]
table = {name: columns[name] for name in names} | {"cultivar": data.target_names[data.target]}
density = GaussianBlocks("power", n_components=4, random_state=0).fit(table).density_

# %%
# Questions in text
# -----------------
# A question prints as it was understood, and its answer.
for question in [
    "P(cultivar = class_2)",
    "P(cultivar = class_2 | color_intensity >= 6)",
    "P(cultivar = class_2 | color_intensity >= 6, hue >= 1)",
    "median(proline | cultivar = class_0)",
    "cultivar | alcohol in 12.5..13, flavanoids <= 2",
]:
    print(density.ask(question))

# %%
# Densities out of densities
# --------------------------
# ``condition`` returns another density, so answers chain. Here colour is asked for given the hue, at four values of
# it.
hues = [0.6, 0.8, 1.0, 1.2]
given = {hue: density.condition({"hue": hue}) for hue in hues}
for hue, wines in given.items():
    low, high = wines.quantile("color_intensity", [0.1, 0.9])
    print(f"hue {hue}: the middle 80% of colours are {low:.1f} to {high:.1f}")

# %%
# The conditional density of colour slides and narrows as the hue changes.
grid = np.linspace(0, 14, 400)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for hue, shade in zip(hues, plt.cm.viridis(np.linspace(0, 0.85, len(hues))), strict=True):
    ax.plot(grid, given[hue].marginal("color_intensity").pdf(grid[:, None]), color=shade, label=f"hue = {hue}")
ax.plot(grid, density.marginal("color_intensity").pdf(grid[:, None]), "k:", label="any hue")
ax.set(xlabel="color_intensity", ylabel="density", title="Colour given hue", ylim=0)
ax.legend(frameon=False)
plt.show()
