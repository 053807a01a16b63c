"""The names of a table's columns that a message may list, and a draft may contain.

Where the first line of a file is missing or damaged, a record is its header, and its values are taken for the names of
columns. All that lists or writes names of columns of the data asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import pyarrow as pa

from discreet.errors import Mistakes, mistake
from discreet.io.csv_form import first_rows
from discreet.io.files import Records
from discreet.io.header import LONGEST, WRITE_NAMES, could_be_name, headerless, is_record, may_be_shown
from discreet.lazy import lazily

pc = lazily("pyarrow.compute")

LISTED = 12  # names in a message
COMPARED = 200  # columns, and as many of their values, that are compared
_NOT_NAMES = "the names of its columns look like the values of a record"


def shown_names(records: Records, key: str) -> list[str]:
    """The names of a table that a message may list; a table whose names are values of a record is refused."""
    require_header(records, key)
    return [name for name in records.schema.names if may_be_shown(name)]


def similar(column: str, names: Sequence[str], tables: str) -> str:
    """The remedy for an unknown column: the most similar of the names that may be shown, or what there is."""
    near = get_close_matches(column, names, 1)
    if not names:
        return WRITE_NAMES
    return f"did you mean {near[0]!r}?" if near else f"{tables} {', '.join(names[:LISTED])}"


def require_header(records: Records, key: str) -> None:
    """Refuse a table whose names are values of a record; the refusal shows none."""
    if not is_record(records.schema.names[:COMPARED], _sample(records)):
        return
    if records.forms:
        raise headerless(records.name, key)
    raise mistake(records.name, key, _NOT_NAMES, "name the columns")


def require_names(records: Records, key: str) -> None:
    """Refuse a table with a column whose name is none: all of them are to be written."""
    require_header(records, key)
    for number, name in enumerate(records.schema.names, 1):
        if not could_be_name(name):
            value = f"the name of column {number} looks like a value"
            remedy = f"rename it: a name has letters, and at most {LONGEST} characters"
            raise mistake(records.name, key, value, remedy)


def _sample(records: Records) -> Sequence[Sequence[str | None]]:
    """Some records as text: of the first CSV file, or of the first batch of any other table; none of a damaged one."""
    if records.forms:
        return first_rows(records.paths[0], records.forms[0])[1 : COMPARED + 1]
    names = records.schema.names[:COMPARED]
    try:
        batch = next(iter(records.small_batches(names, ())), None)
    except Mistakes:
        return []
    if batch is None:
        return []
    columns = [_texts(batch.column(name).slice(0, COMPARED)) for name in names]
    return list(zip(*columns, strict=True))


def _texts(values: pa.Array) -> list[str | None]:
    try:
        return list(pc.cast(values, pa.string()).to_pylist())
    except (pa.ArrowException, UnicodeDecodeError):  # lists, or a damaged page
        return [None] * len(values)
