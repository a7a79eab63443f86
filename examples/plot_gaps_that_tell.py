"""
Gaps that tell something
========================

People with high pay tell it less often. If a model treats these gaps as if they had happened by chance, what it fills
in is too low. With gaps as part of the model, other columns give the hidden class away.
"""

# %%
# A hidden class with high pay leaves the cell empty seven times out of ten, the others once in twenty. Two other
# columns go with the class.
import matplotlib.pyplot as plt
import numpy as np

from jointwise import JUPAD

rng = np.random.default_rng(0)
n = 3000
high = rng.random(n) < 0.3
pay = rng.normal(np.where(high, 60, 40), 4)
table = {
    "years": rng.normal(np.where(high, 17, 13), 2.5),
    "rooms": rng.normal(np.where(high, 5.2, 4), 1),
    "pay": np.where(rng.random(n) < np.where(high, 0.7, 0.05), np.nan, pay),
}
hidden = np.isnan(table["pay"])
print(f"{hidden.mean():.0%} of the cells are empty")
print(f"mean pay {pay.mean():.1f}, of the values shown {pay[~hidden].mean():.1f}")

# %%
# The same model twice: gaps ignored, and gaps as part of it.
densities = {
    "ignorable": JUPAD(random_state=0).fit(table).density_,
    "informative": JUPAD(missing="informative", random_state=0).fit(table).density_,
}
for name, density in densities.items():
    filled = density.impute(table)["pay"]
    error = np.sqrt(np.mean((filled - pay)[hidden] ** 2))
    print(f'missing="{name}": error of filled cells {error:.2f}, mean of pay {density.mean()["pay"]:.1f}')

# %%
# Such a model answers questions about the gaps themselves.
informed = densities["informative"]
print(informed.ask("P(pay missing | years > 17)"))
print(informed.ask("mean(pay | pay missing)"))

# %%
# What both models fill in, against the pay that was not told.
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (name, density) in zip(axes, densities.items(), strict=True):
    ax.plot(pay[hidden], density.impute(table)["pay"][hidden], ".", ms=4, color="#1b6ca8")
    ax.plot([30, 70], [30, 70], color="grey", ls=":")
    ax.set(xlabel="true pay", title=f'missing="{name}"')
axes[0].set_ylabel("filled in")
plt.show()
