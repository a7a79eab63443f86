"""
Odd rows explained cell by cell
===============================

A detector that says "this row is odd" leaves the work to the reader. A joint density knows what it expected in each
cell given the others, so it can say which cell is wrong, and what it should have been.
"""

# %%
# Planted errors
# --------------
# Ten cells of a table of wines get the value of a wine of another cultivar. It is a usual value of the column, so only
# the rest of the row can tell. Some of these values happen to be near the true ones, and no method could find those.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from jointwise import GaussianBlocks

data = load_wine()
names = ["alcohol", "malic_acid", "total_phenols", "flavanoids", "color_intensity", "hue", "proline"]
clean = {name: data.data[:, data.feature_names.index(name)] for name in names}
table = {name: column.copy() for name, column in clean.items()} | {"cultivar": data.target_names[data.target]}
rng = np.random.default_rng(3)
rows = rng.choice(len(data.target), 10, replace=False)
planted = [(row, rng.choice(["flavanoids", "color_intensity", "proline"])) for row in rows]
for row, name in planted:
    strangers = np.flatnonzero(data.target != data.target[row])
    table[name][row] = clean[name][rng.choice(strangers)]

# %%
# Every cell has a surprisal
# --------------------------
# In nats above that of a usual cell of its column. Rows are learned from with their errors in them.
density = GaussianBlocks("power", n_components=3, random_state=0).fit(table).density_
surprisal = density.surprisal(table)
print(surprisal.shape, np.round(np.median(surprisal), 2))

# %%
# The ten most surprising cells of the table, and which of them were planted:
order = np.dstack(np.unravel_index(np.argsort(-surprisal, axis=None), surprisal.shape))[0]
wrong = {(int(row), str(name)) for row, name in planted}
for row, column in order[:10]:
    name = density.names[column]
    mark = "planted" if (int(row), name) in wrong else ""
    print(f"row {row:3d}  {name:16s} {surprisal[row, column]:5.1f} nats  {mark}")

# %%
# One row, in words: what it holds, what was expected there, and what is left of its oddness when a cell is forgotten.
row = int(order[0][0])
print(density.explain({name: column[row] for name, column in table.items()}))

# %%
# The picture: the thirty oddest rows, each cell shaded by its surprisal. Planted errors are framed.
shown = np.argsort(-np.nanmax(surprisal, axis=1))[:30]
figure, ax = plt.subplots(figsize=(10, 4), layout="constrained")
image = ax.imshow(surprisal[shown].T, cmap="Blues", vmin=0, vmax=8, aspect="auto")
for place, row in enumerate(shown):
    for column, name in enumerate(density.names):
        if (int(row), name) in wrong:
            ax.add_patch(plt.Rectangle((place - 0.5, column - 0.5), 1, 1, fill=False, ec="#d95f02", lw=2))
ax.set(xlabel="row", xticks=range(len(shown)), yticks=range(len(density.names)), yticklabels=density.names)
ax.set_xticklabels(shown, rotation=90)
figure.colorbar(image, label="surprisal in nats", extend="both")
plt.show()
