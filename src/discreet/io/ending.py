"""Requests to end (SIGINT, SIGTERM, SIGHUP): an exception in the main thread, and one that cannot get lost.

Python runs a signal's handler between any two instructions, also where whatever is raised is dropped: modules compiled
by Cython register their arrays as sequences when they are imported, and ignore what is raised then; so do destructors,
callbacks of C, and the locks of imports. A request is therefore remembered. It is raised again ten times a second,
nothing is put in place after it, and a command never ends as if there had been none. It waits while a module is
imported, because half of one is of no use, and while an exception is on its way, so that work folders are removed.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PAUSE = 0.1  # seconds until a request is raised again
IMPORTING = "<frozen importlib._bootstrap>"  # where Python's own code of imports is


class Ended(BaseException):
    """The program was asked to end by the signal ``number``; until then it had put ``written`` in place."""

    def __init__(self, number: int, written: tuple[str, ...]) -> None:
        super().__init__(number)
        self.number, self.written = number, written


class _Request:
    """The request to end of this process: signals belong to a process, and so does this."""

    number: int | None = None
    raises = False  # whether there is work that a request can end
    written: tuple[str, ...] = ()


def until_asked_to_end(work: Callable[[], object]) -> None:
    """Do the work; if a signal asked to end meanwhile, raise ``Ended``, whatever the work returned or raised."""
    before = {  # nohup ignores one of them, and another program may have its own way
        number: signal.getsignal(number)
        for number in SIGNALS
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    }
    timer, shown, of_thread = signal.getsignal(signal.SIGALRM), sys.unraisablehook, threading.excepthook
    _Request.number, _Request.raises, _Request.written = None, True, ()
    try:
        try:
            for number in before:
                signal.signal(number, _ask)
            # what Python itself drops it reports: not this, which is raised again; threads just end
            sys.unraisablehook = lambda raised: None if isinstance(raised.exc_value, Ended) else shown(raised)
            threading.excepthook = lambda raised: None if raised.exc_type is Ended else of_thread(raised)
            work()
        finally:
            _Request.raises = False
    finally:  # not interrupted: nothing raises, or an exception is on its way
        sys.unraisablehook, threading.excepthook = shown, of_thread
        for number, how in before.items():
            signal.signal(number, how)
        asked, _Request.number = _Request.number, None
        if asked is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, timer)
            raise Ended(asked, _Request.written) from None


def require_unasked() -> None:
    """Raise a request to end that was lost."""
    if _Request.number is not None:
        raise Ended(_Request.number, _Request.written)


@contextmanager
def putting(place: str) -> Iterator[None]:
    """Put something in place in the block, unless the program was asked to end."""
    require_unasked()
    yield
    if place not in _Request.written:  # a server writes often
        _Request.written = (*_Request.written, place)


def _ask(number: int, frame: FrameType | None) -> None:
    """Remember the request and raise it; a second Ctrl-C waits for nothing."""
    is_repeated = number == signal.SIGINT and _Request.number is not None
    _Request.number = _Request.number or number
    signal.signal(signal.SIGALRM, _ask_again)
    signal.setitimer(signal.ITIMER_REAL, PAUSE, PAUSE)
    if _Request.raises and (is_repeated or not _waits(frame)):
        require_unasked()


def _ask_again(_number: int, frame: FrameType | None) -> None:
    if _Request.raises and not _waits(frame):
        require_unasked()


def _waits(frame: FrameType | None) -> bool:
    """Whether an exception is on its way, or a module is being imported."""
    if sys.exception() is not None:
        return True
    while frame is not None and frame.f_code.co_filename != IMPORTING:
        frame = frame.f_back
    return frame is not None
