"""Folders and patterns of files: those that lead to far more than records are refused, and end."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.programme import sources
from discreet.programme.section import with_home
from discreet.programme.sources import file_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "ab":
        (tmp_path / f"records/region={name}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"records/region={name}/1.parquet")
    return tmp_path


@pytest.mark.parametrize("given", ["records", "records/**/*.parquet", "*/**/*.parquet"])
def test_a_folder_of_records_is_found(folder: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(file_source(given, folder, "", "persons").paths()) == 2
    monkeypatch.setattr(sources, "MOST_FILES", 3)  # two folders with a file each are four
    with pytest.raises(
        Mistakes, match="more than 3 files and folders below it; name the folder of the records"
    ):
        file_source(given, folder, "", "persons")
    assert len(file_source("records/region=*/*.parquet", folder, "", "persons").paths()) == 2


def test_links_in_a_circle_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two links to the folder itself: 2^40 paths lead to each file."""
    monkeypatch.setattr(sources, "MOST_FILES", 5_000)
    for name in ("one", "two"):
        (folder / "records" / name).symlink_to(".", target_is_directory=True)
    with pytest.raises(Mistakes, match="name the folder of the records"):
        file_source("records", folder, "", "persons")


@pytest.mark.parametrize("given", ["~.csv", "~nobody-of-this-name/x.csv"])
def test_the_home_of_an_unknown_user_is_a_name_like_any_other(folder: Path, given: str) -> None:
    with pytest.raises(Mistakes, match="no file"):
        file_source(given, folder, "programme.toml", "population.persons")
    place = folder / given
    place.parent.mkdir(exist_ok=True)
    place.write_text("a\n1\n")
    assert file_source(given, folder, "programme.toml", "population.persons").paths() == (place,)


def test_the_home_of_the_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert with_home("~/x") == tmp_path / "x"
