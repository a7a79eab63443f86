"""The two tables of the pictures: scikit-learn's wines, and customers of a shop with dates and gaps."""

import numpy as np


def wines():
    """Thirteen measurements and the cultivar of 178 wines."""
    from sklearn.datasets import load_wine

    data = load_wine()
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    return columns | {"cultivar": np.array(["first", "second", "third"], dtype=object)[data.target]}


def customers(n=3_000, seed=3):
    """Customers of three plans: a date, money with many zeros, integers, categories, and income with gaps that tell."""
    rng = np.random.default_rng(seed)
    rows, plan = np.arange(n), rng.choice(3, n, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.normal([35, 44, 52], [11, 12, 9], (n, 3))[rows, plan], 18, 90).round()
    days = (rng.beta([1.2, 2, 3], [2, 2, 1], (n, 3))[rows, plan] * 365 * 5).astype(int)
    spend = np.exp(rng.normal([2.5, 3.6, 4.6], [0.6, 0.5, 0.4], (n, 3))[rows, plan]).round(2)
    spend = np.where(rng.random(n) < np.array([0.35, 0.15, 0.03])[plan], 0.0, spend)
    visits = rng.poisson(np.array([3, 7, 12])[plan] + 0.05 * spend)
    income = np.exp(rng.normal(10.2 + 0.2 * plan + 0.004 * age, 0.35)).round(-2)
    region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    odds = -1.2 - 0.15 * visits + 0.02 * age - 0.3 * plan + 1.0 * (region == 3)
    return {
        "plan": np.array(["basic", "plus", "pro"], dtype=object)[plan],
        "age": age.astype(int),
        "joined": np.datetime64("2019-01-01") + days,
        "spend": spend,
        "visits": visits,
        "income": np.where(rng.random(n) < 0.08 + 0.22 * (plan == 0), np.nan, income),
        "region": np.array(["north", "south", "east", "west"], dtype=object)[region],
        "left": rng.random(n) < 1 / (1 + np.exp(-odds)),
    }
