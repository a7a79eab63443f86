"""What each constant of a default fit is worth: held-out likelihood and time with a smaller and a larger value.

docs/how-it-decides.md lists the constants and quotes the figures. Each constant of `CONSTANTS` is set to other values,
`JUPAD(random_state=seed)` is fitted again to the same 70% of the rows of each table, and the log-likelihood of the
other 30% is compared with that under the constant as it is.

- A cell counts by the probability of a small interval around it (see `cell_widths`): densities on different spikes do
  not compare. A cell that a model holds impossible counts as `IMPOSSIBLE`.
- Tables are small, to keep the run short: at most `MOST_ROWS` rows and `MOST_COLUMNS` columns, but 1,500 rows of Adult
  with all columns, 1,000 of a table made to have spikes, bounds and steps, and 2,900 of each of two laws, because atoms
  are learned from 2,000 training rows on. Constants that only matter for larger tables are not here.
- Fits run without their check, which does not change the density. A stage of a fit is not repeated if the constant does
  not act on it and its inputs are the same.

`python -m benchmarks decisions` takes seeds 0 and 1, and about 25 minutes on one core; `--seeds 2 3 4` takes others.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_wine

from benchmarks.generated import generated
from benchmarks.questions import Table, rows
from benchmarks.report import Row
from jointwise import JUPAD, JointDensity, Profile
from jointwise.datasets import (
    fetch_adult,
    fetch_penguins,
    hybrid,
    laplacians,
    load_banknote,
    load_raisin,
    load_seeds,
)
from jointwise.estimators._columns import ColumnOptions
from jointwise.estimators._tables import generator
from jointwise.exceptions import UnseenCategoryWarning
from jointwise.fitting import Choice, Options, fit_rows
from jointwise.fitting.choice import choose_model
from jointwise.fitting.choice import search as search_module
from jointwise.fitting.choice.dictionaries import dictionary_options
from jointwise.fitting.choice.search import number_of_models
from jointwise.fitting.order import in_order
from jointwise.fitting.result import Models
from jointwise.rows.coded import CodedRows
from jointwise.tables import encode, read_table

SEEDS = (0, 1)
STAGES = ("columns", "dictionaries", "search", "density")
N_BINS = JUPAD().n_bins
TRAINING = 0.7
MOST_ROWS, MOST_COLUMNS = 400, 8
# A cell of a continuous column stands for this share of the range of its table's rows, or for the step of its values.
CELL = 1e-3
# Probability of a cell that a model holds impossible, below that of the rarest cells that are met.
IMPOSSIBLE = 1e-12
# Smaller changes, in nats per row, are none.
NO_CHANGE = 5e-4


# ---- tables --------------------------------------------------------------------------------------------------------


def classified(load: Callable[[], Any], most_rows: int = MOST_ROWS) -> Table:
    """Return a table of scikit-learn's form, its first columns and its class."""
    found = load()
    names = found.feature_names[: MOST_COLUMNS - 1]
    columns = {str(name): found.data[:, n] for n, name in enumerate(names)}
    return some(columns | {"class": found.target.astype(str).astype(object)}, most_rows)


def mixed(fetch: Callable[[], Any], most_rows: int = MOST_ROWS) -> Table:
    """Return a table with numbers, text and gaps, with its class."""
    return some(fetch().table, most_rows)


def drawn(law: JointDensity, n: int = 2_900) -> Table:
    """Return rows of a law."""
    X = law.sample(n, rng=1)
    return {name: X[:, n] for n, name in enumerate(law.names)}


def some(table: Table, most: int) -> Table:
    """Return at most so many rows of a table, at random."""
    n = len(next(iter(table.values())))
    return rows(table, np.random.default_rng(0).permutation(n)[:most])


TABLES: dict[str, Callable[[], Table]] = {
    "wine": partial(classified, load_wine),
    "cancer": partial(classified, load_breast_cancer),
    "seeds": partial(classified, load_seeds),
    "banknote": partial(classified, load_banknote),
    "raisin": partial(classified, load_raisin),
    "penguins": partial(mixed, fetch_penguins),
    "adult": partial(mixed, fetch_adult, 1_500),
    "generated": partial(generated, 0, n=1_000),
    "hybrid": lambda: drawn(hybrid(0)),
    "laplacians": lambda: drawn(laplacians(0)),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to learn from and rows to be judged by.

    Parameters
    ----------
    table : str
    seed : int
        Of the split and of the fit.
    train, held_out : Table
    widths : mapping of column names to float
        Widths of cells.
    """

    table: str
    seed: int
    train: Table
    held_out: Table
    widths: Mapping[str, float]

    @property
    def n_train(self) -> int:
        """Number of rows to learn from."""
        return len(next(iter(self.train.values())))

    @classmethod
    def of(cls, name: str, table: Table, seed: int) -> Task:
        """Split a table."""
        n = len(next(iter(table.values())))
        order = np.random.default_rng(seed).permutation(n)
        n_train = round(TRAINING * n)
        return cls(name, seed, rows(table, order[:n_train]), rows(table, order[n_train:]), cell_widths(table))


def cell_widths(table: Table) -> dict[str, float]:
    """Return the width of a cell of each column: a thousandth of the range, or the step of values if that is larger.

    Integers and categories are one apart.
    """
    found = {}
    for variable in Profile.of(table).schema():
        low, high = variable.observed
        is_continuous = variable.kind == "continuous"
        found[variable.name] = max(CELL * (high - low), variable.step) if is_continuous else 1.0
    return found


def log_likelihood(density: JointDensity, task: Task) -> float:
    """Return the mean log-probability of the held-out rows' cells, in nats."""
    X = encode(read_table(task.held_out), density.schema, unseen="missing")
    mixture = density.mixture
    total = np.tile(np.log(mixture.weights), (len(X), 1))
    for n, name in enumerate(density.names):
        half = task.widths[name] / 2
        values, where = np.unique(X[:, n], return_inverse=True)
        masses = mixture.dictionaries[n].closed_mass(values - half, values + half) @ mixture.coefficients[n]
        masses[np.isnan(values)] = 1.0
        masses[masses.max(axis=1) <= 0] = IMPOSSIBLE
        with np.errstate(divide="ignore"):  # zero under some components
            total += np.log(np.maximum(masses, 0.0))[where]
    # cells that are possible one by one may be impossible together
    return float(np.maximum(logsumexp(total, axis=1), len(mixture.dictionaries) * np.log(IMPOSSIBLE)).mean())


# ---- fits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Refit:
    """A fit in stages: the columns, the dictionaries to choose from, the search, and the density.

    Parameters
    ----------
    columns : tuple
        Schema and axes.
    offered : tuple
        Sets of dictionaries, and the state of the generator then.
    chosen : tuple
        Choice, and the state of the generator then.
    density : JointDensity
    seconds : tuple of float
        Seconds of the processor, of the last three stages.
    """

    columns: tuple[Any, ...]
    offered: tuple[list[Models], Mapping[str, Any]]
    chosen: tuple[Choice, Mapping[str, Any]]
    density: JointDensity
    seconds: tuple[float, float, float]


def refit(
    task: Task, acts: Collection[str] = STAGES, base: Refit | None = None, *, n_bins: int = N_BINS, **options: Any
) -> Refit:
    """Do what `JUPAD(random_state=task.seed).fit(task.train)` does, less the check.

    Parameters
    ----------
    task : Task
    acts : collection of `STAGES`
        Those on which the constant acts that was changed.
    base : Refit, optional
        The fit with every constant as it is. Its stages are reused, with their seconds, if the constant does not act on
        them and their inputs are the same.
    n_bins : int
    **options
        Other parameters of JUPAD.
    """
    asked, rng = Options(**options), generator(task.seed)
    settled = ColumnOptions(None, None, None, (), (), n_bins, {}).settle(Profile.of(task.train))
    columns = settled.schema, settled.axes
    coded = CodedRows.of(task.train, *columns)
    ordered = in_order(coded)

    def stage(work: Callable[[], Any]) -> tuple[tuple[Any, Mapping[str, Any]], float]:
        found, seconds = timed(work)
        return (found, rng.bit_generator.state), seconds

    def search() -> Choice:
        with patched("fitting/choice/search.py", "dictionary_options", lambda *_, **__: offered[0]):
            return choose_model(ordered, asked, rng)

    same = base is not None and base.columns == columns
    if same and "dictionaries" not in acts:
        offered, first = base.offered, base.seconds[0]
    else:
        is_large, n_models = len(ordered) >= search_module.LARGE_TABLE, number_of_models(asked, len(ordered))
        offered, first = stage(lambda: dictionary_options(ordered, {}, rng, n_models, families=is_large))
        same = same and offered == base.offered
    if same and "search" not in acts:
        chosen, second = base.chosen, base.seconds[1]
    else:
        rng.bit_generator.state = offered[1]
        chosen, second = stage(search)
        same = same and _settled(*chosen) == _settled(*base.chosen)
    if same and "density" not in acts:
        return Refit(columns, offered, chosen, base.density, (first, second, base.seconds[2]))
    rng.bit_generator.state = chosen[1]
    fit, third = timed(lambda: fit_rows(coded, asked, rng, choice=chosen[0]))
    return Refit(columns, offered, chosen, fit.density, (first, second, third))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of work and its seconds of the processor, on which other work has little influence."""
    start = time.process_time()
    return work(), time.process_time() - start


def _settled(choice: Choice, state: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what the density depends on; the scores of a choice are for information only."""
    return choice.models, choice.n_components, choice.beta, choice.learn_dictionary, state


# ---- constants -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant:
    """A constant, and other values of it.

    Parameters
    ----------
    where : str
        Its module, as the page names it.
    name : str
        As the page names it.
    acts : tuple of `STAGES`
        Those on which it acts directly.
    others : mapping of words to values
    least_rows : int
        Fewest training rows of a table on which it acts.
    """

    where: str
    name: str
    acts: tuple[str, ...]
    others: Mapping[str, Any]
    least_rows: int = 0

    @property
    def parameter(self) -> str | None:
        """Name of the parameter of JUPAD whose default it is, or None."""
        return self.name[len("JUPAD(") : -1] if self.name.startswith("JUPAD(") else None

    def refit(self, task: Task, value: Any, base: Refit) -> Refit:
        """Fit with another value."""
        if task.n_train < self.least_rows:
            return base
        if self.parameter:
            return refit(task, self.acts, base, **{self.parameter: value})
        with patched(self.where, self.name, value):
            return refit(task, self.acts, base)


@contextmanager
def patched(where: str, name: str, value: Any) -> Iterator[None]:
    """Set a constant, in its module and in all that import it by name, and set it back."""
    old = getattr(module_of(where), name)
    loaded = [vars(module) for path, module in sys.modules.items() if path.partition(".")[0] == "jointwise"]
    holders = [names for names in loaded if names.get(name) is old]
    try:
        for names in holders:
            names[name] = value
        yield
    finally:
        for names in holders:
            names[name] = old


def module_of(where: str) -> ModuleType:
    """Return the module at a path below the package."""
    return import_module(f"jointwise.{where.removesuffix('.py').replace('/', '.')}")


def by_two(value: float) -> dict[str, Any]:
    """Half and twice a number; whole numbers stay whole."""
    return {"halved": value // 2 if isinstance(value, int) else value / 2, "doubled": value * 2}


def by_ten(value: float) -> dict[str, Any]:
    """A tenth and ten times a number."""
    return {"a tenth": value / 10, "tenfold": value * 10}


def around(
    where: str, names: str, acts: tuple[str, ...], others: Callable[[Any], dict[str, Any]], least_rows: int = 0
) -> list[Constant]:
    """Return constants of a module with other values computed from their own."""
    module = module_of(where)
    return [Constant(where, name, acts, others(getattr(module, name)), least_rows) for name in names.split()]


COLUMNS, DICTIONARIES, SEARCH, DENSITY = ((stage,) for stage in STAGES)
CONSTANTS = [
    *around("tables/variables.py", "MAX_ENUMERATED", COLUMNS + DICTIONARIES, by_two),
    *around("marginals/sketch.py", "_SPIKE_ROWS _SPIKE_SHARE _SPIKE_FACTOR", COLUMNS, by_two),
    *around("marginals/support.py", "LEAST_ROWS LEAST_EXPECTED LEAST_REPEATS", COLUMNS, by_two),
    *around("marginals/support.py", "LEAST_FACTOR_ROWS FACTOR SKEW", COLUMNS, by_two),
    *around("marginals/support.py", "LOWER", COLUMNS, lambda _: {"none": (), "with 1": (0.0, 1.0)}),
    *around("marginals/support.py", "UPPER", COLUMNS, lambda old: {"none": (), "with 10 and 1,000": (*old, 10.0, 1e3)}),
    *around("marginals/support.py", "LEVELS", COLUMNS, lambda old: {"the first": old[:1], "the first two": old[:2]}),
    Constant("estimators/jupad.py", "JUPAD(n_bins)", COLUMNS, by_two(N_BINS)),
    *around("marginals/profile.py", "_TAIL", COLUMNS, by_two),
    *around("fitting/choice/dictionaries.py", "N_FOLDS GOOD_ERRORS SELECTION_STEPS", DICTIONARIES, by_two),
    *around("fitting/choice/dictionaries.py", "SELECTION_TOL TRACE", DICTIONARIES, by_ten),
    *around("fitting/choice/candidates.py", "GRIDS", DICTIONARIES, lambda old: {
        "half the locations": tuple(((n + 1) // 2, ratio) for n, ratio in old),
        "twice": tuple((2 * n - 1, ratio) for n, ratio in old),
    }),
    *around("fitting/choice/candidates.py", "SIZES", DICTIONARIES, lambda old: {
        "half the locations": tuple((n + 1) // 2 for n in old), "twice": tuple(2 * n - 1 for n in old),
    }),
    *around("fitting/choice/candidates.py", "POSITIVE_FACTOR UNEVEN_FACTOR", DICTIONARIES, by_two),
    *around("fitting/choice/candidates.py", "JUMP_FACTOR JUMP_ERRORS JUMP_ROWS MAX_JUMPS", DICTIONARIES, by_two),
    *around("fitting/choice/candidates.py", "LEAST_LATTICE_SCALE LEAST_INSIDE SHARP", DICTIONARIES, by_two),
    *around("fitting/problem.py", "SMOOTHING", DICTIONARIES + SEARCH + DENSITY, by_two),
    *around("fitting/choice/folds.py", "SMALL_TABLE", SEARCH, by_two),
    *around("fitting/choice/search.py", "NUMBERS", SEARCH, lambda old: {
        "powers of two": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), "up to 64": old[:12],
    }),
    *around("fitting/choice/search.py", "BETAS", SEARCH, lambda old: {
        "every second": old[::2], "from 0.03 to 100": (0.03, *old, 100.0),
    }),
    *around("fitting/choice/search.py", "FIRST_NUMBER FIRST_BETA ROWS_PER_COMPONENT SEARCH_STEPS", SEARCH, by_two),
    *around("fitting/choice/search.py", "LEAST_GAIN SEARCH_TOL", SEARCH, by_ten),
    *around("fitting/choice/search.py", "LARGE_TABLE", DICTIONARIES + SEARCH, by_two, 1_000),
    *around("fitting/choice/search.py", "LEARNING_GAIN", SEARCH, by_ten, 2_000),
    *around("fitting/atoms.py", "HOLD_ROWS STEPS_PER_MOVE MOST_MOVES LONGEST_MOVE", SEARCH + DENSITY, by_two, 2_000),
    *around("fitting/choice/search.py", "MODELS", DICTIONARIES, lambda _: {
        "1 model": (), "2 models": ((10_000, 2),), "10 models": ((10_000, 10),),
    }),
    Constant("estimators/jupad.py", "JUPAD(n_init)", DENSITY, by_two(JUPAD().n_init)),
    *around("fitting/starts.py", "MANY_COMPONENTS SHORT_STEPS", DENSITY, by_two),
    Constant("estimators/jupad.py", "JUPAD(tol)", DENSITY, by_ten(JUPAD().tol)),
    Constant("estimators/jupad.py", "JUPAD(max_iter)", DENSITY, by_two(JUPAD().max_iter)),
    *around("fitting/average.py", "LEAST_ROWS", DENSITY, by_two),
    *around("fitting/average.py", "SAME", DENSITY, by_ten),
    *around("joint/tails.py", "LIMITS", DENSITY, lambda old: {
        "none": (),
        "rows halved": tuple((widened, most / 2, left / 2) for widened, most, left in old),
        "rows doubled": tuple((widened, most * 2, left * 2) for widened, most, left in old),
    }),
    *around("joint/tails.py", "LEAST_ROWS LEAST_INSIDE", DENSITY, by_ten),
]  # fmt: skip


# ---- the run -------------------------------------------------------------------------------------------------------


def run(
    seeds: Sequence[int] = SEEDS,
    constants: Sequence[Constant] = CONSTANTS,
    tables: Mapping[str, Callable[[], Table]] = TABLES,
) -> list[Row]:
    """Return one row for each other value of each constant."""
    warnings.simplefilter("ignore", UnseenCategoryWarning)  # a category that is only held out counts as a gap
    tasks = [Task.of(name, load(), seed) for name, load in tables.items() for seed in seeds]
    refit(tasks[0])  # compiles
    bases = [refit(task) for task in tasks]
    scores = np.array([log_likelihood(base.density, task) for task, base in zip(tasks, bases, strict=True)])
    seconds = sum(sum(base.seconds) for base in bases)
    console = Console(stderr=True)
    console.print(f"{len(tasks)} fits, constants as they are: {scores.mean():.3f} nats, {seconds:.0f} seconds.")
    found = []
    for constant in constants:
        for words, value in constant.others.items():
            fits = [constant.refit(task, value, base) for task, base in zip(tasks, bases, strict=True)]
            gains = np.array([log_likelihood(f.density, t) for t, f in zip(tasks, fits, strict=True)]) - scores
            by_table = gains.reshape(len(tables), len(seeds)).mean(axis=1)
            found.append(
                {
                    "constant": constant.name,
                    "where": constant.where,
                    "set to": words,
                    "nats": f"{gains.mean():+.4f}",
                    "noise": f"{gains.std(ddof=1) / np.sqrt(len(gains)):.4f}",
                    "tables worse": int((by_table < -NO_CHANGE).sum()),
                    "tables better": int((by_table > NO_CHANGE).sum()),
                    "time": f"{100 * (sum(sum(f.seconds) for f in fits) / seconds - 1):+.0f}%",
                }
            )
            console.print(" ".join(map(str, found[-1].values())), highlight=False, soft_wrap=True)
    return found
