"""What an accepted or refused input must be, by readers that have nothing in common with those that are tried.

A damaged file that is accepted has still a meaning: records that have codes, ids and as many fields as the header,
p-tables whose rows are laws, releases and ledgers whose content is the sound one. A refusal is a few short lines,
without an id of a record or a secret.
"""

import codecs
import csv
import gzip
import io
import json
import math
import re
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from discreet.io.ptable_files import PTableFile
from discreet.release.signature import SignatureState, Signed

MOST_LINES = 45  # mistakes of two files, and a warning for each cube
LONGEST = 2_500  # characters of a line
SECRETS = ("ab" * 20,)  # the town's; that of the other programmes is read from its file
ID = re.compile(r"(?<![\w.])[79]0000\d{3,4}(?![\w.])")
FEW_CODES = re.compile(
    r": (1?\d|20) codes that are not leaves of the codelist: "
)  # an id among the codes of a few records
TEMPORARY = re.compile(r"\.made[\w.-]|/tmp/discreet|\.partial")
FAILING = (
    "verify",
    "ledger",
    "protect",
    "audit",
    "attack",
    "serve",
    "swap",
)  # commands that judge (exit code 1)


def wrong_ending(code: object, said: str, words: list[str], secret: str) -> str:
    """What is wrong with an exit code and the lines that a command printed; empty where nothing is."""
    if wrong := shown(said, secret):
        return wrong
    lines = said.strip().splitlines()
    if code == 1 and words[0] not in FAILING:
        return "exit code 1 of a command that judges nothing"
    if code != 2:
        return ""
    if not lines:
        return "2 without a message"
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST:
        return f"{len(lines)} lines, the longest of {max(map(len, lines))} characters"
    return "a temporary path is shown" if TEMPORARY.search(said) else ""


def shown(said: str, secret: str) -> str:
    """What a message or an answer must never show."""
    if "Traceback" in said:
        return "a traceback is shown"
    if secret in said or any(one in said for one in SECRETS):
        return "a secret is shown"
    if any(ID.search(line) and not FEW_CODES.search(line) for line in said.splitlines()):
        return "an id of a record is shown"
    return ""


def drafted(path: Path) -> str:
    """What a draft of a programme must not contain; a codelist has what a column of its name contains."""
    is_shown = ID.search(path.read_text(encoding="utf-8"))
    return "an id of a record is in the draft" if is_shown else ""


def meaningless(name: str, content: bytes, sound: bytes, found: object) -> str:
    """Why a damaged file that was accepted should have been refused; empty where it has a meaning."""
    try:
        return JUDGES[name](content, sound, found) if name in JUDGES else ""
    except RecursionError:
        return "nested too deeply"


def _records(content: bytes, _sound: bytes, _found: object) -> str:
    rows = _rows(content)
    names = [name.strip() for name in rows[0]] if rows else []
    wanted = ("pid", "sex", "lau")
    if any(names.count(name) != 1 for name in wanted):
        return f"columns {names}"
    pid, sex, lau = (names.index(name) for name in wanted)
    ids = [row[pid] for row in rows[1:] if len(row) == len(names)]
    if len(ids) != len(rows) - 1:
        return "records of other lengths than the header"
    if len(set(ids)) != len(ids) or not all(one.strip() for one in ids):
        return "ids that are missing or not different"
    if {row[sex].strip() for row in rows[1:]} - {"F", "M"} or {row[lau].strip() for row in rows[1:]} - LEAVES:
        return "codes that no codelist has"
    return "" if ids else "no records"


LEAVES = {"A1", "A2", "B1"}


def _rows(content: bytes) -> list[list[str]]:
    """The rows of a CSV file, whatever its encoding and separator."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    encoding = next((one for mark, one in marks if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    head = re.split(r"[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0]
    separator = max(",;\t|", key=head.count)
    csv.field_size_limit(10**8)
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


def _packed(content: bytes, sound: bytes, found: object) -> str:
    return _records(gzip.decompress(content), sound, found)


def _ptable(_content: bytes, _sound: bytes, found: object) -> str:
    """Rows that are laws, and no count below zero."""
    assert isinstance(found, PTableFile)
    for count, law in enumerate(found.laws):
        if not all(0 <= p <= 1 and math.isfinite(p) for p in law.values()):
            return "probabilities outside 0..1"
        if abs(sum(law.values()) - 1) > 1e-6 or min(law, default=0) + count < 0:
            return f"count {count}: no law, or a negative count"
    return ""


def _same_bytes(content: bytes, sound: bytes, _found: object) -> str:
    return "" if content == sound else "other bytes under the checksum of the sound file"


def _same_document(content: bytes, sound: bytes, _found: object) -> str:
    return "" if json.loads(content) == json.loads(sound) else "another document under its seal"


def _same_rows(content: bytes, sound: bytes, _found: object) -> str:
    """An empty ledger is one, too: that it had accounts is known only to who has their heads."""
    found = _ledger(content)
    return "" if found == _ledger(sound) or not any(found.values()) else "other entries than were charged"


def _ledger(content: bytes) -> dict[str, list[tuple[object, ...]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "l.sqlite")
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as database:
            tables = database.execute(
                "SELECT name FROM sqlite_master WHERE name LIKE 'ledger%' AND type = 'table'"
            )
            return {
                name: sorted(database.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
                for (name,) in tables.fetchall()
            }


def _counts(content: bytes, _sound: bytes, _found: object) -> str:
    """A ready-made table: each cell once, whole counts of at least 0 with a key."""
    rows = _rows(content)
    names = [name.strip() for name in rows[0]]
    if any(names.count(name) != 1 for name in ("SEX", "LAU", "count", "key")):
        return f"columns {names}"
    if any(len(row) != len(names) for row in rows):
        return "rows of other lengths than the header"
    found = [dict(zip(names, row, strict=True)) for row in rows[1:]]
    cells = [(row["SEX"].strip(), row["LAU"].strip()) for row in found]
    if (
        len(set(cells)) != len(cells)
        or {sex for sex, _ in cells} - {"F", "M"}
        or {a for _, a in cells} - LEAVES
    ):
        return "cells that occur twice, or that no codelist has"
    numbers = [(_number(row["count"]), _number(row["key"])) for row in found]
    if any(not (count >= 0 and count == int(count) and 0 <= key < 2**32) for count, key in numbers):
        return "counts or keys that are none"
    return ""


def _number(text: str) -> float:
    """A number in decimal digits; nan where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _signature(content: bytes, sound: bytes, found: object) -> str:
    """A valid signature states the sound one, whatever else the file has."""
    assert isinstance(found, SignatureState)
    if found.state is not Signed.VALID:
        return ""
    given, wanted = json.loads(content), json.loads(sound)
    is_same = all(
        "".join(str(given.get(name)).split()).lower() == "".join(text.split()).lower()
        for name, text in wanted.items()
    )
    return "" if is_same else "another signature is valid"


JUDGES: dict[str, Callable[[bytes, bytes, object], str]] = {
    "persons.csv": _records,
    "persons.csv.gz": _packed,
    "ready.csv": _counts,
    "r.csv": _ptable,
    "keyed.csv": _ptable,
    "ons.csv": _ptable,
    "superstar.csv": _ptable,
    "ledger.sqlite": _same_rows,
    "release/manifest.json": _same_document,
    "release/manifest.sig": _signature,
    "release/parquet/1.parquet": _same_bytes,
    "release/sdmx/1.csv": _same_bytes,
    "release/json-stat/1.json": _same_bytes,
}
