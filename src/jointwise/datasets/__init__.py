"""Laws to draw data from, and published data sets, for experiments, tests and examples.

`laplacians`, `gaussians`, `laplacians_gaussians` and `hybrid` are random laws. `load_banknote`, `load_wifi`,
`load_raisin`, `load_seeds` and `load_kth_tips` are the data sets of the paper. `fetch_adult` and `fetch_penguins` are
mixed tables: numbers, text and gaps. All of these read files on disk, which are downloaded from their official address
if they are not there.
"""

from jointwise.datasets.mixed import fetch_adult, fetch_penguins
from jointwise.datasets.synthetic import gaussians, hybrid, laplacians, laplacians_gaussians
from jointwise.datasets.textures import load_kth_tips
from jointwise.datasets.uci import load_banknote, load_raisin, load_seeds, load_wifi

__all__ = [
    "fetch_adult",
    "fetch_penguins",
    "gaussians",
    "hybrid",
    "laplacians",
    "laplacians_gaussians",
    "load_banknote",
    "load_kth_tips",
    "load_raisin",
    "load_seeds",
    "load_wifi",
]
