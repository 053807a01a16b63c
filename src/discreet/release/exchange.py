"""Swapping two folders in one step of the file system; it owns the system calls, not what is swapped."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from discreet.errors import Mistakes, mistake

_AT_FDCWD = -100  # Linux: paths are relative to the working folder
_RENAME_EXCHANGE = 2  # renameat2 on Linux
_RENAME_SWAP = 2  # renamex_np on macOS


def exchange(first: Path, second: Path) -> None:
    """Swap two folders of one file system; at no moment is either name missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(first), os.fsencode(second)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(one, two, ctypes.c_uint(_RENAME_SWAP))
    elif hasattr(libc, "renameat2"):
        failed = libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, two, ctypes.c_uint(_RENAME_EXCHANGE))
    else:
        raise _unable(second)
    if failed:
        number = ctypes.get_errno()
        raise _unable(second) from OSError(number, os.strerror(number))


def require_exchange(within: Path, target: Path) -> None:
    """Try it on two empty folders of the same file system, so that a long run does not fail at its end."""
    first, second = within / "first", within / "second"
    first.mkdir()
    second.mkdir()
    try:
        exchange(first, second)
    except Mistakes as error:
        raise _unable(target) from error
    finally:
        first.rmdir()
        second.rmdir()


def _unable(target: Path) -> Mistakes:
    return mistake(
        target,
        "release folder",
        "this file system cannot swap two folders in one step, so the old release cannot be replaced safely",
        "publish to a folder that does not exist yet, or remove the old release first",
    )
