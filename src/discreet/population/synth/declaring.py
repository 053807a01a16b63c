"""The programme file and codelists that go with a synthetic census; it does not read programmes."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.population.synth.codes import rows
from discreet.population.synth.geography import Geography
from discreet.population.synth.impossible import structural_zeros
from discreet.schema import eu2021
from discreet.schema.codelist import Code, codelist

MEMBER_VARIABLES = {  # the household as its members carry it, for record swapping, and its labels
    "HHSIZE": "Size of the household",
    "HHTYPE": "Type of the household",
}


def declare(folder: Path, geo: Geography, tables: Sequence[str] | None) -> None:
    """Write the codelists and the programme of a census into its folder."""
    lists = _codelists(geo)
    (folder / "codelists").mkdir()
    for variable, codes in lists.items():
        _write_codes(folder / "codelists" / f"{variable.lower()}.csv", codes)
    (folder / "programme.toml").write_text(programme(tuple(lists), tables), encoding="utf-8")


def _codelists(geo: Geography) -> dict[str, list[Code]]:
    regions = geo.rows()
    lists = {"GEO": regions, "LPW": eu2021.lpw_rows(codelist("GEO", regions))}
    names = [name for name in (*eu2021.variables(), *MEMBER_VARIABLES) if name not in lists]
    return lists | {name: rows(name) for name in names}


def _write_codes(path: Path, codes: Sequence[Code]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["code", "parent", "label"])
        writer.writerows([code.code, code.parent, code.label] for code in codes)


def programme(variables: Sequence[str], tables: Sequence[str] | None) -> str:
    """The text of programme.toml; ``tables`` None selects the whole EU programme."""
    parts = [_POPULATION, *(_variable(name) for name in variables), _standard(tables)]
    parts += [f"[[structural_zeros]]\nwhere = '{rule}'\n" for rule in structural_zeros()]
    return "\n".join([*parts, _ENDING])


def _variable(name: str) -> str:
    column = "lau" if name == "GEO" else name.lower()
    standard = name in eu2021.variables()
    label = eu2021.label(name) if standard else MEMBER_VARIABLES[name]
    lines = [
        f"[variables.{name}]",
        f"label = {json.dumps(label)}",
        f'column = "{column}"',
        f'codelist = "codelists/{name.lower()}.csv"',
    ]
    if standard and set(eu2021.breakdowns(name)) - {name}:
        lines.append(f"breakdowns = {_inline(eu2021.breakdowns(name))}")
        lines.append(f"breakdown_labels = {_inline(eu2021.breakdown_labels(name))}")
    return "\n".join(lines) + "\n"


def _inline(held: Mapping[str, object]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(one)}" for name, one in held.items()) + " }"


def _standard(tables: Sequence[str] | None) -> str:
    chosen = "" if tables is None else f"tables = {json.dumps(list(tables))}\n"
    return f'[standard]\nprogramme = "{eu2021.NAME}"\n{chosen}'


_POPULATION = """\
# A synthetic census: no record in it is a real person.

[population]
persons = "persons.parquet"
households = "households.parquet"
families = "families.parquet"
dwellings = "dwellings.parquet"
person_id = "pid"
household_id = "hid"
family_id = "fid"
dwelling_id = "did"
geography = ["nuts1", "nuts2", "nuts3", "lau"]
"""

_ENDING = """\
[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0

[release]
title = "Synthetic census"
formats = ["parquet"]
"""
