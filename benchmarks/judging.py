"""Judging a release beside making it: check, verify, utility, attacks, audit and advice against ``protect``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.census import SECRET, census
from benchmarks.costs import Cost, Stopwatch, measured, peak_of_commands
from benchmarks.lines import Line, Section, Target
from discreet.audit.attack import ATTACKS
from discreet.audit.audit import MEASURES

PERSONS = 10_000_000
SMALL = 5_000  # persons of the census that loads the compiled kernels
SECONDS = {
    "averaging": 68.0,
    "bounds": 31.0,
    "utility": 15.5,
    "check": 8.0,
    "advise": 17.0,
}  # at 10 million persons
SHARED = ("utility", "disclosure")  # measures of an audit that read all tables
TOGETHER = 0.75  # of their costs one after the other
RATIOS = {"check": 1.0, "verify": 1.0, "utility": 1.0, "advise": 1.0, "advise_declared": 0.5}  # to protect
MAIN = "from discreet.cli.app import main; main()"


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del repeats
    folder, small = str(census(data, persons)), str(census(data, SMALL))
    first = _cost("protect", folder, small)
    judged = {name: _cost(name, folder, small) for name in WORK}
    audits = [_cost("audit", folder, small, measures=[name]) for name in SHARED]
    together = _cost("audit", folder, small, measures=SHARED)
    again = _cost("protect", folder, small)
    protect = (first.cpu + again.cpu) / 2
    lines = [Line("protect", "before the others", first), Line("protect", "after the others", again)]
    lines += [_line(name, cost, cost.cpu / protect, persons) for name, cost in judged.items()]
    lines += [
        Line(f"audit of {name}", "Discreet", cost, cost.cpu / protect)
        for name, cost in zip(SHARED, audits, strict=True)
    ]
    shared = Target(
        "CPU against one after the other", together.cpu / sum(one.cpu for one in audits), TOGETHER
    )
    lines.append(
        Line(f"audit of {' and '.join(SHARED)}", "Discreet", together, together.cpu / protect, (shared,))
    )
    notes = (
        f"{persons:,} persons, the whole EU programme, cell key method, V = 2, D = 5; whole commands with imports.",
        "The ratio is to the mean of the two runs of protect. An attack is run with only the named one.",
        "Advice with data ends with what part of the tables excludes: no noise keeps the limits for so many tables.",
        "A proposal for a smaller programme also attacks all its tables, once for each V that is tried.",
    )
    return [Section("Judging beside protecting", tuple(lines), notes)]


WORK = {
    "check": "check",
    "verify": "verify",
    "utility": "utility",
    "advise": "advise",
    "advise_declared": "advise --without-data --population 1",
    "bounds": "attack: bounds only",
    "averaging": "attack: averaging only",
}


def _cost(work: str, folder: str, small: str, **more: Any) -> Cost:
    return measured("judging", work, folder=folder, small=small, **more)


def _line(name: str, cost: Cost, ratio: float, persons: int) -> Line:
    targets: tuple[Target, ...] = ()
    if persons == PERSONS and name in RATIOS:  # of a small census start and declaration are most of the cost
        targets += (Target("CPU against protect", ratio, RATIOS[name]),)
    if persons == PERSONS and name in SECONDS:
        targets += (Target("CPU s", cost.cpu, SECONDS[name], 1),)
    return Line(WORK[name], "Discreet", cost, ratio, targets)


def _run(watch: Stopwatch, folder: str, small: str, *words: str) -> dict[str, float]:
    """One command on a small census, which loads the kernels, and then on the large one, which is measured."""
    for place, clock in ((small, None), (folder, watch)):
        given = [word.format(place=place) for word in words]
        command = [sys.executable, "-c", MAIN, *given, "--quiet"]
        if clock is None:
            _done(command)
        else:
            with clock.commands():
                _done(command)
    return {"peak": peak_of_commands()}


def _done(command: list[str]) -> None:
    done = subprocess.run(command, check=False)
    if done.returncode not in (0, 1):  # 1: a finding, such as a gate that is broken
        raise RuntimeError(f"{command[3]} ended with {done.returncode}, so its time means nothing")


PROGRAMME, RELEASE, KEY = "{place}/programme.toml", "{place}/judged-release", "{place}/judged-secret"
OWN = ("--programme", PROGRAMME, "--secret", KEY)


def protect(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    for place in (folder, small):
        path = Path(KEY.format(place=place))
        path.write_text(SECRET.hex())
        path.chmod(0o600)
        shutil.rmtree(RELEASE.format(place=place), ignore_errors=True)  # one that is replaced is compared
    return _run(watch, folder, small, "protect", PROGRAMME, "--secret", KEY, "--out", RELEASE)


def check(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "check", PROGRAMME)


def verify(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "verify", RELEASE)


def utility(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "utility", RELEASE, *OWN)


def advise(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "advise", PROGRAMME)


def advise_declared(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "advise", PROGRAMME, "--without-data", "--population", "1")


def bounds(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "attack", RELEASE, *_without(ATTACKS, ["bounds"]))


def averaging(watch: Stopwatch, folder: str, small: str) -> dict[str, float]:
    return _run(watch, folder, small, "attack", RELEASE, *_without(ATTACKS, ["averaging"]))


def audit(watch: Stopwatch, folder: str, small: str, measures: list[str]) -> dict[str, float]:
    return _run(watch, folder, small, "audit", RELEASE, *OWN, *_without(MEASURES, measures))


def _without(every: tuple[str, ...], kept: list[str]) -> list[str]:
    return [word for name in every if name not in kept for word in ("--without", name)]
