"""Fitting: where marginals, rows, dictionaries and solvers meet."""
