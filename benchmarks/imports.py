"""Starting: how long ``import discreet``, the library and the command line take in a new process.

What ``protect`` imports are the modules that a process has when it has protected a census, imported by another one. Its
kernels are machine code that was stored before, so that Numba is not among them; a release with noise for a guarantee,
a swap or a ledger imports more.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.costs import Stopwatch, measured, peak_of_commands
from benchmarks.demo import MAIN
from benchmarks.lines import Line, Section, Target

PERSONS = 0
STARTS = {
    "import discreet": ["-c", "import discreet"],
    "import discreet, and protect looked up": ["-c", "import discreet; discreet.protect"],
    "discreet --help": ["-c", MAIN, "--help"],
    "discreet risk bound": ["-c", MAIN, "risk", "bound", "--D", "5", "--V", "2", "--json"],
}
LIBRARIES = {  # below which no command can be
    "import numpy, typer, typer._adapters": "libraries that any command with numbers needs, pydantic among them",
    "import numpy, typer, typer._adapters, pyarrow.parquet, llvmlite.binding": "libraries that protect needs",
}
PROTECT = "what protect imports"
CPU = {PROTECT: 0.7, "discreet risk bound": 0.4}
PROTECTING = """
import sys
from contextlib import suppress
before = set(sys.modules)
from discreet.cli.app import main
with suppress(SystemExit):
    main()
print(*(name for name in sys.modules if name not in before))
"""
IMPORTING = """
import sys
from contextlib import suppress
from importlib import import_module
from discreet.lazy import importing, leave_pandas_out
with importing():
    import pyarrow
    leave_pandas_out()  # as a command does
    for name in sys.argv[1:]:
        with suppress(ImportError):  # made by another module
            import_module(name)
"""


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    bare = measured("imports", "started", repeats, arguments=["-c", "pass"])
    floor = measured("imports", "started", repeats, arguments=["-c", "import numpy, numba, pyarrow.parquet"])
    libraries = [
        Line(name, who, measured("imports", "started", repeats, arguments=["-c", name]))
        for name, who in LIBRARIES.items()
    ]
    lines = [
        Line("python -c pass", "Python alone", bare),
        Line("import numpy, numba, pyarrow.parquet", "libraries that compiling needs", floor),
        *libraries,
    ]
    for name, arguments in {**STARTS, PROTECT: ["-c", IMPORTING, *imported_by_protect()]}.items():
        cost = measured("imports", "started", repeats, arguments=arguments)
        targets = [Target("CPU s", cost.cpu, CPU[name])] if name in CPU else []
        targets += [Target("wall s", cost.wall, 0.1)] if name == "import discreet" else []
        lines.append(Line(name, "Discreet", cost, targets=tuple(targets)))
    return [Section("Starting", tuple(lines))]


def imported_by_protect() -> list[str]:
    """The modules of a process that has protected a small census, in the order in which they were imported."""
    with tempfile.TemporaryDirectory() as place:
        for words in (
            ["-m", "discreet", "synth", "--persons", "5000", "--out", f"{place}/census", "--quiet"],
            ["-m", "discreet", "secret", "--out", f"{place}/key"],
        ):
            subprocess.run([sys.executable, *words], check=True)
        protect = [
            "protect",
            f"{place}/census/programme.toml",
            "--secret",
            f"{place}/key",
            "--quiet",
            "--out",
        ]
        for release in ("first", "second"):  # the first stores its kernels
            command = [sys.executable, "-c", PROTECTING, *protect, f"{place}/{release}"]
            shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        if not Path(place, "second/manifest.json").exists():
            raise RuntimeError("nothing was protected, so its imports mean nothing")
    return shown.split()


def started(watch: Stopwatch, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, *arguments]
    first = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # fills the caches too
    if "--help" in arguments and "protect" not in first.stdout:
        raise RuntimeError("no help was shown, so its time means nothing")
    with watch.commands():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return {"peak": peak_of_commands()}
