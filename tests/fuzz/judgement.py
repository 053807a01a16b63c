"""One judgement: what ``check`` accepts, ``protect`` publishes, and what one refuses, the other refuses.

A town's programme and records are changed as people change them: values, types and names that a programme can have,
columns that have other values, types or damaged pages.
"""

import io
import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomlkit

from tests.cli import town
from tests.fuzz.damage import damaged_toml, without_nothing
from tests.fuzz.inputs import made
from tests.fuzz.programmes import declared
from tests.fuzz.tables import damaged_csv, damaged_parquet

Write = Callable[[str, bytes], None]

REST = "more mistakes; correct these first"  # check counts more of them: it goes on with what is sound
GUARANTEE = '[noise]\nkind = "geometric"\nepsilon = 4\nallow_weak = true\n'
SECTIONS = (  # added in front of the noise; each is sound by itself, or refused by what it means
    '[swap]\nk = 2\nrisk = ["AGE", "SEX"]\nsimilar = [[{ composition = ["SEX"] }]]\nrate = 0.1\n',
    '[swap]\nk = 2\nrisk = ["AGE"]\nsimilar = [["SEX"]]\nrate = 0.5\ncarry = ["weight"]\n',
    "[gates]\naveraging = 0.9\n",
    "[gates]\ntrue_uniques = 0.9\n",
    "[gates]\ntrue_attributes = 0.9\ncorrections = 0\n",
    "[gates]\npinned_cells = 1000\nbound_revealed = 0.5\n",
    "[gates]\nsparsity = { ones = 0.5, ones_and_twos = 0.9 }\n",
    '[gates]\ndifferencing = { pairs = [["GEO", "SEX"]] }\n',
    '[gates]\nreconstruction = { variables = ["SEX", "AGE"], quasi = ["SEX"], areas = 1, seconds = 1 }\n',
    "[limits]\npublished = 20\n",
    "[limits]\ncells = 5\n",
    '[release]\nformats = ["csv", "px", "xlsx", "json-stat", "sdmx-csv"]\nlevels = "split"\n',
    "[release]\nconsistent = true\n",
    '[release]\ndisclose = "law"\n',
    "[[structural_zeros]]\nwhere = 'SEX == \"1\"'\n",
)
EDITS = (  # of the programme
    ('["region", "town"]', '["town"]'),
    ('["region", "town"]', '["town", "region"]'),
    ('["region", "town"]', "[]"),
    ('geography = ["region", "town"]\n', ""),
    ('household_id = "hid"\n', ""),
    ('person_id = "pid"\n', ""),
    ('person_id = "pid"', 'person_id = "hid"'),
    ("breakdowns = { L = 1, H = 2 }", "breakdowns = { L = 0, H = 2 }"),
    ("breakdowns = { L = 1, H = 2 }", "breakdowns = { L = 1, H = 3 }"),
    ('axes = ["GEO.L", "SEX"]', 'axes = ["GEO.L"]'),
    ('axes = ["GEO.L", "SEX"]', "axes = []"),
    ('axes = ["GEO.L", "SEX"]', 'axes = ["GEO.L", "TENURE"]'),
    ('weight = "weight"\n', ""),
    ('count = "works"\n', ""),
    ('count = "works"', 'count = "weight"'),
    ('weight = "weight"', 'weight = "town"'),
    ('id = "homes"', 'id = "homes"\nbase = \'TENURE == "own"\''),
    ('id = "people"', 'id = "people"\nbase = \'AGE == "child"\''),
    ("V = 2.0\nD = 5", "V = 0.1\nD = 1"),
    ("V = 2.0\nD = 5", "V = 4\nD = 3"),
    ("D = 5", "D = 5\njs = 2"),
    ('codelist = "sex.csv"', 'codelist = "age.csv"'),
    ('codelist = "sex.csv"\n', ""),
    ('persons = "persons.parquet"', 'persons = "households.parquet"'),
    ('households = "households.parquet"\n', ""),
)
CODES: tuple[Any, ...] = ("1", "2", "9", "x", "", " 1", "_T", None, "N1", "S", "N", "adult", "\x00", "é" * 30)
NUMBERS: tuple[Any, ...] = (0, 1, 2, -1, None, 0.5, -2.5, 1e300, float("nan"), float("inf"), 2**40)


def change(dice: random.Random, text: list[str], write: Write) -> None:
    """Change the town once or twice, and note how."""
    for _ in range(dice.choice((1, 1, 2))):
        kind = dice.choice(
            (
                _edit,
                _edit,
                _declared,
                _declared,
                _declared,
                _tree,
                _values,
                _values,
                _column,
                _pages,
                _codelist,
            )
        )
        kind(dice, text, write)


def _edit(dice: random.Random, text: list[str], write: Write) -> None:
    programme = Path("town/programme.toml").read_bytes().decode("latin-1")
    kind = dice.random()
    if kind < 0.3:
        section = dice.choice(SECTIONS)
        changed, note = programme.replace("[noise]", f"{section}[noise]", 1), section
    elif kind < 0.4:
        changed = re.sub(r"\[noise\]\n(.+\n)+", GUARANTEE, programme)
        changed = changed.replace('weight = "weight"\n', "").replace('count = "works"\n', "")
        of = {"GEO": "dwelling", "SEX": "person", "AGE": "person", "TENURE": "household"}
        for name, whose in of.items():
            declared = f'[variables.{name}]\nof = "{whose}"\nfixed = {str(whose != "person").lower()}\n'
            changed = changed.replace(f"[variables.{name}]\n", declared)
        note = "a guarantee"
    else:
        old, new = dice.choice(EDITS)
        changed, note = programme.replace(old, new), f"{old} -> {new}"
    text.append(note)
    write("town/programme.toml", changed.encode("latin-1"))


def _tree(dice: random.Random, text: list[str], write: Write) -> None:
    changed = damaged_toml(Path("town/programme.toml").read_bytes(), dice)
    text.append(repr(changed))
    write("town/programme.toml", changed)


def _declared(dice: random.Random, text: list[str], write: Write) -> None:
    """Keys of the programme, with values that they can have."""
    try:
        tree = tomllib.loads(Path("town/programme.toml").read_text(encoding="utf-8"))
        text += [declared(tree, dice) for _ in range(dice.choice((1, 1, 2, 3)))]
        content = tomlkit.dumps(without_nothing(tree)).encode()
    except (TypeError, ValueError):  # damaged before, or a value that TOML does not have
        return
    write("town/programme.toml", content)


def _values(dice: random.Random, text: list[str], write: Write) -> None:
    """Other values in some rows of a column."""
    unit, columns = _unit(dice)
    name = dice.choice(list(columns))
    column = columns[name]
    some = dice.sample(range(len(column)), dice.choice((1, 1, 2, 10, len(column))))
    if dice.random() < 0.5:
        value = dice.choice(NUMBERS if isinstance(column[0], int | float) else CODES)
        note = f"{unit}.{name} of {len(some)} rows is {value!r}"
        for at in some:
            column[at] = value
    else:  # as in another row: ids that occur twice, members of other households, places that do not nest
        note = f"{unit}.{name} of {len(some)} rows is that of another"
        for at in some:
            column[at] = column[dice.randrange(len(column))]
    text.append(note)
    _store(unit, columns, write)


def _column(dice: random.Random, text: list[str], write: Write) -> None:
    """A column that is missing, has another name or type, or all rows twice."""
    unit, columns = _unit(dice)
    name = dice.choice(list(columns))
    kind = dice.randrange(4)
    if kind == 0:
        columns.pop(name)
    elif kind == 1:
        columns[name.upper()] = columns.pop(name)
    elif kind == 2:
        columns[name] = [None if value is None else str(value) for value in columns[name]]
    else:
        columns = {one: values * 2 for one, values in columns.items()}
    text.append(f"{unit}.{name}: {('missing', 'upper case', 'text', 'all rows twice')[kind]}")
    _store(unit, columns, write)


def _pages(dice: random.Random, text: list[str], write: Write) -> None:
    """A file with damaged bytes, other types, or written in another way."""
    unit, _ = _unit(dice)
    content = damaged_parquet(Path(f"town/{unit}.parquet").read_bytes(), dice)
    text.append(f"{unit}: {content[:60]!r} ..")
    write(f"town/{unit}.parquet", content)


def _codelist(dice: random.Random, text: list[str], write: Write) -> None:
    name = dice.choice(list(town.CODELISTS))
    content = damaged_csv(Path(f"town/{name}").read_bytes(), dice)
    text.append(f"{name}: {content[:300]!r}")
    write(f"town/{name}", content)


def _unit(dice: random.Random) -> tuple[str, town.Columns]:
    unit = dice.choice(("persons", "persons", "households"))
    return unit, town.persons() if unit == "persons" else town.households()


def _store(unit: str, columns: town.Columns, write: Write) -> None:
    try:
        table = pa.table(columns)
    except pa.ArrowException:  # values of several types
        table = pa.table({name: pa.array([str(one) for one in values]) for name, values in columns.items()})
    content = io.BytesIO()
    pq.write_table(table, content)
    write(f"town/{unit}.parquet", content.getvalue())


def judged() -> object:
    """Run both commands; they agree, or the input is a fault. A published release passes."""
    options = ["--secret", "town/secret.key", "--out", "made", "--threads", "1"]
    checked, found = made(["check", "town/programme.toml", *options])
    protected, refusal = made(["protect", "town/programme.toml", *options, "--quiet"])
    if (checked == 0) != (protected in {0, 1}):  # 1: a gate that looks at the counts
        return f"check {checked}, protect {protected}: {found[:200]!r} {refusal[:200]!r}"
    lines = [line for line in refusal.splitlines() if not line.endswith(REST)]
    if protected == 2 and not set(lines) <= set(found.splitlines()):
        return f"other lines: {found[:300]!r} {refusal[:300]!r}"
    if protected == 0:
        passed, said = made(["verify", "made", "--quiet"])
        if passed:
            return f"not verified: {said[:200]!r}"
    return protected
