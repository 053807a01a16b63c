"""Mean absolute errors by level and query of what ``discreet protect`` publishes: estimates and tables of both fits.

One cube has the whole histogram of every area of every level with all margins, so that every query is in it. A snapshot
gives both fits the same noise. True counts are summed from the records.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section
from benchmarks.tree_files import tree_files
from discreet.io.register import Register
from discreet.pipeline.protect import protect
from discreet.programme.cube import Cube
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release

SYNTHETIC_BLOCKS = 5_000
GROUPS_OF_A_COUNTY = 20
SMALL, LARGE = 10, 100  # true counts by whose size mean errors are shown
RELEASES = 3
SECRET = bytes(range(32))
BLOCKS = Path("ohio2010") / "franklin_blocks.parquet"
CELLS = Path("ohio2010") / "franklin_sf1_p12_cells.parquet"
FITS = ("tree", "own-level")

OHIO = """
[population]
persons = "persons.parquet"
person_id = "pid"
geography = ["geo"]
[variables.GEO]
codelist = "geo.csv"
of = "person"
breakdowns = { County = 0, Tract = 1, Block_Group = 2, Block = 3 }
[variables.RACE]
codelist = "race.csv"
of = "person"
[variables.SEX]
codelist = "sex.csv"
of = "person"
[variables.AGE]
codelist = "age.csv"
of = "person"
[[cubes]]
id = "all"
axes = ["GEO.Block", "RACE", "SEX", "AGE"]
[noise]
kind = "hierarchical"
geography = "GEO"
rho = "293764/114921"
neighbours = "substitute"
snapshot = "SNAPSHOT"
fit = "FIT"
outputs = [OUTPUTS]
[noise.strategy]
histogram = ["RACE", "SEX", "AGE"]
levels = { County = "1/4", Tract = "1/4", Block_Group = "1/4", Block = "1/4" }
[noise.strategy.queries]
County = { total = "1/4", RACE = "1/4", "SEX*AGE" = "1/4", detailed = "1/4" }
Tract = { total = "1/4", RACE = "1/4", "SEX*AGE" = "1/4", detailed = "1/4" }
Block_Group = { total = "1/4", RACE = "1/4", "SEX*AGE" = "1/4", detailed = "1/4" }
Block = { total = "1/4", RACE = "1/4", "SEX*AGE" = "1/4", detailed = "1/4" }
[noise.invariants]
totals = ["County"]
"""


@dataclass(frozen=True)
class _Case:
    """A programme with places for snapshot, fit and outputs, and the queries whose errors are compared."""

    folder: Path
    text: str
    queries: Mapping[str, Sequence[str]]  # name -> the variables that it crosses
    releases: int


def accuracy(data: Path) -> list[Section]:
    """The tables of the synthetic census and, where its data are, of the county."""
    found = [_section("a synthetic census", measured("tree_accuracy", "synthetic"))]
    if (data / CELLS).exists():
        cost = measured("tree_accuracy", "ohio", data=str(data))
        found.append(_section("Franklin County, Ohio, 2010", cost))
    return found


def _section(name: str, cost: Cost) -> Section:
    notes = tuple(
        f"{where}: estimates {values[0]:.4g}, fit tree {values[1]:.4g}, fit own-level {values[2]:.4g}; "
        f"bias below {SMALL}, below {LARGE} and above: {_signed(values[3:6])}, own-level {_signed(values[6:])}"
        for where, values in cost.facts["errors"].items()
    )
    work = f"{cost.facts['areas']:,} areas, {cost.facts['releases']} releases, each fitted twice"
    return Section(f"Mean absolute errors through protect, {name}", (Line(work, "Discreet", cost),), notes)


def _signed(values: Sequence[float]) -> str:
    return ", ".join(f"{one:+.3g}" for one in values)


def synthetic(watch: Stopwatch) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        path = tree_files(Path(place), SYNTHETIC_BLOCKS, ("counts",), 2, GROUPS_OF_A_COUNTY)
        text = path.read_text(encoding="utf-8").replace('snapshot = "2020"', 'snapshot = "SNAPSHOT"')
        text = text.replace('outputs = ["counts"]', 'fit = "FIT"\noutputs = [OUTPUTS]')
        first, last = text.index("[[cubes]]"), text.index("[noise]")
        cube = (
            '[[cubes]]\nid = "all"\naxes = ["GEO.Block", "HHGQ.FULL", "VOTINGAGE", "HISPANIC", "CENRACE"]\n\n'
        )
        text = text[:first] + cube + text[last:] + "published = 100000000\n"
        queries = {
            "total": (),
            "hhgq": ("HHGQ",),
            "votingage": ("VOTINGAGE",),
            "hispanic*cenrace": ("HISPANIC", "CENRACE"),
            "detailed": ("HHGQ", "VOTINGAGE", "HISPANIC", "CENRACE"),
        }
        return _errors(watch, _Case(Path(place), text, queries, RELEASES))


def ohio(watch: Stopwatch, data: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        _ohio_files(Path(place), Path(data))
        queries = {
            "total": (),
            "race": ("RACE",),
            "sex*age": ("SEX", "AGE"),
            "detailed": ("RACE", "SEX", "AGE"),
        }
        return _errors(watch, _Case(Path(place), OHIO, queries, RELEASES))


def _ohio_files(folder: Path, data: Path) -> None:
    """The whole county as records: all its blocks, empty ones too."""
    blocks = sorted(pq.read_table(data / BLOCKS)["block"].to_pylist())
    tracts, groups = dict.fromkeys(one[:11] for one in blocks), dict.fromkeys(one[:12] for one in blocks)
    rows = [(f"T{one}", "") for one in tracts]
    rows += [(f"G{one}", f"T{one[:11]}") for one in groups]
    rows += [(f"B{one}", f"G{one[:12]}") for one in blocks]
    cells = pq.read_table(data / CELLS)
    columns = {"geo": pa.array([f"B{one}" for one in cells["block"].to_pylist()])}
    _codelist(folder / "geo.csv", rows)
    for name in ("race", "sex", "age"):
        text = cells[name].cast(pa.string()).combine_chunks()
        listed = sorted(pc.unique(text).to_pylist())
        codes = {label: f"{name[0].upper()}{at:02d}" for at, label in enumerate(listed)}
        _codelist(folder / f"{name}.csv", [(code, "") for code in codes.values()])
        columns[name] = pa.array([codes[label] for label in text.to_pylist()])
    row = np.repeat(np.arange(len(cells)), cells["count"].to_numpy())
    persons = pa.table({"pid": np.arange(len(row)), **{name: one.take(row) for name, one in columns.items()}})
    pq.write_table(persons, folder / "persons.parquet")


def _codelist(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    lines = [f"{code},{parent},{code}" for code, parent in rows]
    path.write_text("\n".join(["code,parent,label", *lines]) + "\n", encoding="utf-8")


def _errors(watch: Stopwatch, case: _Case) -> dict[str, object]:
    found: list[dict[str, list[float]]] = []
    register = Register.of(case.folder / "register", SECRET)
    for number in range(case.releases):
        by_fit = {}
        for fit in FITS:
            outputs = ("counts", "estimates") if fit == "tree" else ("counts",)
            text = case.text.replace("SNAPSHOT", str(number)).replace('"FIT"', f'"{fit}"')
            path = case.folder / "programme.toml"
            path.write_text(text.replace("OUTPUTS", ", ".join(f'"{one}"' for one in outputs)))
            out = case.folder / f"{fit}{number}"
            with watch.running():
                protect(
                    load_programme(path),
                    SECRET,
                    out,
                    case.folder / "private.json",
                    clock=lambda: datetime.now(UTC),
                    threads=2,
                    register=register,
                )
            by_fit[fit] = out
        found.append(_compared(case, by_fit["tree"], by_fit["own-level"]))
    mean = {where: np.mean([one[where] for one in found], axis=0).tolist() for where in found[0]}
    geography = load_programme(case.folder / "programme.toml").cubes[0].axes[0]
    return {"errors": mean, "releases": case.releases, "areas": len(geography)}


def _compared(case: _Case, tree: Path, own_level: Path) -> dict[str, list[float]]:
    """Level and query -> mean absolute errors of estimates and both fits; mean errors of both by the size of counts."""
    programme = load_programme(case.folder / "programme.toml")
    (cube,) = programme.cubes
    true = _true(cube, case.folder)
    published = pq.read_table(tree / "estimates" / f"{cube.id}.parquet", columns=["estimate"])
    compared = [published["estimate"].to_numpy(), *(_grid(cube, release) for release in (tree, own_level))]
    levels = [str(one.level) for one in programme.hierarchy.strategy.levels] if programme.hierarchy else []
    inside = np.arange(cube.strides[0])  # the cells of one area
    found = {}
    for depth, level in enumerate(levels):
        areas = np.flatnonzero(cube.axes[0].depths == depth)
        for query, names in case.queries.items():
            asked = np.ones(len(inside), dtype=bool)
            for k, axis in enumerate(cube.axes[1:], start=1):
                nodes = cube.nodes(inside, k)
                asked &= axis.finest[nodes] if axis.variable in names else nodes == 0
            cells = areas[:, None] * len(inside) + inside[asked]
            errors = [one[cells] - true[cells] for one in compared]
            means = [float(np.abs(one).mean()) for one in errors]
            sizes = (
                true[cells] < SMALL,
                (true[cells] >= SMALL) & (true[cells] < LARGE),
                true[cells] >= LARGE,
            )
            means += [float(one[some].mean()) if some.any() else 0.0 for one in errors[1:] for some in sizes]
            found[f"{level}, {query}"] = means
    return found


def _true(cube: Cube, folder: Path) -> NDArray[np.int32]:
    """The true counts of all cells: every person is in one node of every depth of every axis."""
    records = pq.read_table(folder / "persons.parquet")
    finest = np.zeros(len(records), dtype=np.int64)
    for axis, stride in zip(cube.axes, cube.strides, strict=True):
        column = records[axis.variable.lower()].cast(pa.string())
        node = pc.index_in(column, value_set=pa.array(axis.codes)).to_numpy()
        finest += node.astype(np.int64) * stride
    listed, counts = np.unique(finest, return_counts=True)
    found = np.zeros(cube.size, dtype=np.int32)
    found[listed] = counts
    for axis, stride in zip(cube.axes, cube.strides, strict=True):
        shaped = found.reshape(-1, len(axis), stride)
        for node in range(len(axis) - 1, 0, -1):
            shaped[:, axis.parents[node]] += shaped[:, node]
    return found


def _grid(cube: Cube, release: Path) -> NDArray[np.int32]:
    """The whole counts of all cells; those that are not listed are 0."""
    table = open_release(release).read_cube(cube.id)
    place = np.zeros(len(table), dtype=np.int64)
    for axis, stride in zip(cube.axes, cube.strides, strict=True):
        column = table[axis.variable].cast(pa.string())
        node = pc.index_in(column, value_set=pa.array(axis.codes)).to_numpy()
        place += node.astype(np.int64) * stride
    found = np.zeros(cube.size, dtype=np.int32)
    found[place] = table["value"].to_numpy()
    return found
