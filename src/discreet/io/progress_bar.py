"""Progress as bars on a terminal or in a notebook; where there is neither, nothing is shown."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.io.progress import Progress as Listener
from discreet.io.progress import Quiet
from discreet.lazy import lazily

if TYPE_CHECKING:
    import html

    from rich import console, progress
else:
    html, console, progress = map(lazily, ("html", "rich.console", "rich.progress"))

_REDRAWN = 0.2  # seconds


class _Shown:
    """Draws stages and steps; on a terminal only, so that they are not logged."""

    def __init__(self, bars: progress.Progress) -> None:
        self._progress = bars
        self._task = bars.add_task("starting", total=None, count="")

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a new line."""
        self._progress.update(self._task, total=self._progress.tasks[-1].completed)
        self._task = self._progress.add_task(name, total=total, count="")

    def step(self, done: int = 1) -> None:
        """Move the bar."""
        self._progress.advance(self._task, done)
        task = self._progress.tasks[-1]
        of = "" if task.total is None else f" of {task.total:,.0f}"
        self._progress.update(self._task, count=f"{task.completed:,.0f}{of}")


class _Displayed:
    """Shows the stage in a notebook, in one place that is empty again at the end; no extension is needed."""

    def __init__(self, display: Any) -> None:
        self._place = display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
        self._name, self._done, self._drawn = "starting", 0, 0.0
        self._total: int | None = None

    def stage(self, name: str, total: int | None = None) -> None:
        """Show the next stage."""
        self._name, self._total, self._done = name, total, 0
        self._draw()

    def step(self, done: int = 1) -> None:
        """Move the bar; it is not drawn more often than can be seen."""
        self._done += done
        if time.monotonic() - self._drawn >= _REDRAWN:
            self._draw()

    def close(self) -> None:
        """Leave nothing behind."""
        self._place.update({"text/html": "", "text/plain": ""}, raw=True)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        share = "" if self._total is None else f' value="{self._done}" max="{max(self._total, 1)}"'
        number = "" if self._total is None else f" {self._done:,} of {self._total:,}"
        bar = f"<progress{share}></progress> {html.escape(self._name)}{number}"
        self._place.update({"text/html": bar, "text/plain": f"{self._name}{number}"}, raw=True)


@contextmanager
def _in_notebook() -> Iterator[Listener]:
    shown = _Displayed(
        import_module("IPython.display").display
    )  # every notebook has it, and nothing else needs it
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def shown_progress(hidden: bool) -> Iterator[Listener]:
    """Show progress on standard error or in a notebook, unless hidden or neither is there."""
    if hidden:
        yield Quiet()  # and rich is not imported
        return
    screen = console.Console(stderr=True)
    if not (screen.is_terminal or screen.is_jupyter):
        yield Quiet()
        return
    if screen.is_jupyter:
        with _in_notebook() as listener:
            yield listener
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[count]}", justify="right"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=screen, transient=True) as bars:
        yield _Shown(bars)


def cores(threads: int) -> int:
    """A number of threads; 0 is that of the cores."""
    if threads or not hasattr(os, "sched_getaffinity"):
        return threads or os.cpu_count() or 1
    return len(os.sched_getaffinity(0))
