"""Compiling kernels with Numba, and what is stored of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from numba.core.caching import NullCache
from numba.core.callconv import CPUCallConv
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from discreet.kernels import Store
from discreet.lazy import Kernel
from discreet.standalone import C_TYPES, Code, Kind, c_types, undefined

reduced, rebuilt = CompileResult._reduce, CompileResult._rebuild  # noqa: SLF001  # what Numba's own cache stores
object_code = JITCodeLibrary._get_compiled_object  # noqa: SLF001
function_type = CPUCallConv.get_function_type

LLVM = {"float": "float", "double": "double", "void *": "pointer"} | {  # C type -> LLVM's name of it
    f"{sign}int{bits}_t": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
NOT_IN_C = ("NRT_", "numba", "Py", "_Py")  # beginnings of names that Numba or Python defines


def attach_store(dispatcher: Any, kernel: Kernel) -> None:
    """Let Numba read and store the machine code of a kernel, and compile it in one process at a time."""
    dispatcher._cache = cache = KernelCache(kernel)  # noqa: SLF001
    compiled: Callable[[Any], Any] = dispatcher.compile

    def compiled_alone(signature: Any) -> Any:
        try:
            return compiled(signature)
        finally:  # also where it cannot be compiled
            cache.alone.close()

    dispatcher.compile = compiled_alone


class KernelCache(NullCache):  # type: ignore[misc]
    """The stored machine code of one kernel, a file for each signature; Numba asks for it before it compiles."""

    def __init__(self, kernel: Kernel) -> None:
        self._store = Store(kernel)
        self.alone = ExitStack()  # from a search in vain until something is compiled

    @property
    def cache_path(self) -> str:
        """The folder that is looked at first."""
        return str(self._store.folders[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature, or None."""
        target_context.refresh()
        made_for = self._made_for(sig, target_context)
        content = self._store.read(made_for)
        if content is None:
            self.alone.enter_context(self._store.alone(made_for))
            content = self._store.read(made_for)  # stored by another process, meanwhile
        return None if content is None else rebuilt(target_context, *pickle.loads(content))  # noqa: S301  # as safe as the source

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Store what was compiled."""
        if not cres.library.has_dynamic_globals:
            self._store.write(self._made_for(sig, cres.target_context), dumps(reduced(cres)))

    def _made_for(self, sig: Any, target_context: Any) -> str:
        return repr((str(sig), target_context.codegen().magic_tuple()))


def compile_standalone(
    kernel: Kernel, kinds: tuple[Kind, ...], arguments: tuple[Any, ...]
) -> tuple[int, Code]:
    """Compile a standalone kernel for such arguments: its address in this process, and what is stored of it."""
    dispatcher = kernel.bare
    signature = tuple(map(dispatcher.typeof_pyval, arguments))
    dispatcher.compile(signature)
    made = dispatcher.overloads[signature]
    about, library = made.fndesc, made.library
    name, result = kernel.py_func.__qualname__, str(about.restype)
    if result not in C_TYPES and result != "none":
        raise TypeError(f"{name} returns {result}; a standalone kernel returns a number or nothing")
    declared = function_type(made.target_context.call_conv, about.restype, about.argtypes).args[2:]
    found = ["pointer" if one.is_pointer else str(one) for one in declared]
    if found != [LLVM[one] for one in c_types(kinds)]:
        raise TypeError(f"{name} takes {found}, and {c_types(kinds)} would be passed")
    needs = undefined(object_code(library))
    if own := [symbol for symbol in needs if symbol.startswith(NOT_IN_C)]:
        raise TypeError(f"{name} uses {', '.join(own)}; a standalone kernel makes no array and no object")
    stored = b"" if library.has_dynamic_globals else object_code(library)
    code = Code(about.llvm_func_name, result, needs, stored)
    return library.get_pointer_to_function(about.llvm_func_name), code
