"""P-table files: detecting the format, reading and writing, and the columns of R's ptable."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.ptable_keyed import (
    CANTABULAR_COLUMNS,
    MAX_COUNT,
    ONS_COLUMNS,
    SMALL_N,
    WrapRule,
    read_listed,
    read_superstar,
    write_cantabular,
    write_ons,
    write_superstar,
)
from discreet.io.whole_file import PUBLIC_FILE, whole_file
from discreet.maths.cells.lookup import KEYS, MOST_CHANGE, Lookup, Order, build, law_of, lookup_of_rows
from discreet.maths.noise.ptable import TOLERANCE, Law, PTable, ptable_of_rows

COLUMNS = ("i", "j", "p", "v", "p_int_lb", "p_int_ub", "type")
REQUIRED = ("i", "j", "p", "p_int_ub")
DIGITS = 10  # enough to recover every 32-bit threshold
JOINED = 1e-7  # bounds that differ by less are the same bound; R writes eight digits


@dataclass(frozen=True)
class _Line:
    number: int
    i: int
    j: int
    p: float
    upper: float


def read_r(path: Path) -> tuple[PTable, Lookup]:
    """Read a table: its law from p, its thresholds from p_int_ub, in the order of the file."""
    lines = _parse(path, _rows(path))
    lines.sort(key=lambda line: line.i)  # stable: the order within a row is that of the file
    rows = {
        i: sorted(of_row, key=lambda line: line.upper) for i, of_row in groupby(lines, lambda line: line.i)
    }
    problems = [*_row_problems(path, rows)]
    if problems:
        raise Mistakes(problems)
    return _with_file(path, rows)


def _with_file(path: Path, rows: dict[int, list[_Line]]) -> tuple[PTable, Lookup]:
    """Build the p-table and its lookup; mistakes are reported with the file's name."""
    try:
        ptable = ptable_of_rows([_law(of_row) for of_row in rows.values()], tolerance=TOLERANCE)
        lookup = lookup_of_rows(
            [_intervals(of_row) for of_row in rows.values()], KEYS, wrap_from=len(rows) - 1, wrap_length=1
        )
    except Mistakes as wrong:
        raise Mistakes(
            Problem(str(path), problem.key.replace("row", "i =", 1), problem.value, problem.remedy)
            for problem in wrong.problems
        ) from None
    return ptable, lookup


def _law(lines: Sequence[_Line]) -> tuple[list[int], list[float]]:
    law: dict[int, float] = {}
    for line in lines:
        law[line.j] = law.get(line.j, 0.0) + line.p
    return list(law), list(law.values())


def _intervals(lines: Sequence[_Line]) -> list[tuple[int, int]]:
    bounds = [0, *(round(line.upper * KEYS) for line in lines)]
    return [(line.j - line.i, bounds[at + 1] - bounds[at]) for at, line in enumerate(lines)]


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    delimiter = ";" if ";" in text.partition("\n")[0] else ","
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter)
    missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        remedy = f"give the columns {', '.join(COLUMNS)}"
        raise Mistakes([Problem(str(path), "header", f"no column {', '.join(missing)}", remedy)])
    return [(reader.line_num, {name: value or "" for name, value in row.items() if name}) for row in reader]


def _parse(path: Path, rows: Sequence[tuple[int, dict[str, str]]]) -> list[_Line]:
    lines, problems = [], []
    for number, row in rows:
        try:
            line = _Line(number, int(row["i"]), int(row["j"]), float(row["p"]), float(row["p_int_ub"]))
        except ValueError:
            problems.append(
                Problem(str(path), f"line {number}", "not a number in i, j, p or p_int_ub", "correct it")
            )
            continue
        lines.append(line)
        problems.extend(_line_problems(path, line, row))
    if not rows:
        problems.append(Problem(str(path), "", "no lines below the header", "give one line per interval"))
    if problems:
        raise Mistakes(problems)
    return lines


def _line_problems(path: Path, line: _Line, row: dict[str, str]) -> Iterator[Problem]:
    key = f"line {line.number}"
    if row.get("type", "all").strip('" ') not in ("all", ""):
        yield Problem(str(path), key, f"type {row['type']}", "give a table for counts, whose type is all")
    if row.get("v") and row["v"].strip() != str(line.j - line.i):
        yield Problem(str(path), key, f"v = {row['v']}, j - i = {line.j - line.i}", "make v equal to j - i")
    if line.i < 0 or line.j < 0:
        yield Problem(str(path), key, f"i = {line.i}, j = {line.j}", "counts cannot be negative")
    if line.i > MAX_COUNT or abs(line.j - line.i) > MOST_CHANGE:
        remedy = f"give counts up to {MAX_COUNT:,} and changes within {MOST_CHANGE:,}"
        yield Problem(str(path), key, "i or j - i is too large", remedy)
    if not 0.0 <= line.p <= 1.0 or not 0.0 <= line.upper <= 1.0 + JOINED:
        yield Problem(str(path), key, "p or p_int_ub outside 0..1", "correct it")
    if (lower := row.get("p_int_lb")) and not abs(line.upper - _number(lower) - line.p) <= JOINED:
        yield Problem(str(path), key, "p is not p_int_ub - p_int_lb", "make the interval as long as p")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _row_problems(path: Path, rows: dict[int, list[_Line]]) -> Iterator[Problem]:
    missing = sorted(set(range(max(rows) + 1)) - set(rows))
    if missing:
        yield Problem(str(path), "i", f"no lines for i = {missing[0]}", "give every count from 0 to the last")
    for i, lines in rows.items():
        reached = 0.0
        for line in lines:
            start = line.upper - line.p
            if abs(start - reached) > JOINED:
                what = "a gap" if start > reached else "an overlap"
                key, remedy = f"line {line.number}", "start each interval where the previous one ends"
                yield Problem(str(path), key, f"{what} between {reached:.8g} and {start:.8g}", remedy)
            reached = line.upper
        if abs(reached - 1.0) > JOINED:
            yield Problem(
                str(path), f"i = {i}", f"the last p_int_ub is {reached:.8g}", "end the intervals at 1"
            )


def write_r(path: Path, lookup: Lookup) -> None:
    """Write the intervals of a lookup with bounds of ten digits, from which the lookup is recovered exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in range(lookup.last_row + 1):
            writer.writerows(_written(lookup, row))


def _written(lookup: Lookup, row: int) -> Iterator[tuple[int | str, ...]]:
    lower = 0
    for at in range(lookup.offsets[row], lookup.offsets[row + 1]):
        upper = round(int(lookup.upper[at]) * 10**DIGITS / lookup.modulus)
        v = int(lookup.change[at])
        yield row, row + v, _decimal(upper - lower), v, _decimal(lower), _decimal(upper), "all"
        lower = upper


def _decimal(units: int) -> str:
    return f"{units // 10**DIGITS}.{units % 10**DIGITS:0{DIGITS}d}"


__all__ = [
    "PTableFile",
    "PTableFormat",
    "WrapRule",
    "detect",
    "lookup_for",
    "lookup_of",
    "read_ptable",
    "write_ptable",
]


class PTableFormat(StrEnum):
    """P-table file formats, named after the software that reads them."""

    R = "r"
    ONS = "ons"
    CANTABULAR = "cantabular"
    SUPERSTAR = "superstar"


@dataclass(frozen=True, eq=False)
class PTableFile:
    """The content of a p-table file: the change of each count and key, and in R's format also the probabilities.

    >>> import discreet as ds
    >>> path = ds.write_ptable(ds.ptable(V=2, D=5), getfixture("tmp_path") / "ptable.csv")
    >>> ds.read_ptable(path).found.law().reach
    5
    """

    path: Path
    format: PTableFormat
    lookup: Lookup
    written_law: PTable | None = None

    @property
    def laws(self) -> list[Law]:
        """The law of each row as given, biased or not; trailing rows with the same law are merged."""
        if self.written_law is not None:
            table = self.written_law
            rows = range(table.last_row + 1)
            return [
                dict(zip(table.changes(r).tolist(), table.probabilities[r].tolist(), strict=True))
                for r in rows
            ]
        keys = [self.lookup.lengths(row) for row in range(self.lookup.last_row + 1)]
        while len(keys) > 2 and keys[-1] == keys[-2]:
            keys.pop()
        return [{change: number / self.lookup.modulus for change, number in row.items()} for row in keys]

    def law(self, tolerance: float = TOLERANCE) -> PTable:
        """The p-table of the file (p = share of the keys in the keyed formats); a biased one is refused."""
        if self.written_law is not None:
            return self.written_law
        try:
            return law_of(self.lookup, tolerance)
        except Mistakes as wrong:
            raise Mistakes(
                Problem(str(self.path), p.key.replace("row", "count", 1), p.value, p.remedy)
                for p in wrong.problems
            ) from None


def read_ptable(
    path: Path,
    format: PTableFormat | None = None,  # noqa: A002  # the users' term
    modulus: int | None = None,
    wrap: WrapRule | None = None,
    small_n: int = SMALL_N,
) -> PTableFile:
    """Read a p-table; if no format is given, it is detected from the header.

    The modulus and the wrap rule apply only to lists of keys, and must agree with the file.
    """
    if not path.is_file():
        raise mistake(path, "p-table", "no such file", "give the path of a p-table")
    kind = format or detect(path)
    if kind is PTableFormat.R:
        law, lookup = read_r(path)
        return PTableFile(path, kind, lookup, law)
    if kind is PTableFormat.SUPERSTAR:
        return PTableFile(path, kind, read_superstar(path, small_n))
    columns = ONS_COLUMNS if kind is PTableFormat.ONS else CANTABULAR_COLUMNS
    return PTableFile(path, kind, read_listed(path, columns, modulus, wrap))


def detect(path: Path) -> PTableFormat:
    """Detect the format from the first line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    columns_found = {word.strip(' "\n\r') for word in first.replace(";", ",").split(",")}
    for columns, kind in (
        (REQUIRED, PTableFormat.R),
        (ONS_COLUMNS, PTableFormat.ONS),
        (CANTABULAR_COLUMNS, PTableFormat.CANTABULAR),
    ):
        if columns_found >= set(columns):
            return kind
    if columns_found and all(name.lstrip("+-").isdigit() for name in columns_found):
        return PTableFormat.SUPERSTAR
    known = f"{','.join(REQUIRED)},.. or {','.join(ONS_COLUMNS)} or {','.join(CANTABULAR_COLUMNS)}"
    raise mistake(
        path, "header", first.strip()[:60] or "empty", f"begin with {known}, or with a line of changes"
    )


def lookup_for(
    ptable: PTable,
    format: PTableFormat,  # noqa: A002
    order: Order = Order.PLAIN,
    shuffle_key: bytes | None = None,
    modulus: int | None = None,
) -> Lookup:
    """Cut a p-table into the keys of a format: by default 2^32 for R's, 256 for the others."""
    wanted = modulus or (KEYS if format is PTableFormat.R else 256)
    return build(ptable, order, shuffle_key, wanted)


def lookup_of(
    found: PTableFile,
    format: PTableFormat,  # noqa: A002
    order: Order = Order.PLAIN,
    shuffle_key: bytes | None = None,
    modulus: int | None = None,
    tolerance: float = TOLERANCE,
) -> Lookup:
    """The lookup of a file in another format; the change of every key is the same where both formats allow it."""
    same_keys = (
        format is not PTableFormat.R and modulus in (None, found.lookup.modulus) and order is Order.PLAIN
    )
    if found.format is not PTableFormat.R and same_keys:
        return found.lookup
    return lookup_for(found.law(tolerance), format, order, shuffle_key, modulus)


def write_ptable(path: Path, format: PTableFormat, lookup: Lookup) -> None:  # noqa: A002
    """Write a lookup to a file of this format."""
    if format is not PTableFormat.R and lookup.modulus > 2**16:
        raise mistake(path, "modulus", str(lookup.modulus), "list keys 0..255 or 0..4095 in this format")
    if format is PTableFormat.R and lookup.wrap_length != 1:
        raise mistake(path, "wrap rule", f"{lookup.wrap_length} rows", "R's format repeats only the last row")
    write = {
        PTableFormat.R: write_r,
        PTableFormat.ONS: write_ons,
        PTableFormat.CANTABULAR: write_cantabular,
        PTableFormat.SUPERSTAR: write_superstar,
    }[format]
    if not path.name:
        raise mistake(path, "file", "is a folder", "name a file")
    _require_replaceable(path)
    try:
        with whole_file(path, PUBLIC_FILE) as draft:
            write(draft, lookup)
    except OSError as error:
        raise mistake(path, "p-table", error.strerror or "cannot be written", "choose another path") from None


def _require_replaceable(path: Path) -> None:
    """Refuse a file that is no p-table: it may be the programme or the records."""
    if path.is_file() and path.stat().st_size:
        try:
            detect(path)
        except Mistakes:
            value, remedy = "exists and is not a p-table", "give another path, or remove what is there"
            raise mistake(path, "p-table", value, remedy) from None
