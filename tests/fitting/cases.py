"""Fits of models that are given, for tests."""

import numpy as np

from jointwise.fitting import Choice, Options, fit_rows


def fit_models(rows, models, n_components=8, beta=3.0, *, learn_dictionary=False, rng=None, **options):
    """Fit given models, with no atom drawn in."""
    choice = Choice(tuple(map(tuple, models)), n_components, beta, learn_dictionary)
    given = dict(zip(rows.schema.names, models[0], strict=True))
    options = Options(**{"n_init": 4, "tol": 1e-5, "dictionaries": given, **options})
    return fit_rows(rows, options, rng or np.random.default_rng(0), choice=choice)
