"""Libraries and kernels that are loaded when they are first used: many commands never need them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import FunctionType, ModuleType
from typing import Any


class _Lazy(ModuleType):
    """A module that is not imported yet; the first use of one of its names imports it."""

    def __getattr__(self, name: str) -> Any:
        if name == "_imported":
            self._imported = import_module(self.__name__)
            return self._imported
        return getattr(self._imported, name)


def lazily(name: str) -> Any:
    """A module that is imported when something of it is used."""
    return _Lazy(name)


def is_loaded(name: str) -> bool:
    """Whether a module is imported already."""
    return name in sys.modules


@contextmanager
def importing() -> Iterator[None]:
    """Import without looking for garbage, a tenth of the time: what modules define stays as long as the process."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Let all other modules be found elsewhere."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def leave_pandas_out() -> None:
    """Let Arrow, if it is loaded, do without pandas, which it would import with its first array: 0.3 CPU s.

    It only looks for data frames among its arguments then; where one is requested, it still imports pandas.
    """
    if "pyarrow" in sys.modules and "pandas" not in sys.modules:
        sys.meta_path.insert(0, absent := _NoPandas())
        try:
            sys.modules["pyarrow"].array([0])
        finally:
            sys.meta_path.remove(absent)


@cache
def _numba() -> Any:
    """Numba, without its search for a BLAS: SciPy's takes as long to import as Numba, and is there for np.cov only."""
    with importing():
        numba: Any = import_module("numba")
        linalg: Any = import_module("numba.np.linalg")
        search, linalg.ensure_blas = linalg.ensure_blas, _no_blas
        try:
            import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = search
    if gc.get_freeze_count():  # a command, whose modules are left out already: compiling is a tenth faster
        gc.freeze()
    return numba


def _no_blas() -> None:
    raise ImportError("no kernel uses it")


class Kernel:
    """A function that Numba compiles when it is first called, or when a kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.options = options

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """Numba's function, whose machine code may come from its cache.

        It has no entry for C, which Numba would compile for every kernel: a twentieth of the time.
        """
        return _numba().njit(no_cfunc_wrapper=True, **self.options)(self.py_func)

    @cached_property
    def interpreted(self) -> Any:
        """The same function in Python, down to the kernels that it calls: for a few numbers, or for whole arrays."""
        code, known = self.py_func.__code__, self.py_func.__globals__
        used = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        return FunctionType(code, {**known, **{name: kernel.interpreted for name, kernel in used.items()}})

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Where Numba looks for ``inline``."""
        return self.options

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks of a value that a kernel uses: the type of the compiled function, which it can call."""
        return self.compiled._numba_type_


def njit(**options: Any) -> Any:
    """``numba.njit`` without importing Numba yet."""
    return lambda function: Kernel(function, options)
