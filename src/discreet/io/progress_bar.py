"""Progress as bars on a terminal or in a notebook; where there is neither, nothing is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
    """Show progress on standard error or in a notebook, unless hidden or neither is there."""
    screen = Console(stderr=True)
    if hidden or not (screen.is_terminal or screen.is_jupyter):
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


def cores(threads: int) -> int:
    """A number of threads; 0 is that of the cores."""
    if threads or not hasattr(os, "sched_getaffinity"):
        return threads or os.cpu_count() or 1
    return len(os.sched_getaffinity(0))
