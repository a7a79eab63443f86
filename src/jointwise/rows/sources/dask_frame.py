"""Dask DataFrames: the workers keep the codes, and each pass is a set of tasks on them.

Without a client everything runs in Dask's own scheduler in this process, whose memory then holds the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from operator import add, call
from pathlib import Path
from typing import Any

from jointwise.axes import Axis
from jointwise.exceptions import ClusterError
from jointwise.rows.base import Rows, StatisticT
from jointwise.rows.parted import Part, PartedRows, Parts
from jointwise.rows.sources.base import Source
from jointwise.tables.variables import Schema

# Seconds between two checks that the scheduler still runs.
PATIENCE = 1.0
# Values that one task adds: fewer tasks than with two, and still little memory.
BRANCHES = 8


def source(frame: Any) -> Source:
    """Return the source of a Dask DataFrame."""
    return DaskSource(frame)


class DaskSource(Source):
    """A Dask DataFrame; each partition is a block.

    If a worker is lost, the scheduler computes its partitions again. The result is the same if they hold the same rows
    each time.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    """

    container = "pandas"

    def __init__(self, frame: Any) -> None:
        self._blocks: list[Any] = frame.to_delayed()
        self._cluster = _Cluster()

    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all partitions, added as a tree on the workers."""
        total: StatisticT = self._cluster.compute(_tree_sum(_applied(statistic, self._blocks)))
        return total

    @contextmanager
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> Iterator[Rows]:  # noqa: ARG002
        """Context that yields the coded rows, which stay in the workers' memory until it ends."""
        code = partial(Part.of, schema=schema, axes=tuple(axes), weights=self.weights)
        parts = _DaskParts(self._cluster, self._cluster.persist(_applied(code, self._blocks)))
        try:
            yield PartedRows(schema, axes, parts, weighted=self.weights is not None)
        finally:
            parts.release()


class _DaskParts(Parts):
    """Codes of the partitions as persisted values of Dask."""

    def __init__(self, cluster: _Cluster, codes: list[Any]) -> None:
        self._cluster = cluster
        self._codes = codes

    def total(self, statistic: Callable[[Part], StatisticT]) -> StatisticT:
        total: StatisticT = self._cluster.compute(_tree_sum(_applied(statistic, self._codes)))
        return total

    def each(self, function: Callable[[Part, Any], Any], arguments: Sequence[Any]) -> list[Any]:
        from dask import delayed

        found: list[Any] = self._cluster.compute(delayed(list, pure=False)(_applied(function, self._codes, arguments)))
        return found

    @cached_property
    def lengths(self) -> Sequence[int]:
        return self.each(_length, [None] * len(self._codes))

    def release(self) -> None:
        """Let the workers drop the codes, even if these parts are still referenced."""
        self._codes = []


class _Cluster:
    """Where Dask runs tasks: on the workers of the current client, or in this process."""

    def __init__(self) -> None:
        from dask.base import get_scheduler

        # a client's scheduler is its method `get`; those of this process are functions
        self._client: Any = getattr(get_scheduler(), "__self__", None)

    def persist(self, values: list[Any]) -> list[Any]:
        """Start to compute values where they are, and return them as kept values."""
        import dask

        if self._client is None:
            return list(dask.persist(*values))
        with self._explained():
            return list(self._client.persist(values))

    def compute(self, value: Any) -> Any:
        """Wait for a value and return it."""
        if self._client is None:
            return value.compute()
        with self._explained():
            future = self._client.compute(value)
            try:
                return self._result(future)
            finally:
                future.release()

    def _result(self, future: Any) -> Any:
        """Wait for a result as long as the scheduler runs."""
        while True:
            try:
                return future.result(timeout=PATIENCE)
            except TimeoutError:
                if future.status == "error":  # the timeout may be an error of the task itself
                    return future.result()
                if self._client.status != "running":
                    raise CancelledError(f"its client is {self._client.status}") from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Context in which failures of the cluster become a ClusterError; errors of tasks pass unchanged."""
        from distributed import KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"{error.allowed_failures + 1} Dask workers ended while they worked on the same part of the table, "
                "probably because they ran out of memory; make the parts smaller, for instance with "
                'frame.repartition(partition_size="100MB"), or give each worker more memory.'
            ) from error
        except (CancelledError, ClosedClientError, CommClosedError) as error:
            raise ClusterError(
                "The Dask scheduler was lost before the fit was done; start the cluster, connect a client to it, and "
                "fit again."
            ) from error


def _applied(function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[Any] | None = None) -> list[Any]:
    """Return the results of a function for every part, as tasks; it is sent once, as the result of a task."""
    from dask import delayed

    sent = delayed(_same, pure=False)(function)
    applied = delayed(call, pure=False)
    if arguments is None:
        return [applied(sent, part) for part in parts]
    return [applied(sent, part, own) for part, own in zip(parts, arguments, strict=True)]


def _tree_sum(values: Sequence[Any]) -> Any:
    """Return the sum of values as a tree of tasks: neighbours are added, then neighbouring sums, and so on."""
    from dask import delayed

    plus = delayed(_sum, pure=False)
    while len(values) > 1:
        values = [plus(*values[n : n + BRANCHES]) for n in range(0, len(values), BRANCHES)]
    return values[0]


def _sum(*values: Any) -> Any:
    return reduce(add, values)


def _same(value: Any) -> Any:
    return value


def _length(part: Part, _: None) -> int:
    return len(part.codes)
