"""
Filling gaps, with several draws and honest errors
==================================================

A filled table looks complete, but its filled cells are guesses. One best guess for each gap makes a later analysis too
sure of itself. Several tables, each with its own draws, show how unsure it should be.
"""

# %%
# A table with known truth
# ------------------------
# 442 patients of the diabetes study. Half of the values of blood pressure are removed, more often for patients with a
# high body mass index, whose value stays visible.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from jointwise import GaussianBlocks, JointImputer

frame = load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "s5", "target"]]
rng = np.random.default_rng(0)
high = frame["bmi"] > frame["bmi"].median()
hidden = rng.random(len(frame)) < np.where(high, 0.75, 0.25)
gappy = frame.copy()
gappy.loc[hidden, "bp"] = np.nan
print(f"{hidden.sum()} of {len(frame)} values of bp are hidden")

# %%
# Two ways to fill
# ----------------
# The same density fills gaps by its best guess, or by a draw from what it holds possible given the rest of the row.
# The block has three components here; the default would choose.
block = GaussianBlocks("power", n_components=3, random_state=0)
guess = JointImputer(block).fit(gappy).transform(gappy)
drawing = JointImputer(block, sample_posterior=True).fit(gappy)
draws = [drawing.set_params(random_state=seed).transform(gappy) for seed in range(20)]

# %%
# The standard deviation of blood pressure shows the difference: guesses are all near the middle.
print(f"sd of bp: true {frame['bp'].std():.1f}, values shown {gappy['bp'].std():.1f}")
print(f"          best guesses {guess['bp'].std():.1f}, draws {np.mean([d['bp'].std() for d in draws]):.1f}")

# %%
# An honest error
# ---------------
# The mean of blood pressure is asked of each of the 20 tables. The variance of the answer is the mean variance within a
# table plus the variance between tables (Rubin, 1987).
n = len(frame)
means = np.array([table["bp"].mean() for table in draws])
within = np.mean([table["bp"].var() / n for table in draws])
between = means.var(ddof=1) * (1 + 1 / len(draws))
answers = {
    "all values (truth)": (frame["bp"].mean(), np.sqrt(frame["bp"].var() / n)),
    "rows without gaps": (gappy["bp"].mean(), np.sqrt(gappy["bp"].var() / (~hidden).sum())),
    "best guesses": (guess["bp"].mean(), np.sqrt(guess["bp"].var() / n)),
    "20 draws": (means.mean(), np.sqrt(within + between)),
}
for name, (mean, error) in answers.items():
    print(f"{name:20s} {mean:6.2f} ± {error:.2f}")

# %%
# Rows without gaps are biased, because gaps are frequent where pressure is high. Both fillings mend most of that;
# only the draws keep the spread, and an error that is not too small.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[3, 2])
left.plot(frame["bmi"][hidden], guess["bp"][hidden], "o", ms=4, color="#d95f02", label="best guess")
left.plot(frame["bmi"][hidden], draws[0]["bp"][hidden], "o", ms=4, mfc="none", color="#1b6ca8", label="one draw")
left.plot(frame["bmi"][hidden], frame["bp"][hidden], "k.", ms=3, label="truth")
left.set(xlabel="bmi", ylabel="bp", title="Hidden values of blood pressure")
left.legend(frameon=False)
for place, (name, (mean, error)) in enumerate(answers.items()):
    right.errorbar(mean, -place, xerr=2 * error, fmt="o", capsize=4, color="black" if place == 0 else "#1b6ca8")
    right.text(mean, -place + 0.18, name, ha="center")
right.axvline(frame["bp"].mean(), color="black", lw=0.8, ls=":")
right.set(xlabel="mean of bp, ± 2 standard errors", yticks=[], ylim=(-3.5, 0.6))
plt.show()
