"""The chart of a p-table: transition probabilities as a shaded table with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.maths.noise.ptable import Law, TableFacts
from discreet.page.charts import Chart, Drawing, HeatCell, heat
from discreet.page.markup import As, Column, table
from discreet.page.skeleton import write_picture

ROWS = 60  # counts that a readable chart can show
MEANING = "Percent of the cases in which a true count is published with the change in the column header"


def write_ptable_picture(path: Path, laws: Sequence[Law], title: str) -> None:
    """Draw the laws of the counts 0, 1, .. to a .png, .svg or .html file."""
    changes = sorted({change for law in laws for change in law})
    columns = [Column("true count"), *(Column(_signed(change), As.DECIMAL) for change in changes)]
    rows = [(_count(row, len(laws)), *map(law.get, changes)) for row, law in enumerate(laws)]
    write_picture(
        path, ptable_chart(laws, title), table("Probabilities by true count and change", columns, rows)
    )


def valid_line(found: TableFacts) -> str:
    """A table that meets every demand, in a line."""
    return (
        f"valid; changes within {found.largest_change}, variance at most {found.largest_variance:.6g}, publishes 0 and "
        f"counts of at least {found.smallest_published}, {'monotone' if found.monotone else 'not monotone'}"
    )


def ptable_chart(laws: Sequence[Law], title: str) -> Chart:
    """The chart: a row for each count, a column for each change, percent in the cells."""
    shown = laws[:ROWS]
    changes = sorted({change for law in shown for change in law})
    cells = [
        HeatCell(_count(row, len(laws)), _signed(change), p, _percent(p))
        for row, law in enumerate(shown)
        for change, p in law.items()
    ]
    subtitle = MEANING if len(laws) <= ROWS else f"{MEANING}; the first {ROWS} of {len(laws)} counts"
    stays = ", ".join(
        f"{_count(row, len(laws))}: {_percent(law.get(0, 0.0))}" for row, law in enumerate(shown)
    )
    description = f"{subtitle}. Percent of the cases in which a count is unchanged: {stays}."

    def draw(width: int) -> Drawing:
        order = list(map(_signed, changes))
        return heat(cells, "change", "true count", width, columns=order, strongest=_strongest(shown))

    return Chart("ptable", title, description, draw, subtitle=f"{subtitle}.", scrolls=True)


def _strongest(laws: Sequence[Law]) -> float:
    """The largest probability below 1: row 0 would make all others too faint."""
    return max((p for law in laws[1:] for p in law.values()), default=1.0)


def _count(row: int, rows: int) -> str:
    return f"{row}+" if row == rows - 1 else str(row)


def _signed(change: int) -> str:
    return f"+{change}" if change > 0 else str(change).replace("-", "\N{MINUS SIGN}")


def _percent(p: float) -> str:
    if p == 1.0:
        return "100"
    return f"{100 * p:.1f}" if p >= 0.0005 else "<0.1"
