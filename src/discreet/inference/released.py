"""Tables and cells straight from a release: a cube, some of its axes, and a filter on codes; with their noise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import Mistakes, mistake
from discreet.inference.noise import KnownLaw, noise_of
from discreet.inference.tables import VALUE, CrossTable, Integers, integers
from discreet.programme.codelist import TOTAL, Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Levels, Signature, cross_named, crossed
from discreet.programme.filter import Comparison, Filter, Junction, Term, alternatives, parse_filter
from discreet.release.manifest import AxisEntry, CubeEntry
from discreet.release.reader import AnyRelease, Release, opened_cube

LARGEST_TABLE = 10**7
COUNTS_ONLY = (
    "`discreet infer weighted` (inference.weighted) gives the error by the noise; tests and models need a cube without "
    "weight"
)
ONLY_AND = 'name codes of each variable, joined by and: GEO == "AT1" and SEX in ("1", "2")'


@dataclass(frozen=True, eq=False)
class _Axis:
    """An axis of a cube: its codes as a tree, and which of its leaves a filter lets pass."""

    entry: AxisEntry
    tree: Codelist
    passing: NDArray[np.bool_]

    @property
    def chosen(self) -> tuple[str, ...]:
        """The fewest codes that have exactly the leaves that pass; the total where all do."""
        return (TOTAL,) if self.passing.all() else self.tree.fewest_codes(self.passing)

    def categories(self, level: int | None) -> tuple[str, ...]:
        """The codes of a level, or the finest ones, all of whose leaves pass."""
        tree = self.tree
        places = tree.leaves if level is None else tree.level(level)
        inside = (tree.codes[at] for at in places)
        return tuple(code for code in inside if self.passing[tree.leaves_below([code])].all())

    def depth(self, code: str) -> int:
        """Levels below the total."""
        return 0 if code == TOTAL else self.tree.depths[self.tree.position[code]]

    def leaves(self, code: str) -> NDArray[np.bool_]:
        """The leaves of a code."""
        return self.tree.leaves_under(code)


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """A table of a release, and the cross-tabulations that its cells are of."""

    table: CrossTable
    release: Release
    cross_tabulations: tuple[str, ...]

    @cached_property
    def noise(self) -> KnownLaw:
        """The noise of all cells; refused where they have none of their own, or different laws."""
        laws = [noise_of(self.release, name) for name in self.cross_tabulations]
        if any(law.counts.change.variance != laws[0].counts.change.variance for law in laws):
            remedy = "choose codes of one level along each axis"
            raise mistake(self.release.folder, "where", "cells of levels with different noise", remedy)
        return laws[0]


@dataclass(frozen=True, eq=False)
class ReleasedCube:
    """A cube of a release."""

    release: Release
    entry: CubeEntry

    def table(self, axes: Sequence[str], where: str = "") -> ReleasedTable:
        """Some axes, the others at one code each.

        An axis is a variable (``GEO``) or a level as the column of levels names it (``GEO.COUNTY``, ``COUNTY``,
        ``GEO:1``).

        ``where`` is a filter on codes: it chooses the code of an axis that is not crossed (else its total), and which
        codes of a crossed one are in the table.
        """
        codes, crossed_axes = self.crossed_codes(axes, where)
        return self._read(self._axes(where), codes, crossed_axes)

    def crossed_codes(
        self, axes: Sequence[str], where: str = ""
    ) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """The codes of every axis of such a table, one of those that are not crossed; and the crossed variables."""
        found = self._axes(where)
        wanted = [self._named(name) for name in axes]
        if len({variable for variable, _ in wanted}) != len(wanted) or not wanted:
            remedy = f"name different axes, from {', '.join(found)}"
            raise mistake(self.release.folder, "axes", ", ".join(axes) or "none", remedy)
        codes: dict[str, tuple[str, ...]] = {}
        for variable, level in wanted:
            axis = found[variable]
            codes[variable] = axis.categories(level)
            if not codes[variable]:
                value = f"{variable} has no code of that level inside"
                raise mistake(
                    self.release.folder, "where", value, "choose codes of this level, or a finer level"
                )
        for variable, axis in found.items():
            codes.setdefault(variable, (self._one(axis),))
        return codes, [variable for variable, _ in wanted]

    def codes(self, where: str = "") -> dict[str, str]:
        """One cell as a code of each axis: that which the filter chooses, the total of the others."""
        return {name: self._one(axis) for name, axis in self._axes(where).items()}

    def cell(self, where: str = "") -> ReleasedTable:
        """One cell: a code of each axis that the filter names, the total of the others."""
        return self._read(self._axes(where), {name: (code,) for name, code in self.codes(where).items()}, [])

    def cells(self, where: str = "") -> ReleasedTable:
        """All cells that together have exactly the records that pass: the fewest codes of each axis."""
        found = self._axes(where)
        return self._read(found, {name: axis.chosen for name, axis in found.items()}, list(found))

    def sum_of_weights(self, where: str = "") -> tuple[float, str]:
        """The published sum of one cell of a weighted cube, 0 where it is not listed; and its cross-tabulation."""
        axes, chosen = self._axes(where), self.codes(where)
        (name,) = self._cross_tabulations(axes, {variable: (code,) for variable, code in chosen.items()})
        rows = self.release.read_cube(self.entry.id)
        here = np.ones(rows.num_rows, dtype=np.bool_)
        for variable, code in chosen.items():
            here &= pc.equal(rows[variable].cast(pa.string()), code).to_numpy(zero_copy_only=False)
        found = rows[VALUE].to_numpy()[here]
        return (float(found[0]) if len(found) else 0.0), name

    @cached_property
    def _trees(self) -> dict[str, Codelist]:
        return {axis.variable: self._tree(axis) for axis in self.entry.axes}

    def _tree(self, axis: AxisEntry) -> Codelist:
        listed = self.release.read_codes(axis.breakdown)
        if len(listed.codes) == 1:  # an axis that is only its total
            return Codelist(axis.breakdown, (), (), (), ())
        rows = zip(listed.codes[1:], listed.parents[1:], listed.labels[1:], strict=True)
        above = (Code(code, "" if parent == TOTAL else parent, label) for code, parent, label in rows)
        return codelist(axis.breakdown, above, str(self.release.folder / axis.codelist))

    @cached_property
    def _breakdowns(self) -> dict[str, dict[str, Breakdown]]:
        found = {}
        for axis in self.entry.axes:
            tree, name = self._trees[axis.variable], axis.breakdown.removeprefix(f"{axis.variable}.")
            found[axis.variable] = {name: breakdown(axis.variable, name, tree, tree.leaves)}
        return found

    def _axes(self, where: str) -> dict[str, _Axis]:
        parsed = None if not where.strip() else self._filter(where)
        passing = {} if parsed is None else dict(self._comparisons(parsed.term))
        return {
            axis.variable: _Axis(
                axis,
                self._trees[axis.variable],
                passing.get(axis.variable, np.ones(len(self._trees[axis.variable].leaves), dtype=np.bool_)),
            )
            for axis in self.entry.axes
        }

    def _filter(self, where: str) -> Filter:
        return parse_filter(where, self._trees, self.release.folder, "where", self._breakdowns)

    def _comparisons(self, term: Term) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        parts = term.terms if isinstance(term, Junction) and term.word == "and" else (term,)
        for part in parts:
            if not isinstance(part, Comparison):
                raise mistake(self.release.folder, "where", "or between different variables", ONLY_AND)
            yield part.variable, part.lookup

    def _named(self, name: str) -> tuple[str, int | None]:
        """The variable and the level of an axis; None: its finest codes."""
        found = self._level_names
        if name not in found:
            names = list(dict.fromkeys([*self._trees, *self._shown_levels]))
            raise mistake(self.release.folder, "axes", repr(name), alternatives(name, names))
        return found[name]

    @cached_property
    def _shown_levels(self) -> dict[str, tuple[str, int | None]]:
        """The levels as the release names them."""
        found: dict[str, tuple[str, int | None]] = {}
        for axis in self.entry.axes:
            deepest = self._trees[axis.variable].depth
            for level in range(1, deepest + 1):
                found[axis.level(level)] = axis.variable, None if level == deepest else level
        return found

    @cached_property
    def _level_names(self) -> dict[str, tuple[str, int | None]]:
        """All names of levels: as the release has them, by number, and without the variable where that is unique."""
        short = [(name.partition(".")[2], found) for name, found in self._shown_levels.items()]
        often = Counter(name for name, _ in short)
        numbered = {
            f"{variable}:{level}": (variable, level)
            for variable, tree in self._trees.items()
            for level in range(1, tree.depth + 1)
        }
        return {
            **{name: found for name, found in short if name and often[name] == 1},
            **numbered,
            **{
                name: (axis.variable, None)
                for axis in self.entry.axes
                for name in (axis.variable, axis.breakdown)
            },
            **self._shown_levels,
        }

    def _one(self, axis: _Axis) -> str:
        if len(axis.chosen) != 1:
            value = f"{len(axis.chosen)} codes of {axis.entry.variable} ({', '.join(axis.chosen[:5])})"
            remedy = "choose one code, or cross this axis; `discreet infer total` adds cells up"
            raise mistake(self.release.folder, "where", value, remedy)
        return axis.chosen[0]

    def _read(
        self, axes: Mapping[str, _Axis], codes: Mapping[str, tuple[str, ...]], along: Sequence[str]
    ) -> ReleasedTable:
        if self.entry.weight:
            value = f"cube {self.entry.id} has weighted estimates, whose error is mostly that of the sample"
            raise mistake(self.release.folder, "cube", value, COUNTS_ONLY)
        names = tuple(self._cross_tabulations(axes, codes))
        order = [*along, *(name for name in axes if name not in along)]
        counts = self._counts({name: codes[name] for name in order})
        impossible = self._impossible(axes, {name: codes[name] for name in order})
        shape = counts.shape[: len(along)]
        table = CrossTable(
            counts.reshape(shape),
            tuple(along),
            tuple(codes[name] for name in along),
            impossible.reshape(shape) if impossible.any() else None,
        )
        return ReleasedTable(table, self.release, names)

    def _counts(self, codes: Mapping[str, tuple[str, ...]]) -> Integers:
        shape = tuple(len(some) for some in codes.values())
        if np.prod(shape, dtype=np.float64) > LARGEST_TABLE:
            raise mistake(
                "", "table", f"{np.prod(shape, dtype=np.float64):.3g} cells", "take fewer axes or codes"
            )
        columns = self.release.read_cube(self.entry.id)
        selected, places = np.ones(columns.num_rows, dtype=np.bool_), []
        for name, wanted in codes.items():
            column = columns[name].combine_chunks().dictionary_decode().unique().to_pylist()
            order = {code: at for at, code in enumerate(wanted)}
            encoded = columns[name].combine_chunks().dictionary_decode().dictionary_encode()
            place_of = np.array([order.get(code, -1) for code in column], dtype=np.int64)
            place = place_of[encoded.indices.to_numpy()] if len(column) else np.zeros(0, dtype=np.int64)
            places.append(place)
            selected &= place >= 0
        counts = np.zeros(shape, dtype=np.int64)
        at = tuple(place[selected] for place in places)
        counts[at] = integers(columns[VALUE].to_numpy()[selected], VALUE)
        return counts

    def _cross_tabulations(
        self, axes: Mapping[str, _Axis], codes: Mapping[str, tuple[str, ...]]
    ) -> Iterator[str]:
        """Those that the cells are of; refused where one is not published: its cells would be taken for zeros."""
        entry = self.entry
        depths = [sorted({axes[name].depth(code) for code in some}) for name, some in codes.items()]
        for chosen in product(*depths):
            levels = tuple(sorted((name, depth) for name, depth in zip(codes, chosen, strict=True) if depth))
            if entry.published is not None and crossed(levels) not in entry.published:
                value, remedy = (
                    f"{self._shown(levels)} is not published",
                    f"published are {', '.join(map(self._renamed, entry.published))}",
                )
                raise mistake(self.release.folder, f"cube {entry.id}", value, remedy)
            counted = (entry.unit, entry.base_normal, entry.count)
            yield str(Signature(*counted, levels, entry.source, entry.weight))

    def _shown(self, levels: Levels) -> str:
        named = {axis.variable: axis for axis in self.entry.axes}
        return cross_named((variable, named[variable].level(depth)) for variable, depth in levels)

    def _renamed(self, numbered: str) -> str:
        """A cross-tabulation of the manifest, by the names of its levels."""
        parts = [part.partition(":") for part in numbered.split(" x ")]
        return self._shown(tuple((name, int(depth)) for name, colon, depth in parts if colon))

    def _impossible(
        self, axes: Mapping[str, _Axis], codes: Mapping[str, tuple[str, ...]]
    ) -> NDArray[np.bool_]:
        """The cells that must be empty by a declared structural zero whose variables and codes the cube has."""
        found = np.zeros([len(some) for some in codes.values()], dtype=np.bool_)
        for text in self.release.manifest.structural_zeros:
            try:
                rule = parse_filter(text, self._trees, breakdowns=None)
            except Mistakes:
                continue  # about variables or codes that this cube does not show
            found |= _certain(rule.term, axes, codes)
        return found


def _certain(
    term: Term, axes: Mapping[str, _Axis], codes: Mapping[str, tuple[str, ...]]
) -> NDArray[np.bool_]:
    """The cells all of whose records pass a filter; of an ``or`` only those that one of its terms is enough for."""
    if isinstance(term, Junction):
        join = np.logical_and if term.word == "and" else np.logical_or
        return np.asarray(join.reduce([_certain(part, axes, codes) for part in term.terms]), dtype=np.bool_)
    passes = [bool(term.lookup[axes[term.variable].leaves(code)].all()) for code in codes[term.variable]]
    shape = [len(passes) if name == term.variable else 1 for name in codes]
    return np.broadcast_to(np.array(passes).reshape(shape), [len(some) for some in codes.values()])


def released_cube(release: AnyRelease, cube: str | None = None) -> ReleasedCube:
    """A cube of a release by its id, which a table and a release of one cube need not name.

    >>> import discreet as ds
    >>> persons = {"pid": range(90), "sex": ["F", "M", "F"] * 30, "lms": ["S", "M"] * 45}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> cubes, noise = [ds.Cube("sex", "lms")], ds.CellKey(V=2, D=5)
    >>> release = ds.protect(census, cubes, noise, secret=ds.Secret.new(), disclose="law")
    >>> ds.inference.released_cube(release, "sex_lms").table(["sex"]).table.axes
    ('sex',)
    """
    return ReleasedCube(*opened_cube(release, cube))


Where = str | Mapping[str, str | Sequence[str]]  # a filter on codes, or one or more codes of some variables


def filter_text(where: Where) -> str:
    """The filter as text: ``{"SEX": "F"}`` is ``SEX == "F"``, ``{"SEX": ["F", "M"]}`` is ``SEX in ("F", "M")``."""
    if isinstance(where, str):
        return where
    return " and ".join(
        f"{variable} == {_quoted(variable, codes)}"
        if isinstance(codes, str) or not isinstance(codes, Sequence)
        else f"{variable} in ({', '.join(_quoted(variable, code) for code in codes)})"
        for variable, codes in where.items()
    )


def _quoted(variable: str, code: object) -> str:
    if not isinstance(code, str):
        raise mistake("where", variable, repr(code), f'give a code as text, such as "{code}", or a list')
    return json.dumps(code, ensure_ascii=False)


def cross_table(release: AnyRelease, cube: str | None, axes: Sequence[str], where: Where = "") -> CrossTable:
    """Some axes of a cube by their finest codes; the others at their total, or at the code that ``where`` names.

    >>> import discreet as ds
    >>> persons = {"pid": range(90), "sex": ["F", "M", "F"] * 30, "lms": ["S", "M"] * 45}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> cubes, noise = [ds.Cube("sex", "lms")], ds.CellKey(V=2, D=5)
    >>> release = ds.protect(census, cubes, noise, secret=ds.Secret.new(), disclose="law")
    >>> ds.inference.cross_table(release, "sex_lms", ["sex", "lms"]).counts.shape
    (2, 2)
    """
    return released_cube(release, cube).table(axes, filter_text(where)).table
