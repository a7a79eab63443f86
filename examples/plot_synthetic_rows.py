"""
Synthetic rows, and how to tell them apart
==========================================

Rows drawn from a density can stand in for rows that must not be shown. How good are they? Let a classifier try to tell
real rows from drawn ones. If it cannot, its AUC is 0.5.
"""

# %%
# Real rows: the diabetes study, with the sex as a category. One half is for learning, the other for the test.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from jointwise import JUPAD, GaussianBlocks, JointEstimator

real = load_diabetes(as_frame=True, scaled=False).frame[["sex", "age", "bmi", "bp", "s1", "s2", "s5", "target"]]
real["sex"] = np.where(real["sex"] == 1, "a", "b")
learn, test = real.iloc[::2], real.iloc[1::2]

# %%
# Three makers of rows
# --------------------
# Each column on its own; one Gaussian for all numbers; and a stack of two experts with given sizes.
makers = {
    "independent columns": JUPAD(1, random_state=0),
    "one Gaussian": GaussianBlocks("none", n_components=1, random_state=0),
    "stack": JointEstimator(
        [("products", JUPAD(8)), ("block", GaussianBlocks("power", n_components=3))], random_state=0
    ),
}
drawn = {name: maker.fit(learn).density_.sample(len(test), rng=1) for name, maker in makers.items()}

# %%
# The same judge for all: a random forest that sees the test rows and as many drawn ones, judged on rows it has not
# seen. The last line is the same test between the two halves of the real rows.


def told_apart(rows):
    """Return the AUC of a forest that tells test rows from others."""
    both = pd.get_dummies(pd.concat([test, rows]))
    labels = np.repeat([0, 1], [len(test), len(rows)])
    forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=0)
    shares = cross_val_predict(forest, both, labels, cv=5, method="predict_proba")[:, 1]
    return roc_auc_score(labels, shares)


areas = {name: told_apart(rows) for name, rows in (drawn | {"other real rows": learn}).items()}
for name, area in areas.items():
    print(f"{name:20s} AUC {area:.2f}")

# %%
# Are drawn rows copies?
# ----------------------
# A drawn row that lies nearer to a learned row than real rows lie to each other would give that row away. The median
# distance to the nearest learned row, in standard deviations:
numbers = [name for name in real if name != "sex"]
scale = learn[numbers].std()


def nearest(rows):
    """Return the distance of each row to the nearest learned row."""
    gaps = (rows[numbers].to_numpy()[:, None] - learn[numbers].to_numpy()[None]) / scale.to_numpy()
    return np.sqrt((gaps**2).sum(axis=2)).min(axis=1)


print(f"drawn rows {np.median(nearest(drawn['stack'])):.2f}, test rows {np.median(nearest(test)):.2f}")

# %%
# Two columns as the makers see them, and what the judge says.
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained", sharex=True, sharey=True)
for ax, (name, rows) in zip(axes, (drawn | {"other real rows": learn}).items(), strict=True):
    ax.plot(rows["s1"], rows["s2"], ".", ms=4, color="#1b6ca8")
    ax.set(xlabel="s1", title=f"{name}\nAUC {areas[name]:.2f}")
axes[0].set_ylabel("s2")
plt.show()
