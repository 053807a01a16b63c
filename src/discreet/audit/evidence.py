"""The evidence of attacks: what an outsider reads in a release (Published), and the true counts (Truth)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BrokenRelease, Mistakes, mistake
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import NoiseParameters, named_law
from discreet.maths.noise.ptable import ptable_of_rows
from discreet.perturb.statement import NoiseStatement
from discreet.programme.codelist import TOTAL, Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube, Levels, Signature
from discreet.programme.noise import Draw, KeptZeros, Negatives, PostProcessing
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import AxisEntry, CubeEntry
from discreet.release.reader import CubeFile, PublishedCodes, Release

Integers = NDArray[np.int64]
Cells = tuple[
    Integers, Integers
]  # flat positions in the cube's grid, ascending, and their values; the rest is zero


LARGE = 1000  # a count that has the noise of large counts
NOTHING_MORE = PostProcessing()


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One table as anybody can read it; its cells are read when they are wanted."""

    cube: Cube  # its base is told by the universe
    load: Callable[[], Cells]

    @property
    def id(self) -> str:
        """The id of the cube."""
        return self.cube.id


@dataclass(frozen=True, eq=False)
class Universe:
    """The tables that count the same records: only these represent each other."""

    unit: str
    base: str  # normal form of the population base, empty for all
    count: str  # the counted 0/1 variable, empty for records
    tables: tuple[PublishedTable, ...]
    codelists: Mapping[str, Codelist]  # variable -> all codes that any table of the release has

    @property
    def counted(self) -> str:
        """What is counted, in words."""
        who = f"{self.unit} where {self.base}" if self.base else self.unit
        return f"{self.count} of {who}" if self.count else who

    def signature(self, levels: Levels) -> Signature:
        """The signature of one of its cross-tabulations in the whole release."""
        return Signature(self.unit, self.base, self.count, levels)


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """What is known of the noise: all of it, its variance and a bound, or nothing."""

    method: str
    same_noise: bool  # the same participants have the same noise wherever they are counted
    keeps_zeros: bool  # an empty cell is published as empty
    variance: float | None = None  # of any cell at most this
    bound: int | None = None  # no change is larger; None where that is not told, or not so
    law: Law | None = None  # of the published count before it is post-processed, by true count
    laws: Mapping[str, Law] = field(
        default_factory=dict
    )  # of cross-tabulations that have another, by signature
    published: PostProcessing = NOTHING_MORE
    bound_is_exact: bool = True  # False where the public was told a rounded one

    def law_of(self, signature: Signature) -> Law:
        """The law of a cross-tabulation's cells; an attack that needs it cannot do without."""
        law = self.laws.get(str(signature), self.law)
        if law is None:
            remedy = "give the p-table or the private side, or attack what needs no law"
            raise mistake("", "noise", "its law is not public", remedy)
        return law

    def variance_of(self, signature: Signature) -> float:
        """The variance of a cell of a cross-tabulation, at most."""
        if self.law is not None:
            row = self.law_of(signature).row(LARGE)
            return row.variance
        if self.variance is None:
            remedy = "give it with --variance, or attack what needs none"
            raise mistake("", "noise", "its variance is not public", remedy)
        return self.variance


@dataclass(frozen=True, eq=False)
class Published:
    """All that anybody can read of a release."""

    name: str
    universes: tuple[Universe, ...]
    noise: KnownNoise
    places: tuple[str, ...] = ()  # the variables that are places
    left_out: tuple[str, ...] = ()  # cubes that no attack can use: weighted sums

    @property
    def variables(self) -> list[str]:
        """The variables of all axes."""
        return sorted({axis.variable for u in self.universes for t in u.tables for axis in t.cube.axes})


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The non-empty cells of every cube with their true counts; ``counted`` is what the noise was added to."""

    original: Mapping[str, Cells]  # cube -> cells before swapping
    counted: Mapping[str, Cells]  # cube -> cells after swapping; the same where nothing is swapped

    @property
    def sides(self) -> tuple[Mapping[str, Cells], ...]:
        """The counts before swapping, and after it where anything is swapped."""
        return (self.original, self.counted) if self.is_swapped else (self.original,)

    @property
    def is_swapped(self) -> bool:
        """Whether households were swapped before counting."""
        return self.original is not self.counted

    def __repr__(self) -> str:
        return f"Truth({len(self.counted)} cubes)"


def cells_of(tables: Mapping[str, Cells], cube: str) -> Cells:
    """The counts of a cube; an error where they are those of another programme."""
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


CELL_KEY = "cell-key"


def published(release: Release) -> Published:
    """Everything that the public files of a release give an attacker."""
    entries = [entry for entry in release.manifest.cubes if not entry.weight]
    reader = _Reader(release)
    return Published(
        release.manifest.name,
        tuple(reader.universes(entries)),
        known_noise(release.manifest.noise),
        release.manifest.places,
        tuple(entry.id for entry in release.manifest.cubes if entry.weight),
    )


def known_noise(said: NoiseStatement) -> KnownNoise:
    """What the public words on the noise let an outsider know."""
    return _cell_key_noise(said) if said.kind == CELL_KEY else _private_noise(said)


def _cell_key_noise(said: NoiseStatement) -> KnownNoise:
    if not said.law:
        bound = _rough_bound(said.bound)
        return KnownNoise(said.method, True, True, said.variance, bound, bound_is_exact=False)
    law = _ptable_law(said.law)
    variance = max(law.ptable.variance(row) for row in range(law.ptable.last_row + 1))
    return KnownNoise(said.method, True, True, variance, law.ptable.reach, law)


def _private_noise(said: NoiseStatement) -> KnownNoise:
    words = {name: str(value) for name, value in (said.parameters or {}).items()}
    bound = int(words["bound"]) if "bound" in words else None
    law_of = partial(_private_law, said.kind, bound)
    return KnownNoise(
        said.method,
        words.get("draw") == Draw.PARTICIPANTS.value,
        words.get("keep_zeros") == KeptZeros.ALL.value,
        said.variance,
        bound,
        law_of(said.law_parameter) if said.law_parameter else None,
        {crosstab: law_of(parameter) for crosstab, parameter in (said.other_laws or {}).items()},
        PostProcessing(
            Negatives(words.get("negatives", Negatives.KEEP.value)),
            int(words.get("rounding", 1)),
            int(words.get("threshold", 0)),
        ),
    )


def _ptable_law(law: Iterable[Mapping[int, float]]) -> PTableLaw:
    """A p-table of published changes; one that is no p-table is a damaged release."""
    rows = []
    for count, changes in enumerate(law):
        kept = sorted((count + change, p) for change, p in changes.items() if p > 0)
        rows.append(([target for target, _ in kept], [p for _, p in kept]))
    try:
        return PTableLaw(ptable_of_rows(rows))
    except Mistakes as mistakes:
        raise BrokenRelease(f"noise law: {mistakes}") from None


def _private_law(kind: str, bound: int | None, parameter: str) -> Law:
    try:
        named = LawKind(kind)
        amount = {"rho" if named is LawKind.DISCRETE_GAUSSIAN else "epsilon": parameter}
        return named_law(NoiseParameters(named, bound=bound, **amount))  # type: ignore[arg-type]
    except (Mistakes, ValueError) as error:
        raise BrokenRelease(f"noise law {kind} {parameter}: {error}") from None


def _rough_bound(said: str | None) -> int | None:
    found = re.search(r"\d+", said or "")
    return int(found.group()) if found else None


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
        for (unit, base, count, _), members in groups.items():
            yield Universe(unit, base, count, tuple(map(self._table, members)), self._trees)

    def _table(self, entry: CubeEntry) -> PublishedTable:
        file = entry.file(ReleaseFormat.PARQUET)
        if file is None or not (self._release.folder / file.path).is_file():
            raise BrokenRelease(f"cube {entry.id}: its Parquet file is missing; fetch the release again")
        axes = tuple(self._axes[axis.breakdown] for axis in entry.axes)
        cube = Cube(entry.id, entry.unit, axes, count=entry.count or None, title=entry.title)
        rows = CubeFile(entry, self._release.folder / file.path, tuple(axis.codes for axis in axes))
        return PublishedTable(cube, partial(_cells, rows))

    def _axis(self, entry: AxisEntry) -> Breakdown:
        tree, listed = self._trees[entry.variable], self._codes[entry.breakdown]
        inner = set(listed.parents)
        cut = [tree.position[code] for code in listed.codes if code not in inner and code != TOTAL]
        _, _, name = entry.breakdown.partition(".")
        return breakdown(entry.variable, name or entry.variable, tree, cut)


def _tree(variable: str, lists: Iterable[PublishedCodes]) -> Codelist:
    """The tree of all published codes of a variable; its breakdowns must agree on parents."""
    rows: dict[str, Code] = {}
    for listed in lists:
        for code, parent, label in zip(listed.codes, listed.parents, listed.labels, strict=True):
            if code == TOTAL:
                continue
            row = Code(code, "" if parent == TOTAL else parent, label)
            if rows.setdefault(code, row).parent != row.parent:
                raise BrokenRelease(
                    f"codelists of {variable}: {code} has two parents; fetch the release again"
                )
    try:
        return codelist(variable, rows.values())
    except Mistakes as mistakes:
        raise BrokenRelease(f"codelists of {variable}: {mistakes}") from None


def _cells(file: CubeFile) -> Cells:
    parts = [(rows.cells, rows.values) for rows in file.parts()]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate([cells for cells, _ in parts]), np.concatenate([values for _, values in parts])
