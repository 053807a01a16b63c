"""PostgreSQL for real: a private server gives the same values as files, and its failures are told in a line."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io.databases import open_source
from discreet.pipeline.check import check_data
from discreet.programme.programme import load_programme
from discreet.programme.sources import DatabaseSource
from tests.cases import few
from tests.io.postgresql_server import NO_SERVER, ROLE, Server, binaries, running
from tests.pipeline.conftest import census, contents, run
from tests.waiting import PATIENCE, until

__all__ = ["census"]  # a fixture

PROGRAMS = binaries()
DISCREET = (sys.executable, "-c", "from discreet.cli.app import main; main()")
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason=NO_SERVER)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    assert PROGRAMS is not None
    with running(PROGRAMS) as started:
        yield started


@pytest.fixture(scope="module")
def loaded(server: Server, census: Path) -> Server:
    persons = pq.read_table(census / "persons.parquet")
    persons = pa.table({name: _undictionaried(persons[name]) for name in persons.column_names})
    server.load("persons", persons)
    pid = persons.column_names.index("pid")
    server.load("Persons of 2021", persons.set_column(pid, "pid", persons["pid"].cast(pa.string())))
    return server


def _undictionaried(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@pytest.fixture(scope="module")
def wanted(census: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("files") / "r"
    run(census, out)
    return values(out)


def values(release: Path) -> dict[str, bytes]:
    return {name: held for name, held in contents(release).items() if name != "manifest.json"}


def programme_from(census: Path, folder: Path, entry: str) -> Path:
    shutil.copytree(census, folder)
    (folder / "persons.parquet").unlink()
    programme = folder / "programme.toml"
    text = programme.read_text()
    assert 'persons = "persons.parquet"' in text
    programme.write_text(text.replace('persons = "persons.parquet"', f"persons = {entry}"))
    return folder


@pytest.mark.parametrize(
    "asked",
    few(
        [
            'table = "persons"',
            'table = "public.persons"',
            'table = "Persons of 2021"',  # text ids
            'query = "SELECT * FROM persons ORDER BY lau, pid DESC"',
            'query = "SELECT p.* FROM persons p WHERE pid IS NOT NULL; "',
        ],
        *(2, 3),
    ),
)
def test_a_database_gives_the_same_values_as_files(
    loaded: Server, census: Path, wanted: dict[str, bytes], tmp_path: Path, asked: str
) -> None:
    folder = programme_from(census, tmp_path / "census", f'{{ uri = "{loaded.uri}", {asked} }}')
    run(folder, tmp_path / "r", threads=2)
    assert values(tmp_path / "r") == wanted
    for name, held in contents(tmp_path / "r").items():
        assert ROLE.encode() not in held, name


PROTECT = ("protect", "programme.toml", "--secret", "secret.key", "--out", "out/r")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        ((f"{ROLE}@", "mallory@"), "role does not exist"),
        (("127.0.0.1:", "127.0.0.1:1"), "invalid port number"),
        (('table = "persons"', 'table = "nobody"'), 'relation "nobody" does not exist'),
        (('table = "persons"', 'query = "SELECT nix FROM persons"'), 'column "nix" does not exist'),
        (
            ('table = "persons"', "query = \"SELECT * FROM persons WHERE (pid::text || 'x')::int > 0\""),
            "failed while records were read",
        ),
    ],
)
def test_what_the_server_refuses_is_told_in_a_line_and_nothing_is_written(
    loaded: Server, census: Path, tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    entry = f'{{ uri = "{loaded.uri}", table = "persons" }}'.replace(*change)
    folder = programme_from(census, tmp_path / "census", entry)
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistakes) as caught:
        run(folder, tmp_path / "out/r")
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    for hidden in (ROLE, "mallory", "invalid input"):
        assert hidden not in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_check_tells_the_mistakes_of_a_table_in_the_database(
    loaded: Server, census: Path, tmp_path: Path
) -> None:
    query = "SELECT pid % 100 AS pid, hid, nuts1, nuts2, nuts3, lau, age::text || '!' AS age FROM persons"
    entry = f'{{ uri = "{loaded.uri}", query = "{query}" }}'
    folder = programme_from(census, tmp_path / "census", entry)
    said = "\n".join(map(str, check_data(load_programme(folder / "programme.toml"))))
    assert "duplicate ids in" in said
    assert "codes that are not leaves of the codelist" in said
    assert "unknown column 'sex'" in said
    assert ROLE not in said


def test_types_that_arrow_has_no_name_for_are_read(loaded: Server) -> None:
    query = "SELECT pid::numeric AS pid, 'm'::char(1) AS sex, 1.25::numeric AS w, now() AS t FROM persons"
    records = open_source(DatabaseSource(loaded.uri, query=query), "k")
    batch = next(iter(records.batches(["pid", "w"], ["sex"])))
    assert batch.num_rows > 0


@pytest.mark.long
def test_a_server_that_stops_in_mid_run_leaves_nothing(census: Path, tmp_path: Path) -> None:
    assert PROGRAMS is not None
    with running(PROGRAMS) as server:
        persons = pq.read_table(census / "persons.parquet")
        server.load(
            "persons", pa.table({name: _undictionaried(persons[name]) for name in persons.column_names})
        )
        late = "CASE WHEN row_number() OVER () > 3500 THEN pg_sleep(0.02) IS NULL END"
        counted = "pid, hid, nuts1, nuts2, nuts3, lau, sex, age, lms, coc, yat, fst"  # others are read before
        slow = f"SELECT {counted}, {late} AS slow FROM persons"
        folder = programme_from(census, tmp_path / "census", f'{{ uri = "{server.uri}", query = "{slow}" }}')
        (folder / "secret.key").write_text("ab" * 32)
        (folder / "secret.key").chmod(0o600)
        with subprocess.Popen(
            [*DISCREET, *PROTECT], cwd=folder, stderr=subprocess.PIPE, text=True
        ) as working:
            _await_query(server)
            server.stop()
            said = working.communicate(timeout=PATIENCE)[1]
    assert working.returncode == 2
    assert "the database failed while records were read" in said
    assert len(said.splitlines()) == 1
    assert not list((folder / "out").iterdir())


def _await_query(server: Server) -> None:
    """Wait until another connection is sleeping in the query."""
    source = DatabaseSource(
        server.uri, query="SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    )
    until(lambda: next(iter(open_source(source, "k").batches(["n"], []))).column("n").to_pylist() == [1])


def test_a_refused_connection_is_a_mistake() -> None:
    with pytest.raises(Mistakes, match=r"database error: .*refused") as caught:
        open_source(DatabaseSource(f"postgresql://{ROLE}@127.0.0.1:1/x", "t"), "population.persons")
    assert ROLE not in str(caught.value)


def test_a_query_cannot_change_the_database(loaded: Server) -> None:
    loaded.execute("CREATE SEQUENCE persons_read")
    writes = open_source(DatabaseSource(loaded.uri, query="SELECT nextval('persons_read') AS pid"), "k")
    with pytest.raises(Mistakes, match="failed while records were read"):
        list(writes.batches(["pid"], []))
    used = open_source(DatabaseSource(loaded.uri, query="SELECT is_called FROM persons_read"), "k")
    assert next(used.batches(["is_called"], [])).column(0).to_pylist() == [False]
    modifying = "WITH gone AS (DELETE FROM persons RETURNING *) SELECT * FROM gone"
    for query, says in (
        ("SELECT 1 AS pid; DROP TABLE persons", "several statements"),
        ("DROP TABLE persons", "no SELECT"),
        (modifying, "data-modifying statement"),
    ):
        with pytest.raises(Mistakes, match=says):
            open_source(DatabaseSource(loaded.uri, query=query), "k")
