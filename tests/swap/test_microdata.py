"""Swapped microdata: the same rows and columns, places exchanged in every table, nothing half-written."""

import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io.atomic_folder import AtomicFolder
from discreet.programme.programme import Programme, load_programme
from discreet.swap.output import write_microdata
from discreet.swap.result import Moves
from tests.swap.village_files import HOMES, PLACE, SECRET, build, household_ids, swapped, tables

PAIRS = [(0, 1), (2, 7), (5, 10), (22, 20)]
KINDS = ["numbers", "text"]


def write(programme: Programme, moves: Moves, out: Path) -> dict[str, int]:
    with AtomicFolder(out, "--out") as folder:
        counts = write_microdata(programme, moves, SECRET, folder, lambda rows: None)
        folder.publish()
    return counts


def homes_after() -> list[int]:
    after = list(range(HOMES))
    for one, two in PAIRS:
        after[one], after[two] = two, one
    return after


@pytest.mark.parametrize("kind", KINDS)
def test_rows_columns_and_types_stay_and_only_places_change(tmp_path: Path, kind: str) -> None:
    counts = write(build(tmp_path / "in", kind), swapped(PAIRS, kind).moves, tmp_path / "out")
    assert counts == {"persons": 16, "households": 8, "families": 5, "dwellings": 8}
    for name, before in tables(kind).items():
        after = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        source = pq.read_table(tmp_path / "in" / f"{name}.parquet")
        assert after.schema.equals(source.schema, check_metadata=True)
        kept = [column for column in before.column_names if column not in PLACE]
        assert after.select(kept).equals(source.select(kept))


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_gets_the_place_of_the_partner(tmp_path: Path, kind: str) -> None:
    write(build(tmp_path / "in", kind), swapped(PAIRS, kind).moves, tmp_path / "out")
    homes = pq.read_table(tmp_path / "in" / "households.parquet").to_pylist()
    place = {
        home["hid"]: {column: homes[after][column] for column in PLACE}
        for home, after in zip(homes, homes_after(), strict=True)
    }
    dwelling = {home["did"]: place[home["hid"]] for home in homes}
    dwelling["d99"] = {column: homes[3][column] for column in PLACE}
    for name in tables(kind):
        for row in pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist():
            wanted = dwelling[row["did"]] if name == "dwellings" else place[row["hid"]]
            assert {column: row[column] for column in PLACE} == wanted


def test_a_swap_of_the_swapped_is_the_original(tmp_path: Path) -> None:
    moves = swapped(PAIRS).moves
    write(build(tmp_path / "in"), moves, tmp_path / "once")
    back = Moves(moves.ids, {name: own_places(moves)[name] for name in moves.values})
    for path in (*(tmp_path / "in").glob("*.csv"), tmp_path / "in" / "programme.toml"):
        (tmp_path / "once" / path.name).write_bytes(path.read_bytes())
    write(build_at(tmp_path / "once"), back, tmp_path / "twice")
    for name in tables():
        one, two = (pq.read_table(tmp_path / folder / f"{name}.parquet") for folder in ("in", "twice"))
        assert one.to_pylist() == two.to_pylist()


def own_places(moves: Moves) -> dict[str, pa.Array]:
    homes = build_index()
    own = [homes[int(hashed)] for hashed in moves.ids]
    return {name: pa.array([tables()["households"][name][home].as_py() for home in own]) for name in PLACE}


def build_index() -> dict[int, int]:
    everything = swapped([(home, home + 1) for home in range(0, HOMES, 2)])
    grid = everything.moves.values["grid"].to_pylist()
    return {int(hashed): int(cell[1:]) ^ 1 for hashed, cell in zip(everything.moves.ids, grid, strict=True)}


def build_at(folder: Path) -> Programme:
    return load_programme(folder / "programme.toml")


def test_persons_without_a_household_stay(tmp_path: Path) -> None:
    persons = tables()["persons"]
    ids = persons["hid"].to_pylist()
    ids[::2] = [None] * HOMES
    programme = build(tmp_path / "in", persons=persons.set_column(6, "hid", pa.array(ids, pa.int64())))
    assert write(programme, swapped(PAIRS).moves, tmp_path / "out")["persons"] == 8
    after = pq.read_table(tmp_path / "out" / "persons.parquet")
    assert after["grid"].to_pylist()[::2] == persons["grid"].to_pylist()[::2]


def test_a_dwelling_whose_households_part_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    households = tables()["households"]
    shared = ["d0", "d0", *households["did"].to_pylist()[2:]]
    programme = build(tmp_path / "in", households=households.set_column(1, "did", pa.array(shared)))
    with pytest.raises(Mistakes, match="shared by households"):
        write(programme, swapped(PAIRS).moves, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_table_with_places_and_no_way_to_the_household_is_refused(tmp_path: Path) -> None:
    programme = build(tmp_path / "in", households=tables()["households"].drop_columns(["did"]))
    with pytest.raises(Mistakes, match="places without a household"):
        write(programme, swapped(PAIRS).moves, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_type_that_cannot_hold_the_donors_value_is_refused(tmp_path: Path) -> None:
    families = tables()["families"]
    narrow = families.set_column(families.column_names.index("grid"), "grid", pa.array([1] * (HOMES // 2)))
    programme = build(tmp_path / "in", families=narrow)
    with pytest.raises(Mistakes, match="column grid: its type cannot represent"):
        write(programme, swapped(PAIRS).moves, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_no_moves_write_the_tables_as_they_are(tmp_path: Path) -> None:
    assert set(write(build(tmp_path / "in"), swapped([]).moves, tmp_path / "out").values()) == {0}
    for name in tables():
        one, two = (pq.read_table(tmp_path / folder / f"{name}.parquet") for folder in ("in", "out"))
        assert one.equals(two)


def test_a_folder_that_is_not_empty_is_refused_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("keep")
    with pytest.raises(Mistakes, match="exists and is not empty"):
        write(build(tmp_path / "in"), swapped(PAIRS).moves, out)
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_microdata_are_for_their_owner_only(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()  # an empty folder is free
    write(build(tmp_path / "in"), swapped(PAIRS).moves, tmp_path / "out")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_two_runs_cannot_write_one_folder(tmp_path: Path) -> None:
    with (
        AtomicFolder(tmp_path / "out", "--out"),
        pytest.raises(Mistakes, match="another run is writing"),
        AtomicFolder(tmp_path / "out", "--out"),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_killed_run_leaves_no_folder_and_the_next_one_clears_up(tmp_path: Path) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from discreet.io.atomic_folder import AtomicFolder
        with AtomicFolder(Path(sys.argv[1]), "--out") as folder, folder.file("persons.parquet") as file:
            file.write(b"half")
            file.flush()
            print("writing", flush=True)
            time.sleep(60)
    """
    out = tmp_path / "out"
    command = [sys.executable, "-c", textwrap.dedent(script), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"writing\n"
        os.kill(run.pid, signal.SIGKILL)
    assert not out.exists()
    assert (tmp_path / ".out.partial").is_dir()
    write(build(tmp_path / "in"), swapped(PAIRS).moves, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert pq.read_table(out / "persons.parquet").num_rows == 2 * HOMES


def test_messages_and_names_hold_no_id(tmp_path: Path) -> None:
    households = tables()["households"]
    programme = build(tmp_path / "in", households=households.set_column(1, "did", pa.array(["d0"] * HOMES)))
    with pytest.raises(Mistakes) as refused:
        write(programme, swapped(PAIRS).moves, tmp_path / "out")
    assert not any(str(one) in str(refused.value) for one in household_ids("numbers"))
    assert np.all([str(one) not in str(refused.value) for one in household_ids("text")])


def test_text_files_become_parquet_with_the_same_text(tmp_path: Path) -> None:
    build(tmp_path / "in")
    for name, table in tables().items():
        plain = table.cast(pa.schema([(column, pa.string()) for column in table.column_names]))
        pa_csv.write_csv(plain, tmp_path / "in" / f"{name}.csv")
    text = (tmp_path / "in" / "programme.toml").read_text()
    (tmp_path / "in" / "programme.toml").write_text(text.replace('.parquet"', '.csv"'))
    programme = load_programme(tmp_path / "in" / "programme.toml")
    assert write(programme, swapped(PAIRS).moves, tmp_path / "out")["persons"] == 16
    write(build(tmp_path / "typed"), swapped(PAIRS).moves, tmp_path / "out-typed")
    for name in tables():
        from_text, typed = (pq.read_table(tmp_path / out / f"{name}.parquet") for out in ("out", "out-typed"))
        assert from_text.column_names == typed.column_names
        for column in typed.column_names:
            values = [None if value is None else str(value) for value in typed[column].to_pylist()]
            assert from_text[column].to_pylist() == values


def test_files_of_one_table_may_order_and_type_their_columns_differently(tmp_path: Path) -> None:
    build(tmp_path / "in")
    persons = tables()["persons"]
    (tmp_path / "in" / "people").mkdir()
    pq.write_table(persons.slice(0, 20), tmp_path / "in" / "people" / "1.parquet")
    turned = persons.slice(20).select(persons.column_names[::-1])
    narrow = turned.set_column(turned.column_names.index("pid"), "pid", turned["pid"].cast(pa.int16()))
    pq.write_table(narrow, tmp_path / "in" / "people" / "2.parquet")
    text = (tmp_path / "in" / "programme.toml").read_text()
    (tmp_path / "in" / "programme.toml").write_text(text.replace('"persons.parquet"', '"people"'))
    write(load_programme(tmp_path / "in" / "programme.toml"), swapped(PAIRS).moves, tmp_path / "out")
    write(build(tmp_path / "one"), swapped(PAIRS).moves, tmp_path / "out-one")
    several, one = (pq.read_table(tmp_path / out / "persons.parquet") for out in ("out", "out-one"))
    assert several.to_pylist() == one.to_pylist()


def test_a_full_disk_is_told_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    programme, moves = build(tmp_path / "in"), swapped(PAIRS).moves
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(Mistakes, match="cannot be written"):
            write(programme, moves, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
