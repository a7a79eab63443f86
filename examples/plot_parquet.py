"""
Parquet files larger than memory
================================

A fit needs the rows only as codes, one or two bytes a cell, and reads a folder of Parquet files block by block. Here
the folder is small, so that the script is quick. With a hundred million rows the code is the same.
"""

# %%
# A folder of files
# -----------------
# Ten files of 20,000 journeys each.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from jointwise import JUPAD
from jointwise.plots import plot_pair


def journeys(n, rng):
    """Return journeys of a taxi: two peaks a day, slow traffic at the peaks."""
    hour = np.where(rng.random(n) < 0.5, rng.normal(8.5, 1.5, n), rng.normal(18, 3, n)) % 24
    distance = rng.gamma(2, 2.5, n)
    speed = 32 - 14 * np.exp(-((hour - 8.5) ** 2) / 4) - 10 * np.exp(-((hour - 17.5) ** 2) / 6) + rng.normal(0, 3, n)
    paid = rng.choice(["card", "cash"], n, p=[0.7, 0.3])
    return {"hour": hour, "distance": distance, "speed": speed, "paid": paid}


folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(0)
for part in range(10):
    pq.write_table(pa.table(journeys(20_000, rng)), Path(folder.name) / f"part-{part}.parquet")
journey = ds.dataset(folder.name)
print(f"{journey.count_rows():,} rows in {len(journey.files)} files")

# %%
# The fit takes the dataset itself
# --------------------------------
# Two passes read the files, for the profile and for the codes; all steps of EM read codes. With
# ``n_components="auto"``, the default, the number would be chosen on a sample.
model = JUPAD(n_components=16, random_state=0).fit(journey)
print(model.density_)

# %%
# The model depends neither on where the rows are nor on how they are split: up to a million rows it is equal to the
# bit.
memory = JUPAD(n_components=16, random_state=0).fit(journey.to_table())
fresh = journeys(1000, np.random.default_rng(1))
print("the same as in memory:", np.array_equal(model.density_.logpdf(fresh), memory.density_.logpdf(fresh)))

# %%
# Traffic at half past eight, and at noon:
for question in ["median(speed | hour in 8..9)", "median(speed | hour in 12..13)", "P(speed < 20 | hour in 17..18)"]:
    print(model.density_.ask(question))

# %%
# The speed of a journey against the hour: the model of all rows, with a thousand new ones.
figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
plot_pair(model.density_, "hour", "speed", data=fresh, ax=ax)
plt.show()
folder.cleanup()
