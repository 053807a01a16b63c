"""What the commands share: their common options, JSON for machines, and progress on the terminal."""

from __future__ import annotations

import textwrap
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.io.progress_bar import cores, shown_progress
from discreet.io.serialize import json_text
from discreet.lazy import lazily
from discreet.programme.engine_kind import EngineKind

if TYPE_CHECKING:
    from rich import console as consoles
    from rich import text as texts
else:
    consoles, texts = lazily("rich.console"), lazily("rich.text")

FAILED = 1  # exit code: the release fails a check

JSON = Annotated[bool, typer.Option("--json", help="Report as JSON, for machines.")]
QUIET = Annotated[bool, typer.Option("--quiet", help="Print nothing unless something is wrong.")]


REGISTER = Annotated[
    Path | None,
    typer.Option(
        "--register",
        help="The register of the secret: what was published under it; default: next to the secret file.",
    ),
]


ANOTHER_PTABLE = Annotated[
    bool,
    typer.Option(
        "--another-ptable", help="Accept the risk of a p-table other than those published under this secret."
    ),
]


ENGINE = Annotated[
    EngineKind | None,
    typer.Option(
        "--engine", help="Where records are read and counted; default: as [engine] of the programme declares."
    ),
]


def register_path(given: Path | None, secret: str) -> Path | None:
    """Where the register of a secret is: as given, or next to the secret file; None where there is no such file."""
    if given is not None or not secret or secret.startswith(("env:", "fd:")):
        return given
    path = Path(secret)
    return path.with_name(f"{path.name}.register")


def _cores(threads: int) -> int:
    if threads < 0:
        raise typer.BadParameter("give a number of threads, or 0 for all cores")
    return cores(threads)


THREADS = Annotated[int, typer.Option("--threads", help="Threads; 0 uses all cores.", callback=_cores)]

__all__ = [
    "ANOTHER_PTABLE",
    "ENGINE",
    "FAILED",
    "JSON",
    "QUIET",
    "REGISTER",
    "THREADS",
    "console",
    "emit_json",
    "register_path",
    "say",
    "say_finding",
    "say_note",
    "say_wrapped",
    "shown_progress",
]

WIDTH = 80  # columns of a terminal


def terminal(*, stderr: bool = False) -> consoles.Console:
    """Standard output or standard error; one that claims to have no columns has the usual number."""
    found = consoles.Console(stderr=stderr, emoji=False)
    if found.width < 1:
        found.width = WIDTH
    return found


VERDICTS = {"Passed": "bold green", "Broken": "bold red", "BROKEN": "bold red"}


@cache
def console() -> consoles.Console:
    """Where results are printed; made when the first one is."""
    return terminal()


def say(text: str) -> None:
    """Print a readable line; a terminal gets it wrapped at words, a file or another program as it is."""
    _say(text, console())


def say_note(text: str, style: str | None = None) -> None:
    """The same on standard error, for what is no result."""
    with suppress(OSError):  # the exit code still says how it ended
        _say(text, terminal(stderr=True), style)


def _say(text: str, place: consoles.Console, style: str | None = None) -> None:
    if place.is_terminal:
        text = "\n".join(_folded(line, place.width) for line in text.split("\n"))
    place.print(text, style=style, soft_wrap=True, markup=False, highlight=False)


def say_finding(line: str) -> None:
    """Print a finding: on a terminal its subject is bold, and a verdict has its colour."""
    place = console()
    if not place.is_terminal:
        say(line)
        return
    text = texts.Text(_folded(line, place.width))
    subject, colon, _ = line.partition(": ")
    if colon and not line.startswith(" "):
        verdict = subject.split(" ")[0]
        text.stylize(VERDICTS.get(verdict, "bold"), 0, len(verdict if verdict in VERDICTS else subject))
    place.print(text, soft_wrap=True)


def _folded(line: str, width: int) -> str:
    """A line that is longer than a terminal is wide, at words, later lines further in."""
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def say_wrapped(text: str, indent: int = 0) -> None:
    """Print a sentence within 80 columns, later lines further in; a path is not broken."""
    first = " " * indent
    say(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=f"{first}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def emit_json(payload: object) -> None:
    """Print a result as one JSON object on standard output."""
    typer.echo(json_text(payload))


def numbered(number: int, noun: str) -> str:
    """A number and what it counts: 1 cube, 4,779,500 cells."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
