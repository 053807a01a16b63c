"""Reading and writing p-table files in any of the four formats that the field uses.

It owns the choice of format and the way between them; each format itself is ptable_r's or ptable_keyed's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from discreet.errors import Mistakes, Problem, mistake
from discreet.maths.lookup import KEYS, Lookup, Order, build, law_of
from discreet.maths.ptable import TOLERANCE, PTable
from discreet.maths.ptable_facts import Law
from discreet.schema.ptable_keyed import (
    CANTABULAR_COLUMNS,
    ONS_COLUMNS,
    SMALL_N,
    WrapRule,
    read_listed,
    read_superstar,
    write_cantabular,
    write_ons,
    write_superstar,
)
from discreet.schema.ptable_r import REQUIRED, read_r, write_r

__all__ = ["PTableFile", "PTableFormat", "WrapRule", "detect", "lookup_for", "read_ptable", "write_ptable"]


class PTableFormat(StrEnum):
    """The formats, named after who reads them."""

    R = "r"
    ONS = "ons"
    CANTABULAR = "cantabular"
    SUPERSTAR = "superstar"


@dataclass(frozen=True, eq=False)
class PTableFile:
    """What a file says: which change each count and key gets, and in R's format the probabilities too."""

    path: Path
    format: PTableFormat
    lookup: Lookup
    written_law: PTable | None = None

    @property
    def laws(self) -> list[Law]:
        """The law of each row as it stands, biased or not; trailing rows with the same law are one."""
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
        """The p-table behind the file, in the keyed formats p = share of the keys; a biased one is refused."""
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
    format: PTableFormat | None = None,  # noqa: A002  # the word that users know
    modulus: int | None = None,
    wrap: WrapRule | None = None,
    small_n: int = SMALL_N,
) -> PTableFile:
    """Read a p-table; the format is known by its header where it is not given.

    The modulus and the wrap rule matter for lists of keys alone, and must agree with what the file holds.
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
    """Tell the format from the first line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    words = {word.strip(' "\n\r') for word in first.replace(";", ",").split(",")}
    for columns, kind in (
        (REQUIRED, PTableFormat.R),
        (ONS_COLUMNS, PTableFormat.ONS),
        (CANTABULAR_COLUMNS, PTableFormat.CANTABULAR),
    ):
        if words >= set(columns):
            return kind
    if words and all(word.lstrip("+-").isdigit() for word in words):
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


def write_ptable(path: Path, format: PTableFormat, lookup: Lookup) -> None:  # noqa: A002
    """Write a lookup; the law, the thresholds and the rule for large counts are all in it."""
    if format is not PTableFormat.R and lookup.modulus > 2**16:
        raise mistake(path, "modulus", str(lookup.modulus), "list keys 0..255 or 0..4095 in this format")
    if format is PTableFormat.R and lookup.wrap_length != 1:
        raise mistake(
            path, "wrap rule", f"{lookup.wrap_length} rows", "R's format repeats the last row alone"
        )
    write = {
        PTableFormat.R: write_r,
        PTableFormat.ONS: write_ons,
        PTableFormat.CANTABULAR: write_cantabular,
        PTableFormat.SUPERSTAR: write_superstar,
    }[format]
    try:
        write(path, lookup)
    except OSError as error:
        raise mistake(path, "p-table", error.strerror or "cannot be written", "choose another path") from None
