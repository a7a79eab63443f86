"""The command with all its subcommands, and how each of them reports errors."""

from __future__ import annotations

import errno
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jointwise.cli import checks, commands, comparing, exploring, predictions, report, rows, showcase, streams
from jointwise.cli.files import forget_spooled
from jointwise.cli.screen import note
from jointwise.exceptions import JointwiseError, QuestionError

# Exit codes that a shell expects after Ctrl-C and after a plain kill.
INTERRUPTED, TERMINATED = 130, 143
INTERRUPTION = "Interrupted; no result was written."


class Commands(TyperGroup):
    """Commands that report errors as sentences on stderr: exit code 1 for data and models, 2 for a wrong question."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` at any place."""
        ctx.meta["jointwise.debug"] = "--debug" in args
        return super().parse_args(ctx, [arg for arg in args if arg != "--debug"])

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with _warnings_as_notes(), _terminable():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has closed the pipe; there is nothing to report
        except (JointwiseError, OSError, MemoryError) as error:
            if ctx.meta["jointwise.debug"]:
                raise
            _report(error)
            raise typer.Exit(2 if isinstance(error, QuestionError) else 1) from None
        except KeyboardInterrupt:
            note(INTERRUPTION)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            forget_spooled()


def run() -> None:
    """Run the command as a process; errors around it, or at its very end, are sentences too."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        streams.drop_output()
        sys.exit(1)
    except KeyboardInterrupt:
        note(INTERRUPTION)
        sys.exit(INTERRUPTED)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _report(error)
        sys.exit(1)


app = typer.Typer(
    cls=Commands,
    name="jointwise",
    help="The joint probability of a table, and exact answers about it. Begin with: jointwise demo",
    epilog="A table may stand in the place of any MODEL: it is fitted first. - is standard input or output. "
    "Exit codes: 0 done, 1 a problem with data or model, 2 a problem with the command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jointwise {metadata.version('jointwise')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """Options before the command's name; `Commands` itself handles ``--debug``."""


for command in (
    *(commands.fit, commands.info, commands.query, commands.sample, predictions.predict),
    *(rows.score, rows.impute, rows.classify),
    *(checks.check, comparing.compare, report.report, exploring.explore, showcase.plot),
    *(showcase.reproduce, showcase.demo, showcase.bench),
):
    app.command()(command)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note(f"Warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = show
        yield


@contextmanager
def _terminable() -> Iterator[None]:
    """Exit in good order on a plain kill, so that no half-written file stays behind."""

    def end(_number: int, _frame: Any) -> None:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(error: Exception) -> None:
    if isinstance(error, OSError) and error.filename == streams.OUTPUT:
        streams.drop_output()
    note(f"Error: {_sentence(error)}")


def _sentence(error: Exception) -> str:
    if isinstance(error, JointwiseError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this; use fewer rows or columns."
    if isinstance(error, FileNotFoundError):
        return f"There is no file {error.filename}."
    if isinstance(error, OSError) and error.strerror:
        if (error.errno, error.filename) == (errno.EBADF, streams.OUTPUT):
            return "Standard output is closed, so the result cannot be written."
        return f"{error.filename or 'A file'}: {error.strerror}."
    return f"jointwise itself went wrong ({type(error).__name__}: {error}). Please report this; --debug shows where."
