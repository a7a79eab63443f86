"""
Classes from rows with gaps
===========================

A classifier that is a joint density needs no filled table: a missing cell is integrated out. So the same fit predicts
from any part of a row, and says how sure it is.
"""

# %%
# 569 tumours with ten measurements. The classifier learns from complete rows, with a Gaussian block of four components;
# ``JointClassifier()`` alone would stack several experts.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from jointwise import GaussianBlocks, JointClassifier

data = load_breast_cancer(as_frame=True)
X = data.data.iloc[:, :10]
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
joint = JointClassifier(GaussianBlocks("power", n_components=4, random_state=0)).fit(X_train, y_train)
trees = HistGradientBoostingClassifier(random_state=0).fit(X_train, y_train)

# %%
# Cells go missing
# ----------------
# More and more cells of the test rows are hidden at random. Gradient boosting takes gaps too, but has seen none.
rng = np.random.default_rng(0)
shares = [0, 0.2, 0.4, 0.6, 0.8]
models = {"JointClassifier": joint, "gradient boosting": trees}
right = {name: [] for name in models}
for share in shares:
    gappy = X_test.mask(rng.random(X_test.shape) < share)
    for name, model in models.items():
        right[name].append(np.mean(model.predict(gappy) == y_test))
for name, found in right.items():
    print(f"{name:18s}", " ".join(f"{share:.1%}" for share in found))

# %%
# Probabilities
# -------------
# With 60% of the cells hidden, of the rows that get a probability near p, a share p should have the class. Each test
# row is shown 20 times, with other cells hidden.
rng = np.random.default_rng(1)
masked = pd.concat([X_test.mask(rng.random(X_test.shape) < 0.6) for _ in range(20)])
malignant = np.tile(y_test == "malignant", 20)

figure, (left, middle) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
edges = np.linspace(0, 1, 9)
for name, colour in [("JointClassifier", "#1b6ca8"), ("gradient boosting", "#d95f02")]:
    left.plot(shares, right[name], "o-", color=colour, label=name)
    probability = models[name].predict_proba(masked)[:, list(models[name].classes_).index("malignant")]
    groups = np.digitize(probability, edges[1:-1])
    counts = np.bincount(groups, minlength=8)
    middle.plot(
        np.bincount(groups, probability, minlength=8) / counts,
        np.bincount(groups, malignant, minlength=8) / counts,
        "o-",
        color=colour,
    )
most = np.mean(y_test == "benign")
left.axhline(most, color="grey", ls=":", label="the more frequent class")
left.set(xlabel="share of cells hidden", ylabel="right", title="Accuracy", ylim=(most - 0.05, 1))
left.legend(frameon=False)
middle.plot([0, 1], [0, 1], color="grey", ls=":")
middle.set(xlabel="predicted P(malignant)", ylabel="share that is malignant", title="60% of the cells hidden")
plt.show()
