"""Parquet files damaged in depth, read by readers in this process and by commands.

Columns of codes of small files are mostly read by Arrow; here most inputs have them read from their pages, as those of
large files are. What is read is what Arrow reads from the whole file.
"""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.io import files
from discreet.population.look import look
from discreet.programme.sources import FileFormat, FileSource
from tests.fuzz.parquet import damaged_in_depth
from tests.fuzz.readers import Read, checked, forged

PERSONS, HOUSEHOLDS = "town/persons.parquet", "town/households.parquet"
PUBLISHED, COUNTS = "release/parquet/1.parquet", "ready.parquet"
ESTIMATES, MEASUREMENTS = "tree/estimates/1.parquet", "tree/measurements/H/detailed.parquet"


class OtherValues(Exception):
    """A reader and Arrow read other values from one file."""


def columns(path: Path) -> object:
    """All columns of a file, codes as dictionaries; they are what Arrow reads from the file as a whole."""
    records = files.open_files(_source(path), "persons")
    texts = [field.name for field in records.schema if _is_text(field.type)]
    plain = [name for name in records.schema.names if name not in texts]
    names = [*plain, *texts]
    found: dict[str, list[object]] = {name: [] for name in names}
    for batch in records.batches(plain, texts):
        for name in names:
            found[name] += batch.column(name).to_pylist()
    try:
        whole = pq.read_table(path, columns=names)
        whole.validate(full=True)
        wanted = whole.to_pydict()
    except (*files.UNREADABLE, MemoryError, ValueError, KeyError):  # Arrow reads less than the program does
        return None
    for name in names:
        if repr(wanted[name]) != repr(found[name]):
            raise OtherValues(f"column {name}")
    return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def described(path: Path) -> object:
    """What ``init`` finds out about a file."""
    return look(_source(path), "persons", path.name)


def _source(path: Path) -> FileSource:
    return FileSource(path.name, str(path.resolve()), FileFormat.PARQUET)


READS: tuple[tuple[str, int, Read | tuple[str, ...]], ...] = (  # a file, how often, and a reader or commands
    (PERSONS, 20, columns),
    (PERSONS, 15, checked("programme.toml")),
    (HOUSEHOLDS, 5, checked("programme.toml")),
    (PERSONS, 6, described),
    (HOUSEHOLDS, 2, described),
    (COUNTS, 6, checked("stored.toml")),
    (COUNTS, 2, columns),
    (PUBLISHED, 10, forged),
    (ESTIMATES, 5, forged),
    (MEASUREMENTS, 5, forged),
    (
        PERSONS,
        6,
        (
            "check town/programme.toml",
            "init town/persons.parquet --out made",
            "init town/persons.parquet town/households.parquet --out made",
            "protect town/programme.toml --secret town/secret.key --out made",
        ),
    ),
    (COUNTS, 1, ("check stored.toml", "protect stored.toml --secret secret --out made")),
    (
        PUBLISHED,
        4,
        (
            "verify release",
            "serve release --store made --port 0",
            "infer interval --release release --cube 1 --where SEX=F",
            "infer total --release release --cube 1",
            "attack release --without averaging --without least_squares --seconds 1",
            "utility release --programme programme.toml --secret secret",
            "protect programme.toml --secret secret --out made --earlier release",
            "risk differencing release/parquet/1.parquet --a LAU --b SEX --count value --V 1 --D 2",
        ),
    ),
    (
        MEASUREMENTS,
        2,
        (
            "verify tree",
            "serve tree --store made --port 0",
            "infer estimate tree --cube 1 --where SEX=F",
            "infer difference --release tree --cube 1 --where SEX=F --other-where SEX=M",
        ),
    ),
    (ESTIMATES, 2, ("verify tree", "infer interval --release tree --cube 1 --where SEX=F")),
)


@contextlib.contextmanager
def small_row_groups(dice: random.Random) -> Iterator[str]:
    """Read the codes of small row groups from their pages, and few records at a time; which, as text."""
    with contextlib.ExitStack() as stack:
        is_small, batch = dice.random() < 0.7, dice.choice((files.BATCH, files.BATCH, 7, 50))
        if is_small:
            stack.enter_context(patch.object(files, "FEWEST", 1))
        stack.enter_context(patch.object(files, "BATCH", batch))
        yield f"from pages: {is_small}, batches of {batch}"


def chosen_in_depth(
    dice: random.Random, sound: dict[str, bytes]
) -> tuple[str, bytes, str, Read | tuple[str, ...]]:
    """A file, its damaged content, what is damaged, and how it is read."""
    name, _, read = dice.choices(READS, [often for _, often, _ in READS])[0]
    content, note = damaged_in_depth(sound[name], dice)
    return name, content, note, read
