"""A small census with a flag column, its release, and table builders over both."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.io.progress import Quiet
from discreet.perturb.choose import mechanism
from discreet.pipeline.protect import protect
from discreet.programme.programme import Programme, load_programme
from discreet.programme.serve import ServeRule
from discreet.release.reader import Release, open_release
from discreet.run.run import Run
from discreet.serve.answer import Answer
from discreet.serve.catalogue import programme_catalogue
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from discreet.serve.query import Axis, Query
from discreet.serve.records import EncodedUnit, read_units
from discreet.synth import generate

SECRET = bytes(range(32))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CUBES = """
[[cubes]]
id = "flag"
axes = ["GEO.M", "SEX", "AGE.M"]
count = "works"

[[cubes]]
id = "adults"
axes = ["GEO.L", "CAS.H", "EDU"]
base = 'AGE != "Y_LT15" and SEX == "1"'

[[cubes]]
id = "wide"
axes = ["GEO.H", "SEX", "AGE.H"]
"""
SWAP = """
[swap]
k = 3
risk = ["AGE.L", "SEX"]
similar = [["HHSIZE"]]
rate = 0.05
carry = ["loc"]
"""


@pytest.fixture(scope="session")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4,000 persons, swapped and perturbed by cell keys."""
    folder = tmp_path_factory.mktemp("serve") / "census"
    generate(4000, 7, folder, tables=["1.1", "3.1", "8.1", "33.1", "38.1"], country="MT", threads=1)
    persons = pq.read_table(folder / "persons.parquet")
    works = pa.array(np.arange(len(persons)) % 3 == 0)
    pq.write_table(persons.append_column("works", works), folder / "persons.parquet")
    path = folder / "programme.toml"
    flagged = 'fixed_families = true\nflags = { works = { of = "person" } }\n'
    text = path.read_text().replace("fixed_families = true\n", flagged)
    before, noise, rest = text.partition("[noise]")
    path.write_text(before + CUBES + SWAP + noise + rest)
    return folder


@pytest.fixture(scope="session")
def programme(census: Path) -> Programme:
    return load_programme(census / "programme.toml")


@pytest.fixture(scope="session")
def release(programme: Programme, tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("release")
    protect(programme, SECRET, folder / "r", folder / "p.json", clock=lambda: NOON)
    return open_release(folder / "r")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite", lambda: NOON)


@pytest.fixture(scope="session")
def builder(programme: Programme, tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Over the records, with the default rules but groupings of AGE."""
    store = Store(tmp_path_factory.mktemp("store") / "s.sqlite", lambda: NOON)
    return serve_programme(replace(programme, serve=ServeRule(groupings=("AGE",))), SECRET, store)


@pytest.fixture(scope="session")
def units(programme: Programme) -> dict[str, EncodedUnit]:
    """The records as they are swapped and read; no rule of a table builder changes them."""
    chosen = mechanism(programme, SECRET, SECRET)
    run = Run(programme=programme, secret=SECRET, mechanism=chosen, threads=1, progress=Quiet())
    return read_units(run, programme_catalogue(programme, chosen.noise().public(programme.release.disclose)))


@pytest.fixture
def ruled(
    programme: Programme, store: Store, units: dict[str, EncodedUnit], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., TableBuilder]:
    """Over the records, with other rules."""

    def make(**rules: Any) -> TableBuilder:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.serve.open.read_units", lambda *_: units)
            patch.setattr("discreet.serve.open.place_column_problems", lambda _: [])
            return serve_programme(replace(programme, serve=ServeRule(**rules)), SECRET, store)

    return make


def query(*axes: str, where: str = "", count: str = "", unit: str = "persons") -> Query:
    return Query(unit, tuple(Axis(axis) for axis in axes), where, count)


def cells(answer: object) -> dict[tuple[str, ...], int]:
    """Codes -> value of all cells that are not withheld."""
    assert isinstance(answer, Answer), answer
    found = {}
    for cell, at in enumerate(np.ndindex(*answer.shape)):
        if not answer.withheld[cell]:
            codes = tuple(axis.codes[k] for axis, k in zip(answer.axes, at, strict=True))
            found[codes] = int(answer.values[cell])
    return found


def published(release: Release, cube: str) -> dict[tuple[str, ...], int]:
    """Codes -> value of the cells that a release lists."""
    names = [axis.variable for axis in release.cube(cube).axes]
    return {tuple(row[name] for name in names): row["value"] for row in release.read_cube(cube).to_pylist()}
