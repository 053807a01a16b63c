"""The codes that columns of records contain: their distinct values, categories, gaps, and how columns nest.

Codelists that an office has not written follow from them; memory grows with the distinct values, not with the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.files import Records
from discreet.lazy import lazily, njit
from discreet.population.encode import bare, is_text
from discreet.programme.codelist import TOTAL, Code
from discreet.programme.proposal import natural

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    pc = lazily("pyarrow.compute")  # takes as long to import as Arrow itself

MOST_VALUES = 300_000  # of a column of text: places of a country
MOST_NUMBERS = 1_000  # of a column of numbers: more are amounts, which are banded
NOT_STATED = "Not stated"


@dataclass(frozen=True)
class ColumnValues:
    """The distinct values of a column as codes, in the order of a codelist."""

    codes: tuple[str, ...]
    has_gaps: bool  # whether some records have no value


@dataclass
class _Found:
    """What has been seen of a column so far."""

    values: dict[str, None] = field(default_factory=dict)
    ordered: tuple[str, ...] | None = None  # categories with an order of their own
    numbers: bool = False
    has_gaps: bool = False


def column_values(records: Records, columns: Sequence[str]) -> dict[str, ColumnValues]:
    """The values of some columns, found in one pass; a column that cannot have codes is refused."""
    found = {column: _Found() for column in columns}
    for batch in records.batches([], list(columns)):
        for column in columns:
            _add(found[column], batch.column(batch.schema.get_field_index(column)), records.name, column)
    return {column: _sorted(one) for column, one in found.items()}


def _add(found: _Found, column: pa.Array, name: str, key: str) -> None:
    column = bare(column)
    if pa.types.is_dictionary(column.type):
        categories = bare(column.dictionary)
        texts = tuple(_texts(categories, name, key))
        found.has_gaps |= column.indices.null_count > 0 or _uses_blank(column, texts)
        if column.type.ordered:
            found.ordered = tuple(dict.fromkeys((*(found.ordered or ()), *filter(None, texts))))
        column = categories
    else:
        found.has_gaps |= column.null_count > 0
        column = pc.unique(column).drop_null()
        texts = tuple(_texts(column, name, key))
        found.has_gaps |= "" in texts
    found.numbers |= pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    found.values.update(dict.fromkeys(text for text in texts if text))
    if len(found.values) > (MOST_NUMBERS if found.numbers else MOST_VALUES):
        value = f"more than {MOST_NUMBERS if found.numbers else MOST_VALUES:,} distinct values"
        remedy = "band numbers with bands(..), and leave out columns that identify records"
        raise mistake(name, f"column {key}", value, remedy)


def _uses_blank(column: pa.DictionaryArray, texts: Sequence[str]) -> bool:
    blank = [place for place, text in enumerate(texts) if not text]
    return bool(blank) and bool(
        pc.any(pc.is_in(column.indices, pa.array(blank, column.indices.type))).as_py()
    )


def _texts(values: pa.Array, name: str, key: str) -> Iterator[str]:
    """The values as codes are written; a gap is empty."""
    kind = values.type
    if pa.types.is_boolean(kind):
        yield from ("" if one is None else str(one).lower() for one in values.to_pylist())
        return
    if pa.types.is_floating(kind):
        for one in values.to_pylist():
            if one is None or one != one:  # noqa: PLR0124, not a number
                yield ""
                continue
            if not float(one).is_integer():
                remedy = f"band it: bands({key!r}, 0, 10, 20)"
                raise mistake(name, f"column {key}", "decimal numbers, which are no codes", remedy)
            yield str(int(one))
        return
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        remedy = f"give text, whole numbers or categories, or ages({key!r}, on=..) for dates of birth"
        raise mistake(name, f"column {key}", f"values of type {kind}, which are no codes", remedy)
    yield from ("" if one is None else str(one).strip() for one in values.to_pylist())


def _sorted(found: _Found) -> ColumnValues:
    if found.ordered is not None:
        return ColumnValues(tuple(dict.fromkeys((*found.ordered, *found.values))), found.has_gaps)
    codes = sorted(found.values, key=natural)  # the order of a drafted codelist
    return ColumnValues(tuple(codes), found.has_gaps)


def nested_codes(tables: Iterable[Records], columns: Sequence[str]) -> tuple[list[Code], bool]:
    """The tree of columns that nest, coarse to fine, and whether some records have no value.

    A code of a finer column that occurs with two codes of the coarser one is refused, and so is a code that is in two
    columns: a codelist has each code once.
    """
    parents: list[dict[str, str]] = [{} for _ in columns]  # level -> code -> code above
    has_gaps = False
    for records in tables:
        for batch in records.batches([], list(columns)):
            has_gaps |= _add_levels(parents, batch, columns, records.name)
    _require_distinct(parents, columns)
    return list(_tree(parents)), has_gaps


def _add_levels(
    parents: Sequence[dict[str, str]], batch: pa.RecordBatch, columns: Sequence[str], name: str
) -> bool:
    coded = [_coded(batch.column(batch.schema.get_field_index(column)), name, column) for column in columns]
    texts = coded[0].texts
    parents[0].update(dict.fromkeys((texts[place] for place in coded[0].used()), ""))
    for level in range(1, len(columns)):
        fine, coarse = coded[level], coded[level - 1]
        for place, above in fine.below(coarse):
            known = parents[level].setdefault(fine.texts[place], coarse.texts[above])
            if known != coarse.texts[above]:
                value = f"{columns[level]} {fine.texts[place]!r} is in {columns[level - 1]} {known!r} and in another"
                remedy = (
                    f"name the columns coarse to fine, or correct the records: {columns[level - 1]!r} must follow "
                    f"from {columns[level]!r}"
                )
                raise mistake(name, f"column {columns[level]}", value, remedy)
    return any(one.has_gaps for one in coded)


@dataclass(frozen=True, eq=False, repr=False)
class _Coded:
    """The place of each record's value among the texts; -1 where it has none."""

    places: NDArray[np.signedinteger[Any]]
    texts: Sequence[str]
    has_gaps: bool

    def used(self) -> list[int]:
        """The places that occur."""
        seen = np.zeros(len(self.texts) + 1, dtype=bool)
        seen[self.places] = True  # a gap, -1, is the last
        found: list[int] = np.flatnonzero(seen[:-1]).tolist()
        return found

    def below(self, coarse: _Coded) -> Iterator[tuple[int, int]]:
        """The pairs of a place and the one above it that occur: one of each, and the first second one."""
        above = np.full(len(self.texts), -1, dtype=np.int64)
        second = _nest(self.places, coarse.places, above)
        yield from ((place, int(above[place])) for place in np.flatnonzero(above >= 0).tolist())
        if second >= 0:
            yield int(self.places[second]), int(coarse.places[second])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nest(fine: Any, coarse: Any, above: Any) -> Any:
    """Note the coarse place above each fine one; the first record with another one, or -1."""
    for r in range(fine.size):
        if fine[r] >= 0 and coarse[r] >= 0:
            if above[fine[r]] < 0:
                above[fine[r]] = coarse[r]
            elif above[fine[r]] != coarse[r]:
                return r
    return -1


def _coded(column: pa.Array, name: str, key: str) -> _Coded:
    column = bare(column)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = list(_texts(bare(coded.dictionary), name, key))
    has_gaps = coded.indices.null_count > 0
    indices = coded.indices.cast(pa.int64()).fill_null(-1) if has_gaps else coded.indices
    places = indices.to_numpy(zero_copy_only=False)
    blank = [place for place, text in enumerate(texts) if not text]
    if blank and bool(np.isin(places, blank).any()):
        places, has_gaps = np.where(np.isin(places, blank), -1, places.astype(np.int64)), True
    return _Coded(places, texts, has_gaps)


def _require_distinct(parents: Sequence[dict[str, str]], columns: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for column, codes in zip(columns, parents, strict=True):
        for code in codes:
            other = first.setdefault(code, column)
            if other != column:
                remedy = f"write the codes of the levels differently, such as {column}{code}"
                raise mistake("", f"column {column}", f"code {code!r} is also in {other}", remedy)


def _tree(parents: Sequence[dict[str, str]]) -> Iterator[Code]:
    for codes in parents:
        for code in sorted(codes, key=natural):
            yield Code(code, codes[code], code)


def flat_codes(values: Iterable[ColumnValues], missing: str | None) -> list[Code]:
    """The lines of a codelist of the values of one column in several tables; missing values have the last."""
    codes = [Code(code, "", code) for code in dict.fromkeys(code for one in values for code in one.codes)]
    return with_missing(codes, missing)


def with_missing(codes: list[Code], missing: str | None) -> list[Code]:
    """The lines with one for records without a value, where there is no such line yet."""
    if missing is None or missing == TOTAL or missing in {code.code for code in codes}:
        return codes
    return [*codes, Code(missing, "", NOT_STATED)]
