"""Machine code of kernels on disk, found by all that it was compiled from.

Numba would store a kernel by the file that it is written in, and use it again although a kernel or a number of another
file has changed that is part of its machine code; where it can write nowhere, it would not compile at all. Here the
name of the file has a digest of the kernel, of all that it uses and of the versions; a folder that can only be read
is read (an image whose kernels were compiled when it was built), and where nothing can be written, nothing is stored.

A file is used only if no other user can have written it: it belongs to the user, to root or to the owner of the source,
no group or other user may write it, and its checksum has its own name. So it is as safe as the source.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from discreet.lazy import Kernel

OWN = __name__.partition(".")[0]
VERSIONS = (numba.__version__, llvmlite.__version__, np.__version__, sys.version)
CHECKSUM = 32  # bytes of SHA-256 before the content of a file
WRITABLE_BY_OTHERS = 0o022
reduced, rebuilt = CompileResult._reduce, CompileResult._rebuild  # noqa: SLF001  # what Numba's own cache stores


class KernelCache(NullCache):  # type: ignore[misc]
    """The stored machine code of one kernel, a file for each signature; Numba asks for it before it compiles."""

    def __init__(self, kernel: Kernel) -> None:
        self._name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        self._digest = digest(kernel)
        source = inspect.getfile(kernel.py_func)
        self._folders, self._owners = folders(source), owners(source)

    @property
    def cache_path(self) -> str:
        """The folder that is looked at first."""
        return str(self._folders[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature, or None."""
        target_context.refresh()
        name = self._file(sig, target_context)
        for folder in self._folders:
            with suppress(OSError):
                content = _read(folder / name, self._owners)
                if content is not None:
                    return rebuilt(target_context, *pickle.loads(content))  # noqa: S301  # as safe as the source
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Store what was compiled, in the first folder that can be written."""
        if cres.library.has_dynamic_globals:
            return
        content = dumps(reduced(cres))
        name = self._file(sig, cres.target_context)
        for folder in self._folders:
            with suppress(OSError):
                _write(folder / name, content)
                return

    def _file(self, sig: Any, target_context: Any) -> str:
        made_for = repr((self._digest, VERSIONS, str(sig), target_context.codegen().magic_tuple()))
        return f"{self._name}-{hashlib.sha256(made_for.encode()).hexdigest()[:32]}.kernel"


def folders(source: str) -> list[Path]:
    """Where kernels of a source file are stored: in NUMBA_CACHE_DIR; else beside it, or in the user's cache."""
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR)]
    own = AppDirs(appname=OWN, appauthor=False).user_cache_dir
    return [Path(source).parent / "__pycache__", Path(own) / "kernels"]


def owners(source: str) -> set[int]:
    """Whose files are used: those of the user, of root, and of the owner of the source, which is executed anyway."""
    found = {0, os.geteuid()}
    with suppress(OSError):  # a source in an archive
        found.add(Path(source).stat().st_uid)
    return found


def _read(path: Path, trusted: set[int]) -> bytes | None:
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        if about.st_uid not in trusted or about.st_mode & WRITABLE_BY_OTHERS:
            return None
        checksum, content = file.read(CHECKSUM), file.read()
    return content if checksum == _checksum(path.name, content) else None


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
