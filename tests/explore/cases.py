"""Densities for pages: an everyday one, and hostile ones."""

import numpy as np
from tests.joint.block_cases import plain

from jointwise.dictionary import Dictionary
from jointwise.joint import JointDensity, ProductMixture
from jointwise.tables.variables import Schema, Variable

ATTACK = "</script><img src=x onerror=document.body.dataset.hit=1>"
NAMES = (
    ATTACK,
    "<svg/onload=document.body.dataset.hit=1>",
    "${alert(1)}{{7*7}}",
    "right \u202eto left\u202c \u200f",
    "x" * 10_000,
    "\U0001f9d1\u200d\U0001f680 emoji \U0001f44d\U0001f3fd",
    "line\nbreak\ttab\x00nul",
    "'\"&amp;\\",
    "__proto__",
    "half \ud800 pair",
)


def people():
    """Numbers, a date, a spike, integers and categories, which tell of each other; gaps of pay are told too."""
    variables = (
        Variable("pay", "continuous", observed=(0, 120)),
        Variable("joined", "continuous", dtype="date", step=1.0, observed=(17_000, 19_700)),
        Variable("score", "continuous", spikes=(0.0,), observed=(0, 10)),
        Variable("children", "integer", observed=(0, 6), dtype="int64"),
        Variable("sex", "categorical", categories=("F", "M"), dtype="string"),
        Variable("town", "categorical", categories=tuple(f"town {k}" for k in range(30)), dtype="string"),
        Variable("pay missing", "categorical", categories=(False, True), dtype="bool", gap_of="pay"),
    )
    rng = np.random.default_rng(0)
    atoms = (
        Dictionary.grid("gaussian", 20, 100, n=5, scale=10.0),
        Dictionary.grid("gaussian", 17_300, 19_400, n=4, scale=300.0),
        Dictionary.grid("gaussian", 2, 8, n=4, scale=1.0) + Dictionary.points([0.0]),
        Dictionary.points(np.arange(7)),
        Dictionary.categories(2),
        Dictionary.categories(30),
        Dictionary.categories(2),
    )
    coefficients = [rng.dirichlet(np.full(d.n_atoms, 0.3), 3).T for d in atoms]
    coefficients[4] = np.array([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
    coefficients[0] = np.array([[0.8, 0.1, 0.0], [0.2, 0.2, 0.1], [0.0, 0.4, 0.2], [0.0, 0.2, 0.3], [0.0, 0.1, 0.4]])
    return JointDensity(Schema(variables), ProductMixture([0.4, 0.3, 0.3], coefficients, atoms))


def hostile():
    """Names and categories that want to be more than text."""
    rng = np.random.default_rng(1)
    variables, atoms = [], []
    for k, name in enumerate(NAMES):
        if k % 2:
            variables.append(Variable(name, "continuous"))
            atoms.append(Dictionary.grid("gaussian", 0, 3, n=3, scale=1.0))
        else:
            labels = tuple(f"{other}{k}" for other in NAMES)
            variables.append(Variable(name, "categorical", categories=labels))
            atoms.append(Dictionary.categories(len(NAMES)))
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), 4).T for d in atoms]
    return JointDensity(Schema(tuple(variables)), ProductMixture(rng.dirichlet(np.ones(4)), coefficients, atoms))


def large(n_columns, n_categories, n_components):
    """Many columns, of which the first has many categories, and many components."""
    rng = np.random.default_rng(2)
    variables = [Variable("town", "categorical", categories=tuple(f"town {k}" for k in range(n_categories)))]
    variables += [
        Variable(f"answer {n}", "categorical", categories=("no", "perhaps", "yes"))
        if n % 2
        else Variable(f"number {n}", "continuous", observed=(-3, 6))
        for n in range(1, n_columns)
    ]
    atoms = [Dictionary.categories(n_categories)]
    numbers, answers = Dictionary.grid("gaussian", 0, 3, n=4, scale=1.0), Dictionary.categories(3)
    atoms += [answers if n % 2 else numbers for n in range(1, n_columns)]
    coefficients = [rng.dirichlet(np.full(d.n_atoms, 0.3), n_components).T for d in atoms]
    weights = rng.dirichlet(np.ones(n_components))
    return JointDensity(Schema(tuple(variables)), ProductMixture(weights, coefficients, atoms))


def heavy():
    """So many Gaussian components that a step with three ranges takes a while."""
    variables = tuple(Variable(f"x{n}", "continuous") for n in range(6))
    return JointDensity(Schema(variables), plain(3, d=6, n_components=5_000))


def spiked(n_spikes):
    """A number that often has one of many values."""
    atoms = Dictionary.grid("gaussian", 5, 35, n=4, scale=8.0) + Dictionary.points(np.arange(n_spikes))
    share = np.concatenate([np.full(4, 0.1), np.full(n_spikes, 0.6 / n_spikes)])
    variable = Variable("paid", "continuous", spikes=tuple(float(k) for k in range(n_spikes)), observed=(0, 40))
    return JointDensity(Schema((variable,)), ProductMixture([1.0], [share[:, None]], [atoms]))
