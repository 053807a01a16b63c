"""Libraries and kernels that are loaded when they are first used: many commands never need them."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any


class _Lazy(ModuleType):
    """A module that is not imported yet; the first use of one of its names imports it."""

    def __getattr__(self, name: str) -> Any:
        if name == "_imported":
            if self.__name__.startswith("scipy"):
                _leave_f2py_out()
            with importing():
                self._imported = import_module(self.__name__)
            return self._imported
        return getattr(self._imported, name)


def lazily(name: str) -> Any:
    """A module that is imported when something of it is used."""
    return _Lazy(name)


def _leave_f2py_out() -> None:
    """Let SciPy, which asks NumPy for all of its parts, do without the reader of Fortran: a third of SciPy's import.

    The first use of one of its names still imports it.
    """
    import_module("numpy").__dict__.setdefault("f2py", lazily("numpy.f2py"))


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


def leave_out() -> None:
    """Let searches for garbage leave out all that there is now: it stays as long as the process.

    DuckDB complains on standard error about each of its objects that is still there at the end; they are found then.
    """
    atexit.unregister(_leave_in)
    atexit.register(_leave_in)
    gc.freeze()


def _leave_in() -> None:
    if is_loaded("duckdb"):
        gc.unfreeze()


class _NoPandas:
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
        if search := getattr(linalg, "ensure_blas", None):  # as long as Numba has such a search
            linalg.ensure_blas = _no_blas
        try:
            import_module("numba.np.arraymath")
        finally:
            if search:
                linalg.ensure_blas = search
    if gc.get_freeze_count():  # a command, whose modules are left out already: compiling is a tenth faster
        leave_out()
    return numba


@cache
def compiling() -> Any:
    """How kernels are compiled and stored; None with a future Numba that lacks what it needs: each process compiles."""
    try:
        return import_module("discreet.compiling")
    except (ImportError, AttributeError) as error:
        warnings.warn(
            f"this version of Numba stores no kernels, so every process compiles them: {error}", stacklevel=2
        )
        return None


def _no_blas() -> None:
    raise ImportError("no kernel uses it")


class Kernel:
    """A function that Numba compiles when it is first called, or when a kernel that calls it is compiled.

    The machine code of a *standalone* kernel is called without Numba, which takes longer to import than all else that
    a release needs. Such a kernel takes arrays and numbers, returns a number or nothing, and makes no array.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, object]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.options = options

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self._run(*arguments)

    @property
    def is_standalone(self) -> bool:
        """Whether its machine code is called without Numba: on Linux, unless Numba is switched off."""
        is_possible = sys.platform == "linux" and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
        return is_possible and bool(self.options.get("standalone"))

    @cached_property
    def _run(self) -> Callable[..., Any]:
        called: Callable[..., Any] = (
            import_module("discreet.standalone").Standalone(self) if self.is_standalone else self.compiled
        )
        return called

    @cached_property
    def compiled(self) -> Any:
        """Numba's function, whose machine code may have been stored by another process.

        It has no entry for C, which Numba would compile for every kernel: a twentieth of the time.
        """
        dispatcher = self._dispatcher(no_cfunc_wrapper=True)
        is_compiled = dispatcher is not self.py_func  # not where Numba is switched off
        if is_compiled and self.options.get("cache") and (numbas := compiling()):
            numbas.attach_store(dispatcher, self)
        return dispatcher

    @cached_property
    def bare(self) -> Any:
        """Numba's function for other kernels and for its machine code; Python cannot call it: a quarter of the time."""
        return self._dispatcher(no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False)

    def _dispatcher(self, **entries: bool) -> Any:
        options = {name: value for name, value in self.options.items() if name not in {"cache", "standalone"}}
        return _numba().njit(**entries, **options)(self.py_func)

    @cached_property
    def interpreted(self) -> Any:
        """The same function in Python, down to the kernels that it calls: for a few numbers, or for whole arrays."""
        code, known = self.py_func.__code__, self.py_func.__globals__
        used = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        return FunctionType(code, {**known, **{name: kernel.interpreted for name, kernel in used.items()}})

    @property
    def targetoptions(self) -> Mapping[str, object]:
        """Where Numba looks for ``inline``."""
        return self.options

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks of a value that a kernel uses: the type of the compiled function, which it can call."""
        return (self.bare if self.is_standalone else self.compiled)._numba_type_


def njit(**options: Any) -> Any:
    """``numba.njit`` without importing Numba yet; with ``standalone`` it may never be."""
    return lambda function: Kernel(function, options)
