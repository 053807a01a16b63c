"""``discreet demo`` on a warm environment: census, check, protection, release and verification."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.costs import Stopwatch, measured, peak_of_commands
from benchmarks.lines import Line, Section, Target

PERSONS = 200_000
MAIN = "from discreet.cli.app import main; main()"


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    cost = measured("demo", "shown", persons=persons)
    target = Target("wall s", cost.wall, 30, 1)
    line = Line(f"discreet demo, {persons:,} persons", "Discreet", cost, targets=(target,))
    return [Section("The demonstration", (line,), ("The second of two runs.",))]


def shown(watch: Stopwatch, persons: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", MAIN, "demo", "--quiet", "--persons", str(persons), "--out"]
        subprocess.run([*command, f"{place}/warm"], check=True)
        with watch.commands():
            subprocess.run([*command, f"{place}/demo"], check=True)
        if not (Path(place) / "demo" / "release" / "manifest.json").exists():
            raise RuntimeError("the demo made no release, so its time means nothing")
    return {"peak": peak_of_commands()}
