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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.census import SECRET, census
from benchmarks.costs import GB, Cost
from benchmarks.lines import Line, Section, Target

PERSONS = 10_000_000
USERS = 8
TABLES = 320  # new ones, all users together
PLACES = ("GEO.L", "GEO.M")
MOST_CELLS = 20_000
MAIN = "from discreet.cli.app import main; main()"
SAME_CORES = (
    "The users run on the server's cores; CPU s is the server's alone, the peak that of its largest process."
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
RATE = "1000000/1"  # what is measured is the work, not the politeness

Query = dict[str, Any]


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    folder = census(data, persons)
    with tempfile.TemporaryDirectory() as place:
        return [_over_records(folder, persons, Path(place)), _over_release(folder, persons, Path(place))]


def _over_records(folder: Path, persons: int, place: Path) -> Section:
    with _server([str(folder / "programme.toml"), "--secret", _secret(place)], place) as server:
        address, started, pid = server
        catalogue = _get(address, "/api/v1/catalogue")
        queries, began = three_way(catalogue), _used(pid)
        first, wall_first = _load(address, one_way(catalogue))
        before = _used(pid)
        new, wall = _load(address, queries)
        after = _used(pid)
        again, wall_again = _load(address, queries)
        peak, last = _peak(pid), _used(pid)
    lines = (
        Line(
            f"start, {persons:,} persons and their households",
            "Discreet",
            Cost(began, started, peak),
            targets=(Target("wall s", started, 10, 1),),
        ),
        Line(
            f"{len(first)} one-way tables, each breakdown for the first time, {USERS} users",
            "Discreet",
            Cost(before - began, wall_first, peak),
        ),
        _line(f"{len(new)} new three-way tables", new, Cost(after - before, wall, peak), 80),
        _line("the same again, from the cache", again, Cost(last - after, wall_again, peak), 20),
    )
    notes = (
        f"Tables of {' or '.join(PLACES)} by two variables, up to {MOST_CELLS:,} cells, as plain JSON-stat.",
    )
    return Section("The table builder over records", lines, (SAME_CORES, *notes, *_notes(new, again)))


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
            new, wall = _load(address, queries)
            after = _used(pid)
            again, wall_again = _load(address, queries)
            peak, last = _peak(pid), _used(pid)
        who = "Discreet" if workers == 1 else f"Discreet, --workers {workers}"
        lines += (
            Line(f"start, the release of {persons:,} persons", who, Cost(began, started, peak)),
            _line(
                f"{len(new)} tables, each for the first time", new, Cost(after - began, wall, peak), 20, who
            ),
            _line("the same again, from the cache", again, Cost(last - after, wall_again, peak), 20, who),
        )
        notes += (f"{who}, {note}" for note in _notes(new, again))
    with _empty_server() as (address, pid):
        _load(address, queries)
        began = _used(pid)
        times, wall = _load(address, queries)
        lines.append(
            Line(
                f"{len(times)} empty answers, {USERS} users",
                "uvicorn alone",
                Cost(_used(pid) - began, wall, _peak(pid)),
            )
        )
        notes.append(f"uvicorn alone: {_quantiles(times)}.")
    return Section("The table builder over a release", tuple(lines), (SAME_CORES, *notes))


def _line(work: str, times: Sequence[float], cost: Cost, limit: float, who: str = "Discreet") -> Line:
    target = Target("p95 ms", 1000 * quantile(times, 0.95), limit, 1)
    return Line(f"{work}, {USERS} users", who, cost, targets=(target,))


def _notes(new: Sequence[float], again: Sequence[float]) -> Iterator[str]:
    for name, times in (("new", new), ("again", again)):
        yield f"{name}: {_quantiles(times)}."


def _quantiles(times: Sequence[float]) -> str:
    shown = (f"p{int(100 * share)} {1000 * quantile(times, share):.1f} ms" for share in (0.5, 0.95, 0.99))
    return f"{', '.join(shown)}, the longest {1000 * max(times):.0f} ms"


def quantile(times: Sequence[float], share: float) -> float:
    """The time within which such a share of the answers came."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


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


def _load(address: str, queries: Sequence[Query]) -> tuple[list[float], float]:
    """Ask all questions, the users taking turns; the time of each, and of all."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(USERS) as pool:
        times = pool.map(lambda user: list(_asked(address, queries[user::USERS])), range(USERS))
        return [one for each in times for one in each], time.perf_counter() - begun


def _asked(address: str, queries: Sequence[Query]) -> Iterator[float]:
    connection = http.client.HTTPConnection(address, timeout=60)
    for query in queries:
        body, begun = json.dumps(query), time.perf_counter()
        connection.request("POST", "/api/v1/table", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} for {query}, so its time means nothing")
        yield time.perf_counter() - begun
    connection.close()


def _get(address: str, path: str) -> Any:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    said = json.loads(connection.getresponse().read())
    connection.close()
    return said


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
    """Wait until a server does nothing more."""
    used, before = _used(pid), -1.0
    while used > before:
        time.sleep(1)
        used, before = _used(pid), used


def _family(pid: int) -> list[int]:
    """A process and those that it started."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(int(one) for one in started)]


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
