from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
