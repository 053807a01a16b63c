"""A small country with a nested geography: 2,000 persons in blocks, tracts, counties and states."""

import csv
from pathlib import Path

import numpy as np

NOISE = """
[noise]
kind = "hierarchical"
geography = "GEO"
rho = "1/2"
neighbours = "substitute"
[noise.strategy]
histogram = ["SEX", "AGE.M", "MAR"]
levels = { STATE = "1/4", COUNTY = "1/4", TRACT = "1/4", BLOCK = "1/4" }
[noise.strategy.queries]
STATE = { total = "1/2", detailed = "1/2" }
COUNTY = { total = "1/2", "AGE.L*SEX" = "1/4", detailed = "1/4" }
TRACT = { total = "1/3", "AGE.L*SEX" = "1/3", detailed = "1/3" }
BLOCK = { total = "1/2", detailed = "1/2" }
[noise.invariants]
totals = ["STATE"]
"""

DECLARED = """
[population]
persons = "persons.csv"
person_id = "person_id"
geography = ["geo"]
[variables.GEO]
codelist = "geo.csv"
of = "person"
breakdowns = { STATE = 1, COUNTY = 2, TRACT = 3, BLOCK = 4 }
[variables.SEX]
codelist = "sex.csv"
of = "person"
[variables.AGE]
codelist = "age.csv"
of = "person"
breakdowns = { L = 1, M = 2 }
[variables.MAR]
codelist = "mar.csv"
of = "person"
[[structural_zeros]]
where = 'AGE in ("A0", "A1") and MAR == "W"'
"""

CUBES = """
[[cubes]]
id = "tracts"
axes = ["GEO.TRACT", "SEX", "AGE.L"]
[[cubes]]
id = "blocks"
axes = ["AGE.M", "GEO.BLOCK", "MAR"]
[[cubes]]
id = "country"
axes = ["SEX", "AGE.M", "MAR"]
"""


def table(path: Path, rows: list[tuple[str, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def blocks() -> list[tuple[str, str]]:
    """The codes of the geography with their parents; the last tract of a county has one block."""
    found = []
    for state in range(2):
        found.append((f"S{state}", ""))
        for county in range(2 - state):
            above = f"S{state}C{county}"
            found.append((above, f"S{state}"))
            for tract in range(3):
                found.append((f"{above}T{tract}", above))
                found += [(f"{above}T{tract}B{k}", f"{above}T{tract}") for k in range(1 if tract == 2 else 4)]
    return found


def make_country(folder: Path, noise: str = NOISE, cubes: str = CUBES, release: str = "") -> Path:
    """Write the country and its programme; the same records at every call."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ("code", "parent", "label")
    table(folder / "geo.csv", [head, *((code, above, code) for code, above in blocks())])
    groups = {"YOUNG": range(3), "MIDDLE": range(3, 6), "OLD": range(6, 8)}
    ages = [(name, "", name) for name in groups]
    ages += [(f"A{k}", name, f"A{k}") for name, years in groups.items() for k in years]
    table(folder / "age.csv", [head, *ages])
    table(folder / "sex.csv", [head, ("M", "", "men"), ("F", "", "women")])
    table(folder / "mar.csv", [head, ("S", "", "single"), ("W", "", "married")])
    random = np.random.default_rng(7)
    places = [code for code, _ in blocks() if "B" in code]
    at = random.choice(len(places), 2000, p=random.dirichlet(np.full(len(places), 0.7)))
    age, sex, married = (
        random.integers(8, size=2000),
        random.integers(2, size=2000),
        random.integers(2, size=2000),
    )
    persons = [
        (f"P{k}", places[at[k]], "MF"[sex[k]], f"A{age[k]}", "S" if age[k] < 2 else "SW"[married[k]])
        for k in range(2000)
    ]
    table(folder / "persons.csv", [("person_id", "geo", "sex", "age", "mar"), *persons])
    programme = folder / "programme.toml"
    programme.write_text(DECLARED + cubes + noise + f'[release]\nformats = ["parquet", "csv"]\n{release}\n')
    return programme
