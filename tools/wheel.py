"""Builds the wheel, with the machine code of the kernels that a first run needs.

``python -m tools.wheel --out FOLDER`` builds it from the files of the repository with the packages of this environment.
On Linux with x86-64 it has standalone kernels, compiled by demonstrations for every processor of a level
(`discreet.kernels`), and is named for this Python and platform; elsewhere it has Python only.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyarrow.csv import write_csv
from pyarrow.parquet import read_table

from discreet.kernels import BROUGHT, FOR_THE_LEVEL, is_of_the_level

ROOT = Path(__file__).parents[1]
PLATFORM = "manylinux_2_28_x86_64"  # of the packages that it depends on; machine code uses only the C library
PERSONS = 20_000, 200_000, 600_000  # of the demonstrations: large columns need kernels that small ones do not
MAIN = "import sys; from discreet.cli.app import main; sys.argv[0] = 'discreet'; main()"


def built(out: Path) -> Path:
    """The wheel in a folder, built from a copy of what the repository has."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        for name in _files():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
        options = _with_machine_code(copy) if platform.system() == "Linux" and is_of_the_level() else []
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
        subprocess.run([*pip, *options, "-w", f"{place}/built", str(copy)], check=True, env=_environment())
        (wheel,) = Path(place, "built").glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, out / wheel.name))


def _files() -> list[str]:
    """The files of the package: those of the repository, or all where there is none."""
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    found = listed or [str(one.relative_to(ROOT)) for one in (ROOT / "src").rglob("*") if one.is_file()]
    kept = (name for name in found if "__pycache__" not in name and (ROOT / name).is_file())
    return [*kept, "pyproject.toml", "README.md", "LICENSE"]


def _with_machine_code(copy: Path) -> list[str]:
    """Compile kernels into a copy; how the wheel is named then."""
    source = copy / "src"
    folder = source / BROUGHT.relative_to(BROUGHT.parents[1])
    settings = {**_environment(), **FOR_THE_LEVEL, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(source)}
    for command in _first_commands(copy):
        run = [sys.executable, "-B", "-c", MAIN, *command]
        subprocess.run(run, check=True, env=settings, cwd=copy, stdout=subprocess.DEVNULL)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    words = f"--python-tag={tag} --plat-name={PLATFORM}"
    return [f"--config-settings=--build-option={words}"]


def _first_commands(folder: Path) -> Iterator[list[str]]:
    """What a new user runs: demonstrations, then the way from a CSV file to a release that is judged."""
    for persons in PERSONS:
        yield ["demo", "--quiet", "--persons", str(persons), "--out", f"demo-{persons}"]
    demo = f"demo-{PERSONS[0]}"
    write_csv(read_table(folder / demo / "census/persons.parquet"), folder / "persons.csv")
    programme, secret = "mine/programme.toml", f"{demo}/secret.key"
    yield ["init", "persons.csv", "--out", "mine", "--quiet"]
    yield ["check", programme, "--quiet"]
    yield ["protect", programme, "--secret", secret, "--out", "release", "--quiet"]
    yield ["verify", "release", "--quiet"]
    yield ["utility", "release", "--programme", programme, "--secret", secret, "--quiet"]


def _environment() -> dict[str, str]:
    """Without settings of Numba that would be part of machine code."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    print(built(parser.parse_args().out))


if __name__ == "__main__":
    _main()
