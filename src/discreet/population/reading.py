"""Streaming a unit's records as encoded blocks and judging them on the way; nothing is counted here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from discreet.population.needs import Needs, missing_columns

_SHOWN = 5  # unknown codes named in a message
_Item = TypeVar("_Item")
_Scalar = TypeVar("_Scalar", bound=np.generic)


class UnitReader:
    """Reads one unit's table once: ``blocks`` streams it, ``problems`` tells afterwards what was wrong."""

    def __init__(self, needs: Needs, secret: bytes, threads: int) -> None:
        self._needs, self._secret, self._threads = needs, secret, threads
        self._records = open_source(needs.unit.source, f"population.{needs.unit.name}")
        missing = list(missing_columns(needs, self._records))
        if missing:
            raise Mistakes(missing)
        self._ids: list[NDArray[np.uint64]] = []
        self._largest: int | None = None
        self._unknown: dict[str, set[str]] = {}
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
        batches = self._records.batches(self._needs.plain_columns(), self._needs.coded_columns())
        with ThreadPoolExecutor(self._threads) as pool:
            yield from _ahead(self._block(batch, pool) for batch in batches if batch.num_rows)

    def problems(self) -> list[Problem]:
        """Everything that was wrong with the records read so far."""
        unknown = [self._unknown_codes(name, values) for name, values in sorted(self._unknown.items())]
        return [*self._bad.values(), *unknown, *self._duplicates()]

    def _block(self, batch: pa.RecordBatch, pool: Executor) -> Block:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        codes = dict(
            pool.map(lambda v: (v.name, self._codes(v.name, columns[v.column])), self._needs.variables)
        )
        self._judge(codes, batch.num_rows)
        block = Block(
            codes,
            self._keys(columns[self._needs.key_column]),
            {name: self._column(name, encode.flags, columns[name], np.bool_) for name in self._needs.flags},
            {
                name: self._column(name, encode.weights, columns[name], np.uint64)
                for name in self._needs.weights
            },
        )
        order = self._needs.order
        return block if order is None else ordered(block, order.name, len(order.codelist.leaves))

    def _codes(self, name: str, column: pa.Array) -> Codes:
        leaves = self._leaves[name]
        try:
            codes, unknown = encode.encode(column, leaves)
        except encode.BadColumn as bad:
            self._note(f"variables.{name}", bad.value, bad.remedy)
            return np.zeros(len(column), dtype=encode.code_type(len(leaves)))
        if unknown:
            self._unknown.setdefault(name, set()).update(unknown)
        return codes

    def _keys(self, column: pa.Array) -> NDArray[np.uint32]:
        if self._needs.record_key is not None:
            given = self._column(self._needs.record_key, encode.given_keys, column, np.uint32)
            self._largest = max(self._largest or 0, int(given.max()))
            return given
        name = self._needs.unit.name

        def hashed(ids: pa.Array) -> NDArray[np.uint64]:
            return encode.hashed_ids(ids, self._secret, f"record-key/{name}")

        hashes = self._column(self._needs.key_column, hashed, column, np.uint64)
        self._ids.append(hashes)
        return record_keys(hashes)

    def _column(
        self, name: str, read: Callable[[pa.Array], NDArray[_Scalar]], column: pa.Array, kind: type[_Scalar]
    ) -> NDArray[_Scalar]:
        try:
            return read(column)
        except encode.BadColumn as bad:
            self._note(f"column {name}", bad.value, bad.remedy)
            return np.zeros(len(column), dtype=kind)

    def _judge(self, codes: dict[str, Codes], rows: int) -> None:
        for rule in self._needs.rules:
            if rows and rule.mask(codes).any():
                self._note(
                    "structural_zeros", f"records with {rule.text}", "correct the records or drop the rule"
                )

    def _note(self, key: str, value: str, remedy: str) -> None:
        self._bad.setdefault((key, value), Problem(self._records.name, key, value, remedy))

    def _unknown_codes(self, name: str, values: set[str]) -> Problem:
        shown = ", ".join(repr(value) for value in sorted(values)[:_SHOWN])
        more = ", ..." if len(values) > _SHOWN else ""
        return Problem(
            self._records.name,
            f"variables.{name}",
            f"{len(values)} codes that the codelist lacks as leaves: {shown}{more}",
            "add them to the codelist or correct the records",
        )

    def _duplicates(self) -> Iterator[Problem]:
        """Find ids that stand twice by their 64-bit hashes; n ids all differ there but with probability n^2/2^65."""
        if not self._ids or self._bad:
            return
        hashes = np.concatenate(self._ids)
        hashes.sort()
        if len(hashes) > 1 and (hashes[1:] == hashes[:-1]).any():
            key = f"population.{self._needs.unit.name}"
            yield Problem(
                self._records.name,
                key,
                f"ids in {self._needs.key_column!r} stand more than once",
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
