"""Figure 1 (b): mixtures of Gaussians, the home ground of Gaussian mixtures and of sinc interpolation."""

from __future__ import annotations

from jointwise.experiments.distances import CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER
from jointwise.experiments.synthetic import SyntheticExperiment
from jointwise.experiments.verdicts import Claim

EXPERIMENT = SyntheticExperiment(
    name="gaussians",
    title="Figure 1 (b): mixtures of Gaussians",
    intro=(
        "Truths of 6 variables and rank 8; every conditional of a variable is a mixture of 5 Gaussians. The paper "
        "finds its method ahead where rows are few. Where they are many it finds it close to the best only, since "
        "atoms stand on a grid and an interpolation does not."
    ),
    claims=(
        Claim(PAPER, (CPD, MIXTURES), largest=5_000),
        Claim(DEFAULT, (PAPER, CPD, MIXTURES, INDEPENDENCE), smallest=1_000),
    ),
)
