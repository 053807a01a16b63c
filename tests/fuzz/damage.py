"""Damage of the kinds that people, programs and disks do to files, and values that no option expects."""

import contextlib
import gzip
import json
import random
import re
import sqlite3
import tempfile
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import tomlkit

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
WORD = re.compile(rb"[A-Za-z_]{2,}")
NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1e400",
    b"1e-400",
    b"1e999999999",
    b"nan",
    b"inf",
    b"-0",
    b"0x10",
    b"1_000",
    b"99999999999999999999999999",
    b"",
    b"1/0",
    b"1e308",
    b"0.1",
    b"\xd9\xa3",
    b"9" * 400,
    b"9" * 5000,
)
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b'"',
    b"'",
    b",,,,",
    b";",
    b"[[",
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"=",
    b"# ",
    b"\\",
    b"\\ud800",
    b"\xc3",
    b"\xed\xa0\x80",
    b"_T",
    b"null",
    b"true",
    b"NaN",
    b"../../x",
    b"/dev/null",
    b"\t",
    b" " * 300,
)
VALUES = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "1e999999999",
    "1/3",
    "1/0",
    "-0",
    "x",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "é",
    "\udcff",
    "a\nb",
    "*",
    "+",
    ",",
    ",,1",
    "1,2",
    "a,b",
    "a=b",
    "=",
    "published=1",
    "1x5",
    "1:1",
    "[[",
    "{}",
    "GEO",
    "SEX",
    "SEX,LAU.H",
    "SEX=F",
    'SEX in ("F")',
    "..",
    ".",
    "/",
    "persons.csv",
    "release",
    "programme.toml",
    "secret",
    "none/such",
    "n" * 300,
    "%s%n",
    "[red]x[/red]",
    "env:NONE",
    "fd:9999",
    "fd:x",
    "sqlite://",
    "postgresql://127.0.0.1:1/x",
    "http://127.0.0.1:1/",
    "1e15",
    "1e-15",
)
STORED = (
    "epsilon=9/1",
    "epsilon=-5/1",
    "rho=1/1",
    "raise epsilon=900/1",
    "epsilon=1/0",
    "household",
    "2026-01-01",
)
WRONG: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    2**63,
    10**30,
    10**400,
    "",
    "x",
    "\x00",
    "é" * 50,
    [],
    {},
    [[]],
    [None],
    {"a": None},
)


def damaged(sound: bytes, dice: random.Random) -> bytes:
    """A file with one to four changes."""
    content = sound
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(content) + 1)
        to = min(len(content), at + dice.choice((1, 2, 8, 40)))
        kind = dice.randrange(8)
        if kind <= 1 and (places := list(NUMBER.finditer(content))):
            spot = dice.choice(places)
            content = content[: spot.start()] + dice.choice(NUMBERS) + content[spot.end() :]
        elif kind == 2 and (places := list(WORD.finditer(content))):
            spot, other = dice.choice(places), dice.choice(places)
            content = content[: spot.start()] + other.group() + content[spot.end() :]
        elif kind == 3:
            content = content[:at] + dice.choice(PIECES) + content[at:]
        elif kind == 4:
            content = content[:at] + content[to:]
        elif kind == 5:
            content = content[:to] + content[at:]
        elif kind == 6:
            content = content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]
        elif dice.random() < 0.3:
            content = content[:at]
    return content


def changed(tree: object, dice: random.Random) -> object:
    """A JSON document with one value replaced, left out or repeated: sound JSON that nobody expects."""
    if dice.random() < 0.15 or not isinstance(tree, dict | list) or not tree:
        return dice.choice(WRONG)
    if isinstance(tree, dict):
        key = dice.choice(list(tree))
        if dice.random() < 0.2:
            return {name: value for name, value in tree.items() if name != key}
        if dice.random() < 0.1:
            return {**tree, dice.choice(("", "x", key * 2)): tree[key]}
        return {**tree, key: changed(tree[key], dice)}
    at = dice.randrange(len(tree))
    if dice.random() < 0.2:
        return [*tree[:at], *tree[at + 1 :]]
    if dice.random() < 0.2:
        return [*tree, *tree[at : at + 1] * dice.choice((1, 1, 50))]
    return [*tree[:at], changed(tree[at], dice), *tree[at + 1 :]]


def damaged_json(sound: bytes, dice: random.Random) -> bytes:
    """A JSON file with other values, or with other bytes."""
    if dice.random() < 0.4:
        return damaged(sound, dice)
    return json.dumps(rearranged(json.loads(sound), dice)).encode()


def rearranged(tree: object, dice: random.Random) -> object:
    """A document with one or two changes of its values."""
    for _ in range(dice.choice((1, 1, 2))):
        tree = moved(tree, dice) if dice.random() < 0.3 else changed(tree, dice)
    return tree


def moved(tree: object, dice: random.Random) -> object:
    """A document with one of its values, or a part of it, in the place of another one."""
    tree = deepcopy(tree)
    if places := list(_containers(tree)):
        (source, key), (target, other) = dice.choice(places), dice.choice(places)
        copied = deepcopy(source[key])
        target[other] = {"a": copied} if dice.random() < 0.1 else copied
    return tree


def _containers(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a document, as what contains it and its key there."""
    if isinstance(tree, dict | list):
        for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
            yield tree, key
            yield from _containers(value)


def damaged_toml(sound: bytes, dice: random.Random) -> bytes:
    """A programme with other values, or with other bytes."""
    if dice.random() < 0.4:
        return damaged(sound, dice)
    try:
        tree = rearranged(tomllib.loads(sound.decode()), dice)
        return tomlkit.dumps(without_nothing(tree)).encode()
    except (TypeError, ValueError):  # no document of TOML: damaged before, or a value where the whole was
        return damaged(sound, dice)


def without_nothing(tree: object) -> dict[str, object]:
    """TOML has no null, and is a table."""
    if not isinstance(tree, dict):
        raise TypeError

    def cleared(value: object) -> object:
        if isinstance(value, dict):
            return {name: cleared(one) for name, one in value.items() if one is not None}
        return [cleared(one) for one in value if one is not None] if isinstance(value, list) else value

    return {name: cleared(value) for name, value in tree.items() if value is not None}


def damaged_gzip(sound: bytes, dice: random.Random) -> bytes:
    """A compressed file, damaged inside or outside."""
    if dice.random() < 0.5:
        return damaged(sound, dice)
    return gzip.compress(damaged(gzip.decompress(sound), dice), mtime=0)


def damaged_xml(sound: bytes, dice: random.Random) -> bytes:
    """An XML file with elements and attributes changed, left out, repeated or moved, or with other bytes."""
    if dice.random() < 0.3:
        return damaged(sound, dice)
    if dice.random() < 0.1:  # entities that are the file of another one, or grow
        entities = dice.choice(
            (
                b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:secret">]>',
                b'<!DOCTYPE a [<!ENTITY a0 "x">'
                + b"".join(b'<!ENTITY a%d "%s">' % (k + 1, b"&a%d;" % k * 10) for k in range(9))
                + b"]>",
            )
        )
        head, mark, rest = sound.partition(b"?>")
        place = rest.find(b">", rest.find(b"Name"))
        inner = b"&b;" if b"SYSTEM" in entities else b"&a9;"
        return head + mark + entities + rest[: place + 1] + inner + rest[place + 1 :]
    root = ET.fromstring(sound)
    for _ in range(dice.choice((1, 1, 2, 3))):
        _change_element(root, dice)
    content: bytes = ET.tostring(root, encoding=dice.choice(("utf-8", "utf-8", "utf-16", "latin-1")))
    return content


def _change_element(root: ET.Element, dice: random.Random) -> None:
    parents = [one for one in root.iter() if len(one)]
    if not parents:
        return
    parent = dice.choice(parents)
    child = parent[dice.randrange(len(parent))]
    match dice.randrange(7):
        case 0:
            parent.remove(child)
        case 1:
            parent.extend([child] * dice.choice((1, 1, 30)))
        case 2:
            other = dice.choice(parents)
            if child not in other.iter() and other not in child.iter():
                other.append(child)
        case 3 if child.attrib:
            name = dice.choice(list(child.attrib))
            child.attrib[name] = _xml_text(dice)
        case 4 if child.attrib:
            del child.attrib[dice.choice(list(child.attrib))]
        case 5:
            child.tag = dice.choice((dice.choice(parents).tag, "x", "{urn:x}y"))
        case _:
            child.text = _xml_text(dice)


def _xml_text(dice: random.Random) -> str:
    value = dice.choice((*VALUES, "A1", "A", "CL_SEX")).encode(errors="replace").decode()
    return value.replace("\x00", "")


def damaged_rows(sound: bytes, dice: random.Random) -> bytes:
    """A database with rows changed or deleted by its owner, or with other bytes."""
    if dice.random() < 0.3:
        return damaged(sound, dice)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(sound)
        with contextlib.closing(sqlite3.connect(path)) as database:
            for _ in range(dice.choice((1, 1, 2))):
                with contextlib.suppress(sqlite3.Error, OverflowError, IndexError), database:
                    _change_row(database, dice)
        return path.read_bytes()


def _change_table(database: sqlite3.Connection, table: str, dice: random.Random) -> None:
    """Another schema than the program's: columns, types and views of others, or the marks of another version."""
    columns = [column[1] for column in database.execute(f'PRAGMA table_info("{table}")')]
    column = dice.choice(columns)
    match dice.randrange(6):
        case 0:
            database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x{column}"')
        case 1:
            database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        case 2:
            database.execute(f'ALTER TABLE "{table}" RENAME TO "x"')
            database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "x"')
        case 3:
            database.execute(f'ALTER TABLE "{table}" RENAME TO "x"')
            chosen = ", ".join(f'CAST("{one}" AS BLOB) AS "{one}"' for one in columns)
            database.execute(f'CREATE TABLE "{table}" AS SELECT {chosen} FROM "x"')
        case 4:
            mark = dice.choice(("user_version", "application_id", "schema_version"))
            database.execute(f"PRAGMA {mark} = {dice.choice((0, 1, 99, 2**31 - 1, -1))}")
        case _:
            database.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}"')


def _change_row(database: sqlite3.Connection, dice: random.Random) -> None:
    named = database.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    for kind, name in named:
        if kind == "trigger":
            database.execute(f'DROP TRIGGER "{name}"')
    table = dice.choice([name for kind, name in named if kind == "table"])
    if dice.random() < 0.15:
        _change_table(database, table, dice)
        return
    if dice.random() < 0.05:
        database.execute(f'DROP TABLE "{table}"')
        return
    columns = [column[1] for column in database.execute(f'PRAGMA table_info("{table}")')]
    row = dice.choice(database.execute(f'SELECT rowid FROM "{table}"').fetchall())[0]
    if dice.random() < 0.15:
        database.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
        return
    value = dice.choice((*VALUES, *STORED)).encode(errors="surrogateescape").decode(errors="replace")
    stored = dice.choice((value, value, value, None, -1, 10**12, 1.5, b"\xff\xfe"))
    column = dice.choice(columns)
    database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (stored, row))
