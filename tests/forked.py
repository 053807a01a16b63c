"""Processes forked from one that has loaded the package: they can be killed like any other, and start without imports.

A new interpreter loads for one to three seconds of the processor what it needs; a test that is about what processes do
to each other's files and databases needs many of them.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, reduction
from typing import IO, Any

from discreet.cli.app import main
from tests.waiting import PATIENCE

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["discreet.cli.protect", "discreet.cli.swap", "discreet.cli.serve", "discreet.serve.http.server",
     "tests.serve.working", "tests.perturb.charging", "tests.pipeline.test_killed_fit"]
)  # fmt: skip
os.environ.setdefault(
    "JE_ARROW_MALLOC_CONF", "background_thread:false"
)  # a process with threads must not be forked


class Forked:
    """A process that runs a function; it reads ``stdin`` and writes ``stdout``, to which its errors go, too."""

    def __init__(self, run: Callable[..., object], *arguments: object) -> None:
        given, to = os.pipe()
        back, taken = os.pipe()
        self.process = CONTEXT.Process(
            target=_run, args=(run, arguments, _Passed(given), _Passed(taken)), daemon=True
        )
        self.process.start()
        os.close(given)
        os.close(taken)
        self.stdin: IO[str] = os.fdopen(to, "w")
        self.stdout: IO[str] = os.fdopen(back)

    @property
    def pid(self) -> int:
        """Its number."""
        assert self.process.pid is not None
        return self.process.pid

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.kill()
        self.process.join(PATIENCE)

    def go(self) -> None:
        """Write a line."""
        self.stdin.write("\n")
        self.stdin.flush()

    def ended(self) -> tuple[int, str]:
        """Wait for its end; its exit code (below 0: the signal that ended it) and the rest of what it wrote."""
        self.process.join(PATIENCE)  # what it writes fits into the pipe
        code = self.process.exitcode
        assert code is not None, "it still runs"
        with self.stdout:
            written = self.stdout.read()
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.process.close()
        return code, written


class _Passed:
    """A file descriptor that the process gets."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (reduction.DupFd(self.number),)


def _received(passed: Any) -> int:
    return int(passed.detach())


def _run(run: Callable[..., object], arguments: tuple[object, ...], stdin: int, stdout: int) -> None:
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stdout, 2)
    os.close(stdin)
    os.close(stdout)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    run(*arguments)


def discreet(*words: object) -> None:
    """The command line, for a process."""
    sys.argv = ["discreet", *map(str, words)]
    main()
