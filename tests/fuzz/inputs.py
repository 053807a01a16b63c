"""Sound inputs of every kind, in a folder of their own; damaged copies of them are what the fuzzers try."""

import contextlib
import gzip
import io
import json
import sqlite3
import sys
from itertools import product
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from discreet.cli.app import main
from tests.cli import town
from tests.fuzz.requests import server

PROGRAMME = """
[population]
persons = "persons.csv"
person_id = "pid"
household_id = "hid"
geography = ["lau"]
[variables.SEX]
column = "sex"
codelist = "sex.csv"
of = "person"
[variables.LAU]
column = "lau"
codelist = "lau.csv"
breakdowns = { L = 1, H = 2 }
of = "household"
[noise]
kind = "cell-key"
D = 3
V = 1
allow_weak = true
[[cubes]]
id = "1"
unit = "persons"
axes = ["SEX", "LAU.H"]
[[cubes]]
id = "2"
unit = "persons"
axes = ["LAU.L"]
base = 'SEX in ("F")'
[release]
name = "fuzz"
formats = ["parquet", "csv", "sdmx-csv", "json-stat"]
"""
CELL_KEY = 'kind = "cell-key"\nD = 3\nV = 1\nallow_weak = true'
PRIVATE = (
    'kind = "geometric"\nepsilon = 1\nneighbours = "substitute"\nsnapshot = "2021"\nlargest_household = 3'
)
SWAP = """
[swap]
k = 3
risk = ["SEX"]
similar = [[{ composition = ["SEX"] }]]
rate = 0.2
"""
READY = """
[variables.SEX]
codelist = { file = "structures.xml", id = "CL_SEX" }
[variables.LAU]
codelist = "lau.json"
breakdowns = { N = 0, L = 1, LAU = 2 }
[noise]
kind = "cell-key"
D = 3
V = 1
allow_weak = true
[[cubes]]
id = "given"
axes = ["SEX", "LAU"]
counts = { file = "ready.csv" }
[release]
name = "ready"
formats = ["parquet", "px", "xlsx"]
"""
TREE = """
[population]
persons = "persons.csv"
person_id = "pid"
geography = ["lau"]
[variables.LAU]
codelist = "lau.csv"
breakdowns = { L = 1, H = 2 }
of = "person"
[variables.SEX]
codelist = "sex.csv"
of = "person"
[[cubes]]
id = "1"
axes = ["SEX", "LAU.H"]
[noise]
kind = "hierarchical"
geography = "LAU"
rho = "1/2"
neighbours = "substitute"
[noise.strategy]
histogram = ["SEX"]
levels = { L = "1/2", H = "1/2" }
[noise.strategy.queries]
L = { total = "1/2", detailed = "1/2" }
H = { detailed = "1" }
[release]
name = "tree"
formats = ["parquet", "csv"]
"""
CODELIST = {  # SDMX-JSON
    "data": {
        "codelists": [
            {
                "id": "CL_LAU",
                "codes": [
                    {"id": code, "name": code.lower(), "parent": code[:-1], "names": {"en": code, "de": code}}
                    for code in ("A", "A1", "A2", "B", "B1")
                ],
            }
        ],
        "hierarchies": [
            {"id": "H", "hierarchicalCodes": [{"code": "x=F:CL_LAU(1.0).A", "hierarchicalCodes": []}]}
        ],
    }
}
GEOMETRY = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": code,
            "properties": {"code": code, "name": code.lower()},
            "geometry": {"type": "Polygon", "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 0]]]},
        }
        for x, code in enumerate(("A1", "A2", "B1"))
    ],
}


def made(arguments: list[str]) -> tuple[object, str]:
    """One command in this process: its exit code and what it printed; anything else that is raised is a fault."""
    said, given = io.StringIO(), sys.argv
    sys.argv = ["discreet", *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = given
    return code, said.getvalue()


def prepare(folder: Path) -> None:
    """Write them; the folder is the working one, and empty."""
    places = ["A1", "A2", "B1"]
    ids = town.persons()  # that no message may show
    lines = [
        f"{ids['pid'][n]},{ids['hid'][n]},{'FM'[n % 2]},{places[n // 2 % 3]},{n % 7}.5" for n in range(60)
    ]
    texts = {
        "persons.csv": "\n".join(["pid,hid,sex,lau,w", *lines]) + "\n",
        "sex.csv": "code,parent,label\nF,,female\nM,,male\n",
        "lau.csv": "code,parent,label\nA,,a\nA1,A,a1\nA2,A,a2\nB,,b\nB1,B,b1\n",
        "lau.json": json.dumps(CODELIST),
        "grids.csv": "grid,lau,count\ng1,A1,5\ng1,A2,3\ng2,A2,9\ng2,B1,4\n",
        "programme.toml": PROGRAMME,
        "private.toml": PROGRAMME.replace(CELL_KEY, PRIVATE),
        "swap.toml": PROGRAMME + SWAP,
        "tree.toml": TREE,
        "ready.toml": READY,
        "stored.toml": READY.replace('"ready.csv"', '"ready.parquet"'),
        "packed.toml": PROGRAMME.replace('"persons.csv"', '"persons.csv.gz"'),
        "base.toml": PROGRAMME.replace(
            '"persons.csv"', '{ uri = "sqlite://records.sqlite", table = "persons" }'
        ),
        "table.csv": "A,B,value\na,x,5\na,y,6\nb,x,7\nb,y,9\n",
        "crossed.csv": "A,x,y\na,5,6\nb,7,9\n",
        "utility.csv": "change,utility\n-1,-1\n0,0\n1,-1\n",
        "geometry.json": json.dumps(GEOMETRY),
        **_ptables(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "persons.csv.gz").write_bytes(gzip.compress(texts["persons.csv"].encode(), mtime=0))
    with contextlib.closing(sqlite3.connect(folder / "records.sqlite")) as database, database:
        database.execute("CREATE TABLE persons (pid TEXT, hid TEXT, sex TEXT, lau TEXT, w REAL)")
        database.executemany(
            "INSERT INTO persons VALUES (?, ?, ?, ?, ?)", [line.split(",") for line in lines]
        )
    town.build(folder / "town")
    with (folder / "town/programme.toml").open("a") as file:
        file.write('[serve]\ngroupings = ["GEO"]\n')
    for command in (
        "secret --out secret",
        "key --out k",
        "ptable make --out r.csv --D 3 --V 1",
        "ledger create ledger.sqlite --secret secret",
        "ledger account ledger.sqlite a --secret secret --epsilon 5 --neighbours substitute --protects person",
        "token create tokens.json someone",
        "protect programme.toml --secret secret --out release --sign k --quiet",
        "protect private.toml --secret secret --out noisy --ledger ledger.sqlite --account a --quiet",
        "protect tree.toml --secret secret --out tree --quiet",
    ):
        succeed(command)
    structures = (folder / "release/sdmx/structures.xml").read_bytes()
    (folder / "structures.xml").write_bytes(structures)
    cells = [
        f"{sex},{place},{n + 3},{n * 799_999_993 % 2**32}"
        for n, (sex, place) in enumerate(product("FM", places))
    ]
    (folder / "ready.csv").write_text("\n".join(["SEX,LAU,count,key", *cells]) + "\n")
    pq.write_table(pa_csv.read_csv(folder / "ready.csv"), folder / "ready.parquet")
    for name in ("ready", "stored", "packed", "base", "town/programme"):
        succeed(f"check {name}.toml")
    with server(folder / "release", folder / "saved.sqlite") as client:
        for what in ("queries", "jobs"):
            stored = client.send("POST", f"/api/v1/{what}", json={"query": {"axes": ["SEX"]}})
            assert stored.is_success, stored.text


def succeed(command: str) -> None:
    """Run a command that must succeed."""
    code, text = made(command.split())
    assert code == 0, (command, text)


def _ptables() -> dict[str, str]:
    """P-tables in the formats that Discreet does not make by default."""
    ranges = (("0-127", -1), ("128-255", 1))
    keyed = [f"{count},{keys},{change}" for count in range(1, 5) for keys, change in ranges]
    ons = [f"{count},{key},{1 if key % 2 else -1}" for count in range(1, 5) for key in range(16)]
    wide = [",".join([change] * 30) for change in ("-1", "1") for _ in range(128)]
    return {
        "keyed.csv": "\n".join(["cell_value,cell_key,perturbation", *keyed]) + "\n",
        "ons.csv": "\n".join(["pcv,ckey,pvalue", *ons]) + "\n",
        "superstar.csv": "\n".join(wide) + "\n",
    }
