"""Starting: how long ``import discreet``, the library and the command line take in a new process.

Numba is imported when a kernel is first called; every release calls one, so that what protect imports includes it.
"""

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
    "what protect imports": ["-c", "import discreet.cli.protect, numba"],
    "discreet risk bound": ["-c", MAIN, "risk", "bound", "--D", "5", "--V", "2", "--json"],
}
CPU = {"what protect imports": 0.7, "discreet risk bound": 0.4}


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    bare = measured("imports", "started", repeats, arguments=["-c", "pass"])
    floor = measured("imports", "started", repeats, arguments=["-c", "import numpy, numba, pyarrow.parquet"])
    lines = [
        Line("python -c pass", "Python alone", bare),
        Line("import numpy, numba, pyarrow.parquet", "libraries that every release needs", floor),
    ]
    for name, arguments in STARTS.items():
        cost = measured("imports", "started", repeats, arguments=arguments)
        targets = [Target("CPU s", cost.cpu, CPU[name])] if name in CPU else []
        targets += [Target("wall s", cost.wall, 0.1)] if name == "import discreet" else []
        lines.append(Line(name, "Discreet", cost, targets=tuple(targets)))
    return [Section("Starting", tuple(lines))]


def started(watch: Stopwatch, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, *arguments]
    first = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # fills the caches too
    if "--help" in arguments and "protect" not in first.stdout:
        raise RuntimeError("no help was shown, so its time means nothing")
    with watch.commands():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return {"peak": peak_of_commands()}
