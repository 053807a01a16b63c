"""The codes of every breakdown as CSV files inside a release; it owns their layout, not the trees."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import BrokenRelease, mistake
from discreet.schema.codelist import TOTAL, Breakdown
from discreet.schema.cube import Cube

HEADER = ("code", "parent", "label")


@dataclass(frozen=True)
class PublishedCodes:
    """The codes of a breakdown as a release lists them, the total first."""

    codes: tuple[str, ...]
    parents: tuple[str, ...]
    labels: tuple[str, ...]


def breakdowns(cubes: Iterable[Cube]) -> dict[str, Breakdown]:
    """Every breakdown that the cubes use, by full name; one name must mean one list of codes."""
    found: dict[str, Breakdown] = {}
    for cube in cubes:
        for axis in cube.axes:
            known = found.setdefault(axis.full_name, axis)
            if known is not axis and (known.codes, known.labels) != (axis.codes, axis.labels):
                raise mistake(
                    "", f"cube {cube.id}", f"{axis.full_name} has two lists of codes", "give them two names"
                )
    return found


def write_codes(axis: Breakdown, path: Path) -> None:
    """Write code, parent and label of every node; the total has no parent."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for code, parent, label in zip(axis.codes, axis.parents.tolist(), axis.labels, strict=True):
            writer.writerow((code, "" if parent < 0 else axis.codes[parent], label))


def read_codes(path: Path) -> PublishedCodes:
    """Read such a file back."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (UnicodeDecodeError, csv.Error):
        rows = []
    if not rows or tuple(rows[0]) != HEADER or any(len(row) != len(HEADER) for row in rows):
        raise BrokenRelease(f"{path}: not a list of code,parent,label; fetch the release again")
    codes, parents, labels = zip(*rows[1:], strict=True) if len(rows) > 1 else ((), (), ())
    if codes[:1] != (TOTAL,) or len(set(codes)) != len(codes):
        raise BrokenRelease(
            f"{path}: does not start with {TOTAL}, or a code stands twice; fetch the release again"
        )
    return PublishedCodes(codes, parents, labels)
