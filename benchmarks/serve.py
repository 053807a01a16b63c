"""The table builder under load: eight users at once who ask for three-way tables over the loopback interface."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.census import SECRET, census
from benchmarks.costs import GB, Cost
from benchmarks.lines import Line, Section, Target
from benchmarks.users import Load, load
from discreet.serve.http.tokens import Role, create_token

PERSONS = 10_000_000
USERS = 8
TABLES = 320  # new ones, all users together
PLACES = ("GEO.L", "GEO.M")
MOST_CELLS = 20_000
MAIN = "from discreet.cli.app import main; main()"
SAME_CORES = (
    "The users are one light process on the server's cores; CPU s is the server's, without theirs and without those of "
    "the process of low priority that makes the script of charts once; the peak is that of its largest process."
)
EMPTY = """
import uvicorn
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9800")]})
    await send({"type": "http.response.body", "body": bytes(9800)})
server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="critical"))
startup = server.startup
async def announced(sockets=None):
    await startup(sockets)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
server.startup = announced
server.run()
"""  # what HTTP itself costs here
TOKENS = "tokens.json"
RATE = "1000000/1"  # what is measured is the work, not the politeness

Query = dict[str, Any]


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    folder = census(data, persons)
    with tempfile.TemporaryDirectory() as place:
        return [_over_records(folder, persons, Path(place)), _over_release(folder, persons, Path(place))]


def _over_records(folder: Path, persons: int, place: Path) -> Section:
    lines: list[Line] = []
    notes = [
        f"Tables of {' or '.join(PLACES)} by two variables, up to {MOST_CELLS:,} cells, as plain JSON-stat.",
        "Users with a token have histories of their own; those without one have the history of their one address.",
    ]
    for tokens in ((), _tokens(place)):
        who = f"Discreet, users with{'' if tokens else 'out'} a token"
        with _server(
            [str(folder / "programme.toml"), "--secret", _secret(place), "--tokens", str(place / TOKENS)],
            place,
        ) as server:
            address, started, pid = server
            catalogue = _get(address, "/api/v1/catalogue")
            queries, began = three_way(catalogue), _used(pid)
            first = load(address, one_way(catalogue), USERS, tokens)
            before = _used(pid)
            new = load(address, queries, USERS, tokens)
            after = _used(pid)
            again = load(address, queries, USERS, tokens)
            peak, last = _peak(pid), _used(pid)
        lines += (
            Line(
                f"start, {persons:,} persons and their households",
                who,
                Cost(began, started, peak),
                targets=(Target("wall s", started, 10, 1),),
            ),
            Line(
                f"{len(first.times)} one-way tables, each breakdown for the first time, {USERS} users",
                who,
                Cost(before - began, first.wall, peak),
            ),
            _line(f"{len(new.times)} new three-way tables", new, after - before, peak, 80, who),
            _line("the same again, from the cache", again, last - after, peak, 20, who),
        )
        notes += (f"{who}, new: {new}.", f"{who}, again: {again}.")
    return Section("The table builder over records", tuple(lines), (SAME_CORES, *notes))


def _over_release(folder: Path, persons: int, place: Path) -> Section:
    release = place / "release"
    made = [
        "protect",
        str(folder / "programme.toml"),
        "--secret",
        _secret(place),
        "--out",
        str(release),
        "--quiet",
    ]
    subprocess.run([sys.executable, "-c", MAIN, *made], check=True, stdout=subprocess.DEVNULL)
    lines: list[Line] = []
    notes = [
        f"Up to three axes of a published table of persons, up to {MOST_CELLS:,} cells, as plain JSON-stat.",
        "Questions begin when the server has read the release, some seconds after its start.",
        "The empty application answers each question at once with 9,800 bytes, the mean length of these answers.",
    ]
    for workers in (1, 2):
        with _server([str(release), "--workers", str(workers)], place) as server:
            address, started, pid = server
            _settle(pid)
            queries, began = parts_of_tables(_get(address, "/api/v1/catalogue")), _used(pid)
            new = load(address, queries, USERS)
            after = _used(pid)
            again = load(address, queries, USERS)
            peak, last = _peak(pid), _used(pid)
        who = "Discreet" if workers == 1 else f"Discreet, --workers {workers}"
        lines += (
            Line(f"start, the release of {persons:,} persons", who, Cost(began, started, peak)),
            _line(f"{len(new.times)} tables, each for the first time", new, after - began, peak, 20, who),
            _line("the same again, from the cache", again, last - after, peak, 20, who),
        )
        notes += (f"{who}, new: {new}.", f"{who}, again: {again}.")
    with _empty_server() as (address, pid):
        load(address, queries, USERS)
        began = _used(pid)
        empty = load(address, queries, USERS)
        lines.append(
            Line(
                f"{len(empty.times)} empty answers, {USERS} users",
                "uvicorn only",
                Cost(_used(pid) - began, empty.wall, _peak(pid)),
            )
        )
        notes.append(f"uvicorn only: {empty}.")
    return Section("The table builder over a release", tuple(lines), (SAME_CORES, *notes))


def _line(work: str, seen: Load, cpu: float, peak: float, limit: float, who: str) -> Line:
    target = Target("p95 ms", 1000 * seen.quantile(0.95), limit, 1)
    return Line(f"{work}, {USERS} users", who, Cost(cpu, seen.wall, peak), targets=(target,))


def one_way(catalogue: Any) -> list[Query]:
    """Every breakdown of persons once: the server lays out its column when it is first asked for."""
    return [{"axes": [name]} for name, codes in sizes_of(catalogue).items() if 1 < codes <= MOST_CELLS]


def three_way(catalogue: Any) -> list[Query]:
    """Different tables of a place and two variables of persons, in a fixed random order."""
    sizes = sizes_of(catalogue)
    others = [name for name in sizes if not name.startswith("GEO") and sizes[name] > 1]
    found = [
        {"axes": [place, one, other]}
        for place in PLACES
        for one, other in itertools.combinations(others, 2)
        if one.partition(".")[0] != other.partition(".")[0]
        and sizes[place] * sizes[one] * sizes[other] <= MOST_CELLS
    ]
    random.Random(1).shuffle(found)
    return found[:TABLES]


def parts_of_tables(catalogue: Any) -> list[Query]:
    """Different parts of the published tables of persons, in a fixed random order."""
    sizes = sizes_of(catalogue)
    parts = {
        (chosen, table["base"], table["count"])
        for table in catalogue["tables"]
        if table["unit"] == "persons"
        for number in (1, 2, 3)
        for chosen in itertools.combinations(table["axes"], number)
        if prod(sizes[name] for name in chosen) <= MOST_CELLS
    }
    found = [
        {"axes": list(chosen), "where": base, "count": count or ""} for chosen, base, count in sorted(parts)
    ]
    random.Random(1).shuffle(found)
    return found[:TABLES]


def sizes_of(catalogue: Any) -> dict[str, int]:
    """The number of codes of each breakdown of persons."""
    return {
        axis["name"]: axis["codes"]
        for variable in catalogue["variables"]
        if "persons" in variable["units"]
        for axis in variable["breakdowns"]
    }


def _get(address: str, path: str) -> Any:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    said = json.loads(connection.getresponse().read())
    connection.close()
    return said


def _tokens(place: Path) -> list[str]:
    """A token for each user."""
    return [create_token(place / TOKENS, f"user{one}", Role.PUBLIC, "") for one in range(USERS)]


def _secret(place: Path) -> str:
    key = place / "secret.key"
    if not key.exists():
        key.write_text(SECRET.hex())
        key.chmod(0o600)
    return str(key)


@contextmanager
def _server(what: Sequence[str], place: Path) -> Iterator[tuple[str, float, int]]:
    """A server in a process of its own: its address, the seconds until it answered, and its number."""
    options = [
        "--store",
        str(place / "store.sqlite"),
        "--port",
        "0",
        "--rate",
        RATE,
        "--json",
    ]
    command = [sys.executable, "-c", MAIN, "serve", *what, *options]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["address"].removeprefix("http://")
            _get(address, "/health")
            yield address, time.perf_counter() - begun, process.pid
        finally:
            process.terminate()


@contextmanager
def _empty_server() -> Iterator[tuple[str, int]]:
    with subprocess.Popen([sys.executable, "-c", EMPTY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}", process.pid
        finally:
            process.terminate()


def _settle(pid: int) -> None:
    """Wait until a server does nothing more, and has made what it makes once."""
    used, before = _used(pid), -1.0
    while used > before or len(_started(pid, "*")) > len(_started(pid, str(pid))):
        time.sleep(1)
        used, before = _used(pid), used


def _family(pid: int) -> list[int]:
    """A server and its workers, which its first thread started; other threads start what makes files once."""
    return [pid, *_started(pid, str(pid))]


def _started(pid: int, threads: str) -> list[int]:
    files = Path(f"/proc/{pid}/task").glob(f"{threads}/children")
    return [int(one) for file in files for one in file.read_text().split()]


def _used(pid: int) -> float:
    """The CPU seconds of a server so far."""
    ticks = 0
    for one in _family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> float:
    lines = (line for one in _family(pid) for line in Path(f"/proc/{one}/status").read_text().splitlines())
    return max(int(line.split()[1]) * 1024 / GB for line in lines if line.startswith("VmHWM"))
