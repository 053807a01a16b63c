"""Connections that are slow or many: those that keep the server waiting are closed, too many are told when to come.

It owns the time in which a head must arrive, the pace at which an answer must be read and the number of connections;
bodies and answers are waited for elsewhere.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from discreet.serve.http.languages import settle
from discreet.serve.http.problems import HttpProblem, retry_after
from discreet.words.phrase import Language, phrase

RETRY = 5  # seconds after which those who were too many may come again


class Watched(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # uvicorn chooses it by what is installed
    """A connection that is closed where the other side takes its time."""

    head_seconds = 15.0  # in which a connection must have sent the head of its first or next request
    head_bytes = 1 << 16
    pace = 10_000  # bytes per second that an answer is read at, at least
    look_seconds = 20.0  # how often that is looked at
    most = 1_000  # connections
    most_of_one = 200  # connections of one address, where no proxy is in between

    def connection_made(self, transport: Transport) -> None:
        """Begin to wait for a head; one connection too many is heard and sent away."""
        super().connection_made(transport)
        self._head = 0
        self._left = 0
        self._looking: TimerHandle | None = None
        self._waiting: TimerHandle | None = self.loop.call_later(self.head_seconds, transport.abort)
        if self._is_too_many():
            self.app = _busy

    def data_received(self, data: bytes) -> None:
        """Stop to wait when a request is complete, start again with the next one."""
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
        """Look after the answer that the other side does not read as fast as it comes."""
        super().pause_writing()
        if self._looking is None:
            self._left = self.transport.get_write_buffer_size()
            self._looking = self.loop.call_later(self.look_seconds, self._look)

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._looking = _ended(self._looking)

    def timeout_keep_alive_handler(self) -> None:
        """Close where no further request comes; what the other side leaves unread is not waited for."""
        super().timeout_keep_alive_handler()
        if self._looking is None and self._waiting is None:
            self._waiting = self.loop.call_later(self.look_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        self._waiting, self._looking = _ended(self._waiting), _ended(self._looking)

    def _look(self) -> None:
        """Close without sending the rest, which closing alone would wait for."""
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
    """What is answered on a connection that is one too many."""
    problem = HttpProblem(
        503,
        phrase("There are too many connections."),
        kind="busy",
        headers={**retry_after(RETRY), "Connection": "close"},
    )
    await problem.response(settle(scope, Language.ENGLISH))(scope, receive, send)
