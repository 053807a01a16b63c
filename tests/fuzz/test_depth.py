"""Parquet files taken apart and put together: sound where nothing is changed, and what is planted is found."""

import io
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.io import files
from discreet.io.dictionary_pages import CodedColumn
from tests.cli import town
from tests.fuzz.depth import OtherValues, chosen_in_depth, columns, small_row_groups
from tests.fuzz.parquet import damaged_in_depth, put_together, taken_apart, written
from tests.fuzz.running import ROOT

PLANTED = """
import tempfile
from pathlib import Path
from discreet.io import files
from tests.fuzz.running import fuzzer
files._require_described = lambda *_: None
with tempfile.TemporaryDirectory() as folder, fuzzer(5, Path(folder), ("depth",)) as one:
    for number in range(300):
        one.run(number)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return (town.build(tmp_path_factory.mktemp("town") / "town") / "persons.parquet").read_bytes()


@pytest.fixture
def from_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FEWEST", 1)


@pytest.mark.usefixtures("from_pages")
def test_every_form_is_read_and_put_together_again(sound: bytes, tmp_path: Path) -> None:
    forms = written(sound)
    assert len(dict(forms)) == len(forms) > 35
    for name, content in forms:
        again = put_together(taken_apart(content), places=True)
        assert pq.read_table(io.BytesIO(again)).equals(pq.read_table(io.BytesIO(content))), name
        path = tmp_path / "a.parquet"
        path.write_bytes(again)
        columns(path)


def test_many_kinds_of_damage_reach_the_readers(sound: bytes, tmp_path: Path) -> None:
    """Some are read and some refused, and hardly any two files are the same."""
    dice, path = random.Random(1), tmp_path / "a.parquet"
    found, notes = set(), []
    is_read = 0
    for _ in range(150):
        content, note = damaged_in_depth(sound, dice)
        found.add(content)
        notes.append(note)
        path.write_bytes(content)
        try:
            pq.read_table(path)
            is_read += 1
        except (pa.ArrowException, OSError, ValueError, MemoryError):
            pass
    assert len(found) > 120
    assert 20 < is_read < 130
    for kind in ("end ", "column ", "schema ", "header ", "body", "page ", "row group "):
        assert any(kind in note for note in notes), kind


@pytest.mark.usefixtures("from_pages")
def test_other_values_than_arrow_reads_are_found(
    sound: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(column: CodedColumn, first: int, records: int) -> pa.DictionaryArray:
        return read(column, (first + 1) % int(column.ends[-1] - records + 1), records)

    read = CodedColumn.read
    monkeypatch.setattr(files, "BATCH", 50)
    monkeypatch.setattr(CodedColumn, "read", shifted)
    path = tmp_path / "a.parquet"
    path.write_bytes(sound)
    with pytest.raises(OtherValues):
        columns(path)


def test_an_input_is_a_function_of_its_dice(sound: bytes) -> None:
    names = ("town/persons.parquet", "town/households.parquet", "ready.parquet", "release/parquet/1.parquet")
    trees = ("tree/estimates/1.parquet", "tree/measurements/H/detailed.parquet")
    given = dict.fromkeys((*names, *trees), sound)
    for seed in range(20):
        first, again = (chosen_in_depth(random.Random(seed), given) for _ in range(2))
        assert first[:3] == again[:3]
    with small_row_groups(random.Random(1)) as how:
        assert how == f"from pages: {files.FEWEST == 1}, batches of {files.BATCH}"
    assert files.FEWEST > 1


@pytest.mark.long
def test_the_abort_that_was_missed_once_is_found() -> None:
    """Without the check of what columns are described as, Arrow ends the process."""
    done = subprocess.run([sys.executable, "-c", PLANTED], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode < 0, done.stderr[-500:]
