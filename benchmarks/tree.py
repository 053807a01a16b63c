"""Hierarchical release: time and memory of whole trees, fits of single parents against other solvers, and accuracy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.costs import Cost, Stopwatch, measured, peak_of_commands
from benchmarks.lines import Line, Section, Target
from benchmarks.tree_accuracy import accuracy
from benchmarks.tree_census import tree_census
from benchmarks.tree_files import tree_files
from benchmarks.tree_solvers import fits_of_block_groups
from discreet.hierarchy.integers import integers, limits_of
from discreet.hierarchy.measure import measure
from discreet.io.secret import make_secret
from discreet.programme.strategy import pl94_2020

PERSONS = 26_000_000
PERSONS_OF_A_BLOCK = 37
SMALL_BLOCKS = 50_000
SMALL_CPU = 15.0
MINUTES, GIGABYTES = 10.0, 12.0
KEY = bytes(range(32))
OUTPUTS = ("counts", "estimates", "measurements")


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del repeats
    blocks = max(persons // PERSONS_OF_A_BLOCK, 1)
    small = measured("tree", "release", blocks=min(blocks, SMALL_BLOCKS), threads=1)
    large = measured("tree", "release", blocks=blocks, threads=2)
    cpu = Target("CPU s", small.cpu, SMALL_CPU, 1)
    whole = Section(
        "Hierarchical release, without reading and writing",
        (_line(small, (cpu,)), _line(large, _limits(large))),
        (
            (
                "State > county > tract > block group > block, 2,016 cells, shares of pl94-2020, exact state totals, "
                "bounds by group quarters; measured, fitted, rounded."
            ),
        ),
    )
    return [whole, _through_protect(data, blocks), fits_of_block_groups(), *accuracy(data)]


def _limits(cost: Cost) -> tuple[Target, ...]:
    return Target("wall minutes", cost.wall / 60, MINUTES, 1), Target("GB", cost.peak, GIGABYTES, 1)


def _through_protect(data: Path, blocks: int) -> Section:
    """The command from records to a release; data of the census stay in the folder of data."""
    lines = []
    for number in sorted({min(blocks, SMALL_BLOCKS), blocks}):
        cost = measured("tree", "by_command", folder=str(data / f"tree-{number}"), blocks=number)
        work = f"{number:,} blocks: {cost.facts['files']} files, {cost.facts['bytes'] / 1e9:.2f} GB"
        lines.append(Line(work, "discreet protect, 2 threads", cost, targets=_limits(cost)))
    note = (
        "Records in Parquet in; whole counts of two cubes (block groups by age, origin and race; blocks by housing and "
        "age), their estimates with standard errors, and all noisy measurements out, with a manifest and digests."
    )
    return Section("Hierarchical release through discreet protect", tuple(lines), (note,))


def by_command(watch: Stopwatch, folder: str, blocks: int) -> dict[str, float]:
    """The whole command in a process of its own."""
    programme = tree_files(Path(folder), blocks, OUTPUTS)
    with TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        make_secret(place / "secret.key")
        command = [sys.executable, "-m", "discreet", "protect", str(programme), "--threads", "2", "--quiet"]
        command += ["--secret", str(place / "secret.key"), "--out", str(place / "release")]
        with watch.commands():
            subprocess.run(command, check=True)
        files = [path for path in (place / "release").rglob("*") if path.is_file()]
        return {
            "files": len(files),
            "bytes": sum(path.stat().st_size for path in files),
            "peak": peak_of_commands(),
        }


def _line(cost: Cost, targets: tuple[Target, ...]) -> Line:
    facts = cost.facts
    work = f"{facts['blocks']:,} blocks, {facts['persons']:,} persons, {facts['unfinished']} fits unfinished"
    return Line(work, "Discreet", cost, targets=targets)


def release(watch: Stopwatch, blocks: int, threads: int) -> dict[str, int]:
    census = tree_census(blocks, 1)
    with watch.running():
        asked = pl94_2020("persons-us", census.spine.levels)
        limits = limits_of(census.spine, asked, census.counts, ("State",), census.bounds)
        found = integers(measure(census.spine, census.counts, asked, KEY), limits, threads=threads)
    return {"blocks": blocks, "persons": census.persons, "unfinished": found.unfinished}
