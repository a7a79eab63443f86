r"""
Figure 1 of the paper, in small
===============================

The paper draws rows from a known law and asks how far an estimate is from it, as the number of rows grows. The
distance D is the mean of \|log f̂ - log f\| over fresh points. Here is that experiment for mixtures of Laplacians,
with two random laws and up to 3,000 rows; :doc:`/results/README` has all four, up to 50,000 rows, with every figure.
"""

# %%
# The methods: ``JUPAD()`` sees only the rows. JUPAD as in the paper, from pairs alone, is told the true rank, 10. The
# Gaussian mixture is the best of three in hindsight, which nobody could choose without the truth. Independence is the
# baseline that must be beaten.
import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from jointwise import JUPAD
from jointwise.datasets import laplacians
from jointwise.metrics import mean_absolute_log_ratio
from jointwise.plots import plot_distances
from jointwise.relatives import GaussianMixtureDensity, IndependenceDensity

methods = {
    "JUPAD()": [JUPAD(random_state=0)],
    "JUPAD as in the paper": [JUPAD(10, method="paper", random_state=0)],
    "best Gaussian mixture": [GaussianMixtureDensity(k, random_state=0) for k in (2, 5, 10)],
    "independence": [IndependenceDensity()],
}

# %%
# D of each method, for each law and number of rows.
warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that stops at its limit of steps is still a rival
results = []
for seed in (0, 1):
    law = laplacians(rng=seed)
    points = law.sample(1000, rng=seed + 100)
    for n in (500, 1000, 3000):
        rows = law.sample(n, rng=seed + 10)
        for name, models in methods.items():
            found = [mean_absolute_log_ratio(model.fit(rows).score_samples, law.logpdf, points) for model in models]
            results.append({"method": name, "n": n, "D": min(found)})
for name in methods:
    last = [result["D"] for result in results if result["method"] == name and result["n"] == 3000]
    print(f"{name:24s} D at 3,000 rows: {sum(last) / len(last):.3f}")

# %%
# Both axes are logarithmic; bars are standard errors.
figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
plot_distances(results, ax=ax)
plt.show()
