"""The web application: its routers and its middleware."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from itertools import takewhile
from threading import Event, Thread
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.telemetry import TelemetryConfig

from discreet.serve.http import admin, api, jobs, problems, pxweb, pxweb1, saved, search
from discreet.serve.http.limits import Rates, WorkerPool
from discreet.serve.http.middleware import Admission, Errors, HeadersAndLog, errors, where_of
from discreet.serve.http.plain import PlainTables
from discreet.serve.http.security import Authenticator
from discreet.serve.http.service import Service
from discreet.serve.http.settings import Settings
from discreet.serve.open import TableBuilder
from discreet.serve.page import routes as page
from discreet.serve.page.routes import page_files, prepare_page
from discreet.serve.page.scripts import vega_bundle
from discreet.serve.sdmx import routes as sdmx

GZIP_FROM, GZIP_LEVEL = 1_000, 4
ROUTERS: tuple[APIRouter, ...] = (
    page.router,
    api.router,
    search.router,
    saved.router,
    jobs.router,
    pxweb.router,
    pxweb.saved_router,
    pxweb1.router,
    admin.router,
)
_RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"description": problems.TITLES[code], "content": {problems.MEDIA_TYPE: {}}}
    for code in (400, 401, 403, 404, 409, 413, 429, 503)
}
# FastAPI's own telemetry would export addresses, which contain questions, and texts of errors; see metrics
_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False
}  # fmt: skip


def routers_of(builder: TableBuilder) -> tuple[APIRouter, ...]:
    """All routers; those that are made for what a builder serves are made here."""
    return (*ROUTERS, sdmx.router(builder))


def create_app(
    builder: TableBuilder,
    settings: Settings,
    routers: Sequence[APIRouter] | None = None,
    *,
    charts: bool = False,
) -> FastAPI:
    """The application that serves a table builder, with all routers or with some.

    With ``charts`` the script that draws them and the files of the page are made after the start, so that the first
    reader does not wait.
    """
    pool, rates = WorkerPool(settings.limits), Rates(time.monotonic)
    worker = jobs.JobWorker(builder, settings.store, settings.limits)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        worker.start()
        ended = Event()
        page_work = (
            (page_files, _give_way, partial(prepare_page, ended.is_set), _bundle_vega) if charts else ()
        )
        work = (partial(builder.prepare, ended.is_set), *page_work)
        preparing = Thread(target=_prepare, args=(work, ended), name="prepare", daemon=True)
        preparing.start()
        yield
        ended.set()
        worker.stop()
        preparing.join()  # compiled code that runs while the interpreter ends would crash
        pool.close()
        settings.store.database.close()

    app = FastAPI(
        title=f"Table builder: {builder.catalogue.name}",
        version=version("discreet"),
        lifespan=life,
        docs_url=None,  # the usual page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the Host header, which the sender of a request chooses
        responses=_RESPONSES,
        telemetry=_NO_TELEMETRY,
    )
    service = Service(builder, settings, pool, rates)
    app.state.service, app.state.worker = service, worker
    problems.install(app)
    for router in routers_of(builder) if routers is None else routers:
        app.include_router(router)
    _surround(app, settings, rates, service)
    return app


def _give_way() -> None:
    """Let this thread have a processor only where no answer needs it; it should compress and wait, not interpret."""
    if sys.platform == "linux":  # elsewhere it would be the whole process
        os.nice(10)


def _bundle_vega() -> None:
    """Wait for the script of charts in a thread of its own, which may be left behind: another process makes it."""
    Thread(target=_prepare, args=([vega_bundle], Event()), name="vega", daemon=True).start()


def _prepare(work: Iterable[Callable[[], object]], ended: Event) -> None:
    """Do the work that would slow down the first questions, while the server already answers."""
    for do in takewhile(lambda _: not ended.is_set(), work):
        try:
            do()
        except Exception as error:  # the server answers without it, only later
            errors.error("%s", where_of(error))


def _surround(app: FastAPI, settings: Settings, rates: Rates, service: Service) -> None:
    """Add the middleware, innermost first."""
    app.add_middleware(PlainTables, service=service)
    app.add_middleware(Admission, settings=settings, authenticator=Authenticator(settings, rates))
    app.add_middleware(Errors)
    app.add_middleware(GZipMiddleware, minimum_size=GZIP_FROM, compresslevel=GZIP_LEVEL)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(settings.origins),
        allow_methods=["GET", "POST", "DELETE", "OPTIONS"],
        allow_headers=["Authorization", "Content-Type", "If-None-Match"],
        expose_headers=["ETag", "Location", "Retry-After", "Content-Disposition"],
    )
    if settings.hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False)
    app.add_middleware(HeadersAndLog, settings=settings, metrics=service.metrics)
