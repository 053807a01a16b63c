"""A published table as every writer sees it: axes, values, which cells are withheld, and notes.

Only a release (``dataset_of`` a ``ProtectedTable``) and the table builder (from an ``Answer``) make one, so that no
writer can be given a confidential value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.formats.levels import LEVEL, Levels, axis_levels, levels_of
from discreet.formats.publication import (
    NOT_PUBLISHED,
    PARTS_ADD_UP,
    SUMS,
    SWAPPED,
    Publication,
    additivity,
    same_everywhere,
    weighted_note,
    zeros,
)
from discreet.maths.cells.counting import nodes_along
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube, crossed
from discreet.programme.definitions import Definition, Definitions
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import Language, joined, phrase, said

VALUE = "value"  # the column of the value
LABEL_SUFFIX = "_label"  # of the column of labels that follows that of codes
WITHHELD = "withheld"  # the status of a cell whose value is not shown
NO_COLUMN = "COUNT"  # the code of what is counted where all records of the unit are
DECIMALS = 1  # of a weighted estimate
WITHHELD_NOTE = phrase(
    "Cells with the status withheld belong to areas that the rules of the office do not show, or to totals that are "
    "not published."
)

LEVELS = (
    "In the sheet Data the column level shows which rows may be added up: those of one level count everyone once. It "
    "names the breakdowns that are crossed; of a level whose name ends with (part), codes are missing."
)

Values = NDArray[Any]  # int64 counts, or float64 estimates
Sink = Path | BinaryIO


@dataclass(frozen=True, eq=False)
class PublishedPart:
    """Which cells of a grid are published at all, by their depths along the axes; the others have no value."""

    depths: tuple[NDArray[np.int64], ...]  # axis -> node -> level below the total
    present: NDArray[np.bool_]  # [level along each axis]

    def absent(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some flat positions are not published."""
        nodes = np.unravel_index(cells, [len(depths) for depths in self.depths])
        levels = tuple(depths[along] for depths, along in zip(self.depths, nodes, strict=True))
        found: NDArray[np.bool_] = ~self.present[levels]
        return found

    def only(self, places: Sequence[NDArray[np.int64]]) -> PublishedPart:
        """The same for some of the codes along each axis."""
        some = tuple(depths[at] for depths, at in zip(self.depths, places, strict=True))
        return PublishedPart(some, self.present)

    def transposed(self, order: tuple[int, ...]) -> PublishedPart:
        """The same with the axes in another order."""
        return PublishedPart(tuple(self.depths[k] for k in order), self.present.transpose(order))


def part_of(cube: Cube) -> PublishedPart | None:
    """What of a cube is published; None where all of it is."""
    if cube.shown is None or not cube.axes:
        return None
    depths = tuple(axis.depths.astype(np.int64) for axis in cube.axes)
    present = np.zeros([int(one.max()) + 1 for one in depths], dtype=bool)
    for one in cube.published:
        present[one] = True
    return PublishedPart(depths, present)


@dataclass(frozen=True, eq=False, kw_only=True)
class DatasetAxis:
    """One axis: a variable with those of its codes that the table has."""

    variable: str
    name: str  # of the variable, for readers: Age
    label: str  # with its breakdown: Age (five-year groups)
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str, ...]  # nearest code above that is among the codes, else empty
    is_place: bool = False
    ids: tuple[str, ...] = ()  # SDMX ids of the codes; none where they follow from the codes
    depths: tuple[int, ...] = ()  # levels below the total; none where they follow from the parents
    levels: tuple[str, ...] = ()  # names of the levels below the total; none where they are numbered
    notes: tuple[str, ...] = ()  # what the variable means, and where it comes from
    code_notes: Mapping[str, str] = field(default_factory=dict)  # the same of codes that have a definition

    def __len__(self) -> int:
        return len(self.codes)

    def only(self, places: Sequence[int]) -> DatasetAxis:
        """Some of its codes, none of which is above another."""
        codes, labels = (tuple(some[at] for at in places) for some in (self.codes, self.labels))
        ids = tuple(self.ids[at] for at in places) if self.ids else ()
        depths = tuple(self.depths[at] for at in places) if self.depths else ()
        return replace(self, codes=codes, labels=labels, parents=("",) * len(places), ids=ids, depths=depths)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Published values over axes, in row-major order (last axis fastest).

    Without ``cells`` every cell of the grid has a value; with them, cells that are not listed are zero, or not
    published where a ``part`` leaves them out. Where ``withheld`` is true the value means nothing. Texts are in
    ``language``.
    """

    id: str
    title: str
    source: str
    agency: str  # SDMX maintenance agency
    version: str
    counted: str  # what a cell counts: persons with works = 1
    unit: str  # persons
    contents: str = NO_COLUMN  # the code of what is counted
    axes: tuple[DatasetAxis, ...]
    values: Values
    cells: NDArray[np.int64] | None = None  # flat positions in the grid, ascending
    withheld: NDArray[np.bool_] | None = None  # None where nothing ever is
    part: PublishedPart | None = None  # None where every cell is published
    notes: tuple[str, ...] = ()
    headed_notes: tuple[tuple[str, str], ...] = ()  # heading and text, for a sheet of notes
    facts: Mapping[str, str] = field(default_factory=dict)  # for a file's metadata
    language: Language = Language.ENGLISH
    table: str = ""  # id of the declared table; empty for a user's query
    level: str = ""  # of all its cells, where it has those of one level only
    language_tag: str = ""  # as the server writes it; empty where the format has no code for it

    def __post_init__(self) -> None:
        """Refuse what no writer can show: a cell that is withheld must be listed."""
        if self.withheld is not None and self.cells is not None:
            raise ValueError("a dataset with withheld cells lists every cell")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each axis."""
        return tuple(len(axis.codes) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells of the grid."""
        return prod(self.shape)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which listed cells are withheld."""
        return np.zeros(len(self.values), dtype=bool) if self.withheld is None else self.withheld

    @cached_property
    def missing(self) -> list[int]:
        """The places of the cells that are withheld."""
        if self.withheld is None or not self.withheld.any():
            return []
        found: list[int] = np.flatnonzero(self.withheld).tolist()
        return found

    @property
    def all_notes(self) -> list[str]:
        """The notes, and what the status means where a cell is withheld."""
        return [*self.notes, *([said(WITHHELD_NOTE, self.language)] if self.missing else [])]

    @cached_property
    def _places(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(grid_places(self.shape))

    def nodes(self, part: slice) -> Iterator[NDArray[np.int32]]:
        """The position of some listed cells along each axis in turn."""
        if self.cells is None:
            yield from (places[part] for places in self._places)
            return
        yield from nodes_along(self.cells[part], self.shape)

    def window(self, start: int, stop: int) -> Values:
        """The values of the cells from ``start`` up to ``stop`` of the grid, zeros filled in."""
        if self.cells is None:
            return self.values[start:stop]
        first, last = np.searchsorted(self.cells, (start, stop))
        filled = np.zeros(stop - start, dtype=self.values.dtype)
        filled[self.cells[first:last] - start] = self.values[first:last]
        return filled

    def absent(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Which cells from ``start`` up to ``stop`` of the grid are not published."""
        if self.part is None:
            return np.zeros(stop - start, dtype=bool)
        return self.part.absent(np.arange(start, stop))

    @cached_property
    def levels(self) -> Levels:
        """Which cells together count every record once."""
        part = self.part
        axes = [
            axis_levels(axis.variable, axis.codes, axis.parents, axis.depths, axis.levels)
            for axis in self.axes
        ]
        return levels_of(axes, None if part is None else lambda depths: bool(part.present[depths]))

    def by_level(self) -> Iterator[Dataset]:
        """The listed cells of each level that has some, as tables of their own; axes keep the codes of the level."""
        nodes = list(self.nodes(slice(None)))
        places = self.levels.places(nodes)
        sizes = [axis.deepest + 1 for axis in self.levels.axes]
        for place in np.unique(places).tolist():
            here, along = places == place, np.unravel_index(place, sizes)
            kept = [np.flatnonzero(axis.levels == k) for axis, k in zip(self.levels.axes, along, strict=True)]
            inside = [np.searchsorted(some, of[here]) for some, of in zip(kept, nodes, strict=True)]
            yield replace(
                self,
                axes=tuple(axis.only(some.tolist()) for axis, some in zip(self.axes, kept, strict=True)),
                values=self.values[here],
                cells=np.ravel_multi_index(inside, [len(some) for some in kept]).astype(np.int64),
                part=None if self.part is None else self.part.only(kept),
                level=self.levels.names[place],
            )

    def transposed(self, order: tuple[int, ...]) -> Dataset:
        """The same table, every cell listed, with its axes in another order."""

        def moved(cells: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(cells.reshape(self.shape).transpose(order)).reshape(-1)

        return replace(
            self,
            axes=tuple(self.axes[k] for k in order),
            values=moved(self.window(0, self.size)),
            withheld=None if self.withheld is None else moved(self.withheld),
            part=None if self.part is None else self.part.transposed(order),
            cells=None,
        )


def grid_places(shape: tuple[int, ...]) -> Iterator[NDArray[np.int32]]:
    """The position along each axis of every cell of a grid, last axis fastest."""
    size = prod(shape)
    for k, length in enumerate(shape):
        inner = prod(shape[k + 1 :])
        each = np.repeat(np.arange(length, dtype=np.int32), inner)
        yield np.tile(each, size // max(1, length * inner))


@contextmanager
def opened(sink: Sink) -> Iterator[BinaryIO]:
    """A file to write bytes to; one that was given open stays so."""
    if isinstance(sink, Path):
        with sink.open("wb") as file:
            yield file
    else:
        yield sink


def published(table: ProtectedTable) -> tuple[NDArray[np.int64], Values]:
    """Cells and the values that go into the files: counts, or weighted estimates where the cube has a weight.

    An estimate that rounds to zero is left out like any other zero.
    """
    if table.weighted is None:
        return table.cells, table.values
    estimates = np.round(table.weighted, DECIMALS)
    shown = estimates != 0
    return table.cells[shown], estimates[shown]


def dataset_of(table: ProtectedTable, publication: Publication) -> Dataset:
    """A cube of a release: only the cells that are not zero are listed."""
    cube, labels = table.cube, publication.labels
    _require_distinct_columns(cube)
    cells, values = published(table)
    noise = joined(publication.noise.sentence(), SWAPPED if publication.swapped else "")
    return Dataset(
        id=cube.id,
        table=cube.id,
        title=str(cube.title) or f"{publication.name}: {cube.id}",
        source=str(publication.title) or publication.name,
        agency=publication.agency,
        version=publication.version,
        counted=str(labels.counted(cube.unit, cube.count)),
        unit=str(labels.unit(cube.unit)),
        contents=cube.count or NO_COLUMN,
        axes=tuple(_axis(axis, publication) for axis in cube.axes),
        values=values,
        cells=cells,
        part=part_of(cube),
        notes=(*_margin_notes(cube, publication.noise), zeros(publication.noise, publication.swapped), noise),
        headed_notes=_headed_notes(cube, publication, noise),
        facts={**facts(cube), **({"adjusted": "true"} if publication.noise.adjusted else {})},
    )


def facts(cube: Cube) -> dict[str, str]:
    """The metadata of a cube's files."""
    shown = cube.shown
    some = {} if shown is None else {"published": json.dumps(published_names(cube), ensure_ascii=False)}
    return {
        "cube": cube.id,
        "title": str(cube.title),
        "unit": cube.unit,
        "base": cube.base.text if cube.base else "",
        "count": cube.count or "",
        "weight": cube.weight or "",
        "axes": json.dumps([axis.full_name for axis in cube.axes], ensure_ascii=False),
        **some,
    }


def published_names(cube: Cube) -> list[str]:
    """The names of the cross-tabulations that are published."""
    return [crossed(cube.signature(depths).levels) for depths in cube.published]


def _margin_notes(cube: Cube, known: Noise) -> tuple[str, ...]:
    """Why totals differ from sums, or which totals there are at all."""
    shown = cube.shown
    whole = shown is None or len(shown.every) == len(cube.depths)
    names = "" if whole else "; ".join(map(cube.level_name, cube.published))
    notes = [] if whole else [NOT_PUBLISHED.format(names=names)]
    summed = shown is not None and bool(shown.summed)
    return (*notes, SUMS if summed else additivity(known) if whole else PARTS_ADD_UP)


def _axis(axis: Breakdown, publication: Publication) -> DatasetAxis:
    parents = axis.parents.tolist()
    return DatasetAxis(
        variable=axis.variable,
        name=str(publication.labels.variable(axis.variable)),
        label=str(publication.labels.axis(axis.full_name)),
        codes=axis.codes,
        labels=tuple(map(str, axis.labels)),
        parents=tuple(axis.codes[parent] if parent >= 0 else "" for parent in parents),
        is_place=axis.variable in publication.geography,
        levels=axis.levels,
        **defined(axis.codes, publication.labels.definition(axis.variable), axis.definitions),
    )


class AxisNotes(TypedDict):
    """The notes of an axis."""

    notes: tuple[str, ...]
    code_notes: Mapping[str, str]


def defined(
    codes: Sequence[str], variable: Definition, definitions: Definitions, language: Language | None = None
) -> AxisNotes:
    """The definitions of a variable and of its codes as notes, in a language or in the office's own."""

    def told(one: Definition) -> list[str]:
        own = phrase("Source: {source}", source=one.source) if one.source else ""
        return [
            str(text) if language is None else said(text, language) for text in (one.description, own) if text
        ]

    found = (
        {code: " ".join(told(definitions[code])) for code in codes if code in definitions}
        if definitions
        else {}
    )
    return {"notes": tuple(told(variable)), "code_notes": found}


def _headed_notes(cube: Cube, publication: Publication, noise: str) -> tuple[tuple[str, str], ...]:
    labels = publication.labels
    return (
        ("Table", f"{cube.id}: {cube.title}" if cube.title else cube.id),
        ("Release", publication.title or publication.name),
        ("Cite as", publication.citation(cube.id, cube.title)),
        ("Counted", labels.counted(cube.unit, cube.count)),
        ("Population base", cube.base.text if cube.base else "all"),
        ("Weight", f"{cube.weight}. {weighted_note(publication.noise)}" if cube.weight else "none"),
        ("Axes", ", ".join(labels.axis(axis.full_name) for axis in cube.axes)),
        ("Totals", "The code _T means the total along a variable."),
        ("Levels", LEVELS),
        (
            "Sums" if publication.noise.adjusted else "Why totals may differ",
            " ".join(_margin_notes(cube, publication.noise)),
        ),
        ("Zeros", zeros(publication.noise, publication.swapped)),
        ("Other tables", same_everywhere(publication.noise)),
        ("Noise", noise),
    )


def _require_distinct_columns(cube: Cube) -> None:
    problems = list(column_problems(cube))
    if problems:
        raise Mistakes(problems)


def column_problems(cube: Cube) -> Iterator[Problem]:
    """Variables whose columns, or columns of labels, have the same name in the files of a cube."""
    names = [name for axis in cube.axes for name in (axis.variable, axis.variable + LABEL_SUFFIX)]
    if len({*names, LEVEL, VALUE}) != len(names) + 2:
        remedy = f"rename a variable: columns, {LEVEL!r} and {VALUE!r} must differ"
        yield Problem("", f"cube {cube.id}", f"columns {names}", remedy)
