"""
The live page of a model
========================

``density.explore("wine.html")`` writes one HTML file that holds the model and computes with it in the browser. Click a
bar or drag across a curve below: every other column shows its law given what is known.
"""

# %%
# A density of wines, as a Gaussian block of four components.
import tempfile
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from jointwise import GaussianBlocks

data = load_wine()
names = ["alcohol", "flavanoids", "color_intensity", "hue", "proline"]
table = {"cultivar": data.target_names[data.target]}
table |= {name: data.data[:, data.feature_names.index(name)] for name in names}
density = GaussianBlocks("power", n_components=4, random_state=0).fit(table).density_

# %%
# The page needs no server and no network, and holds no rows, so it can be sent to anyone. Here it stands in a frame.


class Frame:
    """A page inside this one."""

    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        style = "width: 100%; height: 640px; border: 1px solid #8888; border-radius: 4px"
        inside = escape(self.page).replace("\n", "&#10;").replace("\t", "&#9;")  # its script is known by its hash
        return f'<iframe title="The live page of a model" style="{style}" srcdoc="{inside}"></iframe>'


with tempfile.TemporaryDirectory() as folder:
    path = Path(density.explore(Path(folder) / "wine.html", title="Wines"))
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    page = path.read_text(encoding="utf-8")
Frame(page)

# %%
# The same answer in Python
# -------------------------
# A click on ``class_2`` is ``condition``. The figure shows two columns before the click, dashed, and after it.
clicked = density.condition({"cultivar": "class_2"})
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, name in zip(axes, ("color_intensity", "flavanoids"), strict=True):
    low, high = density.quantile(name, [0.001, 0.999])
    grid = np.linspace(low, high, 300)
    ax.plot(grid, density.marginal(name).pdf(grid[:, None]), "--", color="grey", label="all wines")
    ax.fill_between(grid, clicked.marginal(name).pdf(grid[:, None]), color="#1b6ca8", alpha=0.3, lw=0)
    ax.plot(grid, clicked.marginal(name).pdf(grid[:, None]), color="#1b6ca8", label="cultivar = class_2")
    ax.set(xlabel=name, ylim=0, yticks=[])
axes[0].legend(frameon=False)
plt.show()
