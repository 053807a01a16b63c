"""Streaming a unit's records as encoded blocks and judging them on the way; nothing is counted here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.errors import Mistakes, Problem
from discreet.maths.keys import record_keys
from discreet.population import encode
from discreet.population.block import Block, Codes, ordered
from discreet.population.needs import Needs, missing_columns, with_order
from discreet.population.relocation import Relocation
from discreet.schema.expression import masks

_SHOWN = 5  # unknown codes named in a message
_MOST = 1000  # unknown codes beyond which a column rather holds ids, which no message shows
_JUDGED = 1 << 16  # records whose masks stay in the cache together
_Item = TypeVar("_Item")
_Scalar = TypeVar("_Scalar", bound=np.generic)


class UnitReader:
    """Reads one unit's table once: ``blocks`` streams it, ``problems`` tells afterwards what was wrong."""

    def __init__(
        self, needs: Needs, secret: bytes, threads: int, relocation: Relocation | None = None
    ) -> None:
        self._secret, self._threads, self._relocation = secret, threads, relocation
        self._records = open_source(needs.unit.source, f"population.{needs.unit.name}")
        missing = list(missing_columns(needs, self._records))
        if missing:
            raise Mistakes(missing)
        self._needs = needs = with_order(needs, self._records)
        self._ids: list[NDArray[np.uint64]] = []
        self._largest: int | None = None
        self._unknown: dict[str, set[str]] = {}
        self._unsound: set[str] = set()  # variables and columns that cannot be relied upon
        self._bad: dict[tuple[str, str], Problem] = {}
        self._leaves = {
            variable.name: {code: index for index, code in enumerate(variable.codelist.leaf_codes)}
            for variable in needs.variables
        }

    @property
    def records(self) -> Records:
        """The opened source."""
        return self._records

    @property
    def largest_given_key(self) -> int | None:
        """The largest record key that the office gave; None where the secret makes the keys."""
        return self._largest

    def blocks(self) -> Iterator[Block]:
        """Stream the encoded blocks; a record that cannot be encoded is a problem, told by ``problems``."""
        plain = self._needs.plain_columns()
        if self._relocation is not None and self._relocation.column not in plain:
            plain.append(self._relocation.column)
        batches = self._records.batches(plain, self._needs.coded_columns())
        with ThreadPoolExecutor(self._threads) as pool:
            yield from _ahead(self._block(batch, pool) for batch in batches if batch.num_rows)

    def problems(self) -> list[Problem]:
        """Everything that was wrong with the records read so far."""
        unknown = [self._unknown_codes(name, values) for name, values in sorted(self._unknown.items())]
        return [*self._bad.values(), *unknown, *self._duplicates()]

    def _block(self, batch: pa.RecordBatch, pool: Executor) -> Block:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        names = [variable.name for variable in self._needs.variables]
        room = encode.room({name: len(self._leaves[name]) for name in names}, batch.num_rows)
        read = pool.map(lambda v: self._codes(v.name, columns[v.column], room[v.name]), self._needs.variables)
        codes = dict(zip(names, read, strict=True))
        self._judge({name: held for name, held in codes.items() if name not in self._unsound})
        self._relocate(batch, codes)
        block = Block(
            codes,
            self._keys(columns, batch.num_rows),
            {name: self._column(name, encode.flags, columns[name], np.bool_) for name in self._needs.flags},
            {
                name: self._column(name, encode.weights, columns[name], np.uint64)
                for name in self._needs.weights
            },
        )
        order = self._needs.order
        return block if order is None else ordered(block, order.name, len(order.codelist.leaves))

    def _relocate(self, batch: pa.RecordBatch, codes: Mapping[str, Codes]) -> None:
        """Exchange places after the records were judged: impossible ones are the data's, not the exchange's."""
        if self._relocation is None:
            return
        try:
            self._relocation.apply(batch, codes)
        except encode.BadColumn as bad:
            self._note(f"column {self._relocation.column}", bad.value, bad.remedy)

    def _codes(self, name: str, column: pa.Array, out: Codes) -> Codes:
        try:
            codes, unknown = encode.encode(column, self._leaves[name], out)
        except encode.BadColumn as bad:
            self._note(f"variables.{name}", bad.value, bad.remedy)
            self._unsound.add(name)
            return np.zeros_like(out)
        if unknown:
            self._unsound.add(name)
            known = self._unknown.setdefault(name, set())
            known.update(sorted(unknown - known)[: _MOST + 1 - len(known)])
        return codes

    def _keys(self, columns: Mapping[str, pa.Array], rows: int) -> NDArray[np.uint32]:
        needs = self._needs
        hashes = np.zeros(rows, dtype=np.uint64)
        if needs.id_column is not None:
            hashes = self._column(needs.id_column, self._hashed, columns[needs.id_column], np.uint64)
            self._ids.append(hashes)
        if needs.record_key is None:
            return record_keys(hashes)
        given = self._column(needs.record_key, encode.given_keys, columns[needs.record_key], np.uint32)
        self._largest = max(self._largest or 0, int(given.max()))
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
            self._unsound.add(name)
            return np.zeros(len(column), dtype=kind)

    def _judge(self, codes: Mapping[str, Codes]) -> None:
        rules = [rule for rule in self._needs.rules if codes.keys() >= set(rule.variables)]
        records = len(next(iter(codes.values()), ()))
        for start in range(0, records if rules else 0, _JUDGED):
            part = {name: held[start : start + _JUDGED] for name, held in codes.items()}
            for rule, broken in zip(rules, masks(rules, part), strict=True):
                if broken.any():
                    self._note(
                        "structural_zeros",
                        f"records with {rule.text}",
                        "correct the records or drop the rule",
                    )

    def _note(self, key: str, value: str, remedy: str) -> None:
        self._bad.setdefault((key, value), Problem(self._records.name, key, value, remedy))

    def _unknown_codes(self, name: str, values: set[str]) -> Problem:
        variable = next(variable for variable in self._needs.variables if variable.name == name)
        key = f"variables.{name}"
        if len(values) > _MOST or variable.column in self._needs.private:
            value = f"the column {variable.column!r} holds values that are no codes of the codelist"
            return Problem(
                self._records.name, key, value, "name the column of the codes, or complete the codelist"
            )
        shown = ", ".join(repr(value) for value in sorted(values)[:_SHOWN])
        more = ", ..." if len(values) > _SHOWN else ""
        value = f"{len(values)} codes that the codelist lacks as leaves: {shown}{more}"
        return Problem(self._records.name, key, value, "add them to the codelist or correct the records")

    def _duplicates(self) -> Iterator[Problem]:
        """Find ids that stand twice by their 64-bit hashes; n ids all differ there but with probability n^2/2^65."""
        if not self._ids or self._needs.id_column in self._unsound:
            return
        hashes = np.concatenate(self._ids)
        hashes.sort()
        if len(hashes) > 1 and (hashes[1:] == hashes[:-1]).any():
            key = f"population.{self._needs.unit.name}"
            yield Problem(
                self._records.name,
                key,
                f"ids in {self._needs.id_column!r} stand more than once",
                "give each record its own id",
            )


def _ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Prepare the next item while the caller works on this one."""
    end = object()
    with ThreadPoolExecutor(1) as one:
        following = one.submit(next, items, end)
        while (item := following.result()) is not end:
            following = one.submit(next, items, end)
            yield item  # type: ignore[misc]
