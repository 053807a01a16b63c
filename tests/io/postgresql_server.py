"""A private PostgreSQL server in a temporary folder, for tests alone."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import pyarrow as pa

from tests.waiting import PATIENCE

ROLE = "registrar"
NO_SERVER = "NO PostgreSQL SERVER BINARIES (initdb, postgres): the tests against a real database DO NOT RUN"


def binaries() -> Path | None:
    """The folder of the server's programs, or None."""
    places = [Path(found).parent for found in [shutil.which("initdb")] if found]
    if config := shutil.which("pg_config"):
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        places.append(Path(told.stdout.strip()))
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None
    )


def _as_somebody() -> dict[str, Any]:
    """How to run a program as a user whom the server accepts: it refuses to run as root."""
    if os.getuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    somebody = known.get("postgres") or known["nobody"]
    return {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []}


@dataclass
class Server:
    """A server that listens on the loopback address; it can be stopped and started again with what it holds."""

    port: int
    command: list[object]
    options: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    databases: int = 0

    @property
    def uri(self) -> str:
        return self.address("postgres")

    def address(self, database: str) -> str:
        return f"postgresql://{ROLE}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a new and empty database."""
        self.databases += 1
        self.execute(f"CREATE DATABASE test{self.databases}")
        return self.address(f"test{self.databases}")

    def load(self, name: str, table: pa.Table) -> None:
        """Put an Arrow table into the database."""
        with adbc_driver_postgresql.dbapi.connect(self.uri) as connection:
            with connection.cursor() as cursor:
                cursor.adbc_ingest(name, table, mode="create")
            connection.commit()

    def execute(self, sql: str) -> None:
        with (
            adbc_driver_postgresql.dbapi.connect(self.uri, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)

    def start(self) -> None:
        """Start, and return when it answers."""
        self.process = subprocess.Popen([str(part) for part in self.command], **self.options)
        deadline = time.monotonic() + PATIENCE
        while not self.ready():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("the private PostgreSQL server does not start")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop at once, connections and all."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ready(self) -> bool:
        try:
            self.execute("SELECT 1")
        except adbc_driver_postgresql.dbapi.Error:
            return False
        return True


@contextlib.contextmanager
def running(programs: Path) -> Iterator[Server]:
    """Start a server on a free port with a data folder of its own, and stop it whatever happens."""
    # not below pytest's own folder, which other users cannot enter
    with tempfile.TemporaryDirectory(prefix="discreet-pg-", ignore_cleanup_errors=True) as place:
        somebody = _as_somebody()
        if somebody:
            os.chown(place, somebody["user"], somebody["group"])
        data = Path(place) / "data"
        quiet: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "cwd": "/",
            **somebody,
        }
        initdb = f"{programs}/initdb -D {data} -A trust -U {ROLE} -E UTF8 --locale=C --no-sync"
        subprocess.run(initdb.split(), check=True, **quiet)
        port = _free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": place,
            "fsync": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = Server(port, [programs / "postgres", "-D", data, *options], quiet)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
