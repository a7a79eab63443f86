"""
A first look at a mixed table
=============================

A table of people has text, whole numbers, numbers with a heap of zeros, and gaps. One fit takes it as it is. Then the
density shows what the columns look like, alone and in pairs.
"""

# %%
# The table
# ---------
# Seven hundred people. Income depends on the job and a little on age; some people have none at all, and a tenth
# of the cells are missing.
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, GaussianBlocks, JointEstimator
from jointwise.plots import plot_marginal, plot_pair

rng = np.random.default_rng(0)
n = 700
jobs = {"cook": 24, "nurse": 33, "teacher": 38, "engineer": 52}
age = rng.integers(18, 66, n)
job = rng.choice(list(jobs), n, p=[0.2, 0.3, 0.3, 0.2])
income = np.array([jobs[name] for name in job]) * np.exp(0.006 * (age - 40) + rng.normal(0, 0.15, n))
income[rng.random(n) < 0.08] = 0
income[rng.random(n) < 0.10] = np.nan
sex = rng.choice(["F", "M"], n)
height = rng.normal(np.where(sex == "F", 165, 178), 7)
table = {
    "sex": sex,
    "age": age,
    "job": job,
    "income": income.round(1),
    "height": height.round(1),
    "weight": (0.9 * height - 88 + rng.normal(0, 8, n)).round(1),
}

# %%
# The fit
# -------
# ``JointEstimator()`` alone would choose experts and their sizes by held-out rows. Two experts with given sizes are
# quicker, and enough here.
experts = [("products", JUPAD(12)), ("block", GaussianBlocks("power", n_components=4))]
model = JointEstimator(experts, random_state=0).fit(table)
density = model.density_
print(model.summary())

# %%
# Nobody said which column holds what: the kind of each column, the heap of zeros in ``income`` (a spike) and the
# rounding to a tenth were found in the rows.
for variable in density.schema:
    print(f"{variable.name:8s} {variable.kind:12s} spikes {list(variable.spikes)}, step {variable.step}")

# %%
# The picture
# -----------
# The model is blue, the rows are grey or orange. The strip beside ``income`` is the probability of zero.
figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
plot_marginal(density, "income", data=table, ax=axes[0, 0], atoms=False)
plot_pair(density, "height", "weight", data=table, ax=axes[0, 1])
plot_pair(density, "job", "income", data=table, ax=axes[1, 0])
plot_pair(density, "sex", "height", data=table, ax=axes[1, 1])
plt.show()
