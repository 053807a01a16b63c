"""Sound inputs of every kind, in a folder of their own; damaged copies of them are what the fuzzers try."""

import contextlib
import io
import json
import sys
from pathlib import Path

from discreet.cli.app import main

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
    lines = [f"{n},{n // 2},{'FM'[n % 2]},{places[n // 2 % 3]},{n % 7}.5" for n in range(60)]
    (folder / "persons.csv").write_text("\n".join(["pid,hid,sex,lau,w", *lines]) + "\n")
    (folder / "sex.csv").write_text("code,parent,label\nF,,female\nM,,male\n")
    (folder / "lau.csv").write_text("code,parent,label\nA,,a\nA1,A,a1\nA2,A,a2\nB,,b\nB1,B,b1\n")
    (folder / "grids.csv").write_text("grid,lau,count\ng1,A1,5\ng1,A2,3\ng2,A2,9\ng2,B1,4\n")
    (folder / "programme.toml").write_text(PROGRAMME)
    (folder / "private.toml").write_text(PROGRAMME.replace(CELL_KEY, PRIVATE))
    (folder / "swap.toml").write_text(PROGRAMME + SWAP)
    (folder / "table.csv").write_text("A,B,value\na,x,5\na,y,6\nb,x,7\nb,y,9\n")
    (folder / "crossed.csv").write_text("A,x,y\na,5,6\nb,7,9\n")
    (folder / "utility.csv").write_text("change,utility\n-1,-1\n0,0\n1,-1\n")
    (folder / "geometry.json").write_text(json.dumps(GEOMETRY))
    keys = [
        f"{count},{key},{change}" for count in range(1, 5) for key, change in (("0-127", -1), ("128-255", 1))
    ]
    (folder / "keyed.csv").write_text("\n".join(["cell_value,cell_key,perturbation", *keys]) + "\n")
    ons = [f"{count},{key},{1 if key % 2 else -1}" for count in range(1, 5) for key in range(16)]
    (folder / "ons.csv").write_text("\n".join(["pcv,ckey,pvalue", *ons]) + "\n")
    (folder / "superstar.csv").write_text(
        "\n".join([",".join(["-1"] * 30)] * 128 + [",".join(["1"] * 30)] * 128) + "\n"
    )
    for command in (
        "secret --out secret",
        "key --out k",
        "ptable make --out r.csv --D 3 --V 1",
        "ledger create ledger.sqlite --secret secret",
        "ledger account ledger.sqlite a --secret secret --epsilon 5 --neighbours substitute --protects person",
        "token create tokens.json someone",
        "protect programme.toml --secret secret --out release --sign k --quiet",
        "protect private.toml --secret secret --out noisy --ledger ledger.sqlite --account a --quiet",
    ):
        code, text = made(command.split())
        assert code == 0, (command, text)
