"""Measures share one reading of the release and one count of the true tables."""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit import case as cases
from discreet.audit import evidence
from discreet.audit.attack import Outsider, attack
from discreet.audit.case import Case, counts_the_same, open_case, open_counts, variants
from discreet.audit.evidence import published, read_once
from discreet.audit.utility import utility_by
from discreet.errors import Mistakes
from discreet.io.id_hashes import IdHashes
from discreet.io.progress import Quiet
from discreet.io.serialize import to_json
from discreet.pipeline.audit import audit
from discreet.pipeline.protect import protect
from discreet.programme.cube import Cube
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.run.run import Run
from discreet.run.tabulating import tabulate
from tests.cli import town
from tests.pipeline.conftest import NOON, SECRET

SWAP = '[swap]\nk = 3\nrisk = ["SEX", "AGE"]\nsimilar = [[{ composition = [] }]]\nrate = 0.2\n'
COUNTS = {
    "people.parquet",
    "homes.parquet",
}  # what measures of counts read; sums of weights have one of their own


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = town.build(tmp_path_factory.mktemp("town"))
    path = folder / "programme.toml"
    path.write_text(path.read_text() + SWAP)
    out = folder / "release"
    protect(load_programme(path), SECRET, out, folder / "private.json", clock=lambda: NOON)
    return out


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each Parquet file of a release is opened."""
    found: Counter[str] = Counter()
    read = pq.ParquetFile

    def counted(place: Path, **options: object) -> pq.ParquetFile:
        found[Path(place).name] += 1
        return read(place, **options)

    monkeypatch.setattr(pq, "ParquetFile", counted)
    return found


def case_of(release: Path) -> Case:
    return open_case(load_programme(release.parent / "programme.toml"), SECRET, open_release(release))


def test_an_audit_reads_every_table_once_and_counts_no_more_than_its_case(
    release: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def counting(run: Run, cubes: Sequence[Cube], *others: Any) -> Any:
        counted.append(len(cubes))
        return tabulate(run, cubes, *others)

    monkeypatch.setattr(cases, "tabulate", counting)
    case = case_of(release)
    assert len(counted) == 2, "before swapping and after it"
    opened.clear()
    found = audit(case)
    assert found.reconstruction is not None, "the measure that looks at other protections"
    assert {name: times for name, times in opened.items() if name in COUNTS} == dict.fromkeys(COUNTS, 1)
    assert len(counted) == 2


def test_an_outsider_reads_every_table_once(release: Path, opened: Counter[str]) -> None:
    outsider = Outsider(
        published=published(open_release(release)),
        earlier=None,
        same_secret=False,
        lookup=None,
        bound=None,
        place=None,
        areas=2,
        seconds=1.0,
        threads=1,
        progress=Quiet(),
    )
    opened.clear()
    attack(outsider, without=["reconstruction"])
    assert {name: times for name, times in opened.items() if name in COUNTS} == dict.fromkeys(COUNTS, 1)


def test_no_measure_changes_what_the_others_read(release: Path) -> None:
    case = case_of(release)
    before = {one.id: one.load() for each in case.published.universes for one in each.tables}
    shared = replace(case, published=read_once(case.published))
    audit(shared, without=["reconstruction"])
    for universe in shared.published.universes:
        for table in universe.tables:
            for read, again in zip(before[table.id], table.load(), strict=True):
                assert np.array_equal(read, again)


def test_tables_beyond_the_memory_are_read_again(
    release: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "CELLS_IN_MEMORY", 20)
    seen = read_once(published(open_release(release)))
    tables = [one for each in seen.universes for one in each.tables]
    opened.clear()
    sizes = {f"{one.id}.parquet": len(one.load()[0]) for one in tables for _ in range(2)}
    assert dict(opened) == {name: 1 if size <= 20 else 2 for name, size in sizes.items()}
    assert set(opened.values()) == {1, 2}


def test_noise_on_counts_before_swapping_needs_no_second_count(release: Path) -> None:
    case = case_of(release)
    assert case.truth.is_swapped
    shown = dict(variants(case, "GEO", {}))
    assert {"none", "swapping only", "noise only"} <= shown.keys()
    run = case.run
    cubes = [cube for cube in run.programme.cubes if not cube.weight]
    again = tabulate(run, cubes, run.mechanism.perturb).made
    for universe in shown["noise only"].universes:
        for table in universe.tables:
            cells, values = table.load()
            assert np.array_equal(cells, again[table.id].cells)
            assert np.array_equal(values, again[table.id].values)


@pytest.fixture(scope="module")
def stronger(release: Path) -> Path:
    """The same tables with more noise."""
    path = release.parent / "stronger.toml"
    path.write_text((release.parent / "programme.toml").read_text().replace("V = 2.0", "V = 3.0"))
    out = release.parent / "release-stronger"
    protect(load_programme(path), SECRET, out, release.parent / "stronger.json", clock=lambda: NOON)
    return out


def test_releases_of_the_same_records_share_one_count(release: Path, stronger: Path) -> None:
    first = case_of(release)
    programme = load_programme(release.parent / "stronger.toml")
    shared = open_case(programme, SECRET, open_release(stronger), others=[first])
    assert shared.truth is first.truth
    alone = open_case(programme, SECRET, open_release(stronger))
    assert alone.truth is not first.truth
    for one, other in zip(shared.truth.sides, alone.truth.sides, strict=True):
        for name, tables in one.items():
            for found, counted in zip(tables, other[name], strict=True):
                assert np.array_equal(found, counted)
    for cube, records in shared.truth.records.items():
        assert np.array_equal(records, alone.truth.records[cube])
        assert np.array_equal(shared.truth.original_records[cube], alone.truth.original_records[cube])


def test_other_tables_or_swaps_are_counted_again(release: Path) -> None:
    case = case_of(release)
    run = case.run
    for changed in (
        replace(run.programme, cubes=run.programme.cubes[:1]),
        replace(run.programme, swap=None),
    ):
        assert not counts_the_same(replace(run, programme=changed), run)
    assert not counts_the_same(replace(run, secret=bytes(32)), run)
    assert counts_the_same(replace(run, programme=replace(run.programme, name="other")), run)


@pytest.fixture(scope="module")
def unswapped(release: Path) -> Path:
    """The same tables of households in their own places."""
    path = release.parent / "unswapped.toml"
    path.write_text((release.parent / "programme.toml").read_text().replace(SWAP, ""))
    out = release.parent / "release-unswapped"
    protect(load_programme(path), SECRET, out, release.parent / "unswapped.json", clock=lambda: NOON)
    return out


def counts_of(out: Path, name: str) -> Case:
    return open_counts(load_programme(out.parent / name), SECRET, open_release(out))


def hashed(*_: object) -> None:
    raise AssertionError("ids were read")


@pytest.mark.parametrize("swapped", [False, True])
def test_counts_are_compared_without_keys_and_with_the_same_result(
    release: Path, unswapped: Path, swapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, name = (release, "programme.toml") if swapped else (unswapped, "unswapped.toml")
    keyed = open_case(load_programme(out.parent / name), SECRET, open_release(out))
    if not swapped:
        monkeypatch.setattr(IdHashes, "add", hashed)
    plain = counts_of(out, name)
    assert keyed.truth.records
    assert not plain.truth.records
    assert not plain.truth.original_records
    assert plain.truth.is_swapped is swapped
    one, other = (utility_by(case.published, case.truth, "SEX") for case in (keyed, plain))
    assert to_json(one) == to_json(other)
    assert not counts_the_same(plain.run, keyed.run), "counts without keys do not serve where keys are needed"


def test_records_that_no_digest_recognises_are_judged_with_their_ids(
    unswapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "are_recognised", lambda _: False)
    assert counts_of(unswapped, "unswapped.toml").truth.records
    monkeypatch.setattr(IdHashes, "add", hashed)
    with pytest.raises(AssertionError, match="ids were read"):
        counts_of(unswapped, "unswapped.toml")


def test_other_records_than_those_of_the_release_are_refused(unswapped: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(unswapped.parent, tmp_path / "town"))
    out = folder / unswapped.name
    assert counts_of(out, "unswapped.toml").truth.counted
    table = pq.read_table(folder / "persons.parquet")
    pq.write_table(pa.concat_tables([table[:-1], table[:1]]), folder / "persons.parquet")
    with pytest.raises(Mistakes, match="microdata: are not those of this release"):
        counts_of(out, "unswapped.toml")


def test_records_that_are_written_while_they_are_counted_are_refused(
    unswapped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(unswapped.parent, tmp_path / "town"))

    def rewritten(*given: Any) -> Any:
        found = tabulate(*given)
        os.utime(folder / "persons.parquet", ns=(1, 1))
        return found

    monkeypatch.setattr(cases, "tabulate", rewritten)
    with pytest.raises(Mistakes, match="changed while it was read"):
        counts_of(folder / unswapped.name, "unswapped.toml")
