"""The verdict of one gate, and the refusal of a release that breaks one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from discreet.errors import GateBroken


@dataclass(frozen=True)
class GateVerdict:
    """One gate: its limit, what was found, where, and the remedy."""

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
        """The verdict in one or two lines."""
        text = f"gates.{self.gate}: {self.what} is {self.found:.4g}, {self.limit:g} is allowed"
        if self.passed:
            return text
        named = f" ({'; '.join(self.where)})" if self.where else ""
        return f"{text}{named}; {self.remedy}"

    def as_json(self) -> Mapping[str, object]:
        """The document, with whether it passed."""
        return {**vars(self), "passed": self.passed}


def require_passed(verdicts: Iterable[GateVerdict]) -> None:
    """Raise an error that lists the broken gates."""
    broken = [verdict for verdict in verdicts if not verdict.passed]
    if broken:
        raise GateBroken("\n".join(map(str, broken)))
