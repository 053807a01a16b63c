"""Targeted record swapping from files to moves: risk, pairing and what is carried along; cost against size and k."""

from __future__ import annotations

from pathlib import Path

from benchmarks.census import SECRET, census
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.programme.programme import Programme, load_programme
from discreet.swap.swapping import swap

PERSONS = 10_000_000
SMALL = 5_000  # persons of the census that loads the compiled kernels
MEMORY = 1.5  # GB
TIMES = 3  # what swapping most households may cost against swapping few
SECONDS = {1_000_000: 3, 10_000_000: 22}
FEW = '["AGE.M", "SEX", "COC.L", "HST.L"]'
MANY = '["AGE.M", "SEX", "EDU", "OCC", "IND.L"]'
RATES = {3: 0.02, 6: 0.7}
RULE = """
[swap]
k = {k}
risk = {risk}
similar = [["HHTYPE", {{ composition = ["AGE.L"] }}], ["HHSIZE", "HHTYPE"], ["HHSIZE"]]
rate = {rate}
carry = ["grid_x", "grid_y", "grid", "loc"]
exclude = 'HAR in ("2", "3")'
"""


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    census(data, SMALL)
    lines: list[Line] = []
    for size in (persons // 100, persons // 10, persons):
        few, many = (_cost(data, size, k, risk, repeats) for k, risk in ((3, FEW), (6, MANY)))
        lines.append(_line(size, 3, few, ()))
        lines.append(_line(size, 6, many, (Target("CPU against k = 3", many.cpu / few.cpu, TIMES),)))
    notes = (
        "Reading Parquet, risk at four levels, pairing with three profiles, and four carried columns, in one figure.",
        "k = 6 uses more risk variables and a rate of 70 %, so that most households are swapped.",
    )
    return [Section("Record swapping", tuple(lines), notes)]


def _cost(data: Path, persons: int, k: int, risk: str, repeats: int) -> Cost:
    times = repeats if persons <= 1_000_000 else 1
    folders = {"folder": str(census(data, persons)), "small": str(census(data, SMALL))}
    return measured("swap", "exchange", times, k=k, risk=risk, **folders)


def _line(persons: int, k: int, cost: Cost, targets: tuple[Target, ...]) -> Line:
    targets += (Target("GB", cost.peak, MEMORY),)
    if persons in SECONDS:
        targets += (Target("CPU s", cost.cpu, SECONDS[persons]),)
    work = f"{persons:,} persons, k = {k}, {cost.facts['swapped']:.0%} of the households swapped"
    return Line(work, "Discreet", cost, targets=targets)


def exchange(watch: Stopwatch, folder: str, small: str, k: int, risk: str) -> dict[str, float]:
    swap(_programme(Path(small), k, risk), SECRET, 2)  # loads the compiled kernels
    declared = _programme(Path(folder), k, risk)
    with watch.running():
        result = swap(declared, SECRET, 2)
    return {"swapped": result.swapped / len(result.households)}


def _programme(folder: Path, k: int, risk: str) -> Programme:
    path = folder / f"swap-{k}.toml"
    path.write_text((folder / "programme.toml").read_text() + RULE.format(k=k, risk=risk, rate=RATES[k]))
    return load_programme(path)
