"""A table has the same values in every format, as a file of a release and as a download of the table builder."""

import io
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from discreet.formats.sdmx_ids import code_ids
from discreet.pipeline.protect import protect
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from discreet.release.reader import Release, open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer
from discreet.serve.http.downloads import Format, written
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_release
from tests.formats.reading import READERS
from tests.serve.conftest import NOON, SECRET, published, query


@pytest.fixture(scope="module")
def every(programme: Programme, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The release in every format."""
    folder = tmp_path_factory.mktemp("every")
    wanted = replace(programme, release=replace(programme.release, formats=tuple(ReleaseFormat)))
    protect(wanted, SECRET, folder / "r", folder / "p.json", clock=lambda: NOON)
    assert verify(folder / "r").passed
    return open_release(folder / "r")


@pytest.fixture(scope="module")
def over(every: Release, tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    return serve_release(every, Store(tmp_path_factory.mktemp("s") / "s.sqlite", lambda: NOON))


def test_releases_and_downloads_have_the_same_formats() -> None:
    assert {form.value for form in ReleaseFormat} == {form.value for form in Format} == set(READERS)


@pytest.mark.parametrize("form", ReleaseFormat)
@pytest.mark.parametrize("cube", ["flag", "adults"])
def test_a_file_of_the_release_and_a_download_hold_the_same_values(
    form: ReleaseFormat, cube: str, every: Release, over: TableBuilder
) -> None:
    entry, declared = every.cube(cube), over.catalogue.table(cube)
    assert declared is not None
    axes = [axis.variable for axis in entry.axes]
    asked = query(*declared.axes, where=declared.base, count=declared.count, unit=declared.unit)
    answer = over.ask(asked, "somebody", job=True)
    assert isinstance(answer, Answer)
    file = entry.file(form)
    assert file is not None
    read = READERS[form.value]
    released = read((every.folder / Path(file.path)).read_bytes(), axes)
    downloaded = read(written(answer, Format(form.value), over.catalogue).body, axes)
    expected = {
        tuple(_spelled(code, form) for code in key): value for key, value in published(every, cube).items()
    }
    assert {key: value for key, value in released.items() if value} == expected
    assert {key: value for key, value in downloaded.items() if value} == expected
    assert len(downloaded) == answer.size


@pytest.mark.parametrize("cube", ["flag", "adults"])
def test_a_csv_download_has_the_levels_of_the_release(cube: str, every: Release, over: TableBuilder) -> None:
    declared = over.catalogue.table(cube)
    assert declared is not None
    asked = query(*declared.axes, where=declared.base, count=declared.count, unit=declared.unit)
    answer = over.ask(asked, "somebody", job=True)
    assert isinstance(answer, Answer)
    body = written(answer, Format.CSV, over.catalogue).body
    names = [*(axis.variable for axis in every.cube(cube).axes), "level"]
    downloaded = pd.read_csv(io.BytesIO(body), dtype=str, keep_default_na=False)[names]
    released = every.read_cube(cube).to_pandas()[names].astype(str)
    assert set(released.itertuples(index=False, name=None)) <= set(
        downloaded.itertuples(index=False, name=None)
    )
    assert "total" in set(downloaded["level"])


def _spelled(code: str, form: ReleaseFormat) -> str:
    return code_ids([code])[0] if form is ReleaseFormat.SDMX_CSV else code
