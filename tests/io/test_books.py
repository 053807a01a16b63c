"""Books are made once by many, told when they are another version's, and gone or wrong databases are told in a line."""

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Column, MetaData, String, Table, select, text

from discreet.errors import DatabaseUnavailable, Mistakes
from discreet.io import store as transactions
from discreet.io.store import Book, Database, Journal, add_new, lay_out, one_at_a_time, open_book
from tests.cases import BOTH_DATABASES
from tests.io.postgresql_server import Server

NOBODY = 65534
tables = MetaData()
notes = Table("notes", tables, Column("name", String, primary_key=True), Column("said", String))
BOOK = Book("diary", tables)


@pytest.fixture(params=list(Journal))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    database = Database(tmp_path / "notes.sqlite", "store", request.param)
    lay_out(database, BOOK)
    return database


def opened(where: str | Path) -> Database:
    return Database(where, "store", Journal.AHEAD)


def note(database: Database, name: str) -> None:
    with database.writing() as connection:
        add_new(connection, notes, [{"name": name, "said": "once"}])


def names(database: Database) -> list[str]:
    with database.reading() as connection:
        return list(connection.execute(select(notes.c.name).order_by(notes.c.name)).scalars())


@BOTH_DATABASES
def test_many_lay_out_and_write_at_once(where: str) -> None:
    def write(number: int) -> None:
        database = opened(where)
        lay_out(database, BOOK)
        note(database, "the same")
        note(database, str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert names(opened(where)) == [*map(str, range(8)), "the same"]


@BOTH_DATABASES
def test_one_of_a_name_at_a_time_sees_what_the_others_wrote(where: str) -> None:
    lay_out(opened(where), BOOK)

    def count(_: int) -> None:
        with opened(where).writing() as connection:
            one_at_a_time(connection, "counting")
            found = len(connection.execute(select(notes.c.name)).all())
            connection.execute(notes.insert().values(name=str(found)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(count, range(12)))
    assert len(names(opened(where))) == 12


@BOTH_DATABASES
def test_all_that_is_read_is_of_one_moment(where: str) -> None:
    database = opened(where)
    lay_out(database, BOOK)
    with database.reading() as connection:
        before = connection.execute(select(notes.c.name)).all()
        note(opened(where), "meanwhile")
        assert connection.execute(select(notes.c.name)).all() == before == []
    assert names(database) == ["meanwhile"]


@BOTH_DATABASES
def test_a_book_of_a_newer_version_is_refused_and_left_alone(where: str) -> None:
    lay_out(opened(where), Book("diary", tables, version=3))
    note(opened(where), "newer")
    for refuse in (lay_out, open_book):
        with pytest.raises(Mistakes, match="diary has version 3, and this Discreet supports 1") as told:
            refuse(opened(where), BOOK)
        assert "\n" not in str(told.value)
    assert names(opened(where)) == ["newer"]
    lay_out(opened(where), Book("another", MetaData()))


@BOTH_DATABASES
@pytest.mark.parametrize("change", ["SET version = 0", "SET version = -1", "SET book = 'x'"])
def test_a_book_without_a_version_is_refused(change: str, where: str) -> None:
    lay_out(opened(where), BOOK)
    with opened(where).writing() as connection:
        connection.execute(text(f"UPDATE discreet_books {change}"))
    with pytest.raises(Mistakes, match="is damaged: no version of its diary; restore it from a backup"):
        open_book(opened(where), BOOK)


@BOTH_DATABASES
def test_a_database_without_the_book_is_refused_where_a_new_one_would_be_wrong(where: str) -> None:
    lay_out(opened(where), Book("another", MetaData()))
    with pytest.raises(Mistakes, match="contains no diary; correct the address, or create a diary there"):
        open_book(opened(where), BOOK)


def test_files_that_are_no_database_are_told_in_a_line(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"GIF89a, and longer than a hundred bytes " * 20)
    before = foreign.read_bytes()
    with pytest.raises(DatabaseUnavailable, match="file is not a database") as told:
        lay_out(opened(foreign), BOOK)
    assert "\n" not in str(told.value)
    assert foreign.read_bytes() == before
    with pytest.raises(DatabaseUnavailable, match="unable to open database file"):
        lay_out(opened(tmp_path), BOOK)


def test_a_device_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(Mistakes, match="store: is a device or a pipe"):
        opened(tmp_path / "null")
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, for whom nothing is read-only."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_read_only_file_is_told_and_the_book_can_still_be_read() -> None:
    # not below pytest's own folder, which others cannot enter
    with tempfile.TemporaryDirectory() as place:
        database = Database(Path(place) / "notes.sqlite", "store")
        lay_out(database, BOOK)
        note(database, "before")
        assert database.file is not None
        database.file.chmod(0o444)
        Path(place).chmod(0o555)
        with as_nobody():
            with pytest.raises(DatabaseUnavailable, match=r"readonly database; check .* the permissions"):
                note(database, "after")
            with pytest.raises(DatabaseUnavailable, match="readonly database"):
                lay_out(database, BOOK)
            with pytest.raises(DatabaseUnavailable, match="readonly database"):
                lay_out(opened(database.file), BOOK)
            open_book(database, BOOK)
        Path(place).chmod(0o755)
        assert names(database) == ["before"]


def test_a_full_disk_is_told_and_loses_nothing(file: Database, tmp_path: Path) -> None:
    note(file, "before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))  # no file can grow
    try:
        with pytest.raises(DatabaseUnavailable, match="database error"):
            note(file, "while it was full " * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    note(file, "after")
    assert names(opened(tmp_path / "notes.sqlite")) == ["after", "before"]


@BOTH_DATABASES
def test_a_lock_that_another_holds_for_long_is_told(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(opened(where), BOOK)
    monkeypatch.setattr(transactions, "WAIT", 1.0)
    waiting, other = opened(where), opened(where)
    with other.writing() as connection:
        if other.file is None:
            connection.execute(text("LOCK TABLE notes"))
        for kept_out in (waiting, other) if other.file else (waiting,):
            with pytest.raises(DatabaseUnavailable, match=r"database is locked|lock timeout"):
                note(kept_out, "meanwhile")
    note(waiting, "after")
    assert names(waiting) == ["after"]


def test_a_file_that_was_moved_away_is_not_written_to_until_it_is_back(
    file: Database, tmp_path: Path
) -> None:
    note(file, "before")
    assert file.file is not None
    file.file.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(
            DatabaseUnavailable, match=r"unable to open database file|the file no longer exists"
        ):
            note(file, "lost")
    (tmp_path / "elsewhere").rename(file.file)
    note(file, "after")
    assert names(file) == ["after", "before"]


def test_a_file_that_was_replaced_is_the_one_that_is_written_to(tmp_path: Path) -> None:
    database = Database(tmp_path / "notes.sqlite", "ledger")
    lay_out(database, BOOK)
    shutil.copy(tmp_path / "notes.sqlite", tmp_path / "copy")
    note(database, "after the copy")
    shutil.move(tmp_path / "copy", tmp_path / "notes.sqlite")
    note(database, "restored")
    assert names(database) == ["restored"]


def test_a_file_that_was_replaced_under_an_open_journal_is_not_written_to(tmp_path: Path) -> None:
    database = opened(tmp_path / "notes.sqlite")
    lay_out(database, BOOK)
    note(database, "before")
    (tmp_path / "notes.sqlite").rename(tmp_path / "first")
    (tmp_path / "notes.sqlite").write_bytes(b"not a database" * 100)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match=r"the file was replaced|not a database"):
            note(database, "lost")
    (tmp_path / "first").rename(tmp_path / "notes.sqlite")
    note(database, "after")
    assert names(database) == ["after", "before"]


def test_a_server_that_goes_and_returns_is_found_again(stoppable: Server) -> None:
    database = opened(stoppable.uri)
    lay_out(database, BOOK)
    note(database, "before")
    stoppable.stop()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="database error") as told:
            note(database, "lost")
        assert "\n" not in str(told.value)
    stoppable.start()
    note(database, "after")
    assert names(database) == ["after", "before"]


def test_a_read_only_server_is_told(postgresql: Server) -> None:
    address = postgresql.new_database()
    lay_out(opened(address), BOOK)
    name = address.rpartition("/")[2]
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailable, match="read-only transaction"):
        note(opened(address), "lost")
