"""Streams a unit's records as encoded blocks: reads the columns needed, applies swaps, and checks the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.io.column_names import shown_names, similar
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.io.id_hashes import Ascending, IdHashes
from discreet.maths.cells.keys import record_keys
from discreet.population import encode
from discreet.population.encode import Codes, EncodedRecords, ordered
from discreet.population.values import MOST_SHOWN, Wrong, coder_of, look_like_ids, values_problem
from discreet.programme.amounts import REMEDY, AmountsSeen, is_named_amount
from discreet.programme.broken_rules import Rules
from discreet.programme.cube import Cube
from discreet.programme.filter import Filter
from discreet.programme.noise import PrivateNoise
from discreet.programme.programme import Programme, Unit, Variable


@dataclass(frozen=True, eq=False, repr=False)
class Relocation:
    """The swaps of one table: which records move, and their new values."""

    column: str  # the ids by which movers are found
    moves_of: Callable[[pa.RecordBatch], NDArray[np.int64]]  # -1 for a record that stays
    leaves: Mapping[str, Codes]  # variable -> move -> leaf

    def apply(self, batch: pa.RecordBatch, codes: Mapping[str, Codes]) -> None:
        """Put the new leaves into the codes of a batch, in place."""
        if not self.leaves.keys() & codes.keys():
            return
        moves = self.moves_of(batch)
        rows = np.flatnonzero(moves >= 0)
        for name in self.leaves.keys() & codes.keys():
            codes[name][rows] = self.leaves[name][moves[rows]]


@dataclass(frozen=True)
class Needs:
    """The columns and rules that counting some cubes of one unit needs from its table."""

    unit: Unit
    variables: tuple[Variable, ...]
    flags: tuple[str, ...]
    weights: tuple[str, ...]
    rules: tuple[Filter, ...]  # structural zeros that these variables decide
    order: Variable | None  # the finest geography
    id_column: str | None  # for record keys, and to find duplicate ids
    record_key: str | None  # the office's own keys
    private: frozenset[str]  # columns whose values are never shown in messages
    largest_weight: Fraction | None = None  # where a guarantee rests on it
    stated_weights: frozenset[str] = frozenset()  # columns that are weights whatever they look like

    @property
    def key_column(self) -> str | None:
        """The column of the record keys; None only where nothing is counted, or nothing by its records."""
        return self.record_key or self.id_column

    def counts_only(self) -> Needs:
        """What counts need, of records that were judged before: no ids, keys and structural zeros."""
        return replace(self, id_column=None, record_key=None, rules=())

    def plain_columns(self) -> list[str]:
        """The columns that are read without encoding."""
        ids = [column for column in (self.record_key, self.id_column) if column is not None]
        return list(dict.fromkeys([*ids, *self.flags, *self.weights]))

    def coded_columns(self) -> list[str]:
        """The columns of codes."""
        return list(dict.fromkeys(variable.column for variable in self.variables))


def needs_of(programme: Programme, unit: Unit, cubes: Iterable[Cube]) -> Needs:
    """Collect what the cubes of a unit need."""
    cubes = tuple(cubes)
    rule = programme.population
    if rule is None:
        raise ValueError("a programme without a population reads no records")
    names = {axis.variable for cube in cubes for axis in cube.axes}
    names |= {name for cube in cubes if cube.base for name in cube.base.variables}
    record_key = rule.record_key if unit.name == "persons" else None
    return Needs(
        unit,
        tuple(variable for name, variable in programme.variables.items() if name in names),
        tuple(sorted({cube.count for cube in cubes if cube.count})),
        tuple(sorted({cube.weight for cube in cubes if cube.weight})),
        tuple(zero for zero in programme.structural_zeros if set(zero.variables) <= names),
        _finest_geography(programme, unit),
        unit.id_column,
        record_key,
        frozenset(column for column in (*rule.ids.values(), rule.record_key) if column),
        programme.noise.largest_weight if isinstance(programme.noise, PrivateNoise) else None,
        rule.weights,
    )


def with_order(needs: Needs, records: Records) -> Needs:
    """Add the finest geography, by which records are ordered; a table without it keeps its order."""
    order = needs.order
    if order is None or order in needs.variables:
        return needs
    if order.column not in records.schema.names:
        return replace(needs, order=None)
    return replace(needs, variables=(*needs.variables, order))


def with_all_rules(needs: Needs, programme: Programme, records: Records) -> Needs:
    """Add the variables of every structural zero that this table can check, whether or not a cube uses them."""
    available = {
        name: variable
        for name, variable in programme.variables.items()
        if variable.column in records.schema.names
        and (variable.units is None or needs.unit.name in variable.units)
    }
    rules = tuple(zero for zero in programme.structural_zeros if set(zero.variables) <= set(available))
    known = {variable.name for variable in needs.variables}
    added = dict.fromkeys(name for zero in rules for name in zero.variables if name not in known)
    return replace(needs, rules=rules, variables=(*needs.variables, *(available[name] for name in added)))


def only_present(needs: Needs, records: Records) -> Needs:
    """The needs without the columns that a table lacks: enough to check it, not to count it."""
    names = set(records.schema.names)
    variables = tuple(variable for variable in needs.variables if variable.column in names)
    known = {variable.name for variable in variables}
    return replace(
        needs,
        variables=variables,
        flags=tuple(flag for flag in needs.flags if flag in names),
        weights=tuple(weight for weight in needs.weights if weight in names),
        rules=tuple(rule for rule in needs.rules if set(rule.variables) <= known),
        order=needs.order if needs.order in variables else None,
        id_column=needs.id_column if needs.id_column in names else None,
        record_key=needs.record_key if needs.record_key in names else None,
    )


def _finest_geography(programme: Programme, unit: Unit) -> Variable | None:
    columns = programme.population.geography if programme.population else ()
    if not columns:
        return None
    found = (variable for variable in programme.variables.values() if variable.column == columns[-1])
    return next((v for v in found if v.units is None or unit.name in v.units), None)


def missing_columns(needs: Needs, records: Records) -> Iterator[Problem]:
    """Problems for the columns that the table lacks, with the most similar name that it has."""
    keys = {variable.column: f"variables.{variable.name}.column" for variable in needs.variables}
    for column in (*needs.plain_columns(), *needs.coded_columns()):
        if column not in records.schema.names:
            key = keys.get(column, f"population.{needs.unit.name}")
            remedy = similar(column, shown_names(records, f"population.{needs.unit.name}"), "the table has")
            yield Problem(records.name, key, f"unknown column {column!r}", remedy)


@dataclass(eq=False, repr=False)
class Findings:
    """What was found in the records of a unit, or in some of them; confidential: it has values of records.

    Findings of parts of a table can be joined in any order, and state the same problems as those of the whole.
    """

    wrong: dict[tuple[str, Wrong], set[str]] = field(default_factory=dict)  # variable and reason -> values
    unsound: set[str] = field(default_factory=set)  # variables and columns with invalid values
    bad: dict[tuple[str, str], str] = field(default_factory=dict)  # key and value -> remedy
    broken: set[Filter] = field(default_factory=set)  # structural zeros with records
    amounts: dict[str, AmountsSeen] = field(default_factory=dict)  # weights that may be amounts
    largest: int | None = None  # record key supplied by the office
    duplicates: bool = False  # whether two records have one id
    records: int = 0

    def add_wrong(self, name: str, why: Wrong, values: set[str]) -> None:
        """Note values without a leaf; of very many only some, because their number is not shown then."""
        self.unsound.add(name)
        known = self.wrong.setdefault((name, why), set())
        known.update(sorted(values - known)[: MOST_SHOWN + 1 - len(known)])

    def join(self, other: Findings) -> None:
        """Add what was found in other records of the same unit."""
        for (name, why), values in other.wrong.items():
            self.add_wrong(name, why, values)
        self.unsound |= other.unsound
        self.bad |= other.bad
        self.broken |= other.broken
        for name, seen in other.amounts.items():
            self.amounts.setdefault(name, AmountsSeen()).join(seen)
        if other.largest is not None:
            self.largest = max(self.largest or 0, other.largest)
        self.duplicates |= other.duplicates
        self.records += other.records

    def problems(self, needs: Needs, table: str) -> list[Problem]:
        """Everything that is wrong, in the order of the columns: it does not depend on the order of the records."""
        places = {variable.name: k for k, variable in enumerate(needs.variables)}
        columns = [f"variables.{name}" for name in places]
        columns += [f"column {column}" for column in needs.plain_columns()]
        bad = sorted(
            self.bad.items(),
            key=lambda one: (
                columns.index(one[0][0]) if one[0][0] in columns else len(columns),
                one[0],
            ),
        )
        found = [Problem(table, key, value, remedy) for (key, value), remedy in bad]
        # a record whose code is wrong has no code that a rule could judge
        broken = [
            rule for rule in needs.rules if rule in self.broken and not self.unsound & set(rule.variables)
        ]
        remedy = "correct the records or drop the rule"
        texts = dict.fromkeys(f"records with {rule.text}" for rule in broken)
        found += [Problem(table, "structural_zeros", text, remedy) for text in texts]
        for (name, why), values in sorted(self.wrong.items()):
            variable = needs.variables[places[name]]
            hidden = variable.column in needs.private or look_like_ids(len(values), self.records)
            found.append(values_problem(variable, why, values, table, hidden))
        for name, seen in sorted(self.amounts.items()):
            if seen.look_like_amounts:
                value = "its values look like amounts, not like survey weights"
                found.append(Problem(table, f"column {name}", value, REMEDY))
        if self.duplicates and needs.id_column not in self.unsound:
            value = f"duplicate ids in {needs.id_column!r}"
            found.append(
                Problem(table, f"population.{needs.unit.name}", value, "give each record its own id")
            )
        return found


_Item = TypeVar("_Item")
_Scalar = TypeVar("_Scalar", bound=np.generic)


class Look(Protocol):
    """A look at the records of a table while they are read, before they are encoded."""

    @property
    def plain(self) -> Sequence[str]:
        """The columns that it needs as they are."""

    @property
    def coded(self) -> Sequence[str]:
        """The columns that it needs dictionary-encoded, where that is cheaper."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some records."""


class UnitReader:
    """Reads one unit's table once: ``blocks`` streams it, ``problems`` then lists what is wrong."""

    def __init__(
        self,
        needs: Needs,
        secret: bytes,
        threads: int,
        relocation: Relocation | None = None,
        records: Records | None = None,
        looks: Sequence[Look] = (),
    ) -> None:
        """``records``: a part of the unit's table, where it is not read from its source."""
        self._secret, self._threads, self._relocation, self._looks = secret, threads, relocation, looks
        self._records = records or open_source(needs.unit.source, f"population.{needs.unit.name}")
        missing = list(missing_columns(needs, self._records))
        if missing:
            raise Mistakes(missing)
        self._needs = needs = with_order(needs, self._records)
        self._ids, self._ascending = IdHashes(), Ascending()
        self._found = Findings(
            amounts={
                name: AmountsSeen()
                for name in needs.weights
                if name not in needs.stated_weights and not is_named_amount(name)  # the programme is refused
            }
        )
        self._rules: tuple[frozenset[str], Rules] | None = None  # those that some variables decide
        decimal = self._records.decimal
        self._coders = {variable.name: coder_of(variable, decimal) for variable in needs.variables}

    @property
    def records(self) -> Records:
        """The opened source."""
        return self._records

    @property
    def needs(self) -> Needs:
        """What is read."""
        return self._needs

    def blocks(self) -> Iterator[EncodedRecords]:
        """Stream the encoded blocks; records that cannot be encoded are listed by ``problems``."""
        plain = self._needs.plain_columns()
        if self._relocation is not None and self._relocation.column not in plain:
            plain.append(self._relocation.column)
        plain += [name for look in self._looks for name in look.plain]
        coded = [*self._needs.coded_columns(), *(name for look in self._looks for name in look.coded)]
        batches = self._records.batches(list(dict.fromkeys(plain)), list(dict.fromkeys(coded)))
        with ThreadPoolExecutor(self._threads) as pool:
            yield from _ahead(self._block(batch, pool) for batch in batches if batch.num_rows)

    def found(self) -> Findings:
        """What was found in the records read so far."""
        return replace(self._found, duplicates=not self._ascending and self._ids.occurs(2))

    def found_here(self) -> Findings:
        """The same without duplicate ids, which are found among the ``ids`` of all parts of a table."""
        return self._found

    def ids(self) -> NDArray[np.uint64]:
        """The hashes of the ids read so far; none where no column of ids is read."""
        return self._ids.all()

    def _block(self, batch: pa.RecordBatch, pool: Executor) -> EncodedRecords:
        self._found.records += batch.num_rows
        for look in self._looks:
            look.add(batch)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        names = [variable.name for variable in self._needs.variables]
        room = encode.room({name: self._coders[name].categories for name in names}, batch.num_rows)
        read = pool.map(lambda v: self._codes(v.name, columns[v.column], room[v.name]), self._needs.variables)
        codes = dict(zip(names, read, strict=True))
        self._judge({name: leaves for name, leaves in codes.items() if name not in self._found.unsound})
        self._relocate(batch, codes)
        block = EncodedRecords(
            codes,
            self._keys(columns, batch.num_rows),
            {name: self._column(name, self._flags, columns[name], np.bool_) for name in self._needs.flags},
            {
                name: self._column(name, partial(self._weights, name), columns[name], np.uint64)
                for name in self._needs.weights
            },
        )
        order = self._needs.order
        return block if order is None else ordered(block, order.name, len(order.codelist.leaves))

    def _weights(self, name: str, column: pa.Array) -> NDArray[np.uint64]:
        millionths = encode.weights(column, self._needs.largest_weight, self._records.decimal)
        if name in self._found.amounts:
            self._found.amounts[name].add(millionths / encode.WEIGHT_UNIT)
        return millionths

    def _flags(self, column: pa.Array) -> NDArray[np.bool_]:
        return encode.flags(column, self._records.decimal)

    def _relocate(self, batch: pa.RecordBatch, codes: Mapping[str, Codes]) -> None:
        """Apply the swaps after the records were checked, so that only errors of the data are reported."""
        if self._relocation is None:
            return
        try:
            self._relocation.apply(batch, codes)
        except encode.BadColumn as bad:
            self._note(f"column {self._relocation.column}", bad.value, bad.remedy)

    def _codes(self, name: str, column: pa.Array, out: Codes) -> Codes:
        try:
            found = self._coders[name].encode(column, out)
        except encode.BadColumn as bad:
            self._note(f"variables.{name}", bad.value, bad.remedy)
            self._found.unsound.add(name)
            return np.zeros_like(out)
        for why, values in found.wrong.items():
            self._found.add_wrong(name, why, values)
        return found.codes

    def _keys(self, columns: Mapping[str, pa.Array], rows: int) -> NDArray[np.uint32]:
        needs = self._needs
        if needs.key_column is None:
            return np.zeros(rows, dtype=np.uint32)
        hashes = np.zeros(rows, dtype=np.uint64)
        if needs.id_column is not None:
            hashes = self._column(needs.id_column, self._hashed, columns[needs.id_column], np.uint64)
            self._ids.add(hashes)
            self._ascending.add(encode.integers(columns[needs.id_column]))
        if needs.record_key is None:
            return record_keys(hashes)
        given = self._column(needs.record_key, encode.given_keys, columns[needs.record_key], np.uint32)
        self._found.largest = max(self._found.largest or 0, int(given.max()))
        return given

    def _hashed(self, ids: pa.Array) -> NDArray[np.uint64]:
        return encode.hashed_ids(ids, self._secret, f"record-key/{self._needs.unit.name}")

    def _column(
        self, name: str, read: Callable[[pa.Array], NDArray[_Scalar]], column: pa.Array, kind: type[_Scalar]
    ) -> NDArray[_Scalar]:
        try:
            return read(column)
        except encode.BadColumn as bad:
            self._note(f"column {name}", bad.value, bad.remedy)
            self._found.unsound.add(name)
            return np.zeros(len(column), dtype=kind)

    def _judge(self, codes: Mapping[str, Codes]) -> None:
        if self._rules is None or self._rules[0] != codes.keys():
            judged = [rule for rule in self._needs.rules if codes.keys() >= set(rule.variables)]
            self._rules = frozenset(codes), Rules(judged)
        self._found.broken |= self._rules[1].broken(codes)

    def _note(self, key: str, value: str, remedy: str) -> None:
        self._found.bad.setdefault((key, value), remedy)


def _ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Prepare the next item while the caller works on this one."""
    end = object()
    with ThreadPoolExecutor(1) as one:
        following = one.submit(next, items, end)
        while (item := following.result()) is not end:
            following = one.submit(next, items, end)
            yield item  # type: ignore[misc]
