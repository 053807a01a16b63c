"""What the commands share: their common options, JSON for machines, and progress on the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from discreet.io.progress import Progress as Listener
from discreet.io.progress import Quiet
from discreet.io.serialize import json_text

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


def register_path(given: Path | None, secret: str) -> Path | None:
    """Where the register of a secret is: as given, or next to the secret file; None where there is no such file."""
    if given is not None or not secret or secret.startswith(("env:", "fd:")):
        return given
    path = Path(secret)
    return path.with_name(f"{path.name}.register")


def _cores(threads: int) -> int:
    if threads < 0:
        raise typer.BadParameter("give a number of threads, or 0 for all cores")
    return (
        threads or len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else threads or os.cpu_count() or 1
    )


THREADS = Annotated[int, typer.Option("--threads", help="Threads; 0 uses all cores.", callback=_cores)]

console = Console()


def say(text: str) -> None:
    """Print a readable line."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def emit_json(payload: object) -> None:
    """Print a result as one JSON object on standard output."""
    typer.echo(json_text(payload))


class _Shown:
    """Draws stages and steps; on a terminal only, so that they are not logged."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a new line."""
        self._progress.update(self._task, total=self._progress.tasks[-1].completed)
        self._task = self._progress.add_task(name, total=total)

    def step(self, done: int = 1) -> None:
        """Move the bar."""
        self._progress.advance(self._task, done)


@contextmanager
def shown_progress(hidden: bool) -> Iterator[Listener]:
    """Show progress on standard error, unless hidden or not a terminal."""
    screen = Console(stderr=True)
    if hidden or not screen.is_terminal:
        yield Quiet()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as progress:
        yield _Shown(progress)
