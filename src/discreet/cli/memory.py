"""How a command that ends soon uses memory: what is freed stays with the process, which needs it again at once."""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names of glibc's settings (malloc.h)
_MUCH = 1 << 30  # bytes


def retain_memory() -> None:
    """Let freed memory be used again instead of returning it: a new page costs as much as counting what is in it.

    Arrow's allocator reads its setting when it is loaded, so this must come before; NumPy uses that of the C library,
    where it is glibc's.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is not None:
        for name, value in ((_MMAP_THRESHOLD, _MUCH), (_TRIM_THRESHOLD, _MUCH), (_ARENA_MAX, 1)):
            set_option(name, value)
