"""Running the server: opening its files and databases, worker processes, and the socket."""

from __future__ import annotations

import gc
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from discreet.errors import mistake
from discreet.io.progress import Progress
from discreet.io.register import Register
from discreet.lazy import leave_out
from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import load_declaration, load_programme
from discreet.programme.serve import DEFAULT_SERVE, HistoryRule
from discreet.release.reader import open_release
from discreet.serve.history import History
from discreet.serve.http.app import create_app
from discreet.serve.http.geometry import read_geometry
from discreet.serve.http.metrics import collected_over_processes
from discreet.serve.http.middleware import LimitedProtocol
from discreet.serve.http.security import stored_key
from discreet.serve.http.settings import Limits, Settings
from discreet.serve.http.tokens import read_tokens
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme, serve_release

SWITCH = 0.0005  # seconds after which a thread lets others run: a short answer should not wait for a long one
LONGEST_START = 600  # seconds in which a worker has read its records
LANGUAGE_TAG = re.compile("[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
USERS = "users"  # the name of the key of anonymous users


@dataclass(frozen=True)
class Serving:
    """The options of a server; worker processes receive them unchanged."""

    source: Path  # a programme file or a release folder
    store: str
    secret: bytes | None = None
    ledger: str = ""
    register: Path | None = None  # of the secret
    another_ptable: bool = False  # accept another p-table than those recorded there
    rules: Path | None = None  # a programme whose [serve] section rules over a release
    without_rules: bool = False  # whether users may collect without limit
    tokens: Path | None = None
    tokens_only: bool = False
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    origins: tuple[str, ...] = ("*",)
    language: str | None = None  # None: that of the release
    log_queries: bool = False
    geometry: Path | None = None
    hosts: tuple[str, ...] = ()

    def __call__(self) -> FastAPI:
        """Open everything and make the application, in each worker process."""
        _log()
        sys.setswitchinterval(SWITCH)
        return self.app()

    def is_unlimited(self) -> bool:
        """Whether users may collect so much of records that any count can be found."""
        if self.source.is_dir():
            return False
        rule = load_declaration(self.source).serve
        return rule.account is None and (self.without_rules or rule.history.success is None)

    def lay_out(self) -> None:
        """Open the databases before the workers do, so that their problems are reported once and before listening."""
        self._check()
        with self._opened_store() as store, closing(store.database):
            History(store.database, HistoryRule())
            stored_key(store.database, USERS)
            self._ledger()

    def app(self, progress: Progress | None = None) -> FastAPI:
        """Open the databases and the source, and make the application."""
        self._check()
        with self._opened_store() as store:
            return self._made(store, self._builder(store, progress))

    @contextmanager
    def _opened_store(self) -> Iterator[Store]:
        """Open the store; where the server cannot start, a file that was created for it is removed again."""
        place = _place(self.store)
        is_new = isinstance(place, Path) and not place.exists()
        store = Store(place, _now)
        try:
            yield store
        except BaseException:
            store.database.close()
            if isinstance(place, Path) and is_new:
                for suffix in ("", "-wal", "-shm"):
                    place.with_name(f"{place.name}{suffix}").unlink(missing_ok=True)
            raise

    def _made(self, store: Store, builder: TableBuilder) -> FastAPI:
        key = derive(self.secret, "serve-users") if self.secret else stored_key(store.database, USERS)
        settings = Settings(
            store,
            key,
            self.tokens,
            self.tokens_only,
            self.limits,
            self.origins,
            self.language or builder.catalogue.language,
            self.log_queries,
            self.geometry,
            self.hosts,
        )
        app = create_app(builder, settings, charts=True)
        gc.collect()
        leave_out()  # these objects stay: scanning them in every collection would delay answers
        return app

    def _check(self) -> None:
        check_options(
            tokens=self.tokens, tokens_only=self.tokens_only, language=self.language, geometry=self.geometry
        )

    def _builder(self, store: Store, progress: Progress | None) -> TableBuilder:
        if self.source.is_dir():
            rule = load_declaration(self.rules).serve if self.rules else DEFAULT_SERVE
            builder = serve_release(open_release(self.source), store, rule=rule)
            builder.prepare()  # files are read in a second or two, and no question waits for them
            return builder
        if self.secret is None:
            raise mistake(self.source, "secret", "is missing", "name the secret of its release with --secret")
        programme = load_programme(self.source)
        if self.register is None and isinstance(programme.noise, CellKeyNoise):
            remedy = "give its path with --register: it records what is published under the secret"
            raise mistake(self.source, "register", "no secret file next to which to store it", remedy)
        if self.without_rules:
            programme = replace(programme, serve=replace(programme.serve, history=HistoryRule()))
        return serve_programme(
            programme,
            self.secret,
            store,
            ledger=self._ledger(),
            register=None if self.register is None else Register.of(self.register, self.secret),
            another_ptable=self.another_ptable,
            threads=self.threads,
            progress=progress,
        )

    def _ledger(self) -> Ledger | None:
        if not self.ledger or self.secret is None:
            return None
        return Ledger.open(_place(self.ledger), _now, derive(self.secret, "ledger"))


def check_options(
    *, tokens: Path | None, tokens_only: bool, language: str | None, geometry: Path | None
) -> None:
    """Reject invalid options before anything is opened."""
    if tokens_only and tokens is None:
        remedy = "name a file of tokens with --tokens; make one with: discreet token create FILE NAME"
        raise mistake("", "--tokens-only", "needs a file of tokens", remedy)
    if language is not None and not LANGUAGE_TAG.fullmatch(language):
        raise mistake("", "--language", repr(language), "write a tag such as en, de or pt-BR")
    if geometry is not None:
        read_geometry(geometry)
    if tokens is not None:
        read_tokens(tokens)


def run(
    serving: Serving,
    host: str,
    port: int,
    *,
    workers: int = 1,
    proxies: str = "",
    ready: Callable[[str, bool], None],
    progress: Progress | None = None,
) -> None:
    """Serve until a signal ends it.

    ``ready`` is called once requests are accepted, with the address and whether users may collect without limit.
    """
    _log()
    sys.setswitchinterval(SWITCH)
    listening = _socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    with listening:
        if workers == 1:
            app = serving.app(progress)
            config = _config(app, proxies)
            ready(address, app.state.service.catalogue.is_unlimited)
            uvicorn.Server(config).run(sockets=[listening])
            return
        serving.lay_out()
        config = _config(serving, proxies, workers)
        ready(address, serving.is_unlimited())
        with collected_over_processes():
            Multiprocess(config, [listening]).run()


def _config(app: FastAPI | Serving, proxies: str, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, Serving),
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        http=LimitedProtocol,
        timeout_graceful_shutdown=10,
        timeout_worker_healthcheck=LONGEST_START,
        lifespan="on",
        ws="none",
    )


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # explicit, because asyncio sets TCP_NODELAY only where the protocol is TCP
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(2048)
    except OSError as error:
        made.close()
        reason = (error.strerror or "cannot be used").lower()
        raise mistake("", f"--host {host} --port {port}", reason, "choose another address or port") from None
    made.set_inheritable(True)
    return made


def _place(where: str) -> str | Path:
    return where if "://" in where else Path(where)


def _now() -> datetime:
    return datetime.now(UTC)


def _log() -> None:
    """Log to standard error, without the error texts of other packages."""
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {os.getpid()} %(name)s %(message)s")
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
