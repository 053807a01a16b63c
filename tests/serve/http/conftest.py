"""The table builder over HTTP: in this process, and as a real server on the loopback interface."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from httpx import Client

from discreet.serve.http.app import create_app
from discreet.serve.http.middleware import LimitedProtocol
from discreet.serve.http.settings import Limits, RateLimit, Settings
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder
from tests.waiting import PATIENCE

OFTEN = RateLimit(1_000_000, 1)
Web = Callable[..., Client]


def settings_in(folder: Path, **changed: Any) -> Settings:
    store = Store(folder / "http.sqlite", lambda: datetime.now(UTC))
    return replace(Settings(store, b"k" * 32, limits=Limits(public=OFTEN)), **changed)


@pytest.fixture
def web(builder: TableBuilder, tmp_path: Path) -> Iterator[Web]:
    """A client of a server with some settings, over the small census or another builder."""
    with ExitStack() as opened:

        def made(over: TableBuilder = builder, **changed: Any) -> Client:
            address = opened.enter_context(running(create_app(over, settings_in(tmp_path, **changed))))
            return opened.enter_context(Client(base_url=address, timeout=PATIENCE, verify=False))

        yield made


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    """A client of the server over the small census; it reads no certificates, which would take longest."""
    with Client(base_url=address, timeout=PATIENCE, verify=False) as made:
        yield made


@contextmanager
def running(app: FastAPI, http: type[LimitedProtocol] = LimitedProtocol, proxies: str = "") -> Iterator[str]:
    """A real server on a free port of the loopback interface; it stops at the end."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=proxies or None,
                lifespan="on",
                ws="none",
                http=http,
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def address(builder: TableBuilder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server over the small census."""
    with running(create_app(builder, settings_in(tmp_path_factory.mktemp("http")))) as found:
        yield found
