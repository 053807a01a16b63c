"""Verification of a release: no file missing, unlisted or changed, one value for every cell, sums where stated."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from numpy.typing import NDArray

from discreet.errors import BrokenRelease
from discreet.formats.dataset import DECIMALS, LABEL_SUFFIX
from discreet.formats.levels import AxisLevels, Levels, axis_levels, levels_of
from discreet.maths.cells.counting import aggregate
from discreet.maths.cells.margins import is_in_preorder, with_margins
from discreet.programme.codelist import TOTAL
from discreet.programme.cube import crossed
from discreet.programme.release import ReleaseFormat
from discreet.release.additivity import sum_problems
from discreet.release.folder import file_sha256
from discreet.release.manifest import (
    MANIFEST,
    SIGNATURE,
    AxisEntry,
    CubeEntry,
    FileEntry,
    Manifest,
    codelist_place,
    read_manifest,
)
from discreet.release.possible import (
    PossibleValues,
    impossible_values,
    possible_problems,
    require_plain,
    unusual_files,
)
from discreet.release.reader import CubeFile, PublishedCodes, Release, Texts, Values, read_codes
from discreet.release.signature import UNSIGNED, SignatureState, Signed, read_signature
from discreet.release.verify_estimates import recomputed
from discreet.release.verify_formats import format_problems
from discreet.release.verify_hierarchy import hierarchy_problems

ROWS_PER_PASS = 25_000_000  # bounds memory to about a gigabyte; more cells are compared in several passes
NAMED = 20  # findings that are listed
_WORD = 64


@dataclass(frozen=True)
class Comparison:
    """What disagrees, and how many cells occur in more than one cube."""

    problems: tuple[str, ...]
    compared: int
    impossible: tuple[str, ...] = ()  # values that the noise of a cube cannot give


@dataclass(frozen=True)
class _Axis:
    """What a node of an axis adds to a cell's description, and the cubes that have it."""

    variable: str
    codes: tuple[str, ...]
    hashes: NDArray[np.uint64]  # node -> hash; 0 for the total
    cubes: NDArray[np.uint64]  # (word, node) -> bits of the cubes that have the code; all bits for the total
    depths: NDArray[np.int64]  # node -> level below the total


@dataclass(frozen=True)
class _Member:
    """One cube of a population, ready to be read."""

    file: CubeFile
    axes: tuple[_Axis, ...]
    present: NDArray[np.bool_]  # cross-tabulation -> whether it is published here; last axis fastest
    shared: NDArray[np.uint64]  # (word, cross-tabulation) -> bits of the cubes that publish it
    is_partial: bool  # whether any of the cubes leaves cross-tabulations out

    def crosstab(self, nodes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The number of the cross-tabulation of each cell."""
        number = np.zeros(len(nodes[0]), dtype=np.int64)
        for axis, along in zip(self.axes, nodes, strict=True):
            number = number * (int(axis.depths.max()) + 1) + axis.depths[along]
        return number

    @property
    def entry(self) -> CubeEntry:
        """The description of the cube."""
        return self.file.entry


@dataclass(frozen=True)
class _Cells:
    """Some rows of a cube."""

    nodes: tuple[NDArray[np.int64], ...]  # one array for each axis
    hashes: NDArray[np.uint64]
    values: Values
    texts: Mapping[str, Texts]  # the columns of levels and labels, where they are read


class _RowChecks:
    """What single rows show, collected while the cubes of a population are read once to be compared."""

    def __init__(
        self, members: Sequence[_Member], known: Mapping[str, PublishedCodes], manifest: Manifest
    ) -> None:
        self.column = manifest.level_column
        self.impossible: dict[str, str] = {}  # cube -> values that its noise cannot give
        self.read: set[str] = set()  # cubes that were read to their end
        self._values = {one.entry.id: PossibleValues.of(manifest, one.entry) for one in members}
        self._levels: dict[str, Levels] = {}
        self._labels = {  # cube -> column of labels -> the label of each node
            one.entry.id: {
                axis.variable + LABEL_SUFFIX: tuple(map(str, known[axis.codelist].labels))
                for axis in one.entry.axes
            }
            for one in members
        }
        self._wrong: dict[str, str] = {}
        for member in members if self.column else ():
            found = _levels(member, known)
            if isinstance(found, str):
                self._wrong[member.entry.id] = found
            else:
                self._levels[member.entry.id] = found

    def columns(self, cube: str) -> tuple[str, ...]:
        """The columns of texts that are looked at."""
        return (*self._labels[cube], *((self.column,) if self.column else ()))

    def look(self, cube: str, cells: _Cells) -> None:
        """Look at the values, labels and levels of some rows of a cube."""
        if (problem := self._values[cube].problem(cells.values)) is not None:
            self.impossible.setdefault(cube, problem)
        if (levels := self._levels.get(cube)) is not None and cube not in self._wrong:
            first: dict[str, int] = {}
            named = np.array([first.setdefault(name, place) for place, name in enumerate(levels.names)])
            listed = cells.texts[self.column]
            stated = np.array([first.get(name, -1) for name in listed.distinct])
            if not np.array_equal(stated[listed.which], named[levels.places(cells.nodes)]):
                self._wrong[cube] = (
                    f"cube {cube}: the column {self.column} does not have the levels of its codes"
                )

        for (column, labels), nodes in zip(self._labels[cube].items(), cells.nodes, strict=True):
            if not cells.texts[column].are(labels, nodes):
                wrong = f"cube {cube}: the column {column} does not have the labels of the codelist"
                self._wrong.setdefault(cube, wrong)

    def wrong_texts(self, members: Sequence[_Member]) -> Iterator[str]:
        """The cubes whose rows do not have the level and the labels that follow from their codes."""
        return (self._wrong[one.entry.id] for one in members if one.entry.id in self._wrong)


def compare(folder: Path, manifest: Manifest) -> Comparison:
    """Compare the cubes of each population of a release whose files are intact."""
    places = sorted({axis.codelist for cube in manifest.cubes for axis in cube.axes})
    try:
        known = {place: read_codes(folder / place) for place in places}
    except BrokenRelease as broken:
        return Comparison((str(broken),), 0)
    problems: list[str] = []
    impossible: dict[str, str] = {}
    compared = 0
    for population in dict.fromkeys(cube.population for cube in manifest.cubes):
        entries = [cube for cube in manifest.cubes if cube.population == population]
        members = _members(folder, entries, known, manifest.noise.keeps_negatives)
        checks = _RowChecks(members, known, manifest)
        try:
            outcome = _compare_population(members, checks, ROWS_PER_PASS)
            problems.extend(_wrong_sums(members, known, manifest))
            problems.extend(checks.wrong_texts(members))
        except BrokenRelease as broken:
            outcome = Comparison((str(broken),), 0)
            unread = (entry for entry in entries if entry.id not in checks.read)
            impossible |= _impossible(folder, manifest, unread)
        impossible |= checks.impossible
        problems.extend(outcome.problems)
        compared += outcome.compared
    in_order = tuple(impossible[cube.id] for cube in manifest.cubes if cube.id in impossible)
    return Comparison(tuple(problems), compared, in_order)


def _impossible(folder: Path, manifest: Manifest, cubes: Iterable[CubeEntry]) -> dict[str, str]:
    """Cube -> its values that are impossible, of cubes that are not compared."""
    found = {cube.id: impossible_values(folder, manifest, cube) for cube in cubes}
    return {cube: problem for cube, problem in found.items() if problem is not None}


def _members(
    folder: Path, entries: Sequence[CubeEntry], known: Mapping[str, PublishedCodes], signed: bool
) -> list[_Member]:
    """Number the cubes and record for every (variable, code) which of them have it."""
    cubes_of: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(entries):
        for axis in entry.axes:
            for code in known[axis.codelist].codes:
                cubes_of[axis.variable, code] = cubes_of.get((axis.variable, code), 0) | 1 << number
    axes = {
        (axis.variable, axis.codelist): _axis(axis.variable, known[axis.codelist], cubes_of, len(entries))
        for entry in entries
        for axis in entry.axes
    }
    found = []
    for entry in entries:
        if (file := entry.file(ReleaseFormat.PARQUET)) is not None:
            own = tuple(axes[axis.variable, axis.codelist] for axis in entry.axes)
            rows = CubeFile(entry, folder / file.path, tuple(axis.codes for axis in own), signed)
            incomplete = any(one.published is not None for one in entries)
            found.append(_Member(rows, own, *_published(entry, own, entries), incomplete))
    return found


def _published(
    entry: CubeEntry, axes: Sequence[_Axis], entries: Sequence[CubeEntry]
) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Which cross-tabulations a cube publishes, and which cubes publish each, where a manifest restricts them."""
    listed = [None if one.published is None else set(one.published) for one in entries]
    if not any(one is not None for one in listed):
        every = prod(int(axis.depths.max()) + 1 for axis in axes)
        return np.ones(every, dtype=np.bool_), np.repeat(
            _bits([(1 << len(entries)) - 1], len(entries)), every, axis=1
        )
    names = [crossed(levels) for levels in _crossings(axes)]
    bits = [sum(1 << k for k, own in enumerate(listed) if own is None or name in own) for name in names]
    here = None if entry.published is None else set(entry.published)
    return np.array([here is None or name in here for name in names]), _bits(bits, len(entries))


def _bits(masks: Sequence[int], cubes: int) -> NDArray[np.uint64]:
    """(word, mask) -> the bits of numbers with one bit for each cube."""
    words, word = -(-cubes // _WORD), (1 << _WORD) - 1
    return np.array([[mask >> (_WORD * k) & word for mask in masks] for k in range(words)], dtype=np.uint64)


def _axis(
    variable: str, listed: PublishedCodes, cubes_of: Mapping[tuple[str, str], int], cubes: int
) -> _Axis:
    codes = listed.codes
    every = (1 << cubes) - 1
    bits = [every if code == TOTAL else cubes_of[variable, code] for code in codes]
    return _Axis(
        variable,
        codes,
        np.array([_pair_hash(variable, code) for code in codes], dtype=np.uint64),
        _bits(bits, cubes),
        np.array(_depths(listed), dtype=np.int64),
    )


def _parents(listed: PublishedCodes) -> list[int]:
    """Node -> the node above it, -1 for the total."""
    place = {code: node for node, code in enumerate(listed.codes)}
    return [place.get(parent, 0) if node else -1 for node, parent in enumerate(listed.parents)]


def _depths(listed: PublishedCodes) -> list[int]:
    depths: list[int] = []
    for node, parent in enumerate(_parents(listed)):
        depths.append(depths[parent] + 1 if 0 <= parent < node else 0)
    return depths


def _pair_hash(variable: str, code: str) -> int:
    if code == TOTAL:
        return 0
    return int.from_bytes(hashlib.blake2b(f"{variable}\0{code}".encode(), digest_size=8).digest(), "little")


def _compare_population(members: Sequence[_Member], checks: _RowChecks, rows_per_pass: int) -> Comparison:
    passes = max(1, -(-sum(member.entry.cells for member in members) // rows_per_pass))
    odd: list[NDArray[np.uint64]] = []
    compared = 0
    for number in range(passes):
        hashes, values, expected = _shared_cells(members, checks, number, passes)
        compared += len(hashes)
        odd.append(_disagreeing(hashes, values, expected))
    found = np.concatenate(odd)
    return Comparison(tuple(_described(members, found)), compared)


def _shared_cells(
    members: Sequence[_Member], checks: _RowChecks, number: int, passes: int
) -> tuple[NDArray[np.uint64], Values, NDArray[np.int32]]:
    """Hash, value and expected number of occurrences of the cells of one pass that several cubes must contain."""
    hashes: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    values: list[Values] = []
    expected: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    for member in members:
        for cells in _read(member, checks.columns(member.entry.id) if number == 0 else ()):
            if number == 0:
                checks.look(member.entry.id, cells)
            wanted = _occurrences(member, cells.nodes)
            kept = (wanted > 1) & _of_pass(cells.hashes, number, passes)
            hashes.append(cells.hashes[kept])
            values.append(cells.values[kept])
            expected.append(wanted[kept])
        checks.read.add(member.entry.id)
    return np.concatenate(hashes), np.concatenate(values or [np.empty(0)]), np.concatenate(expected)


def _of_pass(hashes: NDArray[np.uint64], number: int, passes: int) -> NDArray[np.bool_]:
    upper = hashes >> np.uint64(32)
    of_pass: NDArray[np.bool_] = np.equal((upper * np.uint64(passes)) >> np.uint64(32), np.uint64(number))
    return of_pass


def _occurrences(member: _Member, nodes: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    """In how many cubes each cell must occur: those that have every one of its codes."""
    total = np.zeros(len(nodes[0]), dtype=np.int32)
    crosstab = member.crosstab(nodes) if member.is_partial else None
    for word in range(len(member.axes[0].cubes)):
        bits = member.axes[0].cubes[word][nodes[0]]
        if crosstab is not None:
            bits = bits & member.shared[word][crosstab]
        for axis, axis_nodes in zip(member.axes[1:], nodes[1:], strict=True):
            bits &= axis.cubes[word][axis_nodes]
        total += np.bitwise_count(bits)
    return total


def _disagreeing(
    hashes: NDArray[np.uint64], values: Values, expected: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """The cells whose occurrences differ in value, or that lack some."""
    if len(hashes) == 0:
        return hashes
    order = np.argsort(hashes)
    ordered, in_order = hashes[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(starts, append=len(ordered))
    spread = np.maximum.reduceat(in_order, starts) - np.minimum.reduceat(in_order, starts)
    odd = (spread > _tolerance(values)) | (counts != expected[order[starts]])
    disagreeing: NDArray[np.uint64] = ordered[starts][odd]
    return disagreeing


def _tolerance(values: Values) -> float:
    """Counts agree exactly; sums of weights may differ in the last published digit by the order of addition."""
    return 0 if values.dtype.kind == "i" else 1.01 * 10.0**-DECIMALS


def _read(member: _Member, columns: Sequence[str] = ()) -> Iterator[_Cells]:
    """The rows of a cube by row group, each with the hashes of its cells, and columns of texts."""
    for rows, texts in member.file.parts_with(columns):
        hashes = np.zeros(len(rows.values), dtype=np.uint64)
        for axis, nodes in zip(member.axes, rows.nodes, strict=True):
            hashes += axis.hashes[nodes]
        if not member.present.all() and not member.present[member.crosstab(rows.nodes)].all():
            raise BrokenRelease(f"cube {member.entry.id}: it lists cells that its manifest does not publish")
        yield _Cells(rows.nodes, hashes, rows.values, texts)


def _described(members: Sequence[_Member], odd: NDArray[np.uint64]) -> Iterator[str]:
    """One sentence for each of the first cells that disagree; all values are public ones."""
    named = odd[:NAMED]
    if len(named):
        for (pairs, cubes), values in sorted(_occurrences_of(members, named).items()):
            absent = [
                f"not listed in {entry.id}"
                for number, entry in _known_by(members, cubes)
                if number not in values
            ]
            listed = [f"{value} in {members[number].entry.id}" for number, value in values.items()]
            cell = ", ".join(f"{variable}={code}" for variable, code in pairs) or "the grand total"
            yield f"{members[0].entry.unit}: {cell}: {', '.join([*listed, *absent])}"
    if len(odd) > NAMED:
        yield f"{members[0].entry.unit}: {len(odd) - NAMED} more cells disagree"


def _known_by(members: Sequence[_Member], cubes: int) -> list[tuple[int, CubeEntry]]:
    return [(number, member.entry) for number, member in enumerate(members) if cubes >> number & 1]


def _occurrences_of(
    members: Sequence[_Member], named: NDArray[np.uint64]
) -> dict[tuple[tuple[tuple[str, str], ...], int], dict[int, int | float]]:
    """Where the named cells occur: (pairs, cubes that have them) -> cube -> value."""
    found: dict[tuple[tuple[tuple[str, str], ...], int], dict[int, int | float]] = {}
    for number, member in enumerate(members):
        for cells in _read(member):
            for row in np.flatnonzero(np.isin(cells.hashes, named)):
                nodes = [int(axis_nodes[row]) for axis_nodes in cells.nodes]
                found.setdefault(_description(member, nodes), {})[number] = cells.values[row].item()
    return found


def _description(member: _Member, nodes: Sequence[int]) -> tuple[tuple[tuple[str, str], ...], int]:
    pairs = sorted(
        (axis.variable, axis.codes[node]) for axis, node in zip(member.axes, nodes, strict=True) if node
    )
    cubes = ~0
    for axis, node in zip(member.axes, nodes, strict=True):
        cubes &= sum(int(bits) << (_WORD * word) for word, bits in enumerate(axis.cubes[:, node]))
    crosstab = int(member.crosstab([np.array([node]) for node in nodes])[0])
    cubes &= sum(int(bits) << (_WORD * word) for word, bits in enumerate(member.shared[:, crosstab]))
    return tuple(pairs), cubes


def _wrong_sums(
    members: Sequence[_Member], known: Mapping[str, PublishedCodes], manifest: Manifest
) -> Iterator[str]:
    """The cubes whose stated sums are not those of their finest cells, or whose public total is not the stated one."""
    for member in members:
        entry = member.entry
        if not (entry.sums or entry.public):
            continue
        parts = list(member.file.parts())
        cells, values = (
            np.concatenate([np.empty(0, np.int64), *some])
            for some in ([rows.cells for rows in parts], [rows.values for rows in parts])
        )
        if entry.public:
            stated = (manifest.noise.public_totals or {}).get(entry.unit)
            if values[cells == 0].sum() != stated:
                yield f"cube {entry.id}: its public total is not the {stated} that the manifest states"
        if entry.sums and not _adds_up(member, known, cells, values):
            yield f"cube {entry.id}: a stated sum is not the sum of its finest published cells"


def _levels(member: _Member, known: Mapping[str, PublishedCodes]) -> Levels | str:
    """The levels that follow from the codes of a cube, or what is wrong with their names."""
    entry = member.entry
    listed = [known[axis.codelist] for axis in entry.axes]
    axes = [
        axis_levels(axis.variable, codes.codes, codes.parents, names=axis.levels)
        for axis, codes in zip(entry.axes, listed, strict=True)
    ]
    wrong = [
        axis.breakdown
        for axis, levels in zip(entry.axes, axes, strict=True)
        if axis.levels and not _are_named(axis, levels, known)
    ]
    if wrong:
        return f"cube {entry.id}: the levels of {', '.join(wrong)} do not have the names of their breakdowns"
    return levels_of(axes, None if entry.published is None else partial(_is_published, entry))


def _are_named(axis: AxisEntry, levels: AxisLevels, known: Mapping[str, PublishedCodes]) -> bool:
    """Whether each level has its number, or the name of a breakdown that ends there as far as it is published."""
    if len(axis.levels) != levels.deepest or axis.levels[-1:] != (axis.breakdown,)[: levels.deepest]:
        return False
    codes = known[axis.codelist].codes
    for level, name in enumerate(axis.levels[:-1], start=1):
        other = known.get(codelist_place(name))
        if name == f"{axis.variable}:{level}" or other is None:
            continue
        cut = np.flatnonzero((levels.depths == level) | (levels.finest & (levels.depths < level)))
        if {codes[node] for node in cut} != {*other.codes} - {*other.parents, TOTAL}:
            return False
    return len(set(axis.levels)) == len(axis.levels)


def _is_published(entry: CubeEntry, depths: tuple[int, ...]) -> bool:
    both = zip((axis.variable for axis in entry.axes), depths, strict=True)
    return crossed(tuple(sorted((variable, depth) for variable, depth in both if depth))) in (
        entry.published or ()
    )


def _adds_up(
    member: _Member, known: Mapping[str, PublishedCodes], cells: NDArray[np.int64], values: Values
) -> bool:
    entry, shape = member.entry, tuple(len(codes) for codes in member.file.codes)
    above = [np.array(_parents(known[axis.codelist]), dtype=np.int32) for axis in entry.axes]
    if not all(is_in_preorder(parents) for parents in above):
        raise BrokenRelease("codelists: the codes below a code do not follow it; fetch the release again")
    finest = [np.isin(np.arange(len(parents)), parents, invert=True) for parents in above]
    nodes = np.unravel_index(cells, shape)
    inner = np.all([of[along] for of, along in zip(finest, nodes, strict=True)], axis=0)
    scaled = np.rint(values * 10**DECIMALS).astype(np.int64)
    at, own = aggregate(cells[inner].astype(np.uint64), scaled[inner].view(np.uint64), prod(shape))
    places, sums = with_margins(at, own, shape, above)
    named = [crossed(levels) for levels in _crossings(member.axes)]
    summed = np.array([name in (entry.sums or ()) for name in named])
    wanted = summed[member.crosstab(nodes)]
    listed = dict(zip(cells[wanted].tolist(), scaled[wanted].tolist(), strict=True))
    chosen = summed[member.crosstab(np.unravel_index(places, shape))]
    return listed == dict(zip(places[chosen].tolist(), sums[chosen].view(np.int64).tolist(), strict=True))


def _crossings(axes: Sequence[_Axis]) -> Iterator[tuple[tuple[str, int], ...]]:
    """The levels of each cross-tabulation, last axis fastest."""
    variables = [axis.variable for axis in axes]
    for depths in product(*(range(int(axis.depths.max()) + 1) for axis in axes)):
        yield tuple(sorted((v, d) for v, d in zip(variables, depths, strict=True) if d))


@dataclass(frozen=True)
class Verification:
    """What verification found; a release passes when there are no problems."""

    name: str
    problems: tuple[str, ...]
    cubes: int
    files: int
    cells: int  # published cells of all cubes
    compared: int  # cells that occur in more than one cube
    partial: int = 0  # cubes of which only some cross-tabulations are published, as the manifest states
    signature: SignatureState = UNSIGNED
    recomputed: str = ""  # what of a hierarchical release was computed again, and what was not

    @property
    def passed(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


def verify(folder: Path | str, key: Ed25519PublicKey | None = None) -> Verification:
    """Check a release folder, and with a key its signature; a folder without a valid manifest raises BrokenRelease."""
    folder = Path(folder)
    require_plain(folder / MANIFEST)
    manifest = read_manifest(folder)
    problems = [*unusual_files(folder), *_shape_problems(manifest), *_file_problems(folder, manifest)]
    signature = read_signature(folder, key)
    wrong = [signature.sentence()] if signature.state is Signed.WRONG else []
    if not problems:
        problems = [*possible_problems(folder, manifest)]
        if problems or wrong:
            problems.extend(_impossible(folder, manifest, manifest.cubes).values())
    problems.extend(wrong)
    # Cells are read only from files that match the manifest: others are already reported.
    comparison = Comparison((), 0) if problems else compare(folder, manifest)
    if comparison.impossible:
        problems, comparison = [*comparison.impossible], Comparison((), 0)
    if not problems and not comparison.problems:
        if manifest.noise.adjusted:
            problems.extend(sum_problems(folder, manifest))
            problems.extend(hierarchy_problems(folder, manifest))
        problems.extend(format_problems(folder, manifest))
    again = "" if problems or comparison.problems else recomputed(Release(folder, manifest))
    return Verification(
        manifest.name,
        (*problems, *comparison.problems),
        len(manifest.cubes),
        len(manifest.all_files()),
        sum(cube.cells for cube in manifest.cubes),
        comparison.compared,
        sum(cube.published is not None for cube in manifest.cubes),
        signature,
        again,
    )


def _shape_problems(manifest: Manifest) -> Iterator[str]:
    listed = {file.path for file in manifest.files}
    seen: set[str] = set()
    for cube in manifest.cubes:
        if cube.id in seen:
            yield f"{MANIFEST}: cube {cube.id} occurs twice"
        seen.add(cube.id)
        yield from _cube_problems(cube, listed)


def _cube_problems(cube: CubeEntry, listed: set[str]) -> Iterator[str]:
    if cube.file(ReleaseFormat.PARQUET) is None:
        yield f"{MANIFEST}: cube {cube.id} has no Parquet file"
    if not cube.axes:
        yield f"{MANIFEST}: cube {cube.id} has no axes"
    for axis in cube.axes:
        if axis.codelist not in listed:
            yield f"{MANIFEST}: cube {cube.id} needs {axis.codelist}, which is not listed"


def _file_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    listed = {file.path: file for file in manifest.all_files()}
    present = set(_present(folder))
    for path in sorted(present - {MANIFEST, SIGNATURE, *listed}):
        yield f"{path}: not listed in the manifest"
    for path, file in sorted(listed.items()):
        if path not in present:
            yield f"{path}: missing"
        elif not _matches(folder / path, file):
            yield f"{path}: its content does not match the manifest"


def _present(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]  # os.walk does not enter these
        for name in (*names, *linked):
            yield Path(parent, name).relative_to(folder).as_posix()


def _matches(path: Path, file: FileEntry) -> bool:
    return path.stat().st_size == file.bytes and file_sha256(path) == file.sha256
