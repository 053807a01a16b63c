"""A release as a source: what is read ahead is answered from memory."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest

from discreet.audit.evidence import PublishedTable
from discreet.errors import Mistakes
from discreet.programme.serve import ServeRule
from discreet.release.reader import Release, open_release
from discreet.serve import builder as builder_module
from discreet.serve import released
from discreet.serve.cache import CELL_BYTES, table_cache
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_release
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import resolve
from tests.serve.conftest import cells, published, query


def test_a_prepared_release_reads_no_file_for_an_answer(
    release: Release, store: Store, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(release.folder, copy)
    fresh, prepared = serve_release(release, store), serve_release(open_release(copy), store)
    prepared.prepare()
    for file in copy.rglob("*.parquet"):
        file.unlink()
    for table in prepared.catalogue.tables:
        asked = query(*table.axes, where=table.base, count=table.count, unit=table.unit)
        assert cells(prepared.ask(asked, "u", job=True)) == cells(fresh.ask(asked, "u", job=True))


def test_reading_ahead_ends_when_it_is_stopped(release: Release, store: Store) -> None:
    source = serve_release(release, store)._source
    assert isinstance(source, released.ReleaseSource)
    read: list[str] = []
    usual = source._read

    def noted(one: PublishedTable) -> object:
        read.append(one.id)
        return usual(one)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "_read", noted)
        source.prepare(lambda: len(read) == 2)
    assert len(read) == 2 < len(source.catalogue.tables)


@pytest.mark.parametrize(
    ("cell_bytes", "cost", "unused"),
    [(10**9, 16, ("picked", "_is_searched")), (0, 0, ("picked",)), (0, 10**9, ("_positions",))],
    ids=["in the whole grid", "by searching", "by reading all"],
)
def test_cells_are_found_in_the_whole_grid_by_searching_and_by_reading_all(
    release: Release,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    cell_bytes: int,
    cost: int,
    unused: tuple[str, ...],
) -> None:
    usual = serve_release(release, store)
    asked = [
        query(*axes, where=table.base, count=table.count, unit=table.unit)
        for table in usual.catalogue.tables
        for number in range(len(table.axes) + 1)
        for axes in combinations(reversed(table.axes), number)
    ]
    monkeypatch.setattr(released, "CELL_BYTES", cell_bytes)
    monkeypatch.setattr(released, "SEARCH_COST", cost)
    forced = serve_release(release, store)
    for one in asked:
        assert cells(forced.ask(one, "u", job=True)) == cells(usual.ask(one, "u", job=True))
    for name in unused:
        monkeypatch.setattr(released, name, None)
    serve_release(release, store)._source.table(resolve(asked[-1], usual.catalogue).cube)


def test_only_small_tables_that_no_rule_looks_at_are_answered_at_once(
    release: Release, store: Store, builder: TableBuilder
) -> None:
    over = serve_release(release, store)
    usual = query("SEX", "AGE.M")
    assert over.ask_at_once(usual, "u") is None, "its file is not read yet"
    over.prepare()
    some = Query("persons", (Axis("AGE.M", ("_T", "Y15-19")), Axis("SEX")))
    based = query("CAS.H", "EDU", where='AGE != "Y_LT15" and SEX == "1"')
    for asked in (usual, some, based, query("GEO.M", "SEX", count="works")):
        found = over.ask_at_once(asked, "u")
        assert found is not None
        assert found.stored is None, "there is no history"
        assert cells(found.answer) == cells(over.ask(asked, "u"))
    group = Axis("AGE", groups=(Group("young", ("Y_LT15",)),))
    for asked in (
        query("SEX", "SEX.X"),
        query("SEX", unit="horses"),
        query("SEX", where='SEX == "1"'),
        query("SEX", "AGE.M", "EDU", "CAS.H"),  # of which no table is published
        Query("persons", (Axis("AGE.M", ("_T", "old")),)),
        Query("persons", (group,)),
    ):
        assert over.ask_at_once(asked, "u") is None
    for rule in (ServeRule(axes=1), ServeRule(cells=1, job_cells=2), ServeRule(attribute=0.9)):
        ruled = serve_release(release, store, rule=rule)
        ruled.prepare()
        assert ruled.ask_at_once(usual, "u") is None
    assert builder.ask_at_once(based, "u") is None, "records are counted"


def test_a_table_with_twice_a_variable_is_a_mistake_at_once_too(release: Release, store: Store) -> None:
    over = serve_release(release, store)
    with pytest.raises(Mistakes, match="AGE is given 2 times"):
        over.ask_at_once(query("AGE.M", "AGE.H"), "u")


@pytest.mark.parametrize("most", [0, 10**9], ids=["picked", "from the grid"])
def test_values_are_picked_and_taken_from_the_grid_alike(
    release: Release, store: Store, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    over = serve_release(release, store)
    some = Query(
        "persons", (Axis("SEX", ("2", "_T")), Axis("GEO.M"), Axis("AGE.M", ("Y15-19",))), count="works"
    )
    expected = {
        codes: published(release, "flag").get((codes[1], codes[0], codes[2]), 0)
        for codes in cells(over.ask(some, "u"))
    }
    monkeypatch.setattr(builder_module, "MOST_WHOLE", most)
    assert cells(over.ask(some, "u")) == expected
    assert len(expected) > 2 * 3


def test_a_release_without_tables_of_counts_is_refused(release: Release, store: Store) -> None:
    weighted = [entry.model_copy(update={"weight": "w"}) for entry in release.manifest.cubes]
    held = Release(release.folder, release.manifest.model_copy(update={"cubes": tuple(weighted)}))
    with pytest.raises(Mistakes, match="the release has no tables of counts"):
        serve_release(held, store)


def test_what_has_no_room_is_not_read_ahead() -> None:
    cached = table_cache(10 * CELL_BYTES)
    assert cached.has_room(10 * CELL_BYTES)
    assert not cached.has_room(11 * CELL_BYTES)
