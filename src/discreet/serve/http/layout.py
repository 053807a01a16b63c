"""How the cells of an answer become lines: one for each cell or laid out as a table, with or without percentages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.formats.columns import LongForm, Texts
from discreet.formats.dataset import VALUE, Dataset, grid_places
from discreet.formats.xlsx import Cell, shown
from discreet.programme.codelist import TOTAL
from discreet.serve.answer import Answer
from discreet.serve.comparison import Comparison, Ranges, compared, compared_ranges, level_of_each
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import Axis, Query
from discreet.text.phrase import phrase

LEVEL = 0.95  # of ranges
LOW, HIGH = "low", "high"  # columns of the range of the true count, with 95 % probability
DECIMALS = {  # of computed numbers
    Comparison.SHARE: 2,
    Comparison.DIFFERENCE: 0,
    Comparison.RATIO: 4,
    Comparison.INDEX: 2,
    Comparison.RATE: 2,
}
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
class Compare:
    """A category that every number is compared with, and how."""

    kind: Comparison
    variable: str
    code: str


@dataclass(frozen=True)
class Layout:
    """The layout of a table: the variables of its columns (none: one line for each cell), its texts and numbers.

    ``lines`` and ``fields`` are the positions of the rows and of the columns that are shown, in their order, among all
    combinations of the codes of the variables in rows and in columns; None: all.
    """

    columns: tuple[str, ...] = ()
    texts: Texts = Texts.BOTH
    separator: str = ","
    title: bool = False
    percent: Percent | None = None
    compare: Compare | None = None  # instead of a percentage
    counts: bool = (
        False  # next to what is computed, where variables are in columns; the long form always has counts
    )
    ranges: bool = False  # next to the numbers, where variables are in columns; the long form always has them
    lines: tuple[int, ...] | None = None
    fields: tuple[int, ...] | None = None
    link: str = ""  # the permanent link to the table
    is_bare: bool = False  # codes or labels and the value only, as other servers' files have them

    @property
    def kind(self) -> Comparison | None:
        """What is computed from the counts."""
        if self.percent is not None:
            return Comparison.SHARE
        return None if self.compare is None else self.compare.kind

    @property
    def computed(self) -> str:
        """The name of its column; empty where only counts are shown."""
        if self.percent is not None:
            return self.percent.heading
        return "" if self.compare is None else self.compare.kind.value


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
    if layout.compare is not None:
        _check_compared(known, layout.compare, layout)


def _check_compared(known: Mapping[str, Axis], compare: Compare, layout: Layout) -> None:
    if layout.percent is not None:
        raise HttpProblem(400, phrase("compare: not together with percent."), kind="layout")
    if compare.variable not in known:
        message = phrase(
            "compare: {name} is no axis of the table; it has {axes}.",
            name=compare.variable,
            axes=tuple(known),
        )
        raise HttpProblem(400, message, kind="layout")
    codes = known[compare.variable].codes
    if codes and compare.code not in codes:
        raise HttpProblem(400, _no_code(compare), kind="layout")


def _no_code(compare: Compare) -> str:
    return phrase(
        "compare: the table has no code {code} of {name}.", code=compare.code, name=compare.variable
    )


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


def numbers_of(answer: Answer, dataset: Dataset, layout: Layout) -> dict[str, NDArray[np.float64]]:
    """What there is beside the counts, by the names of columns: where they are, what is computed, and where that is.

    Shares and comparisons are computed from published values only, and never of sums: those would be noisier than the
    published total. They are nan where a value is withheld, or where it would be divided by one that is withheld or 0.
    """
    low, high = answer.intervals(LEVEL)
    known = not np.isnan(low).all()
    found: dict[str, NDArray[np.float64]] = {LOW: low, HIGH: high} if known and not layout.is_bare else {}
    kind = layout.kind
    if kind is None:
        return found
    bases = _bases(dataset, layout)
    values = np.where(dataset.hidden, np.nan, dataset.values.astype(np.float64))
    numbers = compared(kind, values, values[bases])
    found[layout.computed] = _rounded(kind, numbers)
    if known and not layout.is_bare:
        low, high = answer.intervals(level_of_each(LEVEL))
        is_same = bases == np.arange(len(bases))
        ranges = compared_ranges(kind, Ranges(low, high), Ranges(low[bases], high[bases]), is_same)
        for name, ends in ((LOW, ranges.low), (HIGH, ranges.high)):
            shown = np.where(np.isnan(numbers) | np.isinf(ends), np.nan, ends)
            found[f"{layout.computed}_{name}"] = _rounded(kind, shown)
    return found


def _rounded(kind: Comparison, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares are in percent."""
    scale = 100 if kind is Comparison.SHARE else 1
    found: NDArray[np.float64] = np.round(scale * numbers, DECIMALS[kind])
    return found


def _bases(dataset: Dataset, layout: Layout) -> NDArray[np.int64]:
    """Cell -> the cell that it is compared with."""
    places = np.arange(dataset.size).reshape(dataset.shape)
    for k, axis in enumerate(dataset.axes):
        compare = layout.compare
        if compare is not None and compare.variable == axis.variable:
            if compare.code not in axis.codes:
                raise HttpProblem(400, _no_code(compare), kind="layout")
            places = places.take([axis.codes.index(compare.code)], axis=k)
        elif _is_fixed(axis.variable, layout):
            places = places.take([axis.codes.index(TOTAL)], axis=k)
    found: NDArray[np.int64] = np.broadcast_to(places, dataset.shape).reshape(-1)
    return found


def long_form(
    answer: Answer, dataset: Dataset, layout: Layout, spelled: Callable[[str], str] | None = None
) -> LongForm:
    """The columns of the long form: ranges and what is computed are next to the count."""
    return LongForm(layout.texts, spelled, numbers_of(answer, dataset, layout), has_level=not layout.is_bare)


def laid_out(answer: Answer, dataset: Dataset, layout: Layout) -> Iterator[list[Cell]]:
    """The lines of a table with some axes in columns: a header line for each, one that names the numbers, the rows."""
    across, down = sides(dataset, layout)
    lines, fields = shown_places(dataset, layout, down, across)
    names = Texts.LABELS is layout.texts
    corner = [dataset.axes[k].name if names else dataset.axes[k].variable for k in down]
    heads = _headers(dataset, layout, across, fields)
    for number, head in enumerate(heads, start=1):
        yield [*(corner if number == len(heads) else [""] * len(down)), *head]
    texts = [shown(dataset.axes[k], layout.texts) for k in down]
    places = [along[lines].tolist() for along in grid_places(tuple(dataset.shape[k] for k in down))]
    given = numbers_of(answer, dataset, layout)
    tables = [
        _table(_cells(dataset, given, name), dataset, down, across, lines, fields)
        for name in measures(layout)
    ]
    grid = np.stack(tables, axis=-1).reshape(len(lines), -1).tolist()
    for at, values in enumerate(grid):
        yield [*(names[along[at]] for names, along in zip(texts, places, strict=True)), *values]


def sides(dataset: Dataset, layout: Layout) -> tuple[list[int], list[int]]:
    """The positions of the axes in columns, and of those in rows."""
    places = {axis.variable: k for k, axis in enumerate(dataset.axes)}
    across = [places[name] for name in dict.fromkeys(layout.columns)]
    return across, [k for k in range(len(dataset.axes)) if k not in across]


def shown_places(
    dataset: Dataset, layout: Layout, down: Sequence[int], across: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The positions of the rows and of the columns that are shown; one that does not exist is a problem."""
    found = []
    for given, axes, name in ((layout.lines, down, "lines"), (layout.fields, across, "fields")):
        size = prod(dataset.shape[k] for k in axes)
        if not size or (given is not None and (not given or max(given) >= size)):
            message = phrase("{name}: the table has positions from 0 to {last}.", name=name, last=size - 1)
            raise HttpProblem(400, message, kind="layout")
        found.append(np.arange(size) if given is None else np.array(given, dtype=np.int64))
    return found[0], found[1]


def measures(layout: Layout) -> list[str]:
    """The measures in the cells of a table with columns."""
    names = [VALUE] if layout.counts or not layout.computed else []
    names += [layout.computed] if layout.computed else []
    if not layout.ranges:
        return names
    return [one for name in names for one in (name, *range_names(name))]


def range_names(measure: str) -> tuple[str, str]:
    """The names of the columns of where a measure is."""
    return (LOW, HIGH) if measure == VALUE else (f"{measure}_{LOW}", f"{measure}_{HIGH}")


def _headers(
    dataset: Dataset, layout: Layout, across: list[int], fields: NDArray[np.int64]
) -> list[list[str]]:
    """A line for each axis in columns; another line names the numbers where they are not just counts."""
    names = measures(layout)
    lines = []
    for k, places in zip(across, grid_places(tuple(dataset.shape[k] for k in across)), strict=True):
        texts = shown(dataset.axes[k], layout.texts)
        lines.append([texts[place] for place in places[fields].tolist() for _ in names])
    if names != [VALUE] or not across:
        lines.append(names * len(fields))
    return lines


def _table(
    cells: NDArray[np.object_],
    dataset: Dataset,
    down: list[int],
    across: list[int],
    lines: NDArray[np.int64],
    fields: NDArray[np.int64],
) -> NDArray[np.object_]:
    """Rows and columns of one measure, as they are shown."""
    rows = prod(dataset.shape[k] for k in down)
    whole = cells.reshape(dataset.shape).transpose([*down, *across]).reshape(rows, -1)
    found: NDArray[np.object_] = whole[np.ix_(lines, fields)]
    return found


def _cells(dataset: Dataset, given: Mapping[str, NDArray[np.float64]], name: str) -> NDArray[np.object_]:
    """The cells of a measure; None is empty."""
    if name == VALUE:
        cells = dataset.values.astype(object)
        cells[dataset.hidden] = None
        return cells
    numbers = given.get(name, np.full(dataset.size, np.nan))
    is_whole = name.startswith((LOW, HIGH, Comparison.DIFFERENCE))
    cells = (
        np.where(np.isnan(numbers), 0, numbers).astype(np.int64 if is_whole else np.float64).astype(object)
    )
    cells[np.isnan(numbers)] = None
    return cells
