"""The page as a live widget of notebooks, whose evidence goes both ways."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from jointwise._checks import shown, warn_caller
from jointwise.exceptions import DataOnPageWarning, InputError, MissingDependencyError
from jointwise.explore.container import packed
from jointwise.explore.export import exported
from jointwise.explore.page import bundled, sampled
from jointwise.joint import JointDensity
from jointwise.tables import encode, read_table
from jointwise.tables.dtypes import is_missing
from jointwise.tables.variables import Kind, Schema, Variable

# What the script holds of a column: positions of categories, or some integers, or the two ends of a range.
Known = dict[str, dict[str, list[Any]]]


def widget(density: JointDensity, *, title: str = "", data: Any = None) -> Any:
    """Return a widget that shows the page of a density.

    Its ``evidence`` is a mapping of names to what is known, as `JointDensity.condition` takes it: a value, ``(low,
    high)``, or a set of categories or integers. It follows the mouse, and the page follows it. ``given`` is the
    density given it.
    """
    rows = None
    if data is not None:
        rows = sampled(
            encode(read_table(data), density.schema, unseen="missing"), density.schema, np.random.default_rng(0)
        )
        warn_caller(f"The widget holds {len(rows)} rows of the data.", DataOnPageWarning)
    return _class()(density, packed(exported(density, title, rows)))


@cache
def _class() -> Any:
    """Return the class of the widget, once its packages are there."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MissingDependencyError(
            "The live widget needs anywidget: pip install 'jointwise[explore]'. A page needs nothing more: "
            "density.explore('page.html')."
        ) from error

    class ExploreWidget(anywidget.AnyWidget):  # type: ignore[misc]  # its types are not published
        """A density to explore in a notebook."""

        _esm = bundled("explore.js")
        _css = bundled("explore.css")
        _packed = traitlets.Unicode("").tag(sync=True)
        _known = traitlets.Dict().tag(sync=True)
        evidence = traitlets.Dict(help="What is known of some columns, as `JointDensity.condition` takes it.")

        def __init__(self, density: JointDensity, model: str) -> None:
            self._density = density
            super().__init__(_packed=model)

        @property
        def given(self) -> JointDensity:
            """The density given the evidence."""
            return self._density.condition(self.evidence) if self.evidence else self._density

        @traitlets.validate("evidence")  # type: ignore[untyped-decorator]
        def _check_evidence(self, proposal: Any) -> Any:
            known_of(self._density.schema, proposal["value"])  # raises for what cannot be shown
            return proposal["value"]

        @traitlets.observe("evidence")  # type: ignore[untyped-decorator]
        def _on_evidence(self, _change: Any) -> None:
            known = known_of(self._density.schema, self.evidence)
            if known != self._known:
                self._known = known

        @traitlets.observe("_known")  # type: ignore[untyped-decorator]
        def _on_known(self, _change: Any) -> None:
            evidence = evidence_of(self._density.schema, self._known)
            if known_of(self._density.schema, self.evidence) != self._known:
                self.evidence = evidence

    return ExploreWidget


def known_of(schema: Schema, evidence: Mapping[str, Any]) -> Known:
    """Return evidence as the script holds it.

    >>> size = Variable("size", "categorical", categories=("S", "M", "L"))
    >>> schema = Schema((size, Variable("pay", "continuous")))
    >>> known_of(schema, {"size": {"L", "S"}, "pay": (None, 10)})
    {'size': {'codes': [0, 2]}, 'pay': {'ends': [None, 10.0]}}
    """
    found: Known = {}
    for name, given in evidence.items():
        gap = schema.gaps.get(name) if not hasattr(given, "__len__") and is_missing(given) else None
        if gap is not None:
            found[gap] = {"codes": [1]}
        else:
            found[name] = _known(schema[name], given)
    return found


def _known(variable: Variable, given: Any) -> dict[str, list[Any]]:
    several = isinstance(given, set | frozenset | list)
    if variable.categories is not None or (several and variable.kind is Kind.INTEGER):
        members = list(given) if several else [given]
        codes = sorted({int(variable.encode_value(member)) for member in members})
        if not codes:
            raise InputError(f"The set of values for {shown(variable.name)} is empty: name at least one value.")
        return {"codes": codes}
    if several:
        raise InputError(f"The widget takes one value or one range (low, high) of {shown(variable.name)}; got a set.")
    ends = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
    return {"ends": [None if end is None else variable.encode_value(end) for end in ends]}


def evidence_of(schema: Schema, known: Known) -> dict[str, Any]:
    """Return what the script holds as evidence.

    >>> size = Variable("size", "categorical", categories=("S", "M", "L"))
    >>> schema = Schema((size, Variable("pay", "continuous")))
    >>> evidence_of(schema, {"size": {"codes": [1]}, "pay": {"ends": [None, 10.0]}})
    {'size': 'M', 'pay': (None, 10.0)}
    """
    found: dict[str, Any] = {}
    for name, each in known.items():
        variable = schema[name]
        if "codes" in each:
            values = [variable.decode_value(code) for code in each["codes"]]
            found[name] = values[0] if len(values) == 1 else set(values)
            continue
        low, high = (None if end is None else variable.decode_value(end) for end in each["ends"])
        found[name] = low if low is not None and low == high else (low, high)
    return found
