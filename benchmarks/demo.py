"""``discreet demo``: census, check, protection, release and verification; the first run ever, and a later one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

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
    notes = ("A later run finds its compiled kernels; the first run ever compiles them.",)
    lines = (line, replace(line, who="... first run ever", cost=new, targets=(ratio,)))
    return [Section("The demonstration", lines, notes)]


def first(watch: Stopwatch, persons: int) -> dict[str, float]:
    """Run it with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", MAIN, "demo", "--quiet", "--persons", str(persons), "--out"]
        with watch.commands():
            subprocess.run(
                [*command, f"{place}/demo"],
                check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": f"{place}/kernels"},
            )
    return {"peak": peak_of_commands()}


def shown(watch: Stopwatch, persons: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", MAIN, "demo", "--quiet", "--persons", str(persons), "--out"]
        subprocess.run([*command, f"{place}/warm"], check=True)
        with watch.commands():
            subprocess.run([*command, f"{place}/demo"], check=True)
        if not (Path(place) / "demo" / "release" / "manifest.json").exists():
            raise RuntimeError("the demo made no release, so its time means nothing")
    return {"peak": peak_of_commands()}
