"""Codelists and their breakdowns: the trees of codes of a variable, and the files they are read from."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.programme.definitions import (
    LABEL,
    NO_DEFINITION,
    Definition,
    Definitions,
    definition_in,
    text_columns,
    text_in,
)
from discreet.text.phrase import phrase

TOTAL = "_T"
TOTAL_LABEL = phrase("Total")

MOST_CODES = (
    5_000_000  # a million take some ten seconds to read; the 1 km grid of the EU has 4.5 million cells
)


@dataclass(frozen=True)
class Code:
    """One line of a codelist; ``parent`` is empty for a code directly below the total."""

    code: str
    parent: str
    label: str
    definition: Definition = NO_DEFINITION


@dataclass(frozen=True, eq=False)
class Codelist:
    """A tree of codes in preorder: every code follows its parent and precedes its next sibling."""

    name: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[int, ...]  # position of the parent, -1 below the total
    depths: tuple[int, ...]  # 1 directly below the total
    definitions: Definitions = dataclasses.field(default_factory=dict)

    @cached_property
    def position(self) -> dict[str, int]:
        """Code -> its position."""
        return {code: index for index, code in enumerate(self.codes)}

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The positions without children, in order: every record has one of these."""
        inner = set(self.parents)
        return tuple(index for index in range(len(self.codes)) if index not in inner)

    @property
    def leaf_codes(self) -> tuple[str, ...]:
        """The codes that occur in records; their order is the dictionary encoding."""
        return tuple(self.codes[index] for index in self.leaves)

    @property
    def depth(self) -> int:
        """The number of levels below the total."""
        return max(self.depths, default=0)

    def ancestors(self, index: int) -> tuple[int, ...]:
        """The position itself, then its parent, and so on up to below the total."""
        chain = []
        while index >= 0:
            chain.append(index)
            index = self.parents[index]
        return tuple(chain)

    def leaves_under(self, code: str) -> NDArray[np.bool_]:
        """Mark the leaves that are ``code`` or lie below it; ``_T`` marks all."""
        if code == TOTAL:
            return np.ones(len(self.leaves), dtype=bool)
        return self.leaves_below([code])

    @cached_property
    def _above(self) -> NDArray[np.int64]:
        """Code -> position of its parent, as in ``parents``."""
        return np.array(self.parents, dtype=np.int64)

    @cached_property
    def _spans(self) -> NDArray[np.int64]:
        """Code -> the place of its first leaf among all leaves, and the place after its last: (codes, 2)."""
        ends = list(range(1, len(self.codes) + 1))
        for index in range(len(self.codes) - 1, -1, -1):
            if self.parents[index] >= 0:
                ends[self.parents[index]] = max(ends[self.parents[index]], ends[index])
        is_leaf = np.zeros(len(self.codes), dtype=bool)
        is_leaf[list(self.leaves)] = True
        before = np.concatenate([[0], np.cumsum(is_leaf)])
        return np.stack([before[:-1], before[ends]], axis=1)

    def leaves_below(self, codes: Iterable[str]) -> NDArray[np.bool_]:
        """Mark the leaves that are one of the codes or lie below one."""
        inside = np.zeros(len(self.leaves), dtype=bool)
        for start, stop in self._spans[[self.position[code] for code in codes]].tolist():
            inside[start:stop] = True
        return inside

    def fewest_codes(self, leaves: NDArray[np.bool_]) -> tuple[str, ...]:
        """The highest codes all of whose leaves are marked, in order: the shortest way to write the marked leaves."""
        before = np.concatenate([[0], np.cumsum(leaves)])
        start, stop = self._spans.T
        whole = before[stop] - before[start] == stop - start
        highest = whole & ~((self._above >= 0) & whole[self._above])
        return tuple(self.codes[index] for index in np.flatnonzero(highest).tolist())

    def level(self, level: int) -> tuple[int, ...]:
        """Cut the tree at a level: the codes of that depth and the leaves above it; level 0 is only the total."""
        leaves = set(self.leaves)
        return tuple(
            index
            for index, depth in enumerate(self.depths)
            if depth == level or (depth < level and index in leaves)
        )


@dataclass(frozen=True, eq=False)
class Breakdown:
    """One variable at one level (AGE.M): an axis of a cube with its total and sub-totals.

    The nodes are in preorder, the total first, so that every node follows its parent.
    """

    variable: str
    name: str  # M, or the variable's own name where it has one breakdown
    codes: tuple[str, ...]  # node -> code; codes[0] is _T
    labels: tuple[str, ...]
    parents: NDArray[np.int32]  # node -> node; -1 for the total
    node_of_leaf: NDArray[np.int32]  # leaf of the codelist -> finest node that contains it
    grouped: str | None = None  # the variable whose codes a user has grouped; None if declared
    upper: tuple[str, ...] = ()  # the names of its levels above the finest, the first below the total first
    definitions: Definitions = dataclasses.field(default_factory=dict)  # of the codes of the codelist

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def full_name(self) -> str:
        """How axes name it: AGE.M, or SEX where the variable has this one breakdown."""
        return self.variable if self.name == self.variable else f"{self.variable}.{self.name}"

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The names of its levels, the first below the total first: GEO.COUNTY, GEO.TRACT; the last is its own name.

        A level at which no breakdown of the variable ends is named by its number: GEO:1.
        """
        deepest = self.deepest
        upper = self.upper or numbered_levels(self.root, deepest - 1)
        return (*upper, self.root if self.is_grouping else self.full_name)[-deepest:] if deepest else ()

    @property
    def is_grouping(self) -> bool:
        """Whether its codes are groups made by a user; ``variable`` is then a separate name, equal for equal groups."""
        return self.grouped is not None

    @property
    def root(self) -> str:
        """The variable whose codes it shows or groups."""
        return self.variable if self.grouped is None else self.grouped

    @cached_property
    def finest(self) -> NDArray[np.bool_]:
        """Which nodes have no node below them."""
        inner = np.zeros(len(self.codes), dtype=bool)
        inner[self.parents[1:]] = True
        return ~inner

    @cached_property
    def most_below(self) -> tuple[int, ...]:
        """Depth -> how many finest nodes are at or below a node of that depth, at most."""
        below = self.finest.astype(np.int64)
        for node in range(len(self.codes) - 1, 0, -1):
            below[self.parents[node]] += below[node]
        return tuple(int(below[self.depths == depth].max()) for depth in range(self.deepest + 1))

    @cached_property
    def is_flat(self) -> bool:
        """Whether every leaf is a separate node directly below the total: node = leaf + 1."""
        return np.array_equal(self.node_of_leaf, np.arange(1, len(self.codes)))

    @cached_property
    def position(self) -> dict[str, int]:
        """Code -> its node."""
        return {code: index for index, code in enumerate(self.codes)}

    @cached_property
    def depths(self) -> NDArray[np.int32]:
        """Levels below the total: 0 for the total itself."""
        depths = np.zeros(len(self.codes), dtype=np.int32)
        for node in range(1, len(self.codes)):
            depths[node] = depths[self.parents[node]] + 1
        return depths

    @cached_property
    def deepest(self) -> int:
        """The number of levels below the total."""
        return int(self.depths.max())


def numbered_levels(variable: str, deepest: int) -> tuple[str, ...]:
    """Names of levels by their number: GEO:1, GEO:2."""
    return tuple(f"{variable}:{level}" for level in range(1, deepest + 1))


def with_level_names(axes: Mapping[str, Breakdown]) -> dict[str, Breakdown]:
    """The breakdowns of a variable, each level named by the first breakdown that ends there."""
    ends: dict[frozenset[str], str] = {}
    for axis in axes.values():
        ends.setdefault(frozenset(axis.codes[node] for node in np.flatnonzero(axis.finest)), axis.full_name)
    return {name: replace(axis, upper=tuple(_upper(axis, ends))) for name, axis in axes.items()}


def _upper(axis: Breakdown, ends: Mapping[frozenset[str], str]) -> Iterator[str]:
    for level, numbered in enumerate(numbered_levels(axis.variable, axis.deepest - 1), start=1):
        cut = np.flatnonzero((axis.depths == level) | (axis.finest & (axis.depths < level)))
        yield ends.get(frozenset(axis.codes[node] for node in cut), numbered)


def codelist(name: str, rows: Iterable[Code], file: str = "") -> Codelist:
    """Arrange rows as a tree; every duplicate, orphan and cycle is reported at once."""
    rows = list(rows)
    problems = list(_shape_problems(name, rows, file))
    if problems:
        raise Mistakes(problems)
    children: dict[str, list[Code]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    ordered: list[tuple[Code, int, int]] = []  # code, parent's position, depth
    stack = [(row, -1, 1) for row in reversed(children.get("", []))]
    while stack:
        row, parent, depth = stack.pop()
        ordered.append((row, parent, depth))
        below = children.get(row.code, [])
        stack.extend((child, len(ordered) - 1, depth + 1) for child in reversed(below))
    return Codelist(
        name,
        tuple(row.code for row, _, _ in ordered),
        tuple(row.label or row.code for row, _, _ in ordered),
        tuple(parent for _, parent, _ in ordered),
        tuple(depth for _, _, depth in ordered),
        {row.code: row.definition for row in rows if row.definition},
    )


def _shape_problems(name: str, rows: Sequence[Code], file: str) -> Iterable[Problem]:
    key = f"codelist {name}"
    if not rows:
        yield Problem(file, key, "no codes", "give at least one line code,parent,label")
    known: dict[str, Code] = {}
    for row in rows:
        if not row.code.strip() or row.code == TOTAL:
            yield Problem(
                file, key, f"code {row.code!r}", f"use another code; {TOTAL} is the total and is implied"
            )
        elif row.code in known:
            yield Problem(file, key, f"code {row.code!r} occurs twice", "keep one of the lines")
        known[row.code] = row
    for row in known.values():
        if row.parent and row.parent not in known:
            yield Problem(
                file,
                key,
                f"code {row.code!r} has the unknown parent {row.parent!r}",
                "add the parent or leave it empty",
            )
    for code in sorted(_on_cycles(known)):
        yield Problem(file, key, f"code {code!r} is its own ancestor", "break the cycle in the parent column")


def _on_cycles(known: dict[str, Code]) -> set[str]:
    settled: set[str] = {""}
    cyclic: set[str] = set()
    for start in known:
        path: list[str] = []
        code = start
        while code not in settled and code in known and code not in path:
            path.append(code)
            code = known[code].parent
        if code in path:
            cyclic.update(path[path.index(code) :])
        settled.update(path)
    return cyclic


def breakdown(variable: str, name: str, tree: Codelist, cut: Sequence[int]) -> Breakdown:
    """Make the axis whose finest codes are ``cut`` (positions that cover every leaf exactly once)."""
    kept = _with_ancestors(tree, cut)
    nodes: list[
        int
    ] = []  # position in the tree -> node: its own where the cut contains it, else that of its parent
    made = 0
    for parent, is_kept in zip(tree.parents, kept, strict=True):
        made += is_kept
        nodes.append(made if is_kept else nodes[parent] if parent >= 0 else 0)
    places = [index for index, is_kept in enumerate(kept) if is_kept]
    above = [tree.parents[index] for index in places]
    return Breakdown(
        variable,
        name,
        (TOTAL, *(tree.codes[index] for index in places)),
        (TOTAL_LABEL, *(tree.labels[index] for index in places)),
        np.array([-1, *(nodes[parent] if parent >= 0 else 0 for parent in above)], dtype=np.int32),
        np.array([nodes[leaf] for leaf in tree.leaves], dtype=np.int32),
        definitions=tree.definitions,
    )


def _with_ancestors(tree: Codelist, cut: Sequence[int]) -> list[bool]:
    kept = [False] * len(tree.codes)
    for index in cut:
        while index >= 0 and not kept[index]:
            kept[index] = True
            index = tree.parents[index]
    return kept


TOTAL_NAMES = {TOTAL.lower(), "total"}


@dataclass(frozen=True)
class _Entry:
    """A code with the number of lead characters before it."""

    line: int
    depth: int
    code: str


def read_codelist(path: Path, name: str, lead: str = "@") -> Codelist:
    """Read a codelist file of any accepted format as a tree."""
    return codelist(name, read_codes(path, lead), str(path))


def read_codes(path: Path, lead: str = "@") -> list[Code]:
    """Read the lines of a codelist file of any accepted format."""
    text = _text(path)
    separator = _level_separator(text, lead)
    header = _header(text)
    if path.suffix.lower() != ".hrc" and "code" in header and (separator is None or "parent" in header):
        return list(_csv_codes(path, text))
    if path.suffix.lower() == ".csv" and separator is None:
        raise mistake(path, "line 1", f"columns {', '.join(header)}", "name the columns code,parent,label")
    if separator is None:
        return _nested(path, _indented(text, lead))
    return _nested(path, _level_table(path, text, lead, separator))


def write_codelist(path: Path, tree: Codelist) -> None:
    """Write a codelist as CSV: code, parent, label, then translations and definitions where it has some."""
    parents = [tree.codes[parent] if parent >= 0 else "" for parent in tree.parents]
    write_code_columns(path, tree.codes, parents, text_columns(tree.codes, tree.labels, tree.definitions))


def write_code_columns(
    path: Path, codes: Sequence[str], parents: Sequence[str], texts: Iterable[tuple[str, list[str]]]
) -> None:
    """Write the columns of a codelist as CSV."""
    columns = {"code": codes, "parent": parents, **dict(texts)}
    with path.open("w", encoding="utf-8", newline="") as out:
        # a lone carriage return is not quoted by itself, and would end the line when read
        strange = any("\r" in text for column in columns.values() for text in column)
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL if strange else csv.QUOTE_MINIMAL)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _text(path: Path) -> str:
    """The whole file; one of more lines than a codelist may have codes is refused before it takes minutes."""
    try:
        content = path.read_bytes()
        if content.count(b"\n") > MOST_CODES + 1:
            value = f"more than {MOST_CODES:,} codes"
            raise mistake(path, "", value, "declare larger areas or coarser categories")
        return content.decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise mistake(path, "", f"cannot be read: {reason}", "correct the path of the codelist") from None
    except UnicodeDecodeError as error:
        raise mistake(path, f"byte {error.start}", "is not UTF-8", "save the codelist as UTF-8") from None


def _header(text: str) -> list[str]:
    first = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
    return [field.strip().strip('"').lower() for field in first.split(_csv_delimiter(first))]


def _csv_delimiter(header: str) -> str:
    return ";" if ";" in header and "," not in header else ","


def _csv_codes(path: Path, text: str) -> Iterator[Code]:
    delimiter = _csv_delimiter(next(line for line in io.StringIO(text, newline=None) if line.strip()))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    problems: list[Problem] = []
    header: list[str] = []
    try:
        for row in reader:
            if not row:
                continue
            if not header:
                header = [field.strip().lower() for field in row]
            elif len(row) > len(header):
                remedy = "put quotes around a label that contains the separator"
                value = f"{len(row)} fields instead of {len(header)}"
                problems.append(Problem(str(path), f"line {reader.line_num}", value, remedy))
            else:
                yield from _csv_code(dict(zip(header, row, strict=False)))
    except csv.Error as error:
        problems.append(
            Problem(
                str(path), f"line {reader.line_num}", f"broken CSV ({error})", "close and double the quotes"
            )
        )
    if problems:
        raise Mistakes(problems)


def _csv_code(row: dict[str, str]) -> Iterator[Code]:
    code, parent = row.get("code", ""), row.get("parent", "")
    if code != TOTAL or parent:
        above = "" if parent == TOTAL else parent
        yield Code(code, above, text_in(row, LABEL, code), definition_in(row))


def _level_separator(text: str, lead: str) -> str | None:
    """The separator between the column of lead characters and the codes, if there is such a column."""
    column = re.compile(rf'^(?:"?\w*"?[;,\t])?"?{re.escape(lead)}+"?\s*([;,\t])', re.MULTILINE)
    found = column.search(text)
    return found[1] if found else None


def _level_table(path: Path, text: str, lead: str, separator: str) -> Iterator[_Entry]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    for number, row in enumerate(row for row in reader if any(field.strip() for field in row)):
        fields = [field.strip() for field in row]
        levels = [place for place, field in enumerate(fields[:2]) if field and set(field) == {lead}]
        if levels and len(fields) > levels[0] + 1:
            yield _Entry(reader.line_num, len(fields[levels[0]]), fields[levels[0] + 1])
        elif number > 0:  # the first line may be a header
            raise mistake(
                path,
                f"line {reader.line_num}",
                f"no level before {separator.join(row)!r}",
                f"write {lead * 2}{separator}code",
            )


def _indented(text: str, lead: str) -> Iterator[_Entry]:
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if line.strip():
            code = line.rstrip().lstrip(lead) if lead.isspace() else line.strip().lstrip(lead)
            depth = len(line.rstrip()) - len(code) if lead.isspace() else len(line.strip()) - len(code)
            yield _Entry(number, depth, code.strip())


def _nested(path: Path, found: Iterator[_Entry]) -> list[Code]:
    """Give every entry the last one above it that is indented less as its parent."""
    entries = list(found)
    if not entries:
        raise mistake(path, "", "has no codes", "write one code per line")
    problems = list(_depth_problems(path, entries))
    if problems:
        raise Mistakes(problems)
    top = entries[0].depth
    total = _total(entries)
    above: dict[int, str] = {}
    codes = []
    for entry in entries:
        above[entry.depth] = "" if entry is total else entry.code
        if entry is not total:
            codes.append(Code(entry.code, above[entry.depth - 1] if entry.depth > top else "", ""))
    return codes


def _total(entries: Sequence[_Entry]) -> _Entry | None:
    first, rest = entries[0], entries[1:]
    single = bool(rest) and all(entry.depth > first.depth for entry in rest)
    return first if single and (first.depth > 0 or first.code.lower() in TOTAL_NAMES) else None


def _depth_problems(path: Path, entries: Sequence[_Entry]) -> Iterator[Problem]:
    before = top = entries[0].depth
    for entry in entries:
        where = f"line {entry.line}"
        if not entry.code:
            yield Problem(
                str(path), where, "a level without a code", "write the code after the lead characters"
            )
        if entry.depth > before + 1:
            remedy = "indent a code by at most one more than the line above"
            yield Problem(str(path), where, f"code {entry.code!r} skips a level", remedy)
        elif entry.depth < top:
            remedy = "start with a code of the highest level"
            yield Problem(str(path), where, f"code {entry.code!r} is above the first code", remedy)
        before = entry.depth
