"""A release as a source: what is read ahead is answered from memory."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.release.reader import Release, open_release
from discreet.serve import released
from discreet.serve.cache import CELL_BYTES, table_cache
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from discreet.serve.question import resolve
from tests.serve.conftest import cells, query


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


@pytest.mark.parametrize("cost", [0, 10**9])
def test_cells_are_found_by_searching_and_by_reading_all(
    release: Release, store: Store, monkeypatch: pytest.MonkeyPatch, cost: int
) -> None:
    usual = serve_release(release, store)
    asked = [
        query(*axes, where=table.base, count=table.count, unit=table.unit)
        for table in usual.catalogue.tables
        for number in range(len(table.axes) + 1)
        for axes in combinations(reversed(table.axes), number)
    ]
    monkeypatch.setattr(released, "SEARCH_COST", cost)
    forced = serve_release(release, store)
    for one in asked:
        assert cells(forced.ask(one, "u", job=True)) == cells(usual.ask(one, "u", job=True))
    if cost:
        monkeypatch.setattr(released, "_positions", None)
    else:
        monkeypatch.setattr(released, "picked", None)
    serve_release(release, store)._source.table(resolve(asked[-1], usual.catalogue).cube)


def test_a_release_without_tables_of_counts_is_refused(release: Release, store: Store) -> None:
    weighted = [entry.model_copy(update={"weight": "w"}) for entry in release.manifest.cubes]
    held = Release(release.folder, release.manifest.model_copy(update={"cubes": tuple(weighted)}))
    with pytest.raises(Mistakes, match="the release has no tables of counts"):
        serve_release(held, store)


def test_what_has_no_room_is_not_read_ahead() -> None:
    cached = table_cache(10 * CELL_BYTES)
    assert cached.has_room(10 * CELL_BYTES)
    assert not cached.has_room(11 * CELL_BYTES)
