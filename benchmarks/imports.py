"""Starting: how long ``import discreet``, the library and the command line take in a new process.

What ``protect`` imports are the modules that a process has when it has protected a census, imported by another one. Its
kernels are machine code that was stored before, so that Numba is not among them; a release with noise for a guarantee,
a swap or a ledger imports more. These modules and the libraries are imported with the settings of a command, with which
NumPy's BLAS starts no threads; a notebook has none of them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.costs import Cost, Stopwatch, measured, peak_of_commands
from benchmarks.demo import MAIN
from benchmarks.lines import Line, Section, Target

PERSONS = 0
STARTS = {
    "import discreet": ["-c", "import discreet"],
    "discreet --help": ["-c", MAIN, "--help"],
}
BOUND, PROTECT = "discreet risk bound", "what protect imports"
NOTEBOOK = "import discreet, and protect looked up"
LIBRARIES = {  # below which it cannot be: command -> libraries that it needs
    BOUND: "import numpy, typer",
    PROTECT: "import numpy, typer, pydantic.fields, pyarrow.parquet, llvmlite.binding",
}
CPU = {PROTECT: 0.7, BOUND: 0.4}
RATIO = {BOUND: 1.5, NOTEBOOK: 1.3}  # to its libraries; of a notebook to what protect imports
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
import discreet.cli
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
    lines = [
        Line("python -c pass", "Python only", bare),
        Line("import numpy, numba, pyarrow.parquet", "libraries that compiling needs", floor),
    ]
    for name, arguments in STARTS.items():
        cost = measured("imports", "started", repeats, arguments=arguments)
        targets = (Target("wall s", cost.wall, 0.1),) if name == "import discreet" else ()
        lines.append(Line(name, "Discreet", cost, targets=targets))
    commands = {  # the last is what a notebook is compared with
        BOUND: ["-c", MAIN, "risk", "bound", "--D", "5", "--V", "2", "--json"],
        PROTECT: ["-c", IMPORTING, *imported_by_protect()],
    }
    for name, arguments in commands.items():
        least = measured(
            "imports", "started", repeats, arguments=["-c", f"import discreet.cli; {LIBRARIES[name]}"]
        )
        cost = measured("imports", "started", repeats, arguments=arguments)
        lines += [Line(LIBRARIES[name], f"libraries of {name}", least), _compared(name, cost, least)]
    notebook = measured("imports", "started", repeats, arguments=["-c", "import discreet; discreet.protect"])
    lines.append(_compared(NOTEBOOK, notebook, cost))
    return [Section("Starting", tuple(lines))]


def _compared(name: str, cost: Cost, least: Cost) -> Line:
    ratio = cost.cpu / least.cpu
    targets = [Target("CPU s", cost.cpu, CPU[name])] if name in CPU else []
    targets += [Target("CPU against that", ratio, RATIO[name])] if name in RATIO else []
    return Line(name, "Discreet", cost, ratio, tuple(targets))


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
