"""
A tree of what hangs together
=============================

Which columns tell most about which others? A mixture of trees with one tree answers with a picture: the spanning tree
with the most mutual information between neighbours.
"""

# %%
# Ten measurements of cell nuclei, and the diagnosis, of 569 tumours.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from jointwise import TreeMixture
from jointwise.plots import plot_mutual_information, plot_tree

data = load_breast_cancer(as_frame=True)
table = data.data.iloc[:, :10].rename(columns=lambda name: name.removeprefix("mean "))
table["diagnosis"] = data.target_names[data.target]
density = TreeMixture(1, n_states=8, random_state=0).fit(table).density_

# %%
# Radius, perimeter and area measure the same thing, and stand together. Of all columns, one is the neighbour of the
# diagnosis: given that one, the tree says that the others add nothing, which is what a tree can see of it.
figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
plot_tree(density, ax=ax)

# %%
# Mutual information is symmetric and counts every pair, also those that hang together only through a third column. The
# tree keeps ten of these fifty-five numbers.
figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
plot_mutual_information(density, ax=ax)
plt.show()
