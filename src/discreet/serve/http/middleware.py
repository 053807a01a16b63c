"""What surrounds every request: slow and excess connections, headers, access log, errors, size limits."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from asyncio import TimerHandle, Transport
from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from discreet.errors import DiscreetError
from discreet.serve.http.languages import language_of, settle
from discreet.serve.http.metrics import Metrics
from discreet.serve.http.problems import HttpProblem, problem_of, retry_after, unexpected
from discreet.serve.http.security import API_POLICY, HEADERS, HTTPS_HEADERS, Authenticator
from discreet.serve.http.settings import Settings
from discreet.text.phrase import Language, phrase

RETRY = 5  # seconds after which a rejected client may retry


class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # uvicorn chooses it by what is installed
    """An HTTP connection that is closed where the client is too slow."""

    head_seconds = 15.0  # in which a connection must have sent the head of its first or next request
    head_bytes = 1 << 16
    pace = 10_000  # bytes per second at which a client must read an answer
    look_seconds = 20.0  # how often that is checked
    most = 1_000  # connections
    most_of_one = 200  # connections of one address, where no proxy is in between

    def connection_made(self, transport: Transport) -> None:
        """Wait for a head; a connection above the limits is answered with 503."""
        super().connection_made(transport)
        self._head = 0
        self._left = 0
        self._looking: TimerHandle | None = None
        self._waiting: TimerHandle | None = self.loop.call_later(self.head_seconds, transport.abort)
        if self._is_too_many():
            self.app = _busy

    def data_received(self, data: bytes) -> None:
        """Stop the timer when a request is complete, start it again with the next one."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._head = 0
            self._waiting = _ended(self._waiting)
            return
        self._head += len(data)
        if self._head > self.head_bytes:
            self.transport.abort()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(self.head_seconds, self.transport.abort)

    def pause_writing(self) -> None:
        """Watch an answer that the client reads more slowly than it is written."""
        super().pause_writing()
        if self._looking is None:
            self._left = self.transport.get_write_buffer_size()
            self._looking = self.loop.call_later(self.look_seconds, self._look)

    def resume_writing(self) -> None:
        """Stop watching: the answer was read."""
        super().resume_writing()
        self._looking = _ended(self._looking)

    def timeout_keep_alive_handler(self) -> None:
        """Close where no further request comes; data that the client leaves unread is dropped."""
        super().timeout_keep_alive_handler()
        if self._looking is None and self._waiting is None:
            self._waiting = self.loop.call_later(self.look_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        super().connection_lost(exc)
        self._waiting, self._looking = _ended(self._waiting), _ended(self._looking)

    def _look(self) -> None:
        """Abort a client that is too slow, without waiting until the rest is sent."""
        left = self.transport.get_write_buffer_size()
        if self._left - left < self.pace * self.look_seconds:
            self.transport.abort()
            return
        self._left = left
        self._looking = self.loop.call_later(self.look_seconds, self._look)

    def _is_too_many(self) -> bool:
        if len(self.connections) > self.most:
            return True
        if self.config.proxy_headers or self.client is None:
            return False
        mine = sum(1 for one in self.connections if one.client and one.client[0] == self.client[0])
        return mine > self.most_of_one


def _ended(timer: TimerHandle | None) -> TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer on a connection above the limits."""
    problem = HttpProblem(
        503,
        phrase("There are too many connections."),
        kind="busy",
        headers={**retry_after(RETRY), "Connection": "close"},
    )
    await problem.response(settle(scope, Language.ENGLISH))(scope, receive, send)


OPEN_PATHS = ("/health", "/page/")  # monitoring, and files of the page: cheap, and many for one visit
STORING = ("queries", "/jobs")  # ends of paths under which something is stored
access = logging.getLogger("discreet.serve.access")
errors = logging.getLogger("discreet.serve.errors")


class HeadersAndLog:
    """Adds the security headers to every response, counts it and writes a line into the access log."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settle(scope, self._settings.language)
        began, sent = time.perf_counter(), {"status": 0}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent["status"] = message["status"]
                message["headers"] = _with_headers(
                    message.get("headers", ()), https=scope.get("scheme") == "https"
                )
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._write(scope, sent["status"], time.perf_counter() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        """Log only the route, unless queries are logged: a path or a query reveals what a user is interested in."""
        route = getattr(scope.get("route"), "path", "-")
        self._metrics.answered(route, scope["method"], status, seconds)
        where = route
        if self._settings.log_queries:
            where = f"{scope['path']}?{scope.get('query_string', b'').decode('latin-1')}"
        access.info("%s %r %d %.0f ms", scope["method"], where, status, 1000 * seconds)


def _as_sent(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.lower().encode(): value.encode() for name, value in headers.items()}


_PLAIN, _HTTPS = _as_sent(HEADERS), _as_sent({**HEADERS, **HTTPS_HEADERS})
_USUAL = _as_sent({"Content-Security-Policy": API_POLICY, "Cache-Control": "no-cache"})


def _with_headers(given: Iterable[tuple[bytes, bytes]], *, https: bool) -> list[tuple[bytes, bytes]]:
    """The headers of a response with those of every response, and with usual ones where it has none of its own."""
    always = _HTTPS if https else _PLAIN
    own = [header for header in given if header[0] not in always]
    names = {name for name, _ in own}
    return [*own, *always.items(), *(header for header in _USUAL.items() if header[0] not in names)]


class Errors:
    """Turns every exception into a problem; the place is logged, the text is not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def sending(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            problem = problem_of(error)
            if problem is None or began:
                errors.error("%s", where_of(error))
            if began:
                raise ConnectionAbortedError from None  # the answer is half sent: only closing signals it
            response = (problem or unexpected()).response(language_of(HTTPConnection(scope)))
            await response(scope, receive, send)


def where_of(error: BaseException) -> str:
    """The kind of an error and the lines that it came through; its text could contain what must not be logged."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    lines = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    detail = f": {error}" if isinstance(error, DiscreetError) else ""  # these never contain counts or keys
    return f"{type(error).__name__} in {lines}{detail}"


class Admission:
    """Admits requests: identifies the caller, limits rate, size and time, and reads the whole body."""

    def __init__(self, app: ASGIApp, settings: Settings, authenticator: Authenticator) -> None:
        self._app, self._limits, self._authenticator = app, settings.limits, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or raise the problem."""
        if scope["type"] != "http" or scope["path"].startswith(OPEN_PATHS):
            await self._app(scope, receive, send)
            return
        caller = self._authenticator.admit(HTTPConnection(scope))
        scope.setdefault("state", {})["caller"] = caller
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        stores = scope["path"].rstrip("/").endswith(STORING)
        if stores:
            self._authenticator.limit_storing(caller)
        body = await self._body(scope, receive, self._limits.storing_body if stores else self._limits.body)
        await self._app(scope, replayed(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive, most: int) -> bytes:
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._read(receive, most)
        except TimeoutError:
            raise HttpProblem(408, phrase("The body of the request did not arrive in time.")) from None

    async def _read(self, receive: Receive, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b"".join(parts)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return b"".join(parts)


def _too_large(most: int) -> HttpProblem:
    detail = phrase("A request may have {most} bytes.", most=most)
    return HttpProblem(413, detail, kind="size")


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body again, then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
