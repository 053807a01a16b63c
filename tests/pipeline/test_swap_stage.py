"""Swapping as a stage of the whole path: the release is that of the swapped microdata, with everybody's own key."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io.atomic_folder import AtomicFolder
from discreet.pipeline.check import check_data
from discreet.pipeline.swap import write_swap
from discreet.programme.programme import load_programme
from discreet.swap.output import write_microdata
from discreet.swap.swapping import swap
from tests.pipeline.conftest import SECRET, contents, run

SWAP = """
[swap]
k = 3
risk = ["AGE.M", "SEX", "COC.L"]
similar = [["HHSIZE", "HHTYPE"], ["HHSIZE"]]
rate = 0.2
carry = ["grid_x", "grid_y", "grid", "loc"]
exclude = 'HAR in ("2", "3")'
"""


def swapping(census: Path, folder: Path, swap_section: str = SWAP) -> Path:
    shutil.copytree(census, folder)
    with (folder / "programme.toml").open("a") as file:
        file.write(swap_section)
    return folder


def values(release: Path) -> dict[str, bytes]:
    """All files but those that tell how the release was made."""
    told = ("manifest.json", "README.md")
    return {name: held for name, held in contents(release).items() if name not in told}


def test_the_release_is_that_of_the_swapped_microdata(census: Path, tmp_path: Path) -> None:
    folder = swapping(census, tmp_path / "census")
    run(folder, tmp_path / "one")
    programme = load_programme(folder / "programme.toml")
    result = swap(programme, SECRET)
    with AtomicFolder(tmp_path / "swapped", "--out") as out:
        moved = write_microdata(programme, result.moves, SECRET, out, lambda done: None)
        out.publish()
    shutil.copytree(census, tmp_path / "plain")
    for name in ("persons", "households", "families", "dwellings"):
        shutil.copy(tmp_path / "swapped" / f"{name}.parquet", tmp_path / "plain")
        assert moved[name] > 0
    run(tmp_path / "plain", tmp_path / "two")
    assert values(tmp_path / "one") == values(tmp_path / "two")
    assert "exchanged their places" in (tmp_path / "one" / "README.md").read_text()
    assert "exchanged their places" not in (tmp_path / "two" / "README.md").read_text()
    run(census, tmp_path / "three")
    assert values(tmp_path / "three") != values(tmp_path / "one")


def test_a_swap_that_was_stopped_between_its_two_folders_is_repeated(
    census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programme = load_programme(swapping(census, tmp_path / "census") / "programme.toml")
    out, private = tmp_path / "swapped", tmp_path / "private"
    publish = AtomicFolder.publish

    def stopped(self: AtomicFolder) -> None:
        if self.place == out.resolve():
            raise KeyboardInterrupt
        publish(self)

    monkeypatch.setattr(AtomicFolder, "publish", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_swap(programme, SECRET, out, private)
    assert not out.exists()
    left = contents(private)
    monkeypatch.setattr(AtomicFolder, "publish", publish)
    with pytest.raises(Mistakes, match="exists and is not empty"):
        write_swap(programme, SECRET, tmp_path / "elsewhere", private)
    write_swap(programme, SECRET, out, private)
    assert set(left) - set(contents(private)) == {".unfinished"}
    with pytest.raises(Mistakes, match="exists and is not empty"):
        write_swap(programme, SECRET, out, private)


def test_a_swap_that_was_stopped_before_its_mark_was_removed_is_repeated(
    census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programme = load_programme(swapping(census, tmp_path / "census") / "programme.toml")
    out, private = tmp_path / "swapped", tmp_path / "private"
    publish = AtomicFolder.publish

    def stopped(self: AtomicFolder) -> None:
        publish(self)
        if self.place == out.resolve():
            raise KeyboardInterrupt

    monkeypatch.setattr(AtomicFolder, "publish", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_swap(programme, SECRET, out, private)
    first = contents(out)
    assert (private / ".unfinished").exists()
    monkeypatch.setattr(AtomicFolder, "publish", publish)
    write_swap(programme, SECRET, out, private)
    assert contents(out) == first
    assert not (private / ".unfinished").exists()
    assert not list(tmp_path.glob(".*.partial"))


def test_runs_repeat_and_the_rule_is_part_of_the_run(census: Path, tmp_path: Path) -> None:
    folder = swapping(census, tmp_path / "census")
    one = run(folder, tmp_path / "one")
    two = run(folder, tmp_path / "two", threads=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = run(swapping(census, tmp_path / "other", SWAP.replace("0.2", "0.1")), tmp_path / "three")
    assert one.run_id == two.run_id != other.run_id


def test_what_could_not_be_had_is_noted_for_the_office_alone(census: Path, tmp_path: Path) -> None:
    rule = SWAP.replace("rate = 0.2", "rate = 0.001\ncap = 0.002")
    done = run(swapping(census, tmp_path / "census", rule), tmp_path / "release")
    assert done.notes == ("the cap of 0.002 leaves some households at risk unswapped",)
    assert done.notes[0] in (tmp_path / "release.private.json").read_text()
    assert not any(b"0.002" in held for held in contents(tmp_path / "release").values())


def test_places_that_cannot_follow_are_refused(census: Path, tmp_path: Path) -> None:
    folder = swapping(census, tmp_path / "census")
    families = pq.read_table(folder / "families.parquet").drop_columns(["hid"])
    pq.write_table(families, folder / "families.parquet")
    persons = pq.read_table(folder / "persons.parquet").rename_columns({"fid": "f"})
    pq.write_table(persons, folder / "persons.parquet")
    with pytest.raises(Mistakes, match="cannot move with swapped households"):
        run(folder, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_a_check_tells_what_keeps_households_from_being_swapped(census: Path, tmp_path: Path) -> None:
    folder = swapping(census, tmp_path / "census")
    assert not check_data(load_programme(folder / "programme.toml"))
    homes = pq.read_table(folder / "households.parquet")
    pq.write_table(pa.concat_tables([homes, homes.slice(0, 1)]), folder / "households.parquet")
    told = check_data(load_programme(folder / "programme.toml"))
    assert any("duplicate ids" in problem.value for problem in told)
