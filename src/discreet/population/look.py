"""Measures the facts of a table's columns: values, numbers, ids, groups of records, and which columns decide others.

A table is read once for the values and for the pairs of columns of which one decides the other: a sample proposes the
pairs and every record must confirm them. It is read again for columns that group records, as a household's id does, and
for tables of counts. Memory grows with the distinct values; for columns with very many, by eight bytes per record.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.column_names import require_names
from discreet.io.csv_form import USUAL, CsvForm
from discreet.io.databases import open_source
from discreet.io.files import BATCH, Records
from discreet.lazy import lazily
from discreet.maths.cells.dependence import dependence
from discreet.population import encode
from discreet.programme.facts import (
    MOST_PLACES,
    ColumnFacts,
    GroupFacts,
    Kind,
    Numbers,
    TableFacts,
    day_of,
    kind_of_texts,
    number_of,
)
from discreet.programme.sources import Source

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    pc = lazily("pyarrow.compute")  # takes as long to import as Arrow itself

Positions = NDArray[np.int64]  # record -> index of its value among the distinct ones, -1 for none

WIDE = BATCH // 2  # distinct values in a batch above which a column identifies records
FIRST = 20_000  # records, spread over the first batch, that rule most pairs out
SAMPLE = 20_000  # records per batch that represent it
MOST_SAMPLED = 200_000
FEWEST_IDS = 0.02  # distinct values per record below which a column groups no records as a household does
GROUP_SIZES = (1.02, 15.0)  # records per household, on average
MOST_GROUPINGS = 4  # columns that are tried as ids of households
NONE_SHARE = 0.05  # of the records: a value with more stands for "no household"
FEWEST_NUMBERED, MOST_NUMBERED = 3, 100  # member numbers of a household
WORTH = 0.05  # of a prediction
MOST_PREDICTED = 100  # codes of a column that is predicted
MOST_COLUMNS = 1_000  # each is compared with each
MOST_DIMENSIONS = 16  # columns of a table of counts
MOST_LINES = 1 << 22  # lines on which the dimensions of a table of counts are examined


class _Column:
    """The distinct values of one column so far, until there are too many to be codes."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self.name, self.type = name, kind.value_type if pa.types.is_dictionary(kind) else kind
        self.values: dict[str, int] = {}
        self.counts = np.empty(0, dtype=np.int64)
        self.open = True
        self.records = self.missing = self.runs = 0
        self.last: object = None
        self.ids: list[NDArray[np.uint64]] | None = [] if _may_identify(self.type) else None
        self.sample: list[str] = []

    def see(self, column: pa.Array, key: bytes) -> Positions | None:
        """Add a batch; return the indices of its values, or None if there are too many distinct ones."""
        column = _readable(column)
        self.records += len(column)
        self.missing += column.null_count
        coded = _coded(column)
        distinct = _used(coded)
        self._note_runs(coded)
        self._note_ids(column, distinct, key)
        self._note_sample(coded)
        if not self.open or distinct > WIDE:
            self._close()
            return None
        places = self.positions(coded)
        self.counts = np.concatenate(
            [self.counts, np.zeros(len(self.values) - len(self.counts), dtype=np.int64)]
        )
        self.counts += np.bincount(places[places >= 0], minlength=len(self.values))
        if len(self.values) > MOST_PLACES:
            self._close()
            return None
        return places

    def _close(self) -> None:
        """Give up listing the values; some stay to show what they are."""
        if self.open:
            self.open = False
            self.values = dict(islice(self.values.items(), SAMPLE))
            self.counts = self.counts[:0]

    def positions(self, column: pa.Array) -> Positions:
        """The index of each record's value."""
        coded = _coded(_readable(column))
        used = pc.unique(coded.indices.drop_null())
        size = len(coded.dictionary)
        table = np.full(size + 1, -1, dtype=np.int64)  # the last entry is for records without a value
        for place, text in zip(used.to_pylist(), _texts(coded.dictionary.take(used)), strict=True):
            table[place] = self.values.setdefault(text, len(self.values))
        places: NDArray[np.intp] = coded.indices.fill_null(size).to_numpy(zero_copy_only=False)
        return table[places]

    def _note_runs(self, coded: pa.DictionaryArray) -> None:
        indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if len(indices):
            # Arrow's own values: Python has no years beyond 9999, and no nanoseconds
            first, last = (coded.dictionary[at] if at >= 0 else None for at in (indices[0], indices[-1]))
            continued = self.runs > 0 and first == self.last
            self.runs += int(np.count_nonzero(indices[1:] != indices[:-1])) + (not continued)
            self.last = last

    def _note_ids(self, column: pa.Array, distinct: int, key: bytes) -> None:
        if self.ids is not None:
            known = max(distinct, len(self.values)) if self.open else self.records
            if distinct < FEWEST_IDS * len(column) or known < FEWEST_IDS * self.records:
                self.ids = None
            else:
                self.ids.append(_hashed(column, key, self.records - len(column)))

    def _note_sample(self, coded: pa.DictionaryArray) -> None:
        if len(self.sample) < MOST_SAMPLED and not self.open:
            chosen = coded.take(pa.array(_spread(len(coded), SAMPLE))).drop_null()
            self.sample.extend(_texts(chosen.dictionary_decode()))

    def facts(self) -> ColumnFacts:
        """The facts found about the column."""
        listed = list(self.values) if self.open else list(dict.fromkeys([*self.values, *self.sample]))
        kind = _kind(self.type, listed)
        counts = self.counts if self.open else np.ones(len(listed), dtype=np.int64)
        present = self.records - self.missing
        distinct = len(self.values) if self.open else self._distinct()
        days = _days(listed) if kind is Kind.DATE else None
        return ColumnFacts(
            name=self.name,
            kind=kind,
            values=tuple(self.values) if self.open else None,
            distinct=distinct,
            missing=self.missing / self.records if self.records else 0.0,
            unique=0 < self.records == distinct and not self.missing,
            largest=int(self.counts.max(initial=0)) / present if self.open and present else 0.0,
            repeated=int(self.counts[self.counts > 1].sum()) / present if self.open and present else 0.0,
            runs=self.runs,
            numbers=_numbers(listed, counts) if kind in (Kind.WHOLE, Kind.DECIMAL) else None,
            days=days,
            readable=kind is not Kind.DATE or all(day_of(text) is not None for text in listed),
        )

    def _distinct(self) -> int:
        if self.ids is None:
            return MOST_PLACES + 1  # many, and too few to identify anything
        return _count_distinct(np.concatenate(self.ids)) - self.missing


def look(source: Source, unit: str, named: str) -> TableFacts:
    """Read a table and return the facts about its columns; ``named`` is its name in the programme."""
    records = open_source(source, unit)
    if len(records.schema.names) > MOST_COLUMNS:
        value = f"{len(records.schema.names):,} columns"
        raise mistake(records.name, unit, value, f"give at most {MOST_COLUMNS:,}: each is compared with each")
    require_names(records, unit)
    key = secrets.token_bytes(32)
    columns = [_Column(field.name, field.type) for field in records.schema]
    pairs: list[_Pair] | None = None
    spread: dict[str, list[Positions]] = {column.name: [] for column in columns}
    wide = _wide(records, columns)
    for batch in _batches(records, columns, wide):
        seen = {column.name: column.see(batch.column(column.name), key) for column in columns}
        chosen = _spread(batch.num_rows, SAMPLE)
        for name, positions in seen.items():
            if positions is not None:
                spread[name].append(positions[chosen])
        if pairs is None:
            pairs = [pair for pair in _all_pairs(columns) if _first_holds(pair, seen)]
        pairs = [pair for pair in pairs if _still_holds(pair, seen)]
    within = {(pair.coarse.name, pair.fine.name): pair.values() for pair in pairs or () if pair.is_whole()}
    facts = tuple(column.facts() for column in columns)
    by_name = {column.name: column for column in columns}
    groups = {
        name: _grouped(records, by_name, name, facts, key) for name in _groupings(facts, by_name, within)
    }
    return TableFacts(
        unit,
        named,
        columns[0].records if columns else 0,
        facts,
        within,
        _predictions(columns, spread, within),
        groups,
        _counted(records, columns, facts, within, key),
        _unusual(records.forms),
    )


def _unusual(forms: Sequence[CsvForm]) -> dict[str, str]:
    """How CSV files are written, where that is not the usual form."""
    return {
        key: value for form in forms for key, value in asdict(form).items() if value != getattr(USUAL, key)
    }


def _batches(
    records: Records, columns: Sequence[_Column], wide: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The records, some at a time; text is dictionary-encoded, except in ``wide`` columns of many values."""
    coded = [column.name for column in columns if _is_text(column.type) and column.name not in wide]
    plain = [column.name for column in columns if column.name not in coded]
    return records.small_batches(plain, coded)


def _wide(records: Records, columns: Sequence[_Column]) -> list[str]:
    """The columns of text of which so many values differ that a dictionary of them takes memory for nothing."""
    texts = [column for column in columns if _is_text(column.type)]
    first = next(_batches(records, texts), None) if texts else None
    if first is None:
        return []
    return [column.name for column in texts if _used(_coded(first.column(column.name))) > WIDE]


def _coded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _used(coded: pa.DictionaryArray) -> int:
    """How many different values occur; the dictionary of some rows may have more."""
    return int(pc.count_distinct(coded.indices, mode="only_valid").as_py())


def _spread(rows: int, most: int) -> NDArray[np.int64]:
    """Up to so many rows, evenly over all of them."""
    return np.arange(0, rows, max(1, -(-rows // most)), dtype=np.int64)


# ---- values


def _readable(column: pa.Array) -> pa.Array:
    """Blank text, NaN and nested values as missing; whole decimals as whole numbers; extension types as stored."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_nested(column.type):
        return pa.nulls(len(column))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(kind):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        return pc.if_else(pc.is_nan(plain), None, plain)
    if _is_text(kind):
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        blank = pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "")
        if pc.any(blank).as_py():
            empty = pc.take(blank, coded.indices)
            indices = pc.if_else(pc.fill_null(empty, False), None, coded.indices)
            return pa.DictionaryArray.from_arrays(indices, coded.dictionary)
        return coded
    return column


def _texts(values: pa.Array) -> list[str]:
    if pa.types.is_floating(values.type):
        return [_shortest(value) for value in values.to_pylist()]
    if pa.types.is_boolean(values.type):
        return ["" if value is None else str(value).lower() for value in values.to_pylist()]
    try:
        return ["" if text is None else text for text in pc.cast(values, pa.string()).to_pylist()]
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return [str(place) for place in range(len(values))]


def _shortest(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1e18 else repr(value)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _may_identify(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or _is_text(kind))


def _kind(kind: pa.DataType, values: Sequence[str]) -> Kind:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Kind.DATE
    if pa.types.is_integer(kind):
        return Kind.WHOLE
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return Kind.TEXT
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = [number_of(value) for value in values]
        return Kind.WHOLE if all(one is not None and one == int(one) for one in numbers) else Kind.DECIMAL
    return kind_of_texts(values) if _is_text(kind) else Kind.OTHER


def _numbers(values: Sequence[str], counts: NDArray[np.int64]) -> Numbers | None:
    found = [
        (number, count, text)
        for text, count in zip(values, counts.tolist(), strict=True)
        if (number := _float(text)) is not None
    ]
    if not found:
        return None
    numbers, weights = np.array([one[0] for one in found]), np.array([one[1] for one in found], dtype=float)
    order = np.argsort(numbers)
    numbers, weights = numbers[order], weights[order]
    below = np.cumsum(weights) / weights.sum()
    deciles = tuple(float(numbers[np.searchsorted(below, tenth / 10)]) for tenth in range(1, 10))
    large = np.abs(numbers) >= 100
    rounded = large & (numbers % 10 == 0)
    return Numbers(
        low=float(numbers[0]),
        high=float(numbers[-1]),
        deciles=deciles,
        round=float(weights[rounded].sum() / weights[large].sum()) if large.any() else 0.0,
        zeros=float(weights[numbers == 0].sum() / weights.sum()),
        mean=float((numbers * weights).sum() / weights.sum()),
        padded=any(len(text) > 1 and text[0] == "0" and text.isdecimal() for _, _, text in found),
        others=tuple(text for text in values if _float(text) is None),
    )


def _float(text: str) -> float | None:
    number = number_of(text)
    if number is not None:
        return number
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _days(values: Sequence[str]) -> tuple[date, date] | None:
    days = [day for value in values if (day := day_of(value)) is not None]
    return (min(days), max(days)) if days else None


# ---- columns that decide others


class _Pair:
    """Checks whether each value of a fine column always occurs with the same value of a coarse column."""

    def __init__(self, coarse: _Column, fine: _Column) -> None:
        self.coarse, self.fine = coarse, fine
        self.table = np.empty(0, dtype=np.int64)  # fine -> coarse, -2 unseen

    def holds(self, coarse: Positions, fine: Positions) -> bool:
        """Add a batch; false as soon as a fine value occurs with two coarse ones."""
        grown = np.full(len(self.fine.values), -2, dtype=np.int64)
        grown[: len(self.table)] = self.table
        self.table = grown
        if self.fine.missing:
            present = fine >= 0
            coarse, fine = coarse[present], fine[present]
        unseen = self.table[fine] == -2
        self.table[fine[unseen]] = coarse[unseen]
        return bool((self.table[fine] == coarse).all())

    def is_whole(self) -> bool:
        """Whether every fine value has a coarse one, and there is more than one of these."""
        sizes = len(self.coarse.values), len(self.fine.values)
        listed = self.fine.open and self.coarse.open and 1 < sizes[0] <= sizes[1]
        return listed and int(self.fine.counts.max()) > 1 and not (self.table < 0).any()

    def values(self) -> dict[str, str]:
        """The coarse value of each fine one."""
        names = list(self.coarse.values)
        return {value: names[self.table[place]] for value, place in self.fine.values.items()}


def _all_pairs(columns: Sequence[_Column]) -> Iterator[_Pair]:
    usable = [column for column in columns if column.open]
    return (_Pair(one, other) for one in usable for other in usable if one is not other)


def _first_holds(pair: _Pair, seen: Mapping[str, Positions | None]) -> bool:
    coarse, fine = seen[pair.coarse.name], seen[pair.fine.name]
    if coarse is None or fine is None:
        return False
    chosen = _spread(len(fine), FIRST)
    return _Pair(pair.coarse, pair.fine).holds(coarse[chosen], fine[chosen])


def _still_holds(pair: _Pair, seen: Mapping[str, Positions | None]) -> bool:
    coarse, fine = seen[pair.coarse.name], seen[pair.fine.name]
    return coarse is not None and fine is not None and pair.holds(coarse, fine)


def _predictions(
    columns: Sequence[_Column],
    spread: Mapping[str, Sequence[Positions]],
    within: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[tuple[str, str], float]:
    """How far columns predict each other in a sample, leaving out those that are functions of each other."""
    sampled = {
        column.name: np.concatenate(spread[column.name])[-MOST_SAMPLED:]
        for column in columns
        if column.open and len(column.values) > 1 and column.counts.max() > 1
    }
    rows = len(next(iter(sampled.values()), ()))
    chosen = _spread(rows, SAMPLE)
    sampled = {name: positions[chosen] for name, positions in sampled.items()}
    found: dict[tuple[str, str], float] = {}
    sizes = {column.name: len(column.values) for column in columns}
    for x, x_codes in sampled.items():
        for y, y_codes in sampled.items():
            if x == y or sizes[y] > MOST_PREDICTED or (x, y) in within or (y, x) in within:
                continue
            keys, counts = _tabulated(
                (x_codes + 1) * (sizes[y] + 1) + y_codes + 1, (sizes[x] + 1) * (sizes[y] + 1)
            )
            measured = dependence(keys // (sizes[y] + 1), keys % (sizes[y] + 1), counts)
            if measured.gained >= 20 and measured.share >= WORTH:
                found[x, y] = round(measured.share, 3)
    return found


def _count_distinct(values: NDArray[Any]) -> int:
    """How many different numbers there are; sorting takes a fraction of the time of numpy's hashing."""
    ordered = np.sort(values)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1 if len(ordered) else 0


def _tabulated(keys: Positions, size: int) -> tuple[Positions, Positions]:
    """The keys that occur and how often."""
    if size > 8 * len(keys) + 1000:
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys, minlength=size)
    found = np.flatnonzero(counts)
    return found, counts[found]


# ---- columns that group records


def _hashed(column: pa.Array, key: bytes, before: int) -> NDArray[np.uint64]:
    """Hashes of a column's values under a temporary key; a record without a value has a hash of its own."""
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    alone = np.arange(before, before + len(plain), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    if plain.null_count == 0:
        return encode.hashed_values(plain, key, "look")
    present = pc.is_valid(plain)
    rows = np.flatnonzero(present.to_numpy(zero_copy_only=False))
    alone[rows] = encode.hashed_values(plain.filter(present), key, "look")
    return alone


def _groupings(
    facts: Sequence[ColumnFacts],
    columns: Mapping[str, _Column],
    within: Mapping[tuple[str, str], Mapping[str, str]],
) -> list[str]:
    """The columns whose values few records share, finest first: a household's id is among them."""
    found = []
    for column in facts:
        ids = columns[column.name].ids
        if ids is None or column.unique or column.distinct < 2 or column.kind in (Kind.DATE, Kind.DECIMAL):
            continue
        records = columns[column.name].records
        rest = (
            records * (1 - column.largest)
            if column.largest > NONE_SHARE and column.distinct > 40
            else records
        )
        if GROUP_SIZES[0] <= rest / column.distinct <= GROUP_SIZES[1]:
            found.append((-column.distinct, column.name))
    return [name for _, name in sorted(found)][:MOST_GROUPINGS]


def _grouped(
    records: Records, columns: Mapping[str, _Column], name: str, facts: Sequence[ColumnFacts], key: bytes
) -> GroupFacts:
    """What the records with the same value of a column have in common: every record is examined."""
    inverse, sizes = _groups(np.concatenate(columns[name].ids or []))
    none = int(sizes.argmax()) if sizes.max() > max(NONE_SHARE * len(inverse), GROUP_SIZES[1]) else -1
    proper = np.delete(sizes, none) if none >= 0 else sizes
    usual = int(np.quantile(proper, 0.99))
    others = [column for column in columns.values() if column.open and column.name != name]
    constant: dict[str, NDArray[np.int32]] = {}  # column -> group -> its value
    varying: set[str] = set()
    numbering = {
        column.name: np.zeros((len(sizes), len(column.values or ())), dtype=bool)
        for column in facts
        if column.name != name and _may_number(column, usual)
    }
    start = 0
    for batch in _batches(records, others) if others else ():
        groups = inverse[start : start + batch.num_rows]
        start += batch.num_rows
        for column in others:
            if column.name in varying and column.name not in numbering:
                continue
            codes = column.positions(batch.column(column.name))
            if column.name not in varying:
                table = constant.setdefault(column.name, np.full(len(sizes), -2, dtype=np.int32))
                if not _is_constant(table, groups, codes, none):
                    del constant[column.name]
                    varying.add(column.name)
            taken = numbering.get(column.name)
            if taken is not None and not _is_numbering(taken, groups, codes):
                del numbering[column.name]
    return GroupFacts(float(proper.mean()), usual, frozenset(constant), tuple(numbering))


def _groups(values: NDArray[np.uint64]) -> tuple[NDArray[np.int32], Positions]:
    """The group of each record, and how many records each group has; half the memory of ``numpy.unique``."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    groups = np.cumsum(starts, dtype=np.int32) - np.int32(1)
    inverse = np.empty(len(values), dtype=np.int32)
    inverse[order] = groups
    return inverse, np.bincount(groups)


def _may_number(column: ColumnFacts, usual: int) -> bool:
    """Whether values are 1, 2, 3, .. as far as the largest groups need them."""
    if column.kind is not Kind.WHOLE or column.numbers is None or column.missing or column.values is None:
        return False
    if column.unique or column.distinct < FEWEST_NUMBERED:
        return False
    low, high = column.numbers.low, column.numbers.high
    return (
        low in (0, 1)
        and max(2, usual - 1 + low) <= high <= MOST_NUMBERED
        and column.distinct >= 0.8 * (high - low + 1)
    )


def _is_constant(table: NDArray[np.int32], groups: NDArray[np.int32], codes: Positions, none: int) -> bool:
    if none >= 0:
        inside = groups != none
        groups, codes = groups[inside], codes[inside]
    unseen = table[groups] == -2
    table[groups[unseen]] = codes[unseen]
    return bool((table[groups] == codes).all())


def _is_numbering(taken: NDArray[np.bool_], groups: NDArray[np.int32], codes: Positions) -> bool:
    cells = groups.astype(np.int64) * taken.shape[1] + codes
    flat = taken.reshape(-1)
    if _count_distinct(cells) < len(cells) or flat[cells].any():
        return False
    flat[cells] = True
    return True


# ---- tables of counts


def _counted(
    records: Records,
    columns: Sequence[_Column],
    facts: Sequence[ColumnFacts],
    within: Mapping[tuple[str, str], Mapping[str, str]],
    key: bytes,
) -> tuple[str, ...]:
    """The columns of numbers without which every line has a combination of values of its own, for which all are needed.

    So each line of a table of counts is a cell. Records of persons repeat combinations, or leave columns that are not
    needed to distinguish them.
    """
    numbers = [one for one in facts if _may_count(one)]
    lines = columns[0].records if columns else 0
    dimensions = [column for column in columns if column.open]
    if (
        not numbers
        or len(columns) > MOST_DIMENSIONS
        or len(dimensions) < 2
        or lines > MOST_LINES
        or lines < 2
    ):
        return ()
    if len(dimensions) < len(columns) - 1:
        return ()
    parts: dict[str, list[NDArray[np.uint64]]] = {column.name: [] for column in columns}
    for batch in _batches(records, columns):
        for column in columns:
            if column.open:
                codes = column.positions(batch.column(column.name)).astype(np.uint64)
                parts[column.name].append(_mixed(codes, column.name, key))
            else:
                parts[column.name].append(np.zeros(batch.num_rows, dtype=np.uint64))
    mixed = {name: np.concatenate(found) for name, found in parts.items()}
    whole = np.zeros(lines, dtype=np.uint64)
    for part in mixed.values():
        whole += part
    return tuple(one.name for one in numbers if _is_cell_table(whole, mixed, one, facts, within))


def _mixed(codes: NDArray[np.uint64], name: str, key: bytes) -> NDArray[np.uint64]:
    salt = encode.hashed_values(pa.array([name]), key, "column")[0]
    mixed: NDArray[np.uint64] = (codes + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + salt
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _is_cell_table(
    whole: NDArray[np.uint64],
    parts: Mapping[str, NDArray[np.uint64]],
    number: ColumnFacts,
    facts: Sequence[ColumnFacts],
    within: Mapping[tuple[str, str], Mapping[str, str]],
) -> bool:
    """Whether each line has its own combination, and each other column is needed for it or follows from another."""
    rest = whole - parts[number.name]
    if _count_distinct(rest) < len(rest):
        return False
    others = sorted((one for one in facts if one.name != number.name), key=lambda one: one.distinct)
    for one in others:
        if _count_distinct(rest - parts[one.name]) == len(rest):
            if not one.is_constant and not any((one.name, other.name) in within for other in others):
                return False
            rest = rest - parts[one.name]
    return True


def _may_count(column: ColumnFacts) -> bool:
    numbers = column.numbers
    return (
        column.kind is Kind.WHOLE
        and numbers is not None
        and not numbers.others
        and not numbers.padded
        and not column.missing
        and not column.unique
        and numbers.low >= 0
        and column.distinct > 2
    )
