"""The benchmarks of Discreet: ``python -m benchmarks [SUBJECT ...] [--persons N] [--data FOLDER]``."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.lines import Section

SUBJECTS = (
    "imports",
    "ptable",
    "keys",
    "noise",
    "zero_cells",
    "microaggregation",
    "inference",
    "reconstruction",
    "differencing",
    "least_squares",
    "judging",
    "tree",
    "sixway",
    "ons",
    "counting",
    "ingest",
    "library",
    "demo",
    "streaming",
    "growth",
    "spark",
    "swap",
    "serve",
    "page",
    "history",
)
LIBRARIES = ("numpy", "numba", "pyarrow", "duckdb", "pandas", "cell-key-perturbation", "opendp")
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str]) -> int:
    asked = _options(arguments)
    sections: list[Section] = []
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as place:
        data = asked.data or Path(place)
        data.mkdir(parents=True, exist_ok=True)
        for subject in asked.subjects or SUBJECTS:
            for section in _measured(subject, data, asked.persons, asked.repeat):
                print("\n".join(section.markdown()), flush=True)
                sections.append(section)
    path = _write(sections, asked.results)
    missed = [line for section in sections for line in section.lines if not all(t.met for t in line.targets)]
    print(f"{path}: {len(missed)} targets missed" if missed else f"{path}: every target met")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"any of {', '.join(SUBJECTS)}; default: all"
    )
    parser.add_argument(
        "--persons", type=int, help="how many persons or records, instead of each subject's own number"
    )
    parser.add_argument(
        "--data", type=Path, help="a folder that keeps the synthetic censuses for the next run"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the dated Markdown file goes")
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of the quick measurements, of which the best counts"
    )
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.subjects) - set(SUBJECTS))
    if unknown:
        parser.error(f"no subject {unknown[0]!r}; choose from {', '.join(SUBJECTS)}")
    return asked


def _measured(subject: str, data: Path, persons: int | None, repeats: int) -> Iterator[Section]:
    module = import_module(f"benchmarks.{subject}")
    begun = time.perf_counter()
    yield from module.sections(data, persons or module.PERSONS, repeats)
    print(f"({subject}: {time.perf_counter() - begun:.0f} s)\n", flush=True)


def _write(sections: Sequence[Section], folder: Path) -> Path:
    today = datetime.now(UTC).date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{today}.md"
    body = "\n".join(line for section in sections for line in section.markdown())
    path.write_text(f"# Benchmarks of {today}\n\n{_machine()}\n\n{body}", encoding="utf-8")
    return path


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"Machine: {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB of memory, {platform.system()}. "
        f"Discreet {version('discreet')}{_commit()}, Python {platform.python_version()}, {versions}.\n\n"
        "How to read this: benchmarks/README.md. Every line was measured in a process of its own, in one run."
    )


def _commit() -> str:
    """The commit that was measured, where git knows it."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return f" ({subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()})"
    except (OSError, subprocess.CalledProcessError):
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
