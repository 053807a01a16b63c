"""How the tests wait: for a condition, and so long that on a busy machine, too, only what hangs reaches the end."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0  # seconds for a process, an answer or a condition
PAGE = 60_000.0  # milliseconds for what a page is to show


def until(asked: Callable[[], T]) -> T:
    """Ask until the answer is true, and give it back."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := asked()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {PATIENCE:.0f} s")
        time.sleep(0.02)
    return answer
