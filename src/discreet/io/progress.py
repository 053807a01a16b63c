"""Progress of long work: the interface, and one that reports nothing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Somebody who wants to know where the work stands."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage begins; ``total`` steps are ahead where that is known."""

    def step(self, done: int = 1) -> None:
        """Some more steps of the stage are done."""


class Quiet:
    """Tells nobody."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Say nothing."""

    def step(self, done: int = 1) -> None:
        """Say nothing."""


__all__ = ["Progress", "Quiet"]
