"""Users of a server who ask at once, in a process of their own: its work is not the server's, and is reported.

Every user has a connection and asks the next question once the last one is answered. Requests are bytes made before the
first is sent, and of an answer only the status and the length are read, so that the users take as little as possible
of the cores that they share with the server. Run as: python -m benchmarks.users, with what to ask as JSON on its input.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATH = "/api/v1/table"
PART = 1 << 20  # bytes that are read at once


@dataclass(frozen=True)
class Load:
    """What the users saw: the seconds of each answer and of all, and the CPU seconds that they took themselves."""

    times: tuple[float, ...]
    wall: float
    own_cpu: float

    def quantile(self, share: float) -> float:
        """The seconds within which such a share of the answers came."""
        return sorted(self.times)[min(len(self.times) - 1, int(share * len(self.times)))]

    def __str__(self) -> str:
        shown = (f"p{int(100 * share)} {1000 * self.quantile(share):.1f} ms" for share in (0.5, 0.95, 0.99))
        users = 1000 * self.own_cpu / len(self.times)
        return (
            f"{', '.join(shown)}, the longest {1000 * max(self.times):.0f} ms; "
            f"the users themselves took {users:.2f} ms of CPU for each"
        )


def load(address: str, queries: Sequence[Any], users: int, tokens: Sequence[str] = ()) -> Load:
    """Ask a server all questions, the users taking turns, from a process of their own."""
    asked = {
        "port": int(address.rpartition(":")[2]),
        "users": users,
        "bodies": [json.dumps(query) for query in queries],
        "tokens": list(tokens),
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.users"],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found = json.loads(done.stdout)
    return Load(tuple(found["times"]), found["wall"], found["own_cpu"])


@dataclass
class _User:
    connection: socket.socket
    waiting: list[bytes]  # the next request last
    times: list[float] = field(default_factory=list)
    began: float = 0.0
    head: bytes = b""
    left: int = 0  # bytes of the answer's body

    def ask(self) -> bool:
        """Send the next request; whether there is one."""
        if not self.waiting:
            return False
        self.head, self.left, self.began = b"", 0, time.perf_counter()
        self.connection.sendall(self.waiting.pop())
        return True

    def hear(self) -> bool:
        """Read what came; whether the answer is whole."""
        part = self.connection.recv(PART)
        if not part:
            raise RuntimeError("the server closed a connection")
        if self.left:
            self.left -= len(part)
        else:
            self.head += part
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.left = _length(self.head[:end]) - (len(self.head) - end - 4)
        if self.left:
            return False
        self.times.append(time.perf_counter() - self.began)
        return True


def _length(head: bytes) -> int:
    """The length of an answer's body; any status but 200 ends the measurement."""
    lines = head.lower().split(b"\r\n")
    if not lines[0].startswith(b"http/1.1 200"):
        raise RuntimeError(f"{lines[0].decode()}, so its time means nothing")
    return next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))


def _request(body: str, token: str) -> bytes:
    known = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{known}"
    content = body.encode()
    return f"{head}Accept-Encoding: identity\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def _user(port: int, bodies: Sequence[str], token: str) -> _User:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _User(connection, [_request(body, token) for body in reversed(bodies)])


def _main() -> None:
    asked = json.load(sys.stdin)
    bodies, number = asked["bodies"], asked["users"]
    tokens = asked["tokens"] or [""] * number
    everyone = [_user(asked["port"], bodies[one::number], tokens[one]) for one in range(number)]
    ready = selectors.DefaultSelector()
    for user in everyone:
        ready.register(user.connection, selectors.EVENT_READ, user)
    began, used = time.perf_counter(), time.process_time()
    busy = sum(user.ask() for user in everyone)
    while busy:
        for key, _ in ready.select():
            heard: _User = key.data
            if heard.hear() and not heard.ask():
                busy -= 1
    measured = {
        "times": [seconds for user in everyone for seconds in user.times],
        "wall": time.perf_counter() - began,
        "own_cpu": time.process_time() - used,
    }
    sys.stdout.write(json.dumps(measured))


if __name__ == "__main__":
    _main()
