"""Standalone kernels: machine code that is called without Numba.

Numba takes longer to import and to prepare than all else that a release needs; its machine code does not need it. What
it compiles for other kernels to call takes a place for the result, a place for an exception, and for each argument a
number, or what describes an array: its owners (none here), size, size of an element, address, shape and strides. LLVM
links what is stored, and the processes that compile call the same machine code in the same way.
"""

from __future__ import annotations

import ctypes
import json
import pickle
import struct
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from _cffi_backend import FFI
from llvmlite import binding as llvm

from discreet.kernels import Store
from discreet.lazy import Kernel, compiling

SYMBOL = struct.Struct(
    "<IBBHQQ"
)  # of an ELF file: name, kind, visibility, section (0: undefined), value, size
IN_ORDER, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # flags of an array
FLAGS = IN_ORDER | ALIGNED | WRITEABLE
LEAST, MOST = -(1 << 63), (1 << 63) - 1
C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"} | {
    name: f"{name}_t" for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
DTYPES = {np.dtype(name): name for name in C_TYPES}  # of this processor's byte order
NUMBERS = {bool: "bool", int: "int64", float: "float64"} | {
    dtype.type: name for dtype, name in DTYPES.items()
}

_ffi: Any = FFI()
_null: Any = _ffi.NULL
_address: Any = _ffi.from_buffer
_new: Any = _ffi.new
_failure_type: Any = _ffi.typeof("void *[1]")
_one_at_a_time = RLock()


class Kind(NamedTuple):
    """What machine code is made for: a number of a type, or an array in C order with some axes."""

    type: str
    axes: int | None = None
    is_writeable: bool = False


class Code(NamedTuple):
    """Machine code of one function: its name, the type of its result, and what it uses of the C library."""

    function: str
    result: str  # or "none"
    needs: list[str]
    machine_code: bytes

    def stored(self) -> bytes:
        """As the content of a file."""
        return json.dumps(self[:-1]).encode() + b"\n" + self.machine_code


def read_code(content: bytes) -> Code:
    """What ``stored`` has written."""
    about, _, machine_code = content.partition(b"\n")
    function, result, needs = json.loads(about)
    return Code(function, result, needs, machine_code)


class Standalone:
    """A kernel that is called without Numba; with Numba if an argument is neither an array in C order nor a number."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._known: dict[tuple[object, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for such arguments."""
        seen = tuple(map(_seen, arguments))
        known = self._known.get(seen)
        if known is None:
            with _one_at_a_time:
                known = self._known.get(seen) or self._known.setdefault(seen, self._found(seen, arguments))
        return known(*arguments)

    @cached_property
    def _store(self) -> Store:
        return Store(self._kernel)

    def _found(self, seen: tuple[object, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """The function for such arguments: stored machine code, or what is compiled now."""
        kinds = tuple(kind for kind in map(_kind, seen) if kind)
        if len(kinds) < len(arguments):
            return self._with_numba()
        if found := self._stored(kinds):
            return found
        if (numbas := compiling()) is None:
            return self._with_numba()
        with self._store.alone(kinds):
            if found := self._stored(kinds):  # by another process, meanwhile
                return found
            address, code = numbas.compile_standalone(self._kernel, kinds, arguments)
            if code.machine_code:
                self._store.write(kinds, code.stored())
        return _callable(address, kinds, code.result)

    def _stored(self, kinds: tuple[Kind, ...]) -> Callable[..., Any] | None:
        content = self._store.read(kinds)
        if content is not None and (address := _linked(code := read_code(content))):
            return _callable(address, kinds, code.result)
        return None

    def _with_numba(self) -> Callable[..., Any]:
        called: Callable[..., Any] = self._kernel.compiled
        return called


def _seen(argument: Any) -> object:
    """What distinguishes arguments, as fast as possible; ``_kind`` describes it."""
    found = type(argument)
    if found is np.ndarray:
        return argument.dtype, argument.ndim, argument.flags.num & FLAGS
    return found if found is not int or LEAST <= argument <= MOST else None


def _kind(seen: Any) -> Kind | None:
    """The kind of an argument, or None if standalone kernels do not take it."""
    if not isinstance(seen, tuple):
        return Kind(NUMBERS[seen]) if seen in NUMBERS else None
    dtype, axes, flags = seen
    if dtype not in DTYPES or not flags & IN_ORDER or not flags & ALIGNED:
        return None
    return Kind(DTYPES[dtype], axes, bool(flags & WRITEABLE))


def c_types(kinds: Iterable[Kind]) -> list[str]:
    """The C types of what the arguments are passed as."""
    found = []
    for kind in kinds:
        if kind.axes is None:
            found.append(C_TYPES[kind.type])
        else:
            found += ["void *", "void *", "int64_t", "int64_t", "void *", *["int64_t"] * (2 * kind.axes)]
    return found


def _callable(address: int, kinds: tuple[Kind, ...], result: str) -> Callable[..., Any]:
    """A function at an address, for arguments of these kinds."""
    function = _ffi.cast(f"int32_t(*)({', '.join(['void *', 'void *', *c_types(kinds)])})", address)
    result_type = _ffi.typeof(f"{C_TYPES.get(result, 'void *')}[1]")
    is_number, is_flag = result in C_TYPES, result == "bool"
    sizes = [0 if kind.axes is None else np.dtype(kind.type).itemsize for kind in kinds]

    def call(*arguments: Any) -> Any:
        place, failure = _new(result_type), _new(_failure_type)
        words = [place, failure]
        for argument, size in zip(arguments, sizes, strict=True):
            if size:
                pointer = _address(argument)
                words += (_null, _null, argument.size, size, pointer, *argument.shape, *argument.strides)
            else:
                words.append(argument)
        if function(*words):
            raise _exception(failure[0])
        if is_flag:
            return bool(place[0])
        return place[0] if is_number else None

    return call


def _exception(about: Any) -> BaseException:
    """What a kernel raises: Numba compiles its pickled class and arguments into the machine code."""
    if about == _null:
        return RuntimeError("a kernel failed")
    start, size = _ffi.cast("char **", about)[0], _ffi.cast("int32_t *", about)[2]
    kind, given, _ = pickle.loads(_ffi.buffer(start, size)[:])  # noqa: S301  # as safe as the machine code
    found: BaseException = kind(*given)
    return found


def _linked(code: Code) -> int:
    """The address of stored machine code; 0 where this process lacks what it uses."""
    process = ctypes.CDLL(None)
    if not all(hasattr(process, name) for name in code.needs):
        return 0  # LLVM would end the process
    _initialize()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)  # one each: names may be the same
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.machine_code))
    engine.finalize_object()
    address: int = engine.get_function_address(code.function)
    engine.detach()  # the machine code stays as long as the process
    return address


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def undefined(machine_code: bytes) -> list[str]:
    """The names that machine code, an ELF file, uses and does not define."""
    found = {part.name(): part.data() for part in llvm.ObjectFileRef.from_data(machine_code).sections()}
    texts, symbols = found[b".strtab"], found[b".symtab"]
    names = (
        texts[start : texts.index(b"\0", start)].decode()
        for start, _, _, section, _, _ in SYMBOL.iter_unpack(symbols)
        if section == 0
    )
    return sorted(name for name in names if name)
