"""The lines of the table of results and how they are written; it measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.costs import Cost

HEADER = ("work", "who", "CPU s", "wall s", "peak GB", "Discreet's CPU / theirs", "target", "met")


@dataclass(frozen=True)
class Target:
    """A number that must stay at or below a limit."""

    name: str
    value: float
    limit: float
    digits: int = 2

    @property
    def met(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{self.name} {self.value:.{self.digits}f}, at most {self.limit:g}"


@dataclass(frozen=True)
class Line:
    """Who did which work at what cost."""

    work: str
    who: str
    cost: Cost
    ratio: float | None = None
    targets: tuple[Target, ...] = ()

    def columns(self) -> tuple[str, ...]:
        cost = self.cost
        return (
            self.work,
            self.who,
            f"{cost.cpu:.3g}" if cost.cpu < 100 else f"{cost.cpu:.0f}",
            f"{cost.wall:.3g}" if cost.wall < 100 else f"{cost.wall:.0f}",
            f"{cost.peak:.2f}",
            "" if self.ratio is None else f"{self.ratio:.3g}",
            "; ".join(str(target) for target in self.targets),
            "" if not self.targets else "yes" if all(target.met for target in self.targets) else "NO",
        )


@dataclass(frozen=True)
class Section:
    """One subject's lines, with what must be known to read them."""

    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> Iterator[str]:
        yield f"## {self.title}"
        yield ""
        yield from table([HEADER, *(line.columns() for line in self.lines)])
        yield ""
        for note in self.notes:
            yield f"- {note}"
        if self.notes:
            yield ""


def against(work: str, who: str, ours: Cost, theirs: Cost, limit: float | None = None) -> Line:
    """A peer's line: its cost, and what Discreet's is as a fraction of it."""
    ratio = ours.cpu / theirs.cpu
    targets = () if limit is None else (Target("ratio", ratio, limit, 3),)
    return Line(work, who, theirs, ratio, targets)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table whose columns line up."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for at, row in enumerate(rows):
        yield "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        if at == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
