"""Laws to draw data from, and the published data sets of the paper, for experiments and tests.

`laplacians`, `gaussians`, `laplacians_gaussians` and `hybrid` are random laws. `load_banknote`, `load_wifi`,
`load_raisin`, `load_seeds` and `load_kth_tips` read files on disk, which are downloaded from their official address if
they are not there.
"""

from jointwise.datasets.synthetic import gaussians, hybrid, laplacians, laplacians_gaussians
from jointwise.datasets.textures import load_kth_tips
from jointwise.datasets.uci import load_banknote, load_raisin, load_seeds, load_wifi

__all__ = [
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
