"""How the cells of an answer become lines: one for each cell or laid out as a table, with or without percentages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.formats.columns import LongForm, Texts
from discreet.formats.dataset import VALUE, Dataset, grid_places
from discreet.formats.xlsx import Cell, shown
from discreet.programme.codelist import TOTAL
from discreet.serve.answer import Answer
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import Query
from discreet.text.phrase import phrase

DECIMALS = 2  # of a percentage
LOW, HIGH = "low", "high"  # columns of the range of the true count, with 95 % probability
NO_PERCENT = phrase("percent: CSV and XLSX can have percentages, other formats cannot.")


class Percent(StrEnum):
    """The published total of a percentage."""

    ROW = "row"
    COLUMN = "column"
    TOTAL = "total"

    @property
    def heading(self) -> str:
        """The name of its column."""
        return f"percent_of_{self.value}"


@dataclass(frozen=True)
class Layout:
    """The layout of a table: the variables of its columns (none: one line for each cell), its texts and numbers."""

    columns: tuple[str, ...] = ()
    texts: Texts = Texts.BOTH
    separator: str = ","
    title: bool = False
    percent: Percent | None = None
    counts: bool = (
        False  # next to the percentages, where variables are in columns; the long form always has counts
    )
    link: str = ""  # the permanent link to the table
    is_bare: bool = False  # codes or labels and the value only, as other servers' files have them


def check(query: Query, layout: Layout) -> None:
    """Raise a problem where an answer cannot have this layout; only the question is needed."""
    known = {axis.variable: axis for axis in query.axes}
    for name in layout.columns:
        if name not in known:
            message = phrase(
                "columns: {name} is no axis of the table; it has {axes}.", name=name, axes=tuple(known)
            )
            raise HttpProblem(400, message, kind="layout")
    fixed = [name for name in known if _is_fixed(name, layout)]
    if layout.percent is not None and not fixed:
        message = phrase("percent: put variables into rows and columns; columns names those of the columns.")
        raise HttpProblem(400, message, kind="layout")
    for name in fixed:
        if known[name].codes and TOTAL not in known[name].codes:
            message = phrase("percent: the table needs the total of {name}, its code _T.", name=name)
            raise HttpProblem(400, message, kind="layout")


def _is_fixed(variable: str, layout: Layout) -> bool:
    """Whether the whole of a percentage is at the total of a variable."""
    if layout.percent is None:
        return False
    across = {
        Percent.ROW: (True,),
        Percent.COLUMN: (False,),
        Percent.TOTAL: (True, False),
    }[layout.percent]
    return (variable in layout.columns) in across


def percentages(dataset: Dataset, layout: Layout) -> NDArray[np.float64]:
    """Shares of the published totals; nan where a value is withheld, or its total is withheld or zero.

    They are computed from published values only, and never of sums: those would be noisier than the published total.
    """
    values = np.where(dataset.hidden, np.nan, dataset.values).reshape(dataset.shape)
    whole = values
    for place, axis in enumerate(dataset.axes):
        if _is_fixed(axis.variable, layout):
            whole = whole.take([axis.codes.index(TOTAL)], axis=place)
    whole = np.where(whole == 0, np.nan, whole)
    shares: NDArray[np.float64] = np.round(100 * values / whole, DECIMALS)
    return shares.reshape(-1)


def long_form(dataset: Dataset, layout: Layout, spelled: Callable[[str], str] | None = None) -> LongForm:
    """The columns of the long form: the percentage is next to its count."""
    share = layout.percent
    shares = {} if share is None else {share.heading: percentages(dataset, layout)}
    return LongForm(layout.texts, spelled, shares, has_level=not layout.is_bare)


def with_ranges(columns: LongForm, answer: Answer) -> LongForm:
    """The same columns with where the true count is likely to be, next to the published one."""
    low, high = answer.intervals()
    if np.isnan(low).all():
        return columns
    return replace(columns, measures={LOW: low, HIGH: high, **columns.measures})


def laid_out(dataset: Dataset, layout: Layout) -> Iterator[list[Cell]]:
    """The lines of a table with some axes in columns: a header line for each, one that names the numbers, the rows."""
    across, down = sides(dataset, layout)
    corner = [dataset.axes[k].variable for k in down]
    heads = _headers(dataset, layout, across)
    for number, head in enumerate(heads, start=1):
        yield [*(corner if number == len(heads) else [""] * len(down)), *head]
    texts = [shown(dataset.axes[k], layout.texts) for k in down]
    rows = zip(
        *(places.tolist() for places in grid_places(tuple(dataset.shape[k] for k in down))), strict=True
    )
    for places, values in zip(
        rows if down else [()], _grid(dataset, layout, [*down, *across], across), strict=True
    ):
        yield [*(names[place] for names, place in zip(texts, places, strict=True)), *values]


def sides(dataset: Dataset, layout: Layout) -> tuple[list[int], list[int]]:
    """The positions of the axes in columns, and of those in rows."""
    places = {axis.variable: k for k, axis in enumerate(dataset.axes)}
    across = [places[name] for name in dict.fromkeys(layout.columns)]
    return across, [k for k in range(len(dataset.axes)) if k not in across]


def measures(layout: Layout) -> list[str]:
    """The measures in the cells of a table with columns."""
    if layout.percent is None:
        return [VALUE]
    return [VALUE, layout.percent.heading] if layout.counts else [layout.percent.heading]


def _headers(dataset: Dataset, layout: Layout, across: list[int]) -> list[list[str]]:
    """A line for each axis in columns; another line names the numbers where they are not just counts."""
    names = measures(layout)
    lines = []
    for k, places in zip(across, grid_places(tuple(dataset.shape[k] for k in across)), strict=True):
        texts = shown(dataset.axes[k], layout.texts)
        lines.append([texts[place] for place in places.tolist() for _ in names])
    if layout.percent is not None or not across:
        lines.append(names * prod(dataset.shape[k] for k in across))
    return lines


def _grid(dataset: Dataset, layout: Layout, order: list[int], across: list[int]) -> Iterator[list[Cell]]:
    """The numbers of each row."""
    numbers = [
        _numbers(dataset, layout, measure).reshape(dataset.shape).transpose(order)
        for measure in measures(layout)
    ]
    width = len(numbers) * prod(dataset.shape[k] for k in across)
    return iter(np.stack(numbers, axis=-1).reshape(-1, width).tolist())


def _numbers(dataset: Dataset, layout: Layout, measure: str) -> NDArray[np.object_]:
    numbers = dataset.values if measure == VALUE else percentages(dataset, layout)
    cells = numbers.astype(object)
    cells[dataset.hidden if measure == VALUE else np.isnan(numbers)] = None
    return cells
