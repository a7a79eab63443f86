"""
Three hospitals that share counts and no rows
=============================================

Rows of patients must not leave a hospital. Counts may. Two rounds of small values, which add up, give one model of all
patients: the same model, to the bit, as if all rows had been in one place.
"""

# %%
# Three hospitals with different patients
# ---------------------------------------
# Age and blood pressure go together with the risk; each hospital sees another part of the population.
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD, PairwiseMarginals, Profile

rng = np.random.default_rng(0)


def patients(n, middle):
    """Return patients of one hospital, whose ages are around a middle."""
    age = np.clip(rng.normal(middle, 12, n), 0, 100).round()
    pressure = rng.normal(105 + 0.5 * age, 9).round()
    risk = 1 / (1 + np.exp(-(0.08 * (age - 60) + 0.06 * (pressure - 135))))
    return {"age": age, "pressure": pressure, "stroke": np.where(rng.random(n) < risk, "yes", "no")}


hospitals = {"children's": patients(400, 18), "general": patients(900, 48), "geriatric": patients(500, 77)}

# %%
# Round one: profiles
# -------------------
# A profile knows the kinds of columns and a sketch of their values, and profiles add up. Their sum gives the bins that
# all hospitals then use.
profile = sum((Profile.of(rows) for rows in hospitals.values()), start=Profile.empty())
schema = profile.schema()
axes = profile.axes(schema, n_bins=32)

# %%
# Round two: counts of pairs
# --------------------------
# Each hospital counts, for every pair of columns, how many patients are in each pair of bins.
counts = {name: PairwiseMarginals.of(rows, schema, axes) for name, rows in hospitals.items()}
total = sum(counts.values(), start=PairwiseMarginals.empty(schema, axes))
for name, rows in hospitals.items():
    print(f"{name:10s} {len(rows['age'])} patients")
print("bins:", {name: axis.n_bins for name, axis in zip(schema.names, axes, strict=True)})

# %%
# The sum of the counts is that of all rows in one place:
together = {name: np.concatenate([rows[name] for rows in hospitals.values()]) for name in schema.names}
print("equal to the counts of all rows:", total == PairwiseMarginals.of(together, schema, axes))

# %%
# The model is fitted to the counts alone. Such a fit does not choose the number of components, so it is given.
density = JUPAD(n_components=5, random_state=0).fit_marginals(total).density_
print(density.ask("P(stroke = yes | age in 60..70)"))

# %%
# No hospital alone sees the whole curve. The model of the sum does, and agrees with what the rows would say.
ages = np.arange(10, 91, 4)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for (name, own), colour in zip(counts.items(), ("#6aa84f", "#d9903d", "#8e6bbf"), strict=True):
    alone = JUPAD(n_components=3, random_state=0).fit_marginals(own).density_
    seen = np.percentile(hospitals[name]["age"], [2, 98])
    inside = ages[(ages >= seen[0]) & (ages <= seen[1])]
    ax.plot(inside, alone.probability({"stroke": "yes"}, {"age": inside}), color=colour, label=f"{name} alone")
ax.plot(ages, density.probability({"stroke": "yes"}, {"age": ages}), color="#1b4f72", lw=2.5, label="all, from counts")
for age in ages:
    near = np.abs(together["age"] - age) <= 3
    ax.plot(age, np.mean(together["stroke"][near] == "yes"), "k.", label="rows" if age == ages[0] else None)
ax.set(xlabel="age", ylabel="P(stroke = yes | age)")
ax.legend(frameon=False)
plt.show()
