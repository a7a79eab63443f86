"""JointDensity: the answer object. Variables by name, tables in and out, closed under marginal and condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from jointwise._checks import LONGEST, check_integer, check_real, listed, shown
from jointwise._typing import FloatArray
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint import answers, events, information, prediction, serialization, updating
from jointwise.joint.answers import Answer
from jointwise.joint.block import BlockMixture
from jointwise.joint.check import Check, check_rows
from jointwise.joint.conditioning import conditioned
from jointwise.joint.divergence import Divergence, divergence
from jointwise.joint.events import Alternatives, Point, boxes, parse_region
from jointwise.joint.expert import Expert
from jointwise.joint.forest import ForestMixture
from jointwise.joint.information import Estimate
from jointwise.joint.margin import Margin
from jointwise.joint.product import ProductMixture
from jointwise.joint.row_answers import RowAnswers
from jointwise.joint.sum import mixed, parts_of
from jointwise.joint.values import is_series, native, one_row, plain
from jointwise.tables import decode, emptied, encode, read_table
from jointwise.tables.dtypes import is_missing, is_temporal
from jointwise.tables.variables import Kind, Schema, Variable

# Experts that a file may hold, by kind.
EXPERTS: dict[str, type[Expert]] = {kind.KIND: kind for kind in (ProductMixture, BlockMixture, ForestMixture)}
# Characters of a verdict: some sentences.
MOST_VERDICT = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class JointDensity(RowAnswers):
    r"""Joint probability of the variables of a table, as a weighted sum of experts.

    .. math:: f(x) = \sum_k w_k f_k(x)

    Each expert f_k answers the questions of :class:`jointwise.joint.Expert`. There are three kinds: a mixture of
    products (:class:`~jointwise.joint.product.ProductMixture`), one whose components are Gaussian over a block C of
    columns seen through warps w (:class:`~jointwise.joint.block.BlockMixture`), and one whose components are trees over
    the states s of the columns (:class:`~jointwise.joint.forest.ForestMixture`).

    .. math::
        f_k(x) &= \sum_r \lambda_r \prod_n \sum_l B_n[l, r] \, d_{n,l}(x_n) \\
        f_k(x) &= \sum_r \lambda_r \, N(w(x_C); \mu_r, \Sigma_r) \, |w'(x_C)|
                  \prod_{n \notin C} \sum_l B_n[l, r] \, d_{n,l}(x_n) \\
        f_k(x) &= \sum_r \lambda_r \sum_s \prod_n p_r(s_n \mid s_{parent_r(n)}) \, d_{n,s_n}(x_n)

    The base measure is counting measure for categorical and integer variables, and Lebesgue measure plus a unit
    mass at each spike for continuous ones. Answers of products and trees are finite sums. So are those of blocks, but
    for intervals of their columns, which are integrals: to 1e-12 with one or two of them, to about 1e-4 of the answer
    with more. The module :mod:`jointwise.joint.block` says how exact each answer is.

    Parameters
    ----------
    schema : Schema
        The variables, in order.
    mixture : Expert
        The expert, or the sum of several, of the same variables in the same order.
    verdict : str
        What a check of the fit said, in at most 2,000 characters; empty where there was none.

    Examples
    --------
    >>> from jointwise.dictionary import Dictionary
    >>> from jointwise.tables.variables import Schema, Variable
    >>> schema = Schema((Variable("pay", "continuous"), Variable("sex", "categorical", categories=("F", "M"))))
    >>> atoms = (Dictionary.grid("gaussian", 0, 1, n=2, scale=1), Dictionary.categories(2))
    >>> f = JointDensity(schema, ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], atoms))
    >>> round(f.probability({"pay": (0.5, None), "sex": "F"}), 4)
    0.1543
    >>> round(f.condition({"sex": "F"}).mean()["pay"], 4)
    0.0
    """

    schema: Schema
    mixture: Expert
    verdict: str = ""

    def __post_init__(self) -> None:
        if len(self.schema) != self.mixture.n_variables:
            raise InputError(
                f"The schema has {len(self.schema)} variables but the mixture has {self.mixture.n_variables}."
            )
        for n, variable in enumerate(self.schema):
            _check_atoms(variable, self.mixture, n)
        if not isinstance(self.verdict, str) or len(self.verdict) > MOST_VERDICT:
            raise InputError(f"verdict must be text of at most {MOST_VERDICT:,} characters.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, those of the table; ``gaps`` has the names of variables that tell of their gaps."""
        return self.schema.columns

    @property
    def gaps(self) -> dict[str, str]:
        """Name of the variable that tells whether the cell of a column is missing, by the column's name.

        It is empty unless gaps are part of the model, and holds only columns that have gaps. The variable may be named
        in events, questions, `marginal`, `predict_proba` and `mutual_information`, as any other.
        """
        return self.schema.gaps

    @property
    def n_components(self) -> int:
        """Number of components of the mixture."""
        return self.mixture.n_components

    @classmethod
    def mix(cls, densities: Sequence[JointDensity], weights: ArrayLike | None = None) -> JointDensity:
        r"""Weighted sum of densities of the same variables.

        .. math:: f(x) = \sum_k w_k f_k(x)

        Conditioning the sum reweighs its parts by the probability that each gives to the event.

        Parameters
        ----------
        densities : sequence of JointDensity
            Their variables must agree in name, order, kind, categories and step. Observed ranges, spikes and supports
            may differ; the sum has the widest.
        weights : array of shape (K,), optional
            Not negative, scaled to sum to one; equal by default.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> a, b = hybrid(rng=0), hybrid(rng=1)
        >>> both = JointDensity.mix([a, b], [0.25, 0.75])
        >>> x = a.sample(1, rng=0)
        >>> bool(np.isclose(both.pdf(x), 0.25 * a.pdf(x) + 0.75 * b.pdf(x))[0])
        True
        """
        densities = list(densities)
        if not densities or not all(isinstance(density, JointDensity) for density in densities):
            raise InputError(f"`densities` must be a list of one or more JointDensity; got {shown(densities)}.")
        schema = reduce(Schema.joined, (density.schema for density in densities))
        mixing = np.ones(len(densities)) if weights is None else weights
        return cls(schema, mixed([density.mixture for density in densities], mixing))

    # ---- density -----------------------------------------------------------------------------------------

    def logpdf(self, x: Any) -> FloatArray:
        """Log-density of each row of ``x``; a missing cell integrates its variable out.

        If gaps are part of the model, the density of a row includes the probability that its missing cells are missing
        and the others are there. Nothing is known of a column that is absent.

        It is -inf where a row is impossible: at a fraction of an integer variable, even one that came as floats, and at
        a category that the density does not know (with an `UnseenCategoryWarning`).

        Parameters
        ----------
        x : frame, array of shape (n, N), mapping of names to columns, or one row
            A row is a mapping of names to cells, a pandas series or a list of N cells. A mapping or a series may hold
            some of the variables only: the others are integrated out.
        """
        return self.mixture.logpdf(self._encode(x))

    def pdf(self, x: Any) -> FloatArray:
        """Density of each row of ``x``."""
        with np.errstate(over="ignore"):  # many narrow variables: infinite; their logpdf is not
            return np.exp(self.mixture.logpdf(self._encode(x)))

    def cdf(self, x: Any) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N) of each row; categories count in the order of the schema.

        A category that the density does not know comes before all others: the probability is zero, with a warning.
        A missing cell is integrated out, whether or not gaps are part of the model.
        """
        X = self._encode(x)
        X[:, [self.schema.index(gap) for gap in self.schema.gaps.values()]] = np.nan
        return self.mixture.cdf(events.rounded_up(self.schema, X))

    # ---- events ------------------------------------------------------------------------------------------

    def marginal(self, names: str | Sequence[str]) -> JointDensity:
        """Joint density of a subset of the variables, in the order given.

        It is that of their values. If gaps are part of the model, name the variable of ``gaps`` beside its column to
        keep them.
        """
        positions = self._positions(names)
        schema = self.schema.select([self.schema.names[n] for n in positions])
        return JointDensity(_without_columns_of_gaps(schema), self.mixture.marginal(positions))

    def condition(self, event: Mapping[str, Any]) -> JointDensity:
        """Joint density of the rest, given ``event``.

        Parameters
        ----------
        event : mapping of names to what is known
            A value, ``(low, high)`` (closed, None for an open end), or a set or list of values and intervals. A value
            takes its variable out; all else keeps it, truncated. A pandas series is a row, whose gaps say nothing.
            If gaps are part of the model, ``None`` says that the cell is missing; what then remains of the variable is
            the law of the value that is not shown.

        Warns
        -----
        RareEventWarning
            If the event is nearly impossible, so that the answer extrapolates.
        """
        return JointDensity(*conditioned(self.schema, self.mixture, self._regions(event)))

    @overload
    def probability(self, event: Mapping[str, Any], x: None = None) -> float: ...
    @overload
    def probability(self, event: Mapping[str, Any], x: Any) -> FloatArray: ...
    def probability(self, event: Mapping[str, Any], x: Any = None) -> float | FloatArray:
        """Probability of an event: a value, a closed interval, or a set or list of them, for some of the variables.

        Parameters
        ----------
        event : mapping of names to a value, (low, high), or a set or list of values or intervals
            If gaps are part of the model, ``{"pay": None}`` or ``{"pay missing": True}`` is the event that the cell is
            missing. All else speaks of values, whether or not a table shows them.
        x : frame, array, mapping of names to columns, or to the cells of one row, optional
            If given, the result is P(event | what each row tells), of shape (n,). Missing cells and absent columns are
            integrated out; what a row holds in a column of the event is ignored.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> X = f.sample(3, rng=0)
        >>> event = {f.names[0]: (None, 0.0)}
        >>> alone = f.condition(dict(zip(f.names[1:], X[0, 1:]))).probability(event)
        >>> bool(np.isclose(f.probability(event, X)[0], alone))
        True
        >>> round(f.probability({f.names[0]: [(None, 0), (1, None)]}) + f.probability({f.names[0]: (0, 1)}), 12)
        1.0
        """
        regions = self._regions(event)
        parts = boxes(regions)
        if x is None:
            return float(sum(np.exp(self.mixture.log_probability(box)) for box in parts))
        X = self._partial_rows(x, about=regions)
        return np.minimum(sum(prediction.event_probabilities(self.mixture, box, X) for box in parts), 1.0)

    @overload
    def ask(self, question: str) -> Answer: ...  # type: ignore[overload-overlap]  # a text is a sequence of texts

    @overload
    def ask(self, question: Sequence[str]) -> list[Answer]: ...

    def ask(self, question: str | Sequence[str]) -> Answer | list[Answer]:
        """Answer a question in the language of the command: a probability, a measure, or a distribution.

        Parameters
        ----------
        question : str or sequence of str
            Such as ``"P(job=nurse | age in 30..40)"``, ``"mean(pay | sex=F)"`` or ``"job, age | pay > 30"``; see
            :mod:`jointwise.joint.language`. Several questions get a list of answers.

        Examples
        --------
        >>> from jointwise.dictionary import Dictionary
        >>> from jointwise.tables.variables import Schema, Variable
        >>> schema = Schema((Variable("pay", "continuous"), Variable("sex", "categorical", categories=("F", "M"))))
        >>> atoms = (Dictionary.grid("gaussian", 0, 1, n=2, scale=1), Dictionary.categories(2))
        >>> f = JointDensity(schema, ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], atoms))
        >>> f.ask("P(sex = F | pay > 0.5)")
        P(sex=F | pay > 0.5) = 0.3085
        >>> f.ask(["mean(pay | sex = M)", "sex | -1 < pay < 0"])
        [mean(pay | sex=M) = 1, sex | -1 < pay < 0
          F   71.52%
          M   28.48%]
        """
        if isinstance(question, str):
            return answers.ask(self, question)
        if not isinstance(question, Sequence):
            raise InputError(f"A question is text, or a list of texts; got {shown(question)}.")
        return [answers.ask(self, text) for text in question]

    # ---- samples and moments -----------------------------------------------------------------------------

    def sample(self, n: int = 1, *, rng: np.random.Generator | int | None = None) -> Any:
        """``n`` independent rows, in the frame type that the density was learned from.

        If gaps are part of the model, the rows have gaps as those of the table had.
        """
        rows = self.mixture.sample(check_integer("n", n, 0), np.random.default_rng(rng))
        return decode(emptied(self.schema.settle(rows), self.schema), self.schema)

    def mean(self) -> dict[str, Any]:
        """Mean of each column by name; NaN (a date: None) for categories and where the tails allow none."""
        means = {v: margin.mean() for v, margin in self._margins()}
        return {v.name: plain(v, mean) if is_temporal(v.dtype) else mean for v, mean in means.items()}

    def var(self) -> dict[str, float]:
        """Variance of each column by name, in days squared for dates; NaN or infinite where there is none."""
        return {v.name: margin.var() for v, margin in self._margins()}

    def mode(self) -> dict[str, Any]:
        """Most probable value of each column on its own, by name; a point mass comes before any density."""
        modes = {v: v.settle(np.array([margin.mode()]))[0] for v, margin in self._margins()}
        return {v.name: plain(v, float(mode)) for v, mode in modes.items()}

    def cov(self) -> FloatArray:
        """Covariance matrix of shape (N, N) in the order of ``names``; NaN for categories."""
        places = [self.schema.index(name) for name in self.names]
        return self.mixture.covariance()[np.ix_(places, places)]

    def quantile(self, name: str, q: ArrayLike) -> Any:
        """Smallest value x of a variable with P(X <= x) >= q; a number for a number, an array for an array.

        At 0 and 1 it is the bound of the column, or else of the law's atoms. It is infinite where there is none, as for
        a number of a Gaussian block without bounds; a date is then missing.
        """
        n = self.schema.index(name)
        variable = self.schema.variables[n]
        if variable.kind is Kind.CATEGORICAL and not variable.ordered:
            raise InputError(
                f"{shown(name)} has categories without an order, so it has no quantiles; see predict_proba."
            )
        level = np.asarray(q, dtype=float)
        if not ((level >= 0) & (level <= 1)).all():
            raise InputError(f"q must lie between 0 and 1, got {shown(q)}.")
        values = events.rounded_quantiles(variable, self.mixture.margin(n).quantiles(level))
        return plain(variable, float(values)) if level.ndim == 0 else native(variable, values)

    # ---- information -------------------------------------------------------------------------------------

    def entropy(self, *, rng: np.random.Generator | int | None = None, n_samples: int = 20_000) -> Estimate:
        """-E[log f(X)] in nats with its error; more than two variables are sampled, and rows with gaps in the model."""
        n_samples, generator = check_integer("n_samples", n_samples, 2), np.random.default_rng(rng)
        if self.gaps:
            rows = emptied(self.mixture.sample(n_samples, generator), self.schema)
            return information.sample_mean(-self.mixture.logpdf(rows))
        return information.entropy(self.mixture, generator, n_samples)

    def mutual_information(
        self,
        a: str | Sequence[str],
        b: str | Sequence[str],
        *,
        rng: np.random.Generator | int | None = None,
        n_samples: int = 20_000,
    ) -> Estimate:
        """Mutual information of two variables or groups of variables, in nats; larger groups are sampled."""
        left, right = (self._positions(group) for group in (a, b))
        if set(left) & set(right):
            raise InputError(f"The two sides must not share a variable, got {shown(a)} and {shown(b)}.")
        n_samples = check_integer("n_samples", n_samples, 2)
        return information.mutual_information(self.mixture, left, right, np.random.default_rng(rng), n_samples)

    def divergence(
        self, other: JointDensity, *, rng: np.random.Generator | int | None = None, n_samples: int = 20_000
    ) -> Divergence:
        r"""How far ``other``, a density of the same variables, is from this one, in nats.

        .. math:: D(f, g) = \tfrac12 \mathrm{E}_f \log\frac{2f}{f + g} + \tfrac12 \mathrm{E}_g \log\frac{2g}{f + g}

        It is the Jensen-Shannon divergence: zero if the densities are equal, 0.69 if no row is possible under both. It
        is given for each column alone, for each pair, and in all.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> f.divergence(f, rng=0).total.value
        0.0
        """
        if not isinstance(other, JointDensity):
            raise InputError(f"`other` must be a JointDensity; got {shown(other)}.")
        if set(other.schema.names) != set(self.schema.names):
            raise InputError(
                f"The densities must have the same variables; this one has {listed(self.schema.names)}, the other "
                f"{listed(other.schema.names)}."
            )
        other = other.marginal(self.schema.names)
        schema = self.schema.joined(other.schema)
        n_samples = check_integer("n_samples", n_samples, 2)
        return divergence(schema, self.mixture, other.mixture, np.random.default_rng(rng), n_samples)

    # ---- new rows ----------------------------------------------------------------------------------------

    def updated(self, x: Any, weight: float) -> JointDensity:
        """Density that goes on from this one with new rows, as if this one had been learned from ``weight`` rows.

        A few steps of EM move weights, means and shares of the components; atoms, warps and trees stay as they are. The
        rows behind this density are not needed, and the time is that of a few passes over the new ones. What is new in
        kind needs a new fit: a category that the density does not know counts as missing, with a warning, and so does a
        value that it holds impossible.

        Parameters
        ----------
        x : frame, array of shape (n, N) or mapping of names to columns
            The new rows, without those that the density was learned from.
        weight : float
            Number of rows that this density counts for: that of the rows it was learned from, or fewer if the new ones
            should count for more.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> old, new = hybrid(rng=0), hybrid(rng=1)
        >>> rows, others = new.sample(2000, rng=0), new.sample(2000, rng=1)
        >>> bool(old.updated(rows, weight=100).logpdf(others).mean() > old.logpdf(others).mean())
        True
        """
        if not 0 < check_real("weight", weight) < np.inf:
            raise InputError(f"`weight` must be a positive number of rows; got {shown(weight)}.")
        X = encode(read_table(one_row(x, self.schema.columns)), self.schema, unseen="missing")
        if not len(X):
            return self
        return JointDensity(self.schema.widened(X), updating.updated(self.mixture, X, float(weight)))

    # ---- check -------------------------------------------------------------------------------------------

    def check(self, x: Any, *, rng: np.random.Generator | int | None = None) -> Check:
        """Compare the density with rows: shares of values and intervals, range, means, alone and given another column.

        The result lists errors beyond noise, the worst first, with a verdict in words. Rows that the density was not
        learned from show most.

        Parameters
        ----------
        x : frame, array of shape (n, N) or mapping of names to columns
            If there are more than 20,000 rows, 20,000 are drawn. A category that the density does not know is an error.
        rng : numpy.random.Generator or int, optional
            Draws the rows.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> density = hybrid(rng=0)
        >>> density.check(density.sample(2000, rng=1)).is_clean
        True
        """
        # a category that the density does not know is a finding, not a warning
        X = encode(read_table(one_row(x, self.schema.columns)), self.schema)
        return check_rows(self.schema, self.mixture, X, np.random.default_rng(rng))

    # ---- files -------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the density to one file; :func:`jointwise.load` reads it back."""
        serialization.write(Path(path), self._to_dict())

    @classmethod
    def load(cls, path: str | Path) -> JointDensity:
        """Read a density written by :meth:`save`, with every part checked.

        From a classifier's file, only the joint density is read; see :class:`jointwise.ClassModel`.

        Examples
        --------
        >>> import tempfile
        >>> from jointwise.datasets import hybrid
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hybrid(rng=0).save(f"{folder}/law.jw")
        ...     JointDensity.load(f"{folder}/law.jw")
        JointDensity(4 variables: x0, x1, x2, x3; 8 components)
        """
        return serialization.read(Path(path), lambda content: cls._from_dict(serialization.without_classes(content)))

    def _to_dict(self) -> dict[str, Any]:
        experts, weights = zip(*parts_of(self.mixture), strict=True)
        parts = {
            "schema": self.schema.to_dict(),
            "weights": np.array(weights),
            "experts": [expert.to_dict() for expert in experts],
        }
        return parts | {"verdict": self.verdict} if self.verdict else parts

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> JointDensity:
        parts = {"schema", "weights", "experts"}
        if not isinstance(data, Mapping) or set(data) - {"verdict"} != parts:
            raise FileFormatError(f"its content must have the parts {', '.join(sorted(parts))}")
        experts = [_expert(expert) for expert in data["experts"]]
        if len({expert.n_variables for expert in experts}) != 1:
            raise FileFormatError("its experts must have the same variables")
        return cls(Schema.from_dict(data["schema"]), mixed(experts, data["weights"]), data.get("verdict", ""))

    # ---- to look at --------------------------------------------------------------------------------------

    def explore(self, path: str | Path | None = None, *, title: str | None = None, data: Any = None) -> Any:
        """Write a page on which one conditions with the mouse, or show it in a notebook.

        Parameters
        ----------
        path : str or Path, optional
            HTML file to write: one file that holds the model and works without server or network. Without a path, the
            result is a widget for Jupyter and marimo (``pip install 'jointwise[explore]'``), whose ``evidence`` can be
            read and set.
        title : str, optional
            Heading of the page; by default the name of the file.
        data : frame, array or mapping of names to columns, optional
            Rows of which a sample of 300 is drawn as dots. The page then holds these rows, and a warning says so.

        Examples
        --------
        >>> import tempfile
        >>> from jointwise.datasets import hybrid
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = hybrid(rng=0).explore(Path(folder) / "hybrid.html")
        ...     page.name, page.stat().st_size < 1e6
        ('hybrid.html', True)
        """
        from jointwise import explore

        if path is None:
            return explore.widget(self, title=title or "", data=data)
        return explore.write_page(self, path, title=title, data=data)

    def _repr_html_(self) -> str:
        """Return a still picture of the marginals, which notebooks show."""
        from jointwise import explore

        return explore.picture(self)

    # ---- helpers -----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        some = ", ".join(name[:LONGEST] for name in self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        gaps = f"; gaps of {len(self.gaps)}" if self.gaps else ""
        return f"JointDensity({len(self.names)} variables: {some}{gaps}; {self.n_components} components)"

    def _encode(self, x: Any) -> FloatArray:
        table = one_row(x, self.schema.columns)
        is_part = table is not x and not set(table) >= set(self.schema.columns)  # of a row: the rest is not known
        if is_part:
            for name in table:
                self.schema.index(name)
        return encode(read_table(table), self.schema, unseen="impossible", absent="missing" if is_part else "error")

    def _margins(self) -> Iterator[tuple[Variable, Margin]]:
        """Yield each column with its law."""
        for name in self.names:
            yield self.schema[name], self.mixture.margin(self.schema.index(name))

    def _regions(self, event: Any) -> dict[int, Alternatives]:
        if is_series(event):
            event = {name: cell for name, cell in event.to_dict().items() if not is_missing(cell)}
        if not isinstance(event, Mapping):
            raise InputError(f'An event is written {{"name": value, ...}}, got {shown(event)}.')
        regions: dict[int, Alternatives] = {}
        for name, given in event.items():
            gap = self.schema.gaps.get(name) if not hasattr(given, "__len__") and is_missing(given) else None
            if gap is not None and gap in event:
                raise InputError(f"An event says once whether {shown(name)} is missing; got None and {shown(gap)}.")
            region = parse_region(self.schema[name], given) if gap is None else Point(1.0)
            regions[self.schema.index(gap or name)] = region
        return regions

    def _positions(self, group: str | Sequence[str]) -> list[int]:
        names = [group] if isinstance(group, str) else list(group)
        positions = [self.schema.index(name) for name in names]
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"Name at least one variable, each once, got {shown(group)}; there are: {listed(self.schema.names)}."
            )
        return positions


def _without_columns_of_gaps(schema: Schema) -> Schema:
    """Return a schema in which a variable that tells the gaps of a column which is not there is one like others."""
    alone = {v.name for v in schema if v.gap_of is not None} - set(schema.gaps.values())
    variables = (replace(v, gap_of=None) if v.name in alone else v for v in schema)
    return replace(schema, variables=tuple(variables)) if alone else schema


def _expert(data: Any) -> Expert:
    """Read an expert of any kind from its plain form."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in EXPERTS:
        raise FileFormatError(f"an expert must be of a kind among {listed(EXPERTS)}, got {shown(kind)}")
    return EXPERTS[kind].from_dict(data)


def _check_atoms(variable: Variable, mixture: Expert, n: int) -> None:
    """Refuse atoms of the n-th variable of a mixture that cannot be of the variable's kind."""
    kinds = mixture.atom_kinds(n)
    if variable.categories is not None:
        if kinds.has_numbers or kinds.n_categories > len(variable.categories):
            raise InputError(
                f"{shown(variable.name)} is categorical: its atoms must be Category with codes below "
                f"{len(variable.categories)}, got {mixture.dictionary(n)!r}."
            )
        return
    fractional = kinds.is_continuous or (kinds.spikes != np.round(kinds.spikes)).any()
    if kinds.n_categories or (variable.kind is Kind.INTEGER and fractional):
        raise InputError(
            f"{shown(variable.name)} is {variable.kind}: its atoms cannot be {mixture.dictionary(n)!r}. "
            "Integers take point masses at integers or Lattice(...) of a continuous family."
        )
