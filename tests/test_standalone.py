"""Machine code that is called without Numba: the same results, and nothing is called that does not fit."""

import importlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import discreet
from discreet import compiling, kernels, standalone
from discreet.lazy import Kernel, njit
from discreet.standalone import C_TYPES, Code, Kind
from tests.cases import few

ROOT = Path(discreet.__file__).parent


@pytest.fixture(autouse=True)
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def _scaled(values: Any, factor: Any, out: Any) -> None:
    for r in range(values.size):
        out[r] = values[r] * factor


def _corner(values: Any) -> Any:
    return values[-1, -1, 0]


def _same(value: Any) -> Any:
    return value


def _share(value: Any, whole: Any) -> Any:
    return value // whole


def _doubled(values: Any) -> Any:
    return 2 * values


def _both(value: Any) -> Any:
    return value, value


def _last(values: Any) -> Any:
    return values[values.size - 1]


def kernel(function: Any) -> Kernel:
    """A new standalone kernel, as a new process would have it."""
    made: Kernel = njit(cache=True, standalone=True)(function)
    return made


def is_compiled(called: Kernel) -> bool:
    return "bare" in vars(called)


def twice(function: Any, *arguments: Any) -> Any:
    """What a kernel returns when it is compiled, and again from its file, with the same result."""
    shutil.rmtree(os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)
    first, second = kernel(function), kernel(function)
    found = first(*arguments)
    assert is_compiled(first)
    again = second(*arguments)
    assert not is_compiled(second)
    assert (type(again), again) == (type(found), found)
    return found


@pytest.mark.parametrize("name", few(C_TYPES, "bool", "float64", "int8", "uint64"))
def test_every_type_of_number_is_passed_and_returned(name: str) -> None:
    dtype = np.dtype(name)
    values: list[float] = [0, 1]
    if dtype.kind in "iu":
        values += [np.iinfo(dtype).min, np.iinfo(dtype).max]
    if dtype.kind == "f":
        values += [-0.5, np.finfo(dtype).max, np.finfo(dtype).tiny]
    for value in values:
        returned = twice(_same, dtype.type(value))
        assert returned == dtype.type(value)
        assert type(returned) is {"b": bool, "i": int, "u": int, "f": float}[dtype.kind]
    last = {"b": False, "i": -7, "u": 7, "f": 1.5}[dtype.kind]
    assert twice(_last, np.array([last, last], dtype=dtype)) == last


@pytest.mark.parametrize("value", [True, False, 0, -(1 << 63), (1 << 63) - 1, 0.1, float("inf")])
def test_numbers_of_python(value: Any) -> None:
    returned = twice(_same, value)
    assert (type(returned), returned) == (type(value), value)


def test_arrays_of_several_axes_and_none() -> None:
    assert twice(_corner, np.arange(24.0).reshape(2, 3, 4)) == 20.0
    out = np.zeros(0, dtype=np.int32)
    assert twice(_scaled, np.zeros(0, dtype=np.uint8), 3, out) is None


def test_an_array_is_written_in_place_and_may_be_read_only() -> None:
    values, out = np.arange(5, dtype=np.int16), np.zeros(5)
    values.setflags(write=False)
    assert twice(_scaled, values, 0.5, out) is None
    assert out.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_kinds_have_machine_code_of_their_own(stored: Path) -> None:
    called = kernel(_scaled)
    for values in (np.arange(3, dtype=np.int8), np.arange(3), np.arange(3.0)):
        for factor in (2, np.float32(2), True):
            out = np.zeros(3)
            called(values, factor, out)
            assert out.tolist() == (values * float(factor)).tolist()
    assert len(list(stored.iterdir())) == 9


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0)[::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3))[1],
        np.frombuffer(b"x" + np.arange(3.0).tobytes(), dtype=np.uint8)[1:].view(np.float64),
    ],
    ids=["steps", "Fortran", "not aligned"],
)
def test_other_arrays_are_left_to_numba(values: Any, stored: Path) -> None:
    called, out = kernel(_scaled), np.zeros(3)
    called(values, 2, out)
    assert out.tolist() == (values * 2).tolist()
    assert not is_compiled(called)
    assert called.compiled.signatures
    assert called.compiled.nopython_signatures[0].args[0].layout == "A" or not values.flags.aligned


@pytest.mark.parametrize("value", [1 << 63, (1, 2), 1j], ids=str)
def test_other_values_are_left_to_numba(value: Any) -> None:
    called = kernel(_same)
    assert called(value) == value
    assert not is_compiled(called)


@pytest.mark.parametrize("big_endian", [np.dtype(">i8"), np.dtype("M8[s]"), np.dtype([("a", "i4")])], ids=str)
def test_other_types_of_arrays_have_no_kind(big_endian: Any) -> None:
    assert standalone._kind(standalone._seen(np.zeros(3, dtype=big_endian))) is None


def test_exceptions_are_raised() -> None:
    for _ in ("compiled", "stored"):
        called = kernel(_share)
        assert called(7, 2) == 3
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            called(7, 0)
        assert called(-7, 2) == -4


@pytest.mark.parametrize("function", [_doubled, _both])
def test_a_standalone_kernel_returns_a_number_or_nothing(function: Any, stored: Path) -> None:
    with pytest.raises(Exception, match=r"returns a number or nothing|NRT|array"):
        kernel(function)(np.arange(3.0))
    assert not list(stored.iterdir())


def test_arguments_that_numba_would_take_otherwise_are_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "c_types", lambda kinds: ["int64_t", "int32_t"])
    with pytest.raises(
        TypeError, match=r"_same takes \['i64'\], and \['int64_t', 'int32_t'\] would be passed"
    ):
        kernel(_same)(1)


def test_what_only_numba_defines_is_not_linked(monkeypatch: pytest.MonkeyPatch, stored: Path) -> None:
    monkeypatch.setattr(compiling, "undefined", lambda code: ["NRT_Allocate", "memset"])
    with pytest.raises(TypeError, match="_same uses NRT_Allocate; a standalone kernel makes no array"):
        kernel(_same)(1)
    assert not list(stored.iterdir())


def test_undefined_names_are_found() -> None:
    def cleared(values: Any) -> None:
        values[:] = 0

    called = kernel(cleared)
    values = np.ones(1000)
    called(values)
    assert not values.any()
    _, code = compiling.compile_standalone(called, (Kind("float64", 1, True),), (values,))
    assert code.needs == ["memset"]
    assert standalone.read_code(code.stored()) == code


def test_machine_code_that_needs_what_is_missing_is_compiled_again() -> None:
    called = kernel(_same)
    _, code = compiling.compile_standalone(called, (Kind("int64"),), (1,))
    assert standalone._linked(code)
    assert not standalone._linked(code._replace(needs=["no_such_function_of_c"]))
    again = kernel(_same)
    kernels.Store(again).write((Kind("int64"),), code._replace(needs=["no_such_function_of_c"]).stored())
    assert again(5) == 5
    assert is_compiled(again)


def test_elsewhere_than_on_linux_numba_stores_and_calls(
    monkeypatch: pytest.MonkeyPatch, stored: Path
) -> None:
    """Files of machine code have another form there."""
    monkeypatch.setattr("sys.platform", "darwin")
    called = kernel(_same)
    assert called(5) == 5
    assert not is_compiled(called)  # by ``compile_standalone``
    assert list(stored.iterdir())
    again = kernel(_same)
    assert again(6) == 6
    assert sum(again.compiled.stats.cache_hits.values()) == 1


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("get_host_cpu_name", lambda: "another processor"),
        ("get_host_cpu_features", lambda: llvm.FeatureMap({"avx9": True})),
        ("get_process_triple", lambda: "riscv64-unknown-linux-gnu"),
    ],
)
def test_another_processor_has_machine_code_of_its_own(
    what: str, other: Any, monkeypatch: pytest.MonkeyPatch, stored: Path
) -> None:
    twice(_same, 1)
    monkeypatch.setattr(llvm, what, other)
    kernels.made_by.cache_clear()
    try:
        called = kernel(_same)
        assert called(1) == 1
        assert is_compiled(called)
    finally:
        monkeypatch.undo()
        kernels.made_by.cache_clear()
    assert len(list(stored.iterdir())) == 2


def test_versions_and_settings_have_machine_code_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels.made_by.cache_clear()
    before = kernels.made_by()
    assert b'"version": "' in before[0][0]  # type: ignore[index]
    monkeypatch.setenv("NUMBA_OPT", "1")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    kernels.made_by.cache_clear()
    try:
        settings = [one for one in kernels.made_by() if one not in before]
    finally:
        kernels.made_by.cache_clear()
    assert settings == [[("NUMBA_OPT", "1")]]


def test_threads_compile_once(stored: Path) -> None:
    called, values = kernel(_scaled), np.arange(1000.0)

    def scaled(factor: int) -> float:
        out = np.empty(1000)
        called(values, factor, out)
        return float(out.sum())

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(scaled, range(64)))
    assert found == [values.sum() * factor for factor in range(64)]
    assert len(called.bare.signatures) == 1
    assert len(list(stored.iterdir())) == 1


def test_processes_that_start_together_store_whole_files(stored: Path, tmp_path: Path) -> None:
    program = (
        "import numpy as np; from discreet.maths.cells.counting import recode\n"
        "nodes = np.zeros(2, dtype=np.uint8)\n"
        "recode(np.array([2, 0], dtype=np.uint8), np.array([5, 6, 7], dtype=np.uint8), nodes)\n"
        "assert nodes.tolist() == [7, 5]"
    )
    started = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [one.wait() for one in started] == [0] * 4
    (path,) = stored.iterdir()
    assert kernels._read(path, {os.geteuid()})
    without = f"{program}\nimport sys; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", without], check=True)


def test_where_numba_is_switched_off_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not kernel(_same).is_standalone
    program = (
        "from discreet.maths.cells.counting import recode\n"
        "nodes = [0, 0]\n"
        "class Listed(list): size = 1\n"
        "recode(Listed([1]), [5, 6], nodes); assert nodes == [6, 0]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_content_of_a_file() -> None:
    code = Code("f", "int64", ["memset"], b"\x00\n\x01")
    assert standalone.read_code(code.stored()) == code


def standalone_kernels() -> dict[str, Kernel]:
    names = [
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".")
        for path in ROOT.rglob("*.py")
        if "standalone=True" in path.read_text(encoding="utf-8") and path.name != "lazy.py"
    ]
    return {
        f"{name}.{one}": value
        for name in names
        for one, value in vars(importlib.import_module(name)).items()
        if isinstance(value, Kernel) and value.options.get("standalone") and value.__module__ == name
    }


def test_standalone_kernels_declare_a_number_or_nothing() -> None:
    found = standalone_kernels()
    assert len(found) > 20
    inner = {
        f"{one.__module__}.{used}" for one in found.values() for used in one.py_func.__code__.co_names
    }  # kernels that kernels call may return several numbers
    declared = {name: one.py_func.__annotations__["return"] for name, one in found.items()}
    wrong = {name for name, kind in declared.items() if kind not in {"None", "int", "bool", "float"}}
    assert wrong - inner == set()
