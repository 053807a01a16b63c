"""Connections that send slowly, read slowly or are many do not keep others out."""

import json
import socket
import time
from asyncio import Transport
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import ClassVar

import pytest
from httpx import Client

from discreet.serve.http.app import create_app
from discreet.serve.http.middleware import LimitedProtocol
from discreet.serve.open import TableBuilder
from tests.serve.http.conftest import running, settings_in
from tests.serve.http.test_native import problem
from tests.waiting import PATIENCE, until


class Quick(LimitedProtocol):
    head_seconds = 0.4
    look_seconds = 0.4
    lost: ClassVar[list[object]] = []

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.append(self)


class Seen(LimitedProtocol):
    made: ClassVar[list["Seen"]] = []

    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.made.append(self)


class OneAddress(LimitedProtocol):
    most_of_one = 5


class Few(LimitedProtocol):
    most = 5


@pytest.fixture
def quick(builder: TableBuilder, tmp_path: Path) -> Iterator[tuple[str, int]]:
    Quick.lost.clear()
    with running(create_app(builder, settings_in(tmp_path)), Quick) as address:
        yield place_of(address)


def place_of(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").partition(":")
    return host, int(port)


def read_to_the_end(connection: socket.socket) -> int:
    """How many bytes come until the other side closes; a test whose connection stays open fails here."""
    connection.settimeout(PATIENCE)
    read = 0
    try:
        while came := connection.recv(1 << 20):
            read += len(came)
    except ConnectionError:
        pass
    return read


@pytest.mark.parametrize(
    "said",
    [b"", b"GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ", b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /"],
    ids=["nothing", "half a head", "half a second head"],
)
def test_a_head_that_does_not_arrive_is_not_waited_for(quick: tuple[str, int], said: bytes) -> None:
    with socket.create_connection(quick) as connection:
        connection.sendall(said)
        read_to_the_end(connection)


def test_a_head_that_trickles_in_is_not_waited_for(quick: tuple[str, int]) -> None:
    with socket.create_connection(quick) as connection:
        began = time.monotonic()
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        with pytest.raises(ConnectionError):  # noqa: PT012 - which of the bytes meets a closed end is not known
            while time.monotonic() - began < PATIENCE:
                connection.sendall(b"x")
                time.sleep(0.05)


def test_a_head_has_a_size(quick: tuple[str, int]) -> None:
    with socket.create_connection(quick) as connection, pytest.raises(ConnectionError):  # noqa: PT012
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n")
        for number in range(10_000):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"y" * 1000))


def test_a_connection_that_is_used_stays_open(builder: TableBuilder, tmp_path: Path) -> None:
    """Once a request is complete, no time runs against the connection."""
    Seen.made.clear()
    with (
        running(create_app(builder, settings_in(tmp_path)), Seen) as address,
        closing(HTTPConnection(*place_of(address))) as connection,
    ):
        connection.connect()
        used = connection.sock
        for _ in range(4):
            connection.request("GET", "/health")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            (one,) = Seen.made
            assert one._waiting is None
        assert connection.sock is used


def test_an_answer_that_is_not_read_is_not_kept(quick: tuple[str, int]) -> None:
    body = json.dumps({"axes": ["GEO.H", "AGE.H", "SEX"]}).encode()
    head = b"POST /api/v1/table?format=csv HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(quick)
        request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        connection.sendall(request * 12)  # more than the buffers of the system take
        until(lambda: Quick.lost)
        read = read_to_the_end(connection)
    with closing(HTTPConnection(*quick)) as connection:
        connection.request("POST", "/api/v1/table?format=csv", body, {"Content-Type": "application/json"})
        whole = len(connection.getresponse().read())
    assert read < 12 * whole, "what was left was thrown away, not sent on"


@pytest.mark.parametrize("kind", [OneAddress, Few])
def test_there_are_so_many_connections_and_who_comes_then_is_told_when_to_come_again(
    builder: TableBuilder, tmp_path: Path, kind: type[LimitedProtocol]
) -> None:
    with ExitStack() as opened:
        address = opened.enter_context(running(create_app(builder, settings_in(tmp_path)), kind))
        client = opened.enter_context(Client(base_url=address, timeout=PATIENCE, verify=False))
        held = [opened.enter_context(socket.create_connection(place_of(address))) for _ in range(5)]
        answer = client.get("/health")
        assert problem(answer, 503)["type"] == "/problems/busy"
        assert int(answer.headers["retry-after"]) > 0
        assert answer.headers["connection"] == "close"
        for connection in held:
            connection.close()
        until(lambda: client.get("/health").status_code == 200)
