"""The evidence of attacks: what an outsider reads in a release (Published), and the true counts (Truth)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BrokenRelease, Mistakes, mistake
from discreet.lazy import lazily
from discreet.maths.attacks.bounds import LARGEST_VARIANCE
from discreet.maths.noise.hellinger import PTableLaw
from discreet.perturb.noise import ADJUSTED, Noise
from discreet.programme.codelist import TOTAL, Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube, Levels, Signature
from discreet.programme.definitions import NO_DEFINITION
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import AxisEntry, CubeEntry
from discreet.release.reader import CubeFile, PublishedCodes, Release, size_problem

if TYPE_CHECKING:
    from discreet.release import hierarchy
    from discreet.release.hierarchy import PublishedHierarchy
else:
    hierarchy = lazily("discreet.release.hierarchy")  # few releases are hierarchical

CELLS_IN_MEMORY = 1 << 26  # of 16 bytes: what measures of one release share

Integers = NDArray[np.int64]
Records = NDArray[np.uint64]
Cells = tuple[
    Integers, Integers
]  # flat positions in the cube's grid, ascending, and their values; the rest is zero


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One published table; its cells are read on demand."""

    cube: Cube  # its base is that of the universe
    load: Callable[[], Cells]

    @property
    def id(self) -> str:
        """The id of the cube."""
        return self.cube.id


@dataclass(eq=False)
class _Memory:
    """Cells of tables that were read, as long as there is room."""

    room: int  # cells

    def once(self, table: PublishedTable) -> PublishedTable:
        """The same table, read when it is first used."""
        found: list[Cells] = []

        def load() -> Cells:
            if found:
                return found[0]
            cells = table.load()
            if len(cells[0]) <= self.room:
                self.room -= len(cells[0])
                found.append(cells)
            return cells

        return replace(table, load=load)


@dataclass(frozen=True, eq=False)
class Universe:
    """The tables that count the same records: only these represent each other."""

    unit: str
    base: str  # normal form of the population base, empty for all
    count: str  # the counted 0/1 variable, empty for records
    tables: tuple[PublishedTable, ...]
    codelists: Mapping[str, Codelist]  # variable -> all codes that any table of the release has
    source: str = ""  # of ready-made counts whose files are told apart

    @property
    def counted(self) -> str:
        """What is counted, as text."""
        who = f"{self.unit} where {self.base}" if self.base else self.unit
        return f"{self.count} of {who}" if self.count else who

    def signature(self, levels: Levels) -> Signature:
        """The signature of one of its cross-tabulations in the whole release."""
        return Signature(self.unit, self.base, self.count, levels, self.source)


@dataclass(frozen=True, eq=False)
class WeightedTable:
    """One published table of weighted sums; its cells are read on demand."""

    cube: Cube
    unit: str
    base: str  # normal form, as that of a universe
    count: str
    load: Callable[[], tuple[Integers, NDArray[np.float64]]]

    @property
    def id(self) -> str:
        """The id of the cube."""
        return self.cube.id


@dataclass(frozen=True, eq=False)
class Published:
    """All public content of a release."""

    name: str
    universes: tuple[Universe, ...]
    noise: Noise
    places: tuple[str, ...] = ()  # the variables that are places
    left_out: tuple[str, ...] = ()  # cubes that only the attack on weights uses: weighted sums
    weighted: tuple[WeightedTable, ...] = ()
    hierarchy: PublishedHierarchy | None = None  # of a hierarchical release: its measurements and estimates

    @property
    def variables(self) -> list[str]:
        """The variables of all axes."""
        return sorted({axis.variable for u in self.universes for t in u.tables for axis in t.cube.axes})


def read_once(seen: Published) -> Published:
    """The same release, whose tables are read once for all measures; the largest are read again beyond a gigabyte."""
    memory = _Memory(CELLS_IN_MEMORY)
    return replace(
        seen,
        universes=tuple(
            replace(universe, tables=tuple(map(memory.once, universe.tables))) for universe in seen.universes
        ),
    )


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCells:
    """The cells of a table as an averaging attacker sees them: those listed, or all that have records."""

    cells: Integers
    values: Integers  # published
    counts: Integers  # true where they are known, otherwise as published
    records: Records | None = None  # equal where the same records are counted


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The non-empty cells of every cube with their true counts; ``counted`` is what the noise was added to."""

    original: Mapping[str, Cells]  # cube -> cells before swapping
    counted: Mapping[str, Cells]  # cube -> cells after swapping; the same where nothing is swapped
    records: Mapping[str, Records] = field(
        default_factory=dict
    )  # cube -> for each cell of ``counted`` a number that is equal where the same records are counted: key and count
    before: Mapping[str, Records] | None = None  # the same of ``original``, where anything is swapped

    @property
    def original_records(self) -> Mapping[str, Records]:
        """Cube -> keys and counts of the cells before swapping."""
        return self.records if self.before is None else self.before

    @property
    def sides(self) -> tuple[Mapping[str, Cells], ...]:
        """The counts before swapping, and after it where anything is swapped."""
        return (self.original, self.counted) if self.is_swapped else (self.original,)

    @property
    def is_swapped(self) -> bool:
        """Whether households were swapped before counting."""
        return self.original is not self.counted

    def under(self, shown: PublishedTable) -> NoisyCells:
        """The cells of a table that have records, with their published values."""
        cells, counts = cells_of(self.counted, shown.id)
        return NoisyCells(cells, values_at(shown.load(), cells), counts, self.records.get(shown.id))

    def __repr__(self) -> str:
        return f"Truth({len(self.counted)} cubes)"


def cells_of(tables: Mapping[str, Cells], cube: str) -> Cells:
    """The counts of a cube; an error where they are of another programme."""
    if cube not in tables:
        remedy = "give the programme that the release was made from"
        raise mistake("", f"cube {cube}", "is published, but not counted", remedy)
    return tables[cube]


def values_at(table: Cells, cells: Integers) -> Integers:
    """The values of some cells of a table, zero where it lists none."""
    listed, values = table
    if not len(listed):
        return np.zeros(len(cells), dtype=np.int64)
    at = np.minimum(np.searchsorted(listed, cells), len(listed) - 1)
    return np.where(listed[at] == cells, values[at], 0)


def refuse_adjusted(release: Release, fitted: bool = False) -> None:
    """Refuse to attack counts that were adjusted to add up: no attack knows a law of such counts.

    ``fitted`` accepts a hierarchical release, whose measurements can be attacked.
    """
    if release.noise.adjusted and not (fitted and release.noise.hierarchy is not None):
        value = f"{ADJUSTED}, so that their errors depend on each other"
        remedy = (
            "judge the same programme without consistent = true: adjusting uses only such counts"
            if release.noise.hierarchy is None
            else "audit it with its programme and secret: that attacks the noisy measurements"
        )
        raise mistake(release.folder, "release", value, remedy)


def published(release: Release) -> Published:
    """Read everything in the public files of a release that an attacker can use."""
    entries = [entry for entry in release.manifest.cubes if not entry.weight]
    reader = _Reader(release)
    is_hierarchical = release.noise.hierarchy is not None
    return Published(
        release.manifest.name,
        tuple(reader.universes(entries)),
        release.noise,
        release.manifest.places,
        tuple(entry.id for entry in release.manifest.cubes if entry.weight),
        tuple(reader.weighted(entry) for entry in release.manifest.cubes if entry.weight),
        hierarchy.published_hierarchy(release) if is_hierarchical else None,
    )


def tables_of(programme: Programme, truth: Truth | None = None) -> Iterator[Universe]:
    """The tables that count the same records, as input of measures: with true counts, or empty."""
    codelists = {name: variable.codelist for name, variable in programme.variables.items()}
    groups: dict[tuple[str, str, str, str], list[Cube]] = {}
    for cube in programme.cubes:
        if not cube.weight:
            base = cube.base.canonical if cube.base else ""
            groups.setdefault((cube.unit, base, cube.count or "", cube.source), []).append(cube)
    counts: Mapping[str, Cells] = {} if truth is None else truth.original
    for (unit, base, count, source), cubes in groups.items():
        tables = tuple(PublishedTable(cube, partial(_counted, counts, cube.id)) for cube in cubes)
        yield Universe(unit, base, count, tables, codelists, source)


def _counted(counts: Mapping[str, Cells], cube: str) -> Cells:
    empty = np.empty(0, dtype=np.int64)
    return counts.get(cube, (empty, empty))


def same_secret(first: Release, second: Release) -> bool:
    """Whether two releases were made with one secret, by the fingerprints in their manifests."""
    return first.manifest.secret_fingerprint == second.manifest.secret_fingerprint


def same_ptable(first: Release, second: Release) -> bool:
    """Whether two releases of one secret have the same p-table and use of keys, by the digests in their manifests."""
    return first.manifest.digests.ptable == second.manifest.digests.ptable


def supposing(seen: Published, law: PTableLaw | None, variance: float | None) -> Published:
    """The release as seen by an attacker who knows more about the noise than it discloses."""
    noise = seen.noise
    if law is not None:
        if not noise.keeps_zeros or not noise.same_noise:
            remedy = "leave it out: this release is not by the cell key method"
            raise mistake("", "--ptable", "a p-table", remedy)
        noise = noise.knowing(law)
    if variance is not None:
        if not 0 < variance <= LARGEST_VARIANCE:
            remedy = f"give a number above 0, at most {LARGEST_VARIANCE:g}"
            raise mistake("", "--variance", f"{variance:g}", remedy)
        noise = replace(noise, variance=variance)
    return replace(seen, noise=noise)


class _Reader:
    """Rebuilds axes and trees from the published lists of codes, each once."""

    def __init__(self, release: Release) -> None:
        self._release = release
        axes = {axis.breakdown: axis for cube in release.manifest.cubes for axis in cube.axes}
        self._codes = {name: release.read_codes(name) for name in axes}
        variables = dict.fromkeys(axis.variable for axis in axes.values())
        self._trees = {
            variable: _tree(
                variable, [self._codes[name] for name, axis in axes.items() if axis.variable == variable]
            )
            for variable in variables
        }
        self._axes = {name: self._axis(axis) for name, axis in axes.items()}

    def universes(self, entries: Iterable[CubeEntry]) -> Iterable[Universe]:
        """The cubes by what they count."""
        groups: dict[tuple[str, ...], list[CubeEntry]] = {}
        for entry in entries:
            groups.setdefault(entry.population, []).append(entry)
        for (unit, base, count, _, source), members in groups.items():
            yield Universe(unit, base, count, tuple(map(self._table, members)), self._trees, source)

    def weighted(self, entry: CubeEntry) -> WeightedTable:
        """A cube of weighted sums."""
        cube, rows = self._file(entry)
        cube = replace(cube, weight=entry.weight)
        return WeightedTable(cube, entry.unit, entry.base_normal, entry.count, partial(_sums, rows))

    def _table(self, entry: CubeEntry) -> PublishedTable:
        cube, rows = self._file(entry)
        return PublishedTable(cube, partial(_cells, rows))

    def _file(self, entry: CubeEntry) -> tuple[Cube, CubeFile]:
        file = entry.file(ReleaseFormat.PARQUET)
        if file is None or not (self._release.folder / file.path).is_file():
            raise BrokenRelease(f"cube {entry.id}: its Parquet file is missing; fetch the release again")
        if problem := size_problem(entry, [self._codes[axis.breakdown] for axis in entry.axes]):
            raise BrokenRelease(f"{problem}; fetch the release again")
        axes = tuple(self._axes[axis.breakdown] for axis in entry.axes)
        cube = Cube(
            entry.id, entry.unit, axes, count=entry.count or None, title=entry.title, source=entry.source
        )
        cube = replace(cube, shown=entry.shown(cube))
        signed = self._release.manifest.noise.keeps_negatives
        rows = CubeFile(entry, self._release.folder / file.path, tuple(axis.codes for axis in axes), signed)
        return cube, rows

    def _axis(self, entry: AxisEntry) -> Breakdown:
        tree, listed = self._trees[entry.variable], self._codes[entry.breakdown]
        inner = set(listed.parents)
        cut = [tree.position[code] for code in listed.codes if code not in inner and code != TOTAL]
        _, _, name = entry.breakdown.partition(".")
        made = breakdown(entry.variable, name or entry.variable, tree, cut)
        return replace(made, upper=entry.levels[:-1])


def _tree(variable: str, lists: Iterable[PublishedCodes]) -> Codelist:
    """The tree of all published codes of a variable; its breakdowns must agree on parents."""
    rows: dict[str, Code] = {}
    for listed in lists:
        for code, parent, label in zip(listed.codes, listed.parents, listed.labels, strict=True):
            if code == TOTAL:
                continue
            defined = listed.definitions.get(code, NO_DEFINITION)
            row = Code(code, "" if parent == TOTAL else parent, label, defined)
            if rows.setdefault(code, row).parent != row.parent:
                raise BrokenRelease(
                    f"codelists of {variable}: {code} has two parents; fetch the release again"
                )
    if not rows:
        return Codelist(variable, (), (), (), ())  # only its total is published
    try:
        return codelist(variable, rows.values())
    except Mistakes as mistakes:
        raise BrokenRelease(f"codelists of {variable}: {mistakes}") from None


def _cells(file: CubeFile) -> Cells:
    parts = [(rows.cells, rows.values) for rows in file.parts()]
    if len(parts) < 2:
        return parts[0] if parts else (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    return np.concatenate([cells for cells, _ in parts]), np.concatenate([values for _, values in parts])


def _sums(file: CubeFile) -> tuple[Integers, NDArray[np.float64]]:
    cells, values = _cells(file)
    return cells, values.astype(np.float64)
