"""A small census and its protected tables, built by hand: the same cell has the same value in every cube."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from discreet.formats.publication import Publication
from discreet.formats.writers import with_parquet
from discreet.perturb.noise import cell_key_noise
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist, with_level_names
from discreet.programme.cube import Cube
from discreet.programme.release import Disclosure, ReleaseFormat
from discreet.release.assemble import release_manifest, write_cube, write_shared
from discreet.release.folder import ReleaseFolder
from discreet.release.manifest import CubeEntry, Digests, FileEntry, Manifest
from discreet.tabulate.tables import ProtectedTable

ALL = tuple(ReleaseFormat)

_GEO = codelist(
    "GEO",
    [
        Code("AT1", "", "East & <North>"),
        Code("AT11", "AT1", 'Burgen"land"'),
        Code("AT12", "AT1", "Lower Austria, rural"),
        Code("AT2", "", "South's"),
        Code("AT21", "AT2", "Kärnten"),
    ],
)
_AGE = codelist(
    "AGE",
    [Code(f"{band}", "", f"band {band}") for band in (1, 2)]
    + [Code(f"{band}.{part}", f"{band}", "part") for band in (1, 2) for part in (1, 2, 3)],
)
SEX_CODES = codelist("SEX", [Code("1", "", "=male"), Code("2", "", "female")])


def _both(variable: str, tree: Codelist) -> Iterable[Breakdown]:
    cuts = {"L": 1, "M": 2}
    made = {name: breakdown(variable, name, tree, tree.level(depth)) for name, depth in cuts.items()}
    return with_level_names(made).values()


GEO_L, GEO_M = _both("GEO", _GEO)
AGE_L, AGE_M = _both("AGE", _AGE)
SEX = breakdown("SEX", "SEX", SEX_CODES, SEX_CODES.leaves)

PUBLICATION = Publication(
    "small",
    "NSI",
    "1.0",
    cell_key_noise(variance=2.0, bound=5).public(Disclosure.VARIANCE),
    title="A small census",
)


def cube(name: str, *axes: Breakdown, title: str = "", weight: str | None = None) -> Cube:
    return Cube(name, "persons", axes, title=title, weight=weight)


def table(of: Cube, version: int = 0) -> ProtectedTable:
    """A value for every cell from a hash of what the cell describes; about a third of the cells are zero."""
    nodes = itertools.product(*(range(len(axis)) for axis in of.axes))
    values = np.array([_value(of.axes, cell, version) for cell in nodes], dtype=np.int64)
    cells = np.flatnonzero(values)
    weighted = (values[cells] * 1.26).astype(np.float64) if of.weight else None
    return ProtectedTable(of, cells.astype(np.int64), values[cells], weighted)


def _value(axes: Sequence[Breakdown], nodes: Sequence[int], version: int) -> int:
    pairs = sorted((axis.variable, axis.codes[node]) for axis, node in zip(axes, nodes, strict=True) if node)
    number = zlib.crc32(repr((pairs, version)).encode())
    return 0 if pairs and number % 3 == 0 else 1 + number % 1000


def cubes() -> tuple[Cube, ...]:
    return (
        cube("1.1", GEO_M, SEX, AGE_L, title="Region, sex and age"),
        cube("2.1", SEX, AGE_M, GEO_L, title="The same | with more age"),
        cube("3 a/b", AGE_M, title="Age"),
    )


def publish(
    target: Path,
    *,
    version: int = 0,
    formats: Sequence[ReleaseFormat] = (ReleaseFormat.PARQUET,),
    tables: Sequence[ProtectedTable] | None = None,
    run_id: str = "run1",
    before_publish: Callable[[], None] = lambda: None,
) -> Manifest:
    """Write and publish a whole release as a pipeline does."""
    tables = [table(of, version) for of in cubes()] if tables is None else tables
    wanted = with_parquet(formats)
    with ReleaseFolder(target, run_id) as folder:
        entries = [
            folder.finished(one.cube.id) or write_cube(folder, one, PUBLICATION, wanted) for one in tables
        ]
        files = write_shared(folder, [one.cube for one in tables], entries, wanted, PUBLICATION)
        made = manifest(entries, files)
        before_publish()
        folder.publish(made)
    return made


def manifest(entries: Sequence[CubeEntry], files: Sequence[FileEntry]) -> Manifest:
    return release_manifest(
        PUBLICATION, entries, files, Digests(inputs="11", parameters="22", ptable="33"), "44"
    )
