"""Progress of long tasks: the interface, and an implementation that reports nothing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A receiver of progress reports."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage begins, with ``total`` steps if known."""

    def step(self, done: int = 1) -> None:
        """``done`` more steps of the stage are complete."""


class Quiet:
    """Ignores all progress reports."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Do nothing."""

    def step(self, done: int = 1) -> None:
        """Do nothing."""


__all__ = ["Progress", "Quiet"]
