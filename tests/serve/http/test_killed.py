"""The command as an operator runs it: it stops by itself when told to, and loses nothing when it is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from httpx import Client, HTTPError
from sqlalchemy import text

from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.release.reader import Release
from discreet.serve.jobs_store import Store
from tests.cases import few
from tests.forked import Forked, discreet
from tests.io.postgresql_server import Server
from tests.serve.conftest import SECRET, published
from tests.serve.test_budget import GEOMETRIC, declared
from tests.waiting import PATIENCE, until


@contextmanager
def served(*arguments: object, log: Path = Path(os.devnull)) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own on a free port; it is gone at the end with its workers, whatever happens."""
    command = [sys.executable, "-m", "discreet", "serve", *map(str, arguments), "--port", "0", "--json"]
    with log.open("w") as written:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=written, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield process, json.loads(line)["address"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextmanager
def forked(*arguments: object) -> Iterator[tuple[Forked, str]]:
    """The same without the imports, to be killed."""
    process = Forked(discreet, "serve", *arguments, "--port", 0, "--json")
    try:
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        process.kill()
        process.ended()


@contextmanager
def waited(address: str) -> Iterator[Client]:
    """A client, once the server answers."""
    with Client(base_url=address, timeout=PATIENCE, verify=False) as client:
        until(lambda: is_well(client))
        yield client


def is_well(client: Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except HTTPError:
        return False


@pytest.fixture
def place(census: Path, tmp_path: Path) -> Path:
    """A programme whose answers are charged, its secret, and an empty ledger."""
    declared(census, tmp_path / "census", GEOMETRIC, 'account = { each = "1/100", user = 50 }')
    key = tmp_path / "secret.key"
    key.write_text(SECRET.hex())
    key.chmod(0o600)
    Ledger.create(tmp_path / "ledger.sqlite", now, derive(SECRET, "ledger"))
    return tmp_path


def now() -> datetime:
    return datetime.now(UTC)


def arguments(place: Path) -> list[object]:
    given = {"--secret": "secret.key", "--store": "store.sqlite", "--ledger": "ledger.sqlite"}
    return [
        place / "census" / "programme.toml",
        *(part for option, name in given.items() for part in (option, place / name)),
    ]


def test_a_killed_server_loses_no_charge_and_no_saved_query(place: Path) -> None:
    asked = [{"axes": [one, other]} for one in ("OCC", "EDU", "LOC") for other in ("AGE.L", "CAS.L", "HAR")]
    answers: dict[int, list[int]] = {}
    links: dict[int, str] = {}

    def ask(number: int) -> None:
        with Client(base_url=address, timeout=PATIENCE, verify=False) as client:
            links[number] = client.post("/api/v1/queries", json={"query": asked[number]}).json()["link"]
            answers[number] = client.post("/api/v1/table", json=asked[number]).json()["value"]

    with forked(*arguments(place)) as (process, address), ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(ask, number) for number in range(len(asked))]
        while len(answers) < 3:
            time.sleep(0.005)
            assert any(not one.done() for one in waiting) or len(answers) >= 3
        process.kill()
        for one in waiting:
            one.exception()
    assert len(answers) >= 3
    ledger = Ledger.open(place / "ledger.sqlite", now, derive(SECRET, "ledger"))
    assert ledger.verify() == ()
    (account,) = ledger.accounts()
    before = ledger.spent(account)
    told = " ".join(entry.described for entry in ledger.entries(account))
    for number in answers:
        for axis in asked[number]["axes"]:
            assert axis in told, "an answer left before its charge was on disk"
    with forked(*arguments(place)) as (_, address), waited(address) as client:
        for number, link in links.items():
            again = client.get(link)
            assert again.status_code == 200, "a saved query is lost"
            if number in answers:
                assert again.json()["value"] == answers[number]
        repeated = [client.post("/api/v1/table", json=asked[number]).json()["value"] for number in answers]
    assert repeated == list(answers.values())
    assert ledger.verify() == ()
    if len(links) == len(answers):
        assert ledger.spent(account) == before, "a repeated question was charged again"


def test_a_killed_server_has_remembered_every_answer_that_left(
    census: Path, tmp_path: Path, where: str
) -> None:
    shutil.copytree(census, tmp_path / "census")
    programme = tmp_path / "census" / "programme.toml"
    with programme.open("a") as file:
        file.write("\n[serve]\nhistory = { success = 0.9, difference = 5 }\n")
    key = tmp_path / "secret.key"
    key.write_text(SECRET.hex())
    key.chmod(0o600)
    asked = [[one, other] for one in ("OCC", "EDU", "LOC") for other in ("AGE.L", "CAS.L", "HAR")]
    answered: list[list[str]] = []

    def ask(axes: list[str]) -> None:
        with Client(base_url=address, timeout=PATIENCE, verify=False) as client:
            if client.post("/api/v1/table", json={"axes": axes}).status_code == 200:
                answered.append(axes)

    with (
        forked(programme, "--secret", key, "--store", where) as (process, address),
        ThreadPoolExecutor(4) as pool,
    ):
        waiting = [pool.submit(ask, axes) for axes in asked]
        while len(answered) < 3:
            time.sleep(0.005)
            assert any(not one.done() for one in waiting) or len(answered) >= 3
        process.kill()
        for one in waiting:
            one.exception()
    kept = [set(dict(json.loads(levels))) for levels in remembered(where)]
    for axes in answered:
        assert {axis.partition(".")[0] for axis in axes} in kept


def remembered(where: str) -> list[str]:
    with Store(where, now).database.reading() as connection:
        return list(connection.execute(text("SELECT levels FROM serve_answered")).scalars())


def test_several_workers_share_a_database_until_they_are_told_to_stop(
    release: Release, postgresql: Server
) -> None:
    database = postgresql.new_database()
    with served(release.folder, "--workers", 2, "--store", database) as (process, address):
        with waited(address) as client:
            wanted = published(release, "wide")["_T", "1", "_T"]
            params = {"valueCodes[SEX]": "1", "valueCodes[AGE]": "_T"}
            found = [client.get("/api/v2/tables/wide/data", params=params).json()["value"] for _ in range(6)]
            assert found == [[wanted]] * 6
            made = client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).json()
            job = client.post("/api/v1/jobs", json={"query": {"axes": ["SEX"]}}).headers["location"]
        done = [told_elsewhere(address, job, made["link"]) for _ in range(6)]
        assert done == [True] * 6
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert Store(database, now).saved_query(made["id"]) is not None


def told_elsewhere(address: str, job: str, link: str) -> bool:
    """Whether a new connection, to whichever worker, knows the saved query and sees the job done."""
    with waited(address) as client:
        assert client.get(link).status_code == 200
        until(lambda: client.get(job).json()["state"] == "done")
        return client.get(f"{job}/result").status_code == 200


@pytest.mark.parametrize("told", few([signal.SIGINT, signal.SIGTERM], 1))
def test_one_process_stops_when_it_is_told_to_and_leaves_one_file(
    release: Release, tmp_path: Path, told: signal.Signals
) -> None:
    with served(release.folder, "--store", tmp_path / "s.sqlite") as (process, address):
        with waited(address) as client:
            assert client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).status_code == 201
        process.send_signal(told)
        assert process.wait(PATIENCE) in (0, 130, -told)
    assert [path.name for path in tmp_path.glob("s.sqlite*")] == ["s.sqlite"]
