"""RowAnswers: what a joint density says of each row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from jointwise._checks import check_integer, check_real, listed, shown
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.joint import explanation, prediction
from jointwise.joint.divergence import unlikeness
from jointwise.joint.expert import Expert
from jointwise.joint.explanation import Oddness, Reasons
from jointwise.joint.oddness import CellOddness, RowOddness
from jointwise.joint.quantiles import Quantiles
from jointwise.joint.values import native, one_row
from jointwise.tables import decode, encode, read_table
from jointwise.tables.gaps import with_partners
from jointwise.tables.table import Table
from jointwise.tables.variables import Kind, Schema, Variable


class RowAnswers:
    """Answers about each row of a table: predictions, expectations, draws, fillings, and how odd its cells are.

    Rows may be a frame of any library, an array, a mapping of names to columns, or a mapping of names to the cells of
    one row. Missing cells and absent columns are integrated out. If gaps are part of the model, a missing cell also
    tells that it is missing, an absent column tells nothing, and the column that is asked about is ignored in all.
    If a row is impossible under the density, its impossible cells are ignored, except where a method says how odd they
    are. Answers that are tables are frames like that of the rows; without one, of the type that the density was learned
    from.
    """

    schema: Schema
    mixture: Expert

    # ---- one column --------------------------------------------------------------------------------------

    def predict(
        self, target: str, x: Any, *, interval: float | None = None, quantiles: Sequence[float] | None = None
    ) -> Any:
        """Best guess of ``target`` for each row: most probable category, conditional mean, or nearest integer to it.

        Parameters
        ----------
        target : str
        x : rows
            What they hold in the column of the target is ignored.
        interval : float, optional
            Share of the middle interval to give beside the guess, such as 0.8. The result is then a table with the
            columns ``target``, ``target 10%`` and ``target 90%``, a frame if ``x`` is one. The ends of a rounded column
            are the first and the last of its values inside the interval.
        quantiles : sequence of float, optional
            Levels of quantiles, each a further column such as ``target 25%``.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> X = f.sample(2, rng=0)
        >>> name = f.names[0]
        >>> f.predict(name, X).shape, f.predict(name, X, interval=0.8).shape
        ((2,), (2, 3))
        """
        n, variable = self._target(target)
        X = self._partial_rows(x, about=[n])
        guess = prediction.best_values(self.mixture, n, variable.kind, X)
        if interval is None and quantiles is None:
            return native(variable, guess)
        asked = _asked(interval, quantiles)
        if variable.kind is Kind.CATEGORICAL and not variable.ordered:
            raise InputError(
                f"{shown(target)} has categories without an order, so it has no quantiles; see predict_proba."
            )
        found = asked.of_rows(self.mixture, n, variable, X)
        columns = [replace(variable, name=f"{target} {100 * q:.10g}%") for q in asked.levels]
        renamed = _renamed(self.schema, [variable, *columns])
        return decode(np.column_stack([variable.settle(guess), found]), renamed, like=x)

    def predict_proba(self, target: str, x: Any) -> FloatArray:
        """P(category | row) of a categorical ``target``, columns in the order of its categories; shape (n, C)."""
        n, variable = self._target(target)
        if variable.categories is None:
            raise InputError(
                f"predict_proba needs a categorical target and {shown(target)} is {variable.kind}; use "
                "probability({...}, x) for intervals, or predict."
            )
        return prediction.category_probabilities(
            self.mixture, n, self._partial_rows(x, about=[n]), len(variable.categories)
        )

    def expect(self, name: str, x: Any) -> FloatArray:
        """E[column | row] for each row, an integer's not rounded, NaN where tails allow no mean; shape (n,).

        A date's is in days since 1970-01-01.
        """
        n, variable = self._target(name)
        if variable.categories is not None:
            raise InputError(f"{shown(name)} has categories and no mean; see predict and predict_proba.")
        return prediction.expectations(self.mixture, n, self._partial_rows(x, about=[n]))

    # ---- gaps --------------------------------------------------------------------------------------------

    def impute(self, x: Any) -> Any:
        """``x`` with every missing cell filled by its best guess given the rest of its row.

        A category that the density does not know counts as missing, with a warning. If gaps are part of the model, the
        guess of a missing cell is given that it is missing.
        """
        X = encode(read_table(one_row(x, self.schema.columns)), self.schema, unseen="missing")
        return decode(prediction.fill(self.mixture, self.schema, X), self.schema, like=x)

    def sample_given(self, x: Any, n: int = 1, *, rng: np.random.Generator | int | None = None) -> Any:
        """``n`` draws for each row: its missing cells and absent columns drawn together, given its other cells.

        The result has n rows for the first row of ``x``, then n for the second, and so on. It has no gaps.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> known = f.sample(2, rng=0)
        >>> known[:, 1:] = np.nan
        >>> draws = f.sample_given(known, 3, rng=0)
        >>> draws.shape, bool((draws[:3, 0] == known[0, 0]).all())
        ((6, 4), True)
        """
        X = encode(self._table(x), self.schema, unseen="missing", absent="missing")
        repeated = np.repeat(X, check_integer("n", n, 0), axis=0)
        complete = self.mixture.complete(repeated, np.random.default_rng(rng))
        return decode(np.where(np.isnan(repeated), self.schema.settle(complete), repeated), self.schema, like=x)

    # ---- oddness -----------------------------------------------------------------------------------------

    def surprisal(self, x: Any) -> FloatArray:
        r"""How odd each cell is given the other cells of its row, in nats; shape (n, N).

        .. math:: s_n = -\log p(x_n \mid x_{-n}) - H(X_n \mid X_{-n})

        The entropy of the column given the others is what a cell has on average, so zero is a usual cell, and columns
        of all kinds can be compared. NaN for a missing cell, infinite for an impossible one, such as an unknown
        category. The entropy comes from 2,000 rows drawn from the density, the same in each call.

        If gaps are part of the model, whether a cell is there has a surprisal of the same form, which a gap has alone
        and a value in addition to its own among the values that are shown.
        """
        return self._cell_oddness.of(self._partial_rows(x))

    def oddness(self, x: Any) -> FloatArray:
        r"""How odd each row is, in nats, whatever its gaps; shape (n,).

        .. math:: -\log f(x_K) - H(X_K)

        K are the known columns of the row. The entropy is what a row of which the same is known has on average, so zero
        is a usual row, and rows with different gaps can be compared, as their log-densities cannot. Infinite for an
        impossible row. The entropies come from 2,000 rows drawn from the density for each pattern of gaps, fewer if
        there are more than 200 patterns, and at least 50; the draws are the same in each call.

        If gaps are part of the model, a row is measured against rows with the same gaps, and its gaps against those of
        all rows.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> rows = f.sample(3, rng=0)
        >>> rows[0, 1:], rows[1, 1:], rows[1, 0] = np.nan, np.nan, 40.0
        >>> int(np.argmax(f.oddness(rows)))
        1
        """
        return self._row_oddness.of(self._partial_rows(x))

    def explain(self, row: Any, target: str | None = None) -> Oddness | Reasons:
        """Explain one row: which cells make it odd, or which moved the prediction of ``target``.

        Parameters
        ----------
        row : mapping of names to cells, or a table of one row
        target : str, optional
            If given, the result tells how the prediction of this column from the others would change if each cell were
            forgotten.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> row = f.sample(1, rng=0)
        >>> row[0, 2] = 1e6
        >>> f.explain(row).cells[0].name == f.names[2]
        True
        """
        X = self._partial_rows(row, about=() if target is None else [self._target(target)[0]])
        if len(X) != 1:
            raise InputError(f"`row` must be one row; got {len(X)}. See surprisal and contributions for tables.")
        if target is not None:
            return explanation.explain_prediction(self.schema, self.mixture, self._target(target)[0], X[0])
        if np.isnan(X).all():
            raise InputError("`row` has no known cell, so nothing in it can be odd.")
        return explanation.explain_oddness(self.schema, self.mixture, self._cell_oddness, self._row_oddness, X[0])

    def contributions(self, target: str, x: Any) -> FloatArray:
        """How each cell moved the prediction of ``target``; shape (n, N).

        The prediction with all cells, less that without this one. A number's prediction is its conditional mean, a
        category's the log-probability of the one that is predicted. NaN for missing cells and for the target itself.
        """
        n, _ = self._target(target)
        return explanation.contributions(self.schema, self.mixture, n, self._partial_rows(x, about=[n]))

    # ---- likeness ----------------------------------------------------------------------------------------

    def similar(self, x: Any, to: Any, wrt: str | Sequence[str]) -> FloatArray:
        """How unlike each row is to another in what it tells of some columns, in nats; shape (n,).

        The Jensen-Shannon divergence between the laws of a column given the other cells of one row and of the other,
        added up over the columns ``wrt``. Zero: both rows tell the same; 0.69 for a column: no value is possible under
        both. Numbers are cut into 16 intervals.

        Parameters
        ----------
        x : rows
        to : mapping of names to cells, or a table of one row
        wrt : str or list of str
            Columns about which the rows are compared; what the rows hold there is ignored.

        Examples
        --------
        >>> from jointwise.datasets import hybrid
        >>> f = hybrid(rng=0)
        >>> X = f.sample(5, rng=0)
        >>> int(np.argmin(f.similar(X, to=X[[3]], wrt=f.names[0])))
        3
        """
        about = [self._target(name)[0] for name in ([wrt] if isinstance(wrt, str) else wrt)]
        X, row = self._partial_rows(x, about=about), self._partial_rows(to, about=about)
        if len(row) != 1:
            raise InputError(f"`to` must be one row; got {len(row)}.")
        return unlikeness(self.schema, self.mixture, about, X, row[0])

    # ---- helpers -----------------------------------------------------------------------------------------

    @cached_property
    def _cell_oddness(self) -> CellOddness:
        return CellOddness(self.schema, self.mixture)

    @cached_property
    def _row_oddness(self) -> RowOddness:
        return RowOddness(self.schema, self.mixture)

    def _table(self, x: Any) -> Table:
        """Read rows that may lack columns; a name that the density does not know is refused where it may be a slip."""
        found = one_row(x, self.schema.columns)
        if found is not x and not set(found) >= set(self.schema.columns):  # part of a row
            for name in found:
                self.schema.index(name)
        table = read_table(found)
        if table.container != "numpy" and not set(table.names) & set(self.schema.names):
            raise InputError(
                f"The table has none of the columns {listed(self.schema.columns)}; it has {listed(table.names)}."
            )
        return table

    def _target(self, name: str) -> tuple[int, Variable]:
        return self.schema.index(name), self.schema[name]

    def _partial_rows(self, x: Any, about: Iterable[int] = ()) -> FloatArray:
        """Return encoded rows; of variables that a question is about, it is not told whether they are missing."""
        X = encode(self._table(x), self.schema, absent="missing")
        if self.schema.gaps:
            X[:, with_partners(about, self.schema)] = np.nan
        return X


def _asked(interval: float | None, quantiles: Sequence[float] | None) -> Quantiles:
    """Return the quantiles that are asked for."""
    others = [check_real("quantiles", q) for q in (() if quantiles is None else np.atleast_1d(quantiles).tolist())]
    share = None if interval is None else check_real("interval", interval)
    if share is not None and not 0 < share < 1:
        raise InputError(f"`interval` must be a share between 0 and 1, such as 0.8; got {shown(interval)}.")
    if not all(0 < q < 1 for q in others):
        raise InputError(f"`quantiles` must lie between 0 and 1; got {shown(quantiles)}.")
    return Quantiles.of(share, others)


def _renamed(schema: Schema, variables: Sequence[Variable]) -> Schema:
    """Return variables of one column under several names, in the container of a schema."""
    return replace(schema, variables=tuple(variables))
