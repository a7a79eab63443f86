"""Laws to draw data from, and published data sets, for experiments, tests and examples.

`laplacians`, `gaussians`, `laplacians_gaussians` and `hybrid` draw random laws. `load_banknote`, `load_wifi`,
`load_raisin`, `load_seeds` and `load_kth_tips` load the data sets of the paper, and `fetch_adult` and `fetch_penguins`
two mixed tables with numbers, text and gaps. They read files on disk; missing files are downloaded from their official
address.
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
