"""Files as users have them, made up: what ``discreet init`` must understand."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

Rng = np.random.Generator
Whole = NDArray[np.int64]


def _household_rows(rng: Rng, households: int) -> Whole:
    """The household of each person: 1 to 6 members, in order."""
    return np.repeat(
        np.arange(households),
        rng.choice([1, 2, 3, 4, 5, 6], households, p=[0.3, 0.33, 0.15, 0.14, 0.06, 0.02]),
    )


def _ages(rng: Rng, people: int) -> Whole:
    ages: Whole = np.minimum(rng.gamma(2.6, 15.5, people).astype(np.int64), 97)
    return ages


def melbourne(path: Path) -> None:
    """Persons with codes and names of four nested areas side by side; no household, an exact income, a gap."""
    rng = np.random.default_rng(3)
    people = 6000
    sa1 = np.sort(rng.integers(0, 240, people))
    sa2, sa3, sa4 = sa1 // 8, sa1 // 40, sa1 // 120
    age = _ages(rng, people)
    occupation = np.where(
        age < 15,
        "0000",
        [
            f"{a}{b}{c}{d}"
            for a, b, c, d in zip(*(rng.integers(1, 9, people) // k + 1 for k in (1, 2, 3, 4)), strict=True)
        ],
    )
    table = pa.table(
        {
            "person_ref": [f"P{n:07d}" for n in rng.permutation(people)],
            "SA1_CODE_2021": [f"2{4:01d}{b:02d}{n:07d}" for n, b in zip(sa1, sa4, strict=True)],
            "SA2_CODE_2021": [f"2{b + 10}{n:06d}" for n, b in zip(sa2, sa4, strict=True)],
            "SA2_NAME_2021": [f"Suburb {n} - North East" for n in sa2],
            "SA3_CODE_2021": [f"2{b + 10}{n:02d}" for n, b in zip(sa3, sa4, strict=True)],
            "SA3_NAME_2021": [f"Melbourne District {n}" for n in sa3],
            "SA4_CODE_2021": [f"2{b + 10}" for b in sa4],
            "SA4_NAME_2021": [f"Melbourne - {['Inner', 'Outer'][b]}" for b in sa4],
            "SEXP": rng.choice(["Male", "Female"], people),
            "AGEP": pa.array([None if n == 77 else str(a) for n, a in enumerate(age)]),
            "OCC4": occupation,
            "OCC1": [code[:1] for code in occupation],
            "INCOME": np.where(age < 15, 0, rng.lognormal(10.6, 0.8, people).round(2)),
        }
    )
    pq.write_table(table, path)


def pums(path: Path) -> None:
    """A public use file: a serial number and a member number, a weight with replicates, labels as codes, an amount."""
    rng = np.random.default_rng(4)
    home = _household_rows(rng, 1500)
    people = len(home)
    number = np.concatenate([np.arange(1, n + 1) for n in np.bincount(home)])
    age = _ages(rng, people)
    weight = rng.integers(8, 120, people)
    table = pa.table(
        {
            "SERIALNO": [f"2021HU{n:07d}" for n in home * 37 + 5],
            "SPORDER": number,
            "ST": [["California", "Oregon"][n * 2 // 1500] for n in home],
            "PUMA": [f"{100 + n // 30:05d}" for n in home],
            "PWGTP": weight,
            "PWGTP1": np.maximum(weight + rng.integers(-6, 7, people), 1),
            "PWGTP2": np.maximum(weight + rng.integers(-6, 7, people), 1),
            "AGEP": age.astype(float),
            "SEX": rng.choice(["Male", "Female"], people),
            "SCHL": np.where(
                age < 3,
                "N/A (less than 3 years old)",
                rng.choice(["Grade 12", "Bachelor's degree", "Some college"], people),
            ),
            "WKHP": pa.array(
                [
                    None if a < 16 else int(h)
                    for a, h in zip(
                        age, rng.choice([0, 20, 38, 40, 40, 40, 45, *range(1, 99)], people), strict=True
                    )
                ]
            ),
            "PINCP": pa.array(
                [
                    None if a < 15 else float(x)
                    for a, x in zip(age, (rng.lognormal(10, 1, people) // 100 * 100), strict=True)
                ]
            ),
        }
    )
    pq.write_table(table, path)


def national(path: Path) -> None:
    """An excerpt with N for not applicable, also among numbers, and -9 for not stated; households without a name."""
    rng = np.random.default_rng(5)
    home = _household_rows(rng, 2000)
    people = len(home)
    age = _ages(rng, people)
    area = home // 40
    minor = rng.integers(0, 30, people)
    hours = rng.choice([0, 8, 16, 20, 37, 40, *range(1, 80)], people)
    table = pa.table(
        {
            "A1": np.arange(people) * 7 + 100_003,
            "A2": home * 13 + 500,
            "A3": [f"K{n:02d}" for n in area // 10],
            "A4": [f"M{n:03d}" for n in area],
            "A5": [str(a) for a in age],
            "A6": rng.choice(["1", "2"], people),
            "A7": ["N" if a < 16 else f"{m // 10 + 1}{m % 10}" for a, m in zip(age, minor, strict=True)],
            "A8": ["N" if a < 16 else str(h) for a, h in zip(age, hours, strict=True)],
            "A9": [-9 if a < 18 else int(x) for a, x in zip(age, rng.integers(1, 6, people), strict=True)],
        }
    )
    pa_csv.write_csv(table, path)


def births(path: Path) -> None:
    """Dates of birth instead of ages, and the exact day of moving in."""
    rng = np.random.default_rng(6)
    home = _household_rows(rng, 900)
    people = len(home)
    newest = date(2021, 5, 8)
    born = [
        newest - timedelta(days=int(a) * 365 + int(d))
        for a, d in zip(_ages(rng, people), rng.integers(0, 365, people), strict=True)
    ]
    moved = [newest - timedelta(days=int(d)) for d in rng.integers(0, 4000, people)]
    table = pa.table(
        {
            "pid": np.arange(people),
            "hid": home,
            "region": [f"R{n // 300}" for n in home],
            "municipality": [f"G{n // 30:03d}" for n in home],
            "birth_date": pa.array(born, pa.date32()),
            "moved_in": pa.array(moved, pa.date32()),
            "sex": rng.integers(1, 3, people),
        }
    )
    pq.write_table(table, path)


def german(path: Path) -> None:
    """Semicolons, Latin-1, decimal commas: municipal codes with names, a weight, an exact rent."""
    rng = np.random.default_rng(7)
    home = _household_rows(rng, 1200)
    people = len(home)
    ags = [f"0{9 if n < 600 else 8}1{n // 200}{n // 40:04d}" for n in home]
    lines = ["lfdnr;haushalt;ags;gemeindename;kreis;alter;geschlecht;familienstand;hochrechnungsfaktor;miete"]
    status = ["ledig", "verheiratet", "geschieden", "verwitwet"]
    for n in range(people):
        factor = f"{rng.uniform(0.6, 3.1):.4f}".replace(".", ",")
        rent = f"{rng.lognormal(6.3, 0.5):.2f}".replace(".", ",")
        alter = int(_ages(rng, 1)[0])
        lines.append(
            f"{n + 1};{home[n] + 1};{ags[n]};Größdorf {int(ags[n][4:])};{ags[n][:5]};{alter};{rng.choice(['m', 'w'])};"
            f"{status[int(rng.integers(0, 4))]};{factor};{rent}"
        )
    path.write_bytes("\r\n".join([*lines, ""]).encode("latin-1"))


def cells(path: Path) -> None:
    """A table of counts: two nested areas, sex and age groups."""
    rng = np.random.default_rng(8)
    rows = [
        (f"C{a // 8}", f"D{a:03d}", s, g) for a in range(40) for s in "FM" for g in ("0-14", "15-64", "65+")
    ]
    table = pa.table(
        {
            "county": [row[0] for row in rows],
            "district": [row[1] for row in rows],
            "sex": [row[2] for row in rows],
            "age": [row[3] for row in rows],
            "n": rng.poisson(rng.gamma(1.5, 10, len(rows))),
        }
    )
    pq.write_table(table, path)
