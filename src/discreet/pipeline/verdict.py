"""What the gates of a programme say of a release; it owns the words, how they are judged is gating's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet.errors import GateBroken


@dataclass(frozen=True)
class Verdict:
    """One gate: its limit, what was found, where, and what would mend it."""

    gate: str
    limit: float
    found: float
    what: str  # what the number is
    where: tuple[str, ...] = ()  # the cells or statistics that break it
    remedy: str = ""

    @property
    def passed(self) -> bool:
        """Whether the limit holds."""
        return self.found <= self.limit

    def __str__(self) -> str:
        """In one or two lines."""
        said = f"gates.{self.gate}: {self.what} is {self.found:.4g}, {self.limit:g} is allowed"
        if self.passed:
            return said
        named = f" ({'; '.join(self.where)})" if self.where else ""
        return f"{said}{named}; {self.remedy}"

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "where": list(self.where), "passed": self.passed}


def require_passed(verdicts: Iterable[Verdict]) -> None:
    """Raise what is broken."""
    broken = [verdict for verdict in verdicts if not verdict.passed]
    if broken:
        raise GateBroken("\n".join(map(str, broken)))
