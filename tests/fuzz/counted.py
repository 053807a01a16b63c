"""Random sound programmes over random records in every kind of source; what is published is counted again.

The p-table changes no count, so that every cell has one right value, found here by going through the records in plain
Python.
"""

import csv
import gzip
import io
import itertools
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import tomlkit

from tests.fuzz.inputs import made
from tests.fuzz.tables import ways

Record = dict[str, Any]
Write = Callable[[Path, list[Record], random.Random], object]  # -> what the programme declares

TOTAL = "_T"
PARENTS = {
    "GEO": {"N": "", "N1": "N", "N2": "N", "S": "", "S1": "S", "S2": "S", "S3": "S"},
    "SEX": {"1": "", "2": "", "9": ""},
    "JOB": {
        "a": "",
        "a0": "a",
        "a00": "a0",
        "a01": "a0",
        "a1": "a",
        "a10": "a1",
        "b": "",
        "b0": "b",
        "b00": "b0",
    },
    "AGE": {"0-14": "", "15-29": "", "30-64": "", "65+": ""},
    "TENURE": {"own": "", "rent": ""},
}
LEAVES = {name: [code for code in codes if code not in codes.values()] for name, codes in PARENTS.items()}
COLUMNS = {"GEO": "town", "SEX": "sex", "JOB": "job", "AGE": "age", "TENURE": "tenure"}
BREAKDOWNS = {  # how many codes above a record's own are none of the breakdown's
    "GEO.L": 1,
    "GEO.H": 0,
    "SEX": 0,
    "JOB.L": 2,
    "JOB.M": 1,
    "JOB.H": 0,
    "AGE": 0,
    "TENURE": 0,
}
BANDS = (0, 15, 30, 65)
OF = {"persons": ("GEO", "SEX", "JOB", "AGE"), "households": ("GEO", "TENURE")}
PTABLE = "i,j,p,p_int_ub\n0,0,1,1\n1,1,1,1\n"
FORMATS = ("parquet", "csv", "json-stat")


@dataclass(frozen=True)
class Cube:
    """What a cube counts."""

    id: str
    unit: str
    axes: tuple[str, ...]
    base: str
    passes: Callable[[Record], bool]
    count: str
    weight: str

    def declared(self) -> dict[str, object]:
        """As the programme has it."""
        given = {"base": self.base, "count": self.count, "weight": self.weight}
        always: dict[str, object] = {"id": self.id, "unit": self.unit, "axes": list(self.axes)}
        return always | {key: value for key, value in given.items() if value}

    def counted(self, records: list[Record]) -> Counter[tuple[str, ...]]:
        """Every cell with anybody in it, by going through the records."""
        cells: Counter[tuple[str, ...]] = Counter()
        for record in records:
            if self.passes(record) and (not self.count or record[self.count]):
                for cell in itertools.product(*(_codes(axis, record) for axis in self.axes)):
                    cells[cell] += record[self.weight] if self.weight else 1
        return cells


def recounted(folder: Path, dice: random.Random, text: list[str]) -> str:
    """Publish a random programme, and count it again; what is wrong, empty where nothing is."""
    folder.mkdir()
    records = _records(dice)
    cubes = [_cube(f"c{number}", dice) for number in range(dice.choice((1, 2, 4)))]
    tree = _programme(folder, records, cubes, dice)
    text += [json.dumps(tree)]
    (folder / "programme.toml").write_text(tomlkit.dumps(tree), encoding="utf-8")
    secret = folder / "secret"  # one of its own: another has published with another p-table
    secret.write_text(dice.randbytes(32).hex())
    secret.chmod(0o600)
    words = [str(folder / "programme.toml"), "--secret", str(secret), "--out", str(folder / "out"), "--quiet"]
    threads = dice.choice(("1", "2", "3"))
    for command in (["check", words[0]], ["protect", *words, "--threads", threads], ["verify", words[4]]):
        code, said = made(command)
        if code:
            return f"{command[0]} of a sound programme: {code}, {said[:300]!r}"
    manifest = json.loads((folder / "out/manifest.json").read_bytes())
    for cube in cubes:
        (entry,) = (one for one in manifest["cubes"] if one["id"] == cube.id)
        counted = cube.counted(records[cube.unit])
        for kind in tree["release"]["formats"]:
            files = [folder / "out" / file["path"] for file in entry["files"] if file["format"] == kind]
            if wrong := _difference(cube, files, counted):
                return f"{cube.id}, {kind}: {wrong}"
    return ""


def _difference(cube: Cube, files: list[Path], counted: Counter[tuple[str, ...]]) -> str:
    found: dict[tuple[str, ...], float] = {}
    for cell, value in (one for file in files for one in _published(file, cube)):
        if cell in found:
            return f"{cell} is published twice"
        found[cell] = value
    for cell in found.keys() | counted.keys():
        if found.get(cell, 0) != counted[cell]:
            return f"{cell} is {found.get(cell, 0)}, and should be {counted[cell]}"
    return ""


def _published(file: Path, cube: Cube) -> Iterator[tuple[tuple[str, ...], float]]:
    """The cells of a file of a release, read without Discreet."""
    names = [axis.partition(".")[0] for axis in cube.axes]
    if file.suffix == ".json":
        document = json.loads(file.read_bytes())
        codes = [document["dimension"][name]["category"]["index"] for name in names]
        values = document["value"]
        at = (
            values.get
            if isinstance(values, dict)
            else dict(zip(map(str, range(len(values))), values, strict=True)).get
        )
        for number, cell in enumerate(itertools.product(*codes)):
            yield cell, at(str(number)) or 0
        return
    if file.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    else:
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"), newline="")))
    for row in rows:
        yield tuple(row[name] for name in names), float(row["value"] or 0)


def _codes(axis: str, record: Record) -> list[str]:
    """The total and the codes of a breakdown that a record has."""
    chain = _chain(axis.partition(".")[0], record)
    return [TOTAL, *chain[BREAKDOWNS[axis] :]]


def _chain(variable: str, record: Record) -> list[str]:
    """A record's own code, and those above it."""
    if variable == "AGE":
        number = sum(limit <= record["age"] for limit in BANDS)
        return [list(PARENTS["AGE"])[number - 1]]
    chain = [record[COLUMNS[variable]] or "9"]
    while parent := PARENTS[variable][chain[-1]]:
        chain.append(parent)
    return chain


def _records(dice: random.Random) -> dict[str, list[Record]]:
    """Households and their members; some towns are small, and some persons have no sex."""
    households, persons = [], []
    named = dice.choice((int, "h{}".format))
    for number in range(dice.choice((1, 5, 40, 120))):
        town = dice.choices(LEAVES["GEO"], (50, 20, 15, 14, 1))[0]
        home = {"hid": named(80_000 + number), "town": town, "tenure": dice.choice(LEAVES["TENURE"])}
        households.append(home)
        persons += [
            {
                "pid": named(10**6 + 100 * number + member),
                "hid": home["hid"],
                "town": town,
                "sex": dice.choices(("1", "2", "9", None), (10, 10, 1, 1))[0],
                "job": dice.choice(LEAVES["JOB"]),
                "age": dice.randrange(100),
                "works": dice.randrange(2),
                "weight": dice.randrange(10) / 2,  # sums have one decimal
            }
            for member in range(dice.choice((1, 1, 2, 5)))
        ]
    for records in (households, persons):
        dice.shuffle(records)
    return {"persons": persons, "households": households}


def _cube(name: str, dice: random.Random) -> Cube:
    unit = dice.choice(("persons", "persons", "households"))
    variables = dice.sample(OF[unit], dice.randint(1, len(OF[unit])))
    axes = [dice.choice([one for one in BREAKDOWNS if one.partition(".")[0] == v]) for v in variables]
    base, passes = _base(unit, dice) if dice.random() < 0.5 else ("", lambda _: True)
    is_person = unit == "persons"
    count = "works" if is_person and dice.random() < 0.2 else ""
    weight = "weight" if is_person and dice.random() < 0.15 else ""
    return Cube(name, unit, tuple(axes), base, passes, count, weight)


def _base(unit: str, dice: random.Random) -> tuple[str, Callable[[Record], bool]]:
    """A filter that some record can pass: others are refused."""
    leaves = [BANDS if name == "AGE" else LEAVES[name] for name in OF[unit]]
    possible = [
        dict(zip((COLUMNS[name] for name in OF[unit]), codes, strict=True))
        for codes in itertools.product(*leaves)
    ]
    while True:
        text, passes = _filter(unit, dice, 2)
        if any(map(passes, possible)):
            return text, passes


def _filter(unit: str, dice: random.Random, depth: int) -> tuple[str, Callable[[Record], bool]]:
    """A filter as text, and as a function of a record."""
    if depth and dice.random() < 0.6:
        (first, one), (second, other) = _filter(unit, dice, depth - 1), _filter(unit, dice, depth - 1)
        return dice.choice(
            (
                (f"({first}) and ({second})", lambda record: one(record) and other(record)),
                (f"({first}) or ({second})", lambda record: one(record) or other(record)),
                (f"not ({first})", lambda record: not one(record)),
            )
        )
    name = dice.choice(OF[unit])
    codes = dice.sample(list(PARENTS[name]), dice.randint(1, 2))
    listed = ", ".join(f'"{code}"' for code in codes)
    return dice.choice(
        (
            (f'{name} == "{codes[0]}"', lambda record: codes[0] in _chain(name, record)),
            (f'{name} != "{codes[0]}"', lambda record: codes[0] not in _chain(name, record)),
            (f"{name} in ({listed})", lambda record: bool({*codes} & {*_chain(name, record)})),
            (f"{name} not in ({listed})", lambda record: not {*codes} & {*_chain(name, record)}),
        )
    )


def _programme(
    folder: Path, records: dict[str, list[Record]], cubes: list[Cube], dice: random.Random
) -> dict[str, Any]:
    """Write the files of a programme, and return it."""
    for name, parents in PARENTS.items():
        lines = "".join(f"{code},{parent},{code} of {name}\n" for code, parent in parents.items())
        (folder / f"{name}.csv").write_text("code,parent,label\n" + lines)
    (folder / "ptable.csv").write_text(PTABLE)
    population: dict[str, Any] = {}
    for unit, table in records.items():
        (folder / unit).mkdir()
        population[unit] = dice.choice(SOURCES)(folder / unit, table, dice)
    population |= {"person_id": "pid", "household_id": "hid", "geography": ["town"]}
    variables: dict[str, dict[str, Any]] = {
        "GEO": {"column": "town", "codelist": "GEO.csv", "breakdowns": {"L": 1, "H": 2}},
        "SEX": {"codelist": "SEX.csv", "units": ["persons"], "missing": "9"},
        "JOB": {"codelist": "JOB.csv", "units": ["persons"], "breakdowns": {"L": 1, "M": 2, "H": 3}},
        "AGE": {"bands": list(BANDS), "units": ["persons"]},
        "TENURE": {"codelist": "TENURE.csv", "units": ["households"]},
    }
    return {
        "population": population,
        "variables": variables,
        "cubes": [cube.declared() for cube in cubes],
        "noise": {
            "kind": "cell-key",
            "ptable": "ptable.csv",
            "allow_weak": True,
            "keys": dice.choice(("plain", "permuted")),
        },
        "release": {
            "formats": dice.sample(FORMATS, dice.randint(1, len(FORMATS))),
            "levels": dice.choice(("together", "split")),
        },
    }


def _csv(folder: Path, records: list[Record], dice: random.Random) -> object:
    """A CSV file as people write it; its form is found."""
    form = dice.choice((",", ";", "\t", "|"))
    content = _csv_text(records, form, dice.choice(("\n", "\r\n"))).encode(
        dice.choice(("utf-8", "utf-8-sig", "utf-16"))
    )
    if dice.random() < 0.3:
        (folder / "all.csv.gz").write_bytes(gzip.compress(content))
        return f"{folder.name}/all.csv.gz"
    (folder / "all.csv").write_bytes(content)
    return f"{folder.name}/all.csv"


def _csv_text(records: list[Record], delimiter: str, ending: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter, lineterminator=ending)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _csv_parts(folder: Path, records: list[Record], dice: random.Random) -> object:
    for number, part in enumerate(_parts(records, dice)):
        (folder / f"{number}.csv").write_text(_csv_text(part, ",", "\n"))
    return f"{folder.name}/*.csv"


def _parts(records: list[Record], dice: random.Random) -> Iterator[list[Record]]:
    size = dice.choice((1, 7, 50, len(records)))
    return (records[first : first + size] for first in range(0, len(records), size))


def _table(records: list[Record], dice: random.Random) -> pa.Table:
    """Columns of types that mean the same: codes may be texts, numbers or dictionaries."""
    columns: dict[str, pa.Array] = {}
    for name in records[0]:
        column = pa.array([record[name] for record in records])
        kinds: tuple[pa.DataType, ...] = (column.type,)
        if pa.types.is_string(column.type):
            kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
        elif pa.types.is_integer(column.type):
            kinds = (pa.int64(), pa.int32(), pa.float64()) if name == "age" else (pa.int64(),)
        elif pa.types.is_null(column.type):
            kinds = (pa.string(),)
        if name == "sex" and dice.random() < 0.3:
            kinds = (pa.int8(), pa.float64())
        kind = dice.choice(kinds)
        columns[name] = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    return pa.table(columns)


def _parquet(folder: Path, records: list[Record], dice: random.Random) -> object:
    table = _table(records, dice)
    pq.write_table(table, folder / "all.parquet", **ways(table, dice))
    return f"{folder.name}/all.parquet"


def _parquet_parts(folder: Path, records: list[Record], dice: random.Random) -> object:
    """Files in one folder, or in one for each town, whose name is the value."""
    if dice.random() < 0.5:
        table = _table(records, dice)
        for number, first in enumerate(range(0, len(table), 30)):
            pq.write_table(table.slice(first, 30), folder / f"{number}.parquet")
        return dice.choice((folder.name, f"{folder.name}/*.parquet"))
    for town in {record["town"] for record in records}:
        inside = [
            {k: v for k, v in record.items() if k != "town"} for record in records if record["town"] == town
        ]
        (folder / f"town={town}").mkdir()
        pq.write_table(pa.Table.from_pylist(inside, _schema(inside[0])), folder / f"town={town}/all.parquet")
    return folder.name


def _schema(record: Record) -> pa.Schema:
    """The types of a record's fields; a part of the records may have no sex at all."""
    return pa.schema(
        [(name, pa.string() if name == "sex" else pa.scalar(value).type) for name, value in record.items()]
    )


def _sqlite(folder: Path, records: list[Record], _dice: random.Random) -> object:
    names = list(records[0])
    with closing(sqlite3.connect(folder / "all.sqlite")) as database, database:
        types = {int: "INTEGER", float: "REAL"}
        columns = ", ".join(f'"{name}" {types.get(type(records[0][name]), "TEXT")}' for name in names)
        database.execute(f"CREATE TABLE t ({columns})")
        values = [tuple(record[name] for name in names) for record in records]
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", values)
    return {"uri": f"sqlite://{folder.name}/all.sqlite", "table": "t"}


def _duckdb(folder: Path, records: list[Record], dice: random.Random) -> object:
    """A database of DuckDB, or a query over a file."""
    table = pa.Table.from_pylist(records, _schema(records[0]))
    if dice.random() < 0.5:
        pq.write_table(table, folder / "all.parquet")
        return {"query": f"SELECT * FROM '{folder.name}/all.parquet'"}
    with duckdb.connect(folder / "all.duckdb") as database:
        database.register("given", table)
        database.execute("CREATE TABLE t AS SELECT * FROM given")
    return {"uri": f"duckdb://{folder.name}/all.duckdb", "table": "t"}


SOURCES: tuple[Write, ...] = (_csv, _csv_parts, _parquet, _parquet, _parquet_parts, _sqlite, _duckdb)
