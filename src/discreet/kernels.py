"""Machine code of kernels on disk, found by all that it was compiled from.

Numba would store a kernel by the file that it is written in, and use it again although a kernel or a number of another
file has changed that is part of its machine code; where it can write nowhere, it would not compile at all. Here the
name of the file has a digest of the kernel, of all that it uses, of the versions and of the processor; a folder that
can only be read is read (an image whose kernels were compiled when it was built), and where nothing can be written,
nothing is stored.

A file is used only if no other user can have written it: it belongs to the user, to root or to the owner of the source,
no group or other user may write it, and its checksum has its own name. So it is as safe as the source.

One process at a time compiles a kernel, with a lock on a file beside the one that it will store; others wait and read
what it has stored. A process has one lock at a time, and none of its threads waits for a second: it compiles. So no
two processes wait for each other, whichever kernels call each other. A process that ends has no lock any more, and one
that is stopped is waited for some minutes only. Where no file can be locked, each process compiles.

A wheel brings standalone kernels that were compiled when it was built, for all processors of the level x86-64-v3: its
first run compiles nothing. What it was not built for is compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import CodeType, ModuleType
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from discreet.lazy import Kernel

OWN = __name__.partition(".")[0]
CHECKSUM = 32  # bytes of SHA-256 before the content of a file
WRITABLE_BY_OTHERS = 0o022
UNRELATED = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}  # settings of Numba that do not change machine code
PATIENCE = 300  # seconds, at most, to wait for a process that compiles; the largest kernels take ten
PAUSE = 0.02  # seconds between two looks at a lock
BROUGHT = Path(__file__).parent / "machine_code"  # by a wheel
LEVEL = "x86-64-v3"
FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1",
            "sse4.2", "ssse3", "xsave")  # fmt: skip  # that LLVM expects of this level
FOR_THE_LEVEL = {  # settings of Numba
    "NUMBA_CPU_NAME": LEVEL,
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES),
}

_has_lock = Lock()  # this process


class Store:
    """The files of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        self._digest = digest(kernel)
        source = inspect.getfile(kernel.py_func)
        self.folders, self._owners = folders(source), owners(source)

    def read(self, made_for: object) -> bytes | None:
        """What was compiled for some arguments, or None."""
        name = self._file(made_for, made_by())
        places = [folder / name for folder in self.folders]
        if BROUGHT.is_dir() and is_of_the_level():
            places.append(BROUGHT / self._file(made_for, made_by(**FOR_THE_LEVEL)))
        for place in places:
            with suppress(OSError):
                content = _read(place, self._owners)
                if content is not None:
                    return content
        return None

    def write(self, made_for: object, content: bytes) -> None:
        """Store what was compiled, in the first folder that can be written."""
        name = self._file(made_for, made_by())
        for folder in self.folders:
            with suppress(OSError):
                _write(folder / name, content)
                return

    @contextmanager
    def alone(self, made_for: object) -> Iterator[None]:
        """Compile in the block: a process that was compiling the same has ended, and may have stored it."""
        if not _has_lock.acquire(blocking=False):
            yield
            return
        try:
            with self._locked(f"{self._file(made_for, made_by())}.lock"):
                yield
        finally:
            _has_lock.release()

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Lock a file in the first folder that can be written, for the block."""
        found = None
        for folder in self.folders:
            with suppress(OSError):
                found = _lock(folder / name, self._owners)
                break
        try:
            yield
        finally:
            if found is not None:
                with suppress(OSError):  # removed by another one, or the folder of another user
                    (folder / name).unlink()
                fcntl.flock(found, fcntl.LOCK_UN)  # also where another process was forked meanwhile
                os.close(found)

    def _file(self, made_for: object, made_by: tuple[object, ...]) -> str:
        described = repr((self._digest, made_for, made_by))
        return f"{self._name}-{hashlib.sha256(described.encode()).hexdigest()[:32]}.kernel"


@cache
def made_by(**changed: str) -> tuple[object, ...]:
    """What decides on machine code beside the kernel: versions, the processor, and settings of Numba, some changed.

    The version of Numba is read from its file, because Numba itself takes longer to import than all else.
    """
    numba = find_spec("numba")
    version = Path(numba.origin).with_name("_version.py").read_bytes() if numba and numba.origin else b""
    versions = version, llvmlite.__version__, np.__version__, sys.implementation.cache_tag
    settings = {name: value for name, value in {**os.environ, **changed}.items() if name.startswith("NUMBA_")}
    processor = settings.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = settings.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()
    related = sorted(item for item in settings.items() if item[0] not in UNRELATED)
    return versions, related, llvm.get_process_triple(), processor, features


@cache
def is_of_the_level() -> bool:
    """Whether this processor can run what a wheel brings."""
    known = llvm.get_host_cpu_features()
    return platform.machine() == "x86_64" and all(known.get(name) for name in FEATURES)


def folders(source: str) -> list[Path]:
    """Where kernels of a source file are stored: in NUMBA_CACHE_DIR; else beside it, or in the user's cache."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen)]
    found = [Path(source).parent / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home
        own = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
        found.append(Path(os.environ.get("XDG_CACHE_HOME") or Path(own).expanduser()) / OWN / "kernels")
    return found


def owners(source: str) -> set[int]:
    """Whose files are used: those of the user, of root, and of the owner of the source, which is executed anyway."""
    found = {0, os.geteuid()}
    with suppress(OSError):  # a source in an archive
        found.add(Path(source).stat().st_uid)
    return found


def _is_trusted(about: os.stat_result, trusted: set[int]) -> bool:
    return about.st_uid in trusted and not about.st_mode & WRITABLE_BY_OTHERS


def _read(path: Path, trusted: set[int]) -> bytes | None:
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        if not _is_trusted(about, trusted):
            return None
        checksum, content = file.read(CHECKSUM), file.read()
    return content if checksum == _checksum(path.name, content) else None


def _lock(path: Path, trusted: set[int]) -> int | None:
    """Lock a file, when its lock is free; None where it may be another user's, or its process does not end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + PATIENCE
    while True:
        number = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            about = os.fstat(number)
            if not _is_trusted(about, trusted) or not _taken(number, end):
                break
            if _is_still(path, about):
                return number
        except OSError:  # files cannot be locked here
            path.unlink(missing_ok=True)
            os.close(number)
            raise
        except BaseException:
            os.close(number)
            raise
        os.close(number)  # the process that had it has removed it
    os.close(number)
    return None


def _taken(number: int, end: float) -> bool:
    """Whether an open file was locked in time."""
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(PAUSE)
        else:
            return True


def _is_still(path: Path, about: os.stat_result) -> bool:
    """Whether a path leads to a file that was opened before."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, about)


def _checksum(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(_checksum(path.name, content) + content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink()
        raise


def digest(kernel: Kernel) -> str:
    """A digest of a kernel and of all kernels that it calls: their bytecode, options, and the values they use."""
    reached, described = [kernel], {}
    while reached:
        one = reached.pop()
        if one.py_func not in described:
            described[one.py_func] = _described(one, reached)
    parts = sorted(repr(part) for part in described.values())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _described(kernel: Kernel, reached: list[Kernel]) -> tuple[object, ...]:
    """What decides the machine code of a kernel; the kernels that it calls are appended to those reached."""
    function = kernel.py_func
    names = set(_names(function.__code__))
    used = [(name, function.__globals__[name]) for name in sorted(names & function.__globals__.keys())]
    used += [("", cell.cell_contents) for cell in function.__closure__ or ()]
    return (
        _named(function),
        sorted(kernel.options.items()),
        list(_code(function.__code__)),
        [(name, _value(value, names, reached)) for name, value in used],
        function.__defaults__,
    )


def _code(code: CodeType) -> Iterator[object]:
    yield code.co_code
    yield code.co_names + code.co_varnames + code.co_freevars
    for constant in code.co_consts:
        yield from _code(constant) if isinstance(constant, CodeType) else [constant]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _value(value: object, names: set[str], reached: list[Kernel]) -> object:
    """What a kernel sees of a value: Numba compiles numbers and arrays into it."""
    if isinstance(value, Kernel):
        reached.append(value)
        return _named(value.py_func)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, ModuleType):
        own = vars(value) if value.__name__.partition(".")[0] == OWN else {}
        return value.__name__, [
            (name, _value(own[name], names, reached)) for name in sorted(names & own.keys())
        ]
    return _named(value) if callable(value) and hasattr(value, "__qualname__") else value


def _named(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
