"""Files of utilities for the exponential mechanism: CSV with ``count, published, utility`` or ``change, utility``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from discreet.errors import Mistakes, Problem, mistake
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.exponential import UtilityRow, UtilityTable

BY_COUNT = ("count", "published", "utility")
BY_CHANGE = ("change", "utility")
FORMS = f"write the columns {','.join(BY_COUNT)}, or {','.join(BY_CHANGE)}"


def read_utility(path: Path) -> UtilityTable:
    """Read a utility table; published values of a count must be consecutive, and counts start from 0."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise mistake(file, "utility", "cannot be read", "give a CSV file in UTF-8") from None
    lines = [line for line in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in line)]
    header = tuple(cell.strip().lower() for cell in lines[0]) if lines else ()
    if header not in (BY_COUNT, BY_CHANGE):
        raise mistake(file, "utility", f"columns {','.join(header) or 'none'}", FORMS)
    found: dict[int, dict[int, Fraction]] = {}
    for number, line in enumerate(lines[1:], start=2):
        *places, utility = _numbers(file, number, line, len(header))
        count, published = (0, places[0]) if header == BY_CHANGE else places
        row = found.setdefault(int(count), {})
        if int(published) in row:
            raise _wrong(file, number, f"{int(published)} is listed twice", "list every published value once")
        row[int(published)] = utility
    return _table(file, found)


def _numbers(file: str, number: int, line: Sequence[str], wanted: int) -> list[Fraction]:
    try:
        parts = [fraction(cell.strip()) for cell in line]
    except ValueError:
        parts = []
    if len(parts) != wanted or any(part.denominator != 1 for part in parts[:-1]):
        remedy = "give whole numbers and a utility such as -3, -0.5 or -1/3"
        raise _wrong(file, number, ",".join(line)[:60], remedy)
    return parts


def _table(file: str, found: dict[int, dict[int, Fraction]]) -> UtilityTable:
    problems = tuple(_gaps(file, found))
    if problems:
        raise Mistakes(problems)
    rows = ((min(row), tuple(row[b] for b in sorted(row))) for _, row in sorted(found.items()))
    try:
        return UtilityTable(tuple(UtilityRow(first, values) for first, values in rows))
    except Mistakes as mistakes:
        raise Mistakes([Problem(file, one.key, one.value, one.remedy) for one in mistakes.problems]) from None


def _gaps(file: str, found: dict[int, dict[int, Fraction]]) -> Iterator[Problem]:
    missing = sorted(set(range(max(found, default=0) + 1)) - set(found))
    if missing or min(found, default=0) < 0:
        value = f"no row of count {missing[0]}" if missing else f"a count of {min(found)}"
        yield Problem(file, "utility", value, "list the counts 0, 1, 2, .. without a gap")
    for count, row in sorted(found.items()):
        if len(row) != max(row) - min(row) + 1:
            gap = next(b for b in range(min(row), max(row)) if b not in row)
            remedy = "list consecutive values; a very low utility makes one improbable"
            yield Problem(file, "utility", f"count {count}: {gap} is not listed", remedy)


def _wrong(file: str, number: int, value: str, remedy: str) -> Mistakes:
    return mistake(file, f"line {number}", value, remedy)
