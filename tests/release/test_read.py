import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.evidence import published
from discreet.errors import BrokenRelease, Mistakes
from discreet.release.reader import open_release
from tests.release.small import AGE_M, cubes, publish, table


def test_a_release_reads_back(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    release = open_release(tmp_path / "r")
    assert release.read_cube("3 a/b")["value"].to_pylist() == table(cubes()[2]).values.tolist()
    codes = release.read_codes("AGE.M")
    assert codes.codes == AGE_M.codes
    assert codes.labels == AGE_M.labels
    assert codes.parents == ("", *(AGE_M.codes[parent] for parent in AGE_M.parents[1:]))


def test_unknown_names_are_answered_with_the_known_ones(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    release = open_release(str(tmp_path / "r"))
    with pytest.raises(Mistakes, match=r"1\.1, 2\.1"):
        release.read_cube("9.9")
    with pytest.raises(Mistakes, match=r"AGE\.L, AGE\.M"):
        release.read_codes("AGE.Z")


def test_a_folder_without_manifest_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(BrokenRelease, match="give the folder of a release"):
        open_release(tmp_path)


@pytest.mark.parametrize("place", ["manifest.json", "codelists/AGE.M.csv"])
def test_a_named_pipe_in_a_release_is_refused(tmp_path: Path, place: str) -> None:
    """An archive can have one; reading it would wait for a writer."""
    publish(tmp_path / "r")
    (tmp_path / "r" / place).unlink()
    os.mkfifo(tmp_path / "r" / place)
    with pytest.raises(BrokenRelease, match="fetch the release again"):
        open_release(tmp_path / "r").read_codes("AGE.M")


@pytest.mark.parametrize("change", ["missing", "numbers", "gaps"])
def test_a_file_without_the_columns_of_its_axes_is_refused(tmp_path: Path, change: str) -> None:
    """Readers of single cubes see it too, not only those of the whole release."""
    publish(tmp_path / "r")
    path = next((tmp_path / "r/parquet").glob("1.1*"))
    found = pq.read_table(path)
    at = found.column_names.index("AGE")
    if change == "missing":
        found = found.remove_column(at)
    elif change == "numbers":
        found = found.set_column(at, "AGE", pa.array(range(len(found))))
    else:
        values = [None, *found["value"].to_pylist()[1:]]
        found = found.set_column(found.column_names.index("value"), "value", pa.array(values, pa.int64()))
    pq.write_table(found, path)
    with pytest.raises(BrokenRelease, match=r"cube 1\.1: its file does not have the columns of its axes"):
        open_release(tmp_path / "r").read_cube("1.1")


def _with_codes(path: Path, distinct: list[str], which: list[int]) -> None:
    """Write a cube's file again, its column of ages with this dictionary."""
    found = pq.read_table(path)
    column = pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), pa.array(distinct), safe=False)
    pq.write_table(found.set_column(found.column_names.index("AGE"), "AGE", column), path)


@pytest.mark.parametrize("strange", [3, 100, -1])
def test_a_code_beyond_the_dictionary_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strange: int
) -> None:
    """As damaged pages have it: Arrow reads them without a word."""
    publish(tmp_path / "r")
    whole = pq.read_table(next((tmp_path / "r/parquet").glob("1.1*")))
    ages = whole["AGE"].combine_chunks()
    distinct = ages.dictionary.to_pylist()
    which = [*ages.indices.to_pylist()[:-1], len(distinct) + strange if strange > 0 else strange]
    column = pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), pa.array(distinct), safe=False)
    damaged = whole.set_column(whole.column_names.index("AGE"), "AGE", column)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *_, columns: damaged.select(columns))
    first = published(open_release(tmp_path / "r")).universes[0].tables[0]
    with pytest.raises(BrokenRelease, match=r"cube 1\.1: its file is not readable as Parquet"):
        first.load()


def test_codes_may_be_listed_in_any_order(tmp_path: Path) -> None:
    """Another program may have written the file again."""
    publish(tmp_path / "r")
    path = next((tmp_path / "r/parquet").glob("1.1*"))
    before = [one.load() for one in published(open_release(tmp_path / "r")).universes[0].tables]
    ages = pq.read_table(path)["AGE"].combine_chunks()
    distinct = ages.dictionary.to_pylist()
    _with_codes(path, distinct[::-1], [len(distinct) - 1 - which for which in ages.indices.to_pylist()])
    after = [one.load() for one in published(open_release(tmp_path / "r")).universes[0].tables]
    for (cells, values), (same_cells, same_values) in zip(before, after, strict=True):
        assert np.array_equal(cells, same_cells)
        assert np.array_equal(values, same_values)
