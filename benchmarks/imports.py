"""Starting: how long ``import discreet``, the library and the command line take in a new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.costs import Stopwatch, measured, peak_of_commands
from benchmarks.demo import MAIN
from benchmarks.lines import Line, Section, Target

PERSONS = 0
STARTS = {
    "import discreet": ["-c", "import discreet"],
    "import discreet, and protect looked up": ["-c", "import discreet; discreet.protect"],
    "discreet --help": ["-c", MAIN, "--help"],
}


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    bare = measured("imports", "started", repeats, arguments=["-c", "pass"])
    lines = [Line("python -c pass", "Python alone", bare)]
    for name, arguments in STARTS.items():
        cost = measured("imports", "started", repeats, arguments=arguments)
        targets = (Target("wall s", cost.wall, 0.5),) if name == "import discreet" else ()
        lines.append(Line(name, "Discreet", cost, targets=targets))
    return [Section("Starting", tuple(lines))]


def started(watch: Stopwatch, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, *arguments]
    first = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # fills the caches too
    if "--help" in arguments and "protect" not in first.stdout:
        raise RuntimeError("no help was shown, so its time means nothing")
    with watch.commands():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return {"peak": peak_of_commands()}
