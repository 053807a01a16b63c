"""``discreet demo``: census, check, protection, release and verification; the first run ever, and a later one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tools.wheel import built

from benchmarks.costs import Stopwatch, measured, peak_of_commands
from benchmarks.lines import Line, Section, Target

PERSONS = 200_000
MAIN = "from discreet.cli.app import main; main()"


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    cost = measured("demo", "shown", persons=persons)
    target = Target("wall s", cost.wall, 30, 1)
    line = Line(f"discreet demo, {persons:,} persons", "Discreet", cost, targets=(target,))
    new = measured("demo", "first", persons=persons)
    ratio = Target("CPU against a later run", new.cpu / cost.cpu, 1.6)
    compiled = measured("demo", "compiling", persons=persons)
    notes = ("A wheel brings the machine code of its kernels; without it, the first run compiles them.",)
    lines = (
        line,
        replace(line, who="... first run of a new installation from the wheel", cost=new, targets=(ratio,)),
        replace(line, who="... without stored machine code", cost=compiled, targets=()),
    )
    return [Section("The demonstration", lines, notes)]


def first(watch: Stopwatch, persons: int) -> dict[str, float]:
    """Run it as the first command of an installation from the wheel; its dependencies are those of this one."""
    with tempfile.TemporaryDirectory() as place:
        wheel = built(Path(place))
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--target", f"{place}/installed", str(wheel)], check=True)
        _new(watch, persons, place, PYTHONPATH=f"{place}/installed")
    return {"peak": peak_of_commands()}


def compiling(watch: Stopwatch, persons: int) -> dict[str, float]:
    """Run it with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as place:
        _new(watch, persons, place)
    return {"peak": peak_of_commands()}


def _new(watch: Stopwatch, persons: int, place: str, **settings: str) -> None:
    command = [sys.executable, "-P", "-c", MAIN, "demo", "--quiet", "--persons", str(persons), "--out"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": f"{place}/kernels", **settings}
    with watch.commands():
        subprocess.run([*command, f"{place}/demo"], check=True, env=environment, cwd=place)


def shown(watch: Stopwatch, persons: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", MAIN, "demo", "--quiet", "--persons", str(persons), "--out"]
        subprocess.run([*command, f"{place}/warm"], check=True)
        with watch.commands():
            subprocess.run([*command, f"{place}/demo"], check=True)
        if not (Path(place) / "demo" / "release" / "manifest.json").exists():
            raise RuntimeError("the demo made no release, so its time means nothing")
    return {"peak": peak_of_commands()}
