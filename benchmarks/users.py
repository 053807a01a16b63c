"""Users of a server who ask at once, in a process of their own: its work is not the server's, and is reported.

Every user has a connection and asks the next question once the last one is answered. Requests are bytes made before the
first is sent, and of an answer only the status and the length are read, so that the users take as little as possible
of the cores that they share with the server. Run as: python -m benchmarks.users PORT USERS PATH < bodies, one per line
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

ROOT = Path(__file__).parents[1]
PART = 1 << 20  # bytes that are read at once


@dataclass(frozen=True)
class Load:
    """What the users saw: the seconds of each answer and of all, and the CPU seconds that they took themselves."""

    times: tuple[float, ...]
    wall: float
    own_cpu: float


def load(address: str, bodies: Sequence[str], users: int, path: str = "/api/v1/table") -> Load:
    """Send all bodies to a server, the users taking turns, from a process of their own."""
    command = [sys.executable, "-m", "benchmarks.users", address.rpartition(":")[2], str(users), path]
    done = subprocess.run(
        command, input="\n".join(bodies), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
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


def _request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Accept-Encoding: identity\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _main(port: str, users: str, path: str) -> None:
    requests = [_request(path, line.encode()) for line in sys.stdin.read().splitlines()]
    number, ready = int(users), selectors.DefaultSelector()
    for one in range(number):
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready.register(connection, selectors.EVENT_READ, _User(connection, requests[one::number][::-1]))
    everyone: list[_User] = [key.data for key in ready.get_map().values()]
    began, used = time.perf_counter(), time.process_time()
    busy = sum(user.ask() for user in everyone)
    while busy:
        for key, _ in ready.select():
            user: _User = key.data
            if user.hear() and not user.ask():
                busy -= 1
    measured = {
        "times": [seconds for user in everyone for seconds in user.times],
        "wall": time.perf_counter() - began,
        "own_cpu": time.process_time() - used,
    }
    sys.stdout.write(json.dumps(measured))


if __name__ == "__main__":
    _main(*sys.argv[1:])
