"""How a table in a text file is written: what marks a gap, its separator, header, decimal sign and encoding.

`reads_tables` gives a command the options for it.
"""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from jointwise._checks import listed, shown
from jointwise.exceptions import InputError
from jointwise.tables.variables import duplicates

# Separators that have names, since a shell makes them hard to write.
SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}
PANEL = "Reading tables"


@dataclass(frozen=True)
class Reading:
    """How to read a table; the defaults find out by themselves.

    Parameters
    ----------
    missing : frozenset of str
        Text that marks a gap, besides empty cells, NA and NaN.
    names : tuple of str
        Names of the columns, in place of those of the header.
    header : bool
        Whether the first line of a CSV file holds names.
    separator : str
        Character between the cells of a CSV file; empty for the one that the first line shows.
    decimal : {".", ","}
        Sign before the decimals; with a comma, points between thousands are ignored.
    encoding : str
        Of a text file.
    """

    missing: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    header: bool = True
    separator: str = ""
    decimal: str = "."
    encoding: str = "utf-8-sig"

    def check_kind(self, kind: str, label: str) -> None:
        """Refuse options that a file of this kind has no use for."""
        plain = Reading(encoding=self.encoding) if kind == "json" else Reading()
        asked = {
            "--names": self.names != plain.names,
            "--no-header": self.header != plain.header,
            "--sep": self.separator != plain.separator,
            "--decimal": self.decimal != plain.decimal,
            "--encoding": self.encoding != plain.encoding,
        }
        useless = [option for option, is_set in asked.items() if is_set]
        if useless and kind != "csv":
            raise InputError(f"{', '.join(useless)}: these options are for CSV, but {label} is {kind}; leave them out.")


DEFAULT = Reading()

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "missing": (
        list[str] | None,
        typer.Option("--missing", help="Text that marks a gap, besides empty, NA and NaN; repeatable."),
    ),
    "names": (str | None, typer.Option("--names", help="Names of the columns, by commas, in place of the header's.")),
    "no_header": (bool, typer.Option("--no-header", help="The first line is data, not names.")),
    "sep": (str | None, typer.Option("--sep", help="Character between cells, or tab or space; by default found out.")),
    "decimal": (str, typer.Option("--decimal", help="Sign before the decimals: . or ,")),
    "encoding": (str, typer.Option("--encoding", help="Encoding of a text file, such as latin-1.")),
}
_DEFAULTS: dict[str, Any] = {"no_header": False, "decimal": ".", "encoding": "utf-8"}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading tables; it gets a `Reading` as its argument ``reading``."""

    @wraps(command)
    def with_reading(*args: Any, **options: Any) -> None:
        given = {name: options.pop(name, _DEFAULTS.get(name)) for name in _OPTIONS}
        command(*args, reading=_reading(**given), **options)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
    further = []
    for name, (kind, option) in _OPTIONS.items():
        option.rich_help_panel = PANEL
        further.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULTS.get(name),
                annotation=Annotated[kind, option],
            )
        )
    del with_reading.__wrapped__  # its own signature counts
    with_reading.__signature__ = inspect.Signature([*own, *further])  # type: ignore[attr-defined]
    with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *further)}
    return with_reading


def _reading(
    missing: list[str] | None, names: str | None, no_header: bool, sep: str | None, decimal: str, encoding: str
) -> Reading:
    separator = "" if sep is None else SEPARATORS.get(sep.lower(), sep)
    if sep is not None and (len(separator) != 1 or separator in '"\r\n\0'):
        raise typer.BadParameter(f"{shown(sep)} is not one character, tab or space.", param_hint="--sep")
    if decimal not in {".", ","}:
        raise typer.BadParameter(f"{shown(decimal)} is neither . nor ,", param_hint="--decimal")
    if decimal == separator:
        raise typer.BadParameter("Cells and decimals cannot have the same sign.", param_hint="--decimal")
    return Reading(
        frozenset(missing or ()), _names(names), not no_header, separator, decimal, _checked_encoding(encoding)
    )


def _names(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or not all(names):
        raise typer.BadParameter(f"{shown(text)} is not names by commas.", param_hint="--names")
    if doubled := duplicates(names):
        raise typer.BadParameter(f"{listed(doubled)} stands there more than once.", param_hint="--names")
    return names


def _checked_encoding(encoding: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    except (LookupError, ValueError):
        raise typer.BadParameter(
            f"{shown(encoding)} is no encoding of text; common ones are utf-8, latin-1, cp1252 and utf-16.",
            param_hint="--encoding",
        ) from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in {"utf-8", "utf8"} else encoding
