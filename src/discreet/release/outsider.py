"""A release as an outsider reads it: tables, codes and the public words on the noise, from the public files alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from discreet.audit.published import Cells, KnownNoise, Published, PublishedTable, Universe
from discreet.errors import BrokenRelease, Mistakes
from discreet.maths.laws import Law, LawKind
from discreet.maths.named_laws import NoiseParameters, named_law
from discreet.maths.ptable import ptable_of_rows
from discreet.maths.row_laws import PTableLaw
from discreet.release.codelist_files import PublishedCodes
from discreet.release.manifest import AxisEntry, CubeEntry
from discreet.release.noise import NoiseStatement
from discreet.release.read import Release
from discreet.release.rows import CubeFile
from discreet.schema.codelist import TOTAL, Breakdown, Code, Codelist, breakdown, codelist
from discreet.schema.cube import Cube
from discreet.schema.noise import Draw, KeptZeros, Negatives, PostProcessing
from discreet.schema.rules import ReleaseFormat

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
