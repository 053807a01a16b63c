"""Files that are written while they are read are noticed before anything is published, on every engine alike."""

from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from discreet.run.identity import begin, require_unchanged
from tests.engine.small_town import divide, make_town, persons
from tests.pipeline.conftest import NOON, SECRET


class Writing:
    """Writes the persons again when they are counted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stage(self, name: str, total: int | None = None) -> None:
        if name.startswith("perturbing"):
            divide(persons(skewed=True), self._folder, 2)

    def step(self, amount: int = 1) -> None:
        pass


def test_files_that_change_under_a_run_are_not_published(tmp_path: Path) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 2)
    out, private = tmp_path / "release", tmp_path / "private.json"
    with pytest.raises(
        Mistakes, match=r"000\.parquet: population\.persons: changed while it was read; run again"
    ):
        protect(
            load_programme(programme),
            SECRET,
            out,
            private,
            clock=lambda: NOON,
            progress=Writing(tmp_path / "town"),
        )
    assert not out.exists()
    assert not private.exists()


def test_files_that_are_added_or_removed_are_changes(tmp_path: Path) -> None:
    loaded = load_programme(_town(tmp_path))
    _, identity = begin(loaded, SECRET)
    require_unchanged(loaded, identity)
    (tmp_path / "persons" / "001.parquet").unlink()
    with pytest.raises(Mistakes, match=r"001\.parquet: .*changed while it was read"):
        require_unchanged(loaded, identity)


def _town(folder: Path) -> Path:
    programme = make_town(folder)
    divide(persons(), folder, 2)
    return programme
