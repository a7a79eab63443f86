"""Laws to draw data from, for experiments and tests."""

from jointwise.datasets.synthetic import gaussians, hybrid, laplacians, laplacians_gaussians

__all__ = ["gaussians", "hybrid", "laplacians", "laplacians_gaussians"]
