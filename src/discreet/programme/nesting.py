"""Which columns are places: nesting columns are found in the data, and evidence separates areas from classifications.

An occupation nests in a broader one as a municipality nests in a county. But all members of a household live in one
place, a place predicts little about its people, none has a large share of them, and files are often in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.programme.codelist import TOTAL
from discreet.programme.columns import (
    ELSEWHERE,
    NAMES,
    is_age_name,
    is_place_name,
    is_plainly_age,
    is_year,
    may_be_age,
    named,
)
from discreet.programme.facts import ColumnFacts, GroupFacts, Kind, TableFacts

CERTAIN = 3.0  # evidence that makes columns a geography
NAMED = 2.5  # enough for one column of at least three areas that is named as a place
BY_HOUSEHOLDS = 1.1  # records per household from which households are evidence
PREDICTED = (0.1, 0.25)  # how far places predict other columns: little, much
LARGE = 0.3  # share of one code that is unusual for a finest place
LONG = 40  # characters that no name of a place has


@dataclass(frozen=True)
class Chain:
    """Columns that nest, coarse to fine, and the evidence that they are places."""

    columns: tuple[str, ...]
    evidence: float
    reasons: tuple[str, ...]


def best_chain(table: TableFacts, open_: Sequence[ColumnFacts], household: str | None) -> Chain | None:
    """The columns that nest with the best evidence of being places; None where it is too weak."""
    group = table.groups.get(household) if household else None
    if group is not None and group.mean < BY_HOUSEHOLDS:
        group = None
    usable = [column for column in open_ if _may_be_place(table, column, group)]
    single = [
        c for c in usable if not any(table.same(c.name, o.name) and _rank(o) < _rank(c) for o in usable)
    ]
    constant = [column.name for column in single if column.is_constant and max(column.lengths, default=0) > 1]
    judged = [
        _judged(table, chain, group) for chain in _chains(table, [c for c in single if not c.is_constant])
    ]
    best = max(judged, key=lambda one: (one.evidence, len(one.columns)), default=None)
    if best is not None and best.evidence >= _needed(table, best.columns):
        above = [name for name in constant if is_place_name(name) or _leads(table, name, best.columns[0])]
        above.sort(key=lambda name: len((column_of(table, name).values or ("",))[0]))
        return Chain((*above, *best.columns), best.evidence, best.reasons)
    places = tuple(name for name in constant if is_place_name(name))
    return Chain(places, CERTAIN, ("one value, and named as a place",)) if places else None


def _needed(table: TableFacts, chain: Sequence[str]) -> float:
    lone = len(chain) == 1 and is_place_name(chain[0]) and column_of(table, chain[0]).distinct >= 3
    return NAMED if lone else CERTAIN


def _may_be_place(table: TableFacts, column: ColumnFacts, group: GroupFacts | None) -> bool:
    values = column.values
    if not values or column.missing or column.unique or column.repeated < 0.5 or {"", TOTAL} & set(values):
        return False
    if column.kind in (Kind.DATE, Kind.DECIMAL, Kind.OTHER) or is_template(table, column):
        return False
    if is_plainly_age(column) or (is_age_name(column.name) and may_be_age(column)):
        return False
    numbers = column.numbers
    if numbers is not None and (numbers.others or numbers.low < 0 or is_year(column)):
        return False
    return group is None or column.name in group.constant


def _chains(table: TableFacts, columns: Sequence[ColumnFacts]) -> list[tuple[str, ...]]:
    """For each column the longest chain that ends with it; of equal ones that with more names of places."""
    found: dict[str, tuple[str, ...]] = {}
    ordered = sorted(columns, key=lambda one: one.distinct)
    for fine in ordered:
        above = [
            found[coarse.name]
            for coarse in ordered
            if coarse.name in found
            and coarse.distinct < fine.distinct
            and table.follows(coarse.name, fine.name)
        ]
        longest = max(above, key=lambda one: (len(one), sum(map(is_place_name, one))), default=())
        found[fine.name] = (*longest, fine.name)
    return list(found.values())


def _judged(table: TableFacts, chain: tuple[str, ...], group: GroupFacts | None) -> Chain:
    """Add up the evidence that columns are places; a reason is given where it is plain."""
    coarsest, finest = column_of(table, chain[0]), column_of(table, chain[-1])
    predicted, share = _predicted(table, chain, group)
    called = any(map(is_place_name, chain))
    evidence: list[tuple[bool, float, str]] = [
        (len(chain) > 1, min(len(chain) - 1, 3), "each column is a function of the next"),
        (group is not None, 1, "all members of a household have the same"),
        (finest.distinct >= 100, 1, "there are many"),
        (30 <= finest.distinct < 100, 0.5, ""),
        (finest.distinct >= 10 and finest.runs <= 1.5 * finest.distinct, 1, "the file is in their order"),
        (share < PREDICTED[0], 1, "they predict little of the other columns"),
        (share > PREDICTED[1], -2, f"though they predict {predicted}"),
        (finest.largest > max(LARGE, 3 / finest.distinct), -1.5, ""),
        (max(finest.lengths) > LONG, -1.5, ""),
        (len(coarsest.lengths) == 1 and min(coarsest.lengths) >= 4, 0.5, ""),
        (called, 1.5, "they are named as places"),
        (not called and any(named(name, ELSEWHERE) for name in chain), -1.5, ""),
    ]
    holding = [(points, reason) for holds, points, reason in evidence if holds]
    return Chain(
        chain, sum(points for points, _ in holding), tuple(reason for _, reason in holding if reason)
    )


def _predicted(table: TableFacts, chain: Sequence[str], group: GroupFacts | None) -> tuple[str, float]:
    """The column that the coarsest place predicts best, of those that are no places themselves."""
    found = [
        (share, y)
        for (x, y), share in table.predicts.items()
        if x == chain[0] and y not in chain and not (group and y in group.constant) and not is_place_name(y)
    ]
    share, predicted = max(found, default=(0.0, ""))
    return predicted, share


def is_template(table: TableFacts, column: ColumnFacts) -> bool:
    """Whether a column decides many others that do not nest in each other, as a key of another table does."""
    if column.distinct < 50 or column.unique:
        return False
    decided = [coarse for coarse, fine in table.within if fine == column.name]
    if len(decided) < 5 or len(decided) < 0.4 * len(table.columns):
        return False
    nested = sum(1 for one in decided for other in decided if one != other and table.follows(one, other))
    return nested < 0.1 * len(decided) * (len(decided) - 1)


def column_of(table: TableFacts, name: str) -> ColumnFacts:
    """The facts of a column that the table has."""
    found = table.column(name)
    if found is None:
        raise ValueError(f"no column {name!r}")
    return found


def nests(table: TableFacts, coarse: str, fine: str) -> bool:
    """Whether each fine value lies within one coarse value."""
    return column_of(table, coarse).is_constant or table.follows(coarse, fine)


def begins(table: TableFacts, coarse: str, fine: str) -> bool:
    """Whether codes begin with the code above them."""
    above = table.within.get((coarse, fine), {})
    return bool(above) and all(code.startswith(up) and code != up for code, up in above.items())


def _rank(column: ColumnFacts) -> tuple[bool, bool, str]:
    """Codes before names; then those that are not named as names."""
    return not column.is_code_like, named(column.name, NAMES), column.name


def _leads(table: TableFacts, name: str, coarsest: str) -> bool:
    """Whether the value of a constant column begins those of the coarsest column of a chain."""
    (value, *_) = column_of(table, name).values or ("",)
    return len(value) > 1 and all(code.startswith(value) for code in column_of(table, coarsest).values or ())
