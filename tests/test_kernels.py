"""Machine code is stored and found again, and never used where something that it was compiled from has changed."""

import errno
import fcntl
import importlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import IO, Any

import numpy as np
import pytest
from numba.core import errors as numba_errors

from discreet import kernels
from discreet.kernels import Store, digest, folders, is_of_the_level, made_by, owners
from discreet.lazy import Kernel, compiling, njit
from discreet.maths import swap
from discreet.maths.cells import counting
from discreet.perturb import cell_key

ADDED = "from discreet.lazy import njit\nSTEP = {}\n@njit({})\ndef added(value):\n    return value + STEP\n"
OUTER = (
    "from discreet.lazy import njit\nfrom one import added\n"
    "@njit(cache=True, standalone={})\ndef outer(value):\n    return 10 * added(value)\n"
)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path / "kernels"


@pytest.fixture(params=[False, True], ids=["with Numba", "standalone"])
def standalone(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def imported(folder: Path, step: int, standalone: bool, options: str = "") -> Kernel:
    """A kernel that calls one of another file, as a new process would import it."""
    for name, text in (("one", ADDED.format(step, options)), ("two", OUTER.format(standalone))):
        (folder / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    found: Kernel = importlib.import_module("two").outer
    return found


def used(folder: Path, standalone: bool) -> Kernel:
    outer = imported(folder, 1, standalone)
    assert outer(1) == 20
    return outer


def was_stored(kernel: Kernel) -> bool:
    """Whether a called kernel was read from a file; else it was compiled."""
    if kernel.is_standalone:
        return "bare" not in vars(kernel)
    return bool(sum(kernel.compiled.stats.cache_hits.values()))


def test_a_kernel_is_compiled_once(stored: Path, tmp_path: Path, standalone: bool) -> None:
    for expected in (False, True):
        outer = imported(tmp_path, 1, standalone)
        assert outer(1) == 20
        assert was_stored(outer) is expected
    (path,) = stored.iterdir()
    assert path.name.startswith("two.outer-")


@pytest.mark.parametrize("options", ["", "cache=True", "inline='always'"])
def test_a_kernel_is_compiled_again_when_one_of_another_file_has_changed(
    stored: Path, tmp_path: Path, standalone: bool, options: str
) -> None:
    for step in (1, 2):
        outer = imported(tmp_path, step, standalone, options)
        assert outer(1) == 10 * (1 + step)
        assert not was_stored(outer)
    assert len(list(stored.glob("two.*"))) == 2


def test_a_damaged_file_is_not_used(stored: Path, tmp_path: Path, standalone: bool) -> None:
    assert imported(tmp_path, 1, standalone)(1) == 20
    (path,) = stored.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:50] + b"x" + whole[51:]):
        path.write_bytes(damaged)
        outer = imported(tmp_path, 1, standalone)
        assert outer(1) == 20
        assert not was_stored(outer)
        assert was_stored(used(tmp_path, standalone))  # it was stored again


def test_a_file_that_somebody_else_may_have_written_is_not_used(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imported(tmp_path, 1, standalone)(1) == 20
    (path,) = stored.iterdir()
    assert was_stored(used(tmp_path, standalone))
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert not was_stored(used(tmp_path, standalone))
        assert path.stat().st_mode & 0o777 == 0o644  # stored again
    monkeypatch.setattr(kernels, "owners", lambda source: {os.geteuid() + 1})
    assert not was_stored(used(tmp_path, standalone))
    assert owners(__file__) == {0, os.geteuid(), Path(__file__).stat().st_uid}


def test_the_machine_code_of_another_kernel_is_not_used(
    stored: Path, tmp_path: Path, standalone: bool
) -> None:
    assert imported(tmp_path, 1, standalone)(1) == 20
    (first,) = stored.iterdir()
    assert imported(tmp_path, 2, standalone)(1) == 30
    (second,) = (path for path in stored.iterdir() if path != first)
    first.write_bytes(second.read_bytes())
    assert not was_stored(used(tmp_path, standalone))


def test_a_numba_without_what_the_store_needs_compiles_in_each_process(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("numba.core.compiler.CompileResult._reduce")
    monkeypatch.delitem(sys.modules, "discreet.compiling", raising=False)
    compiling.cache_clear()
    try:
        with pytest.warns(UserWarning, match="every process compiles them: .*_reduce"):
            assert imported(tmp_path, 1, standalone)(1) == 20
    finally:
        compiling.cache_clear()
    assert not stored.exists()


def test_where_nothing_can_be_written_kernels_are_read_and_compiled(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = [Path(os.devnull) / "a", Path(os.devnull) / "b"]
    monkeypatch.setattr(kernels, "folders", lambda source: nowhere)
    assert imported(tmp_path, 1, standalone)(1) == 20
    monkeypatch.setattr(kernels, "folders", lambda source: [nowhere[0], stored])
    assert imported(tmp_path, 1, standalone)(1) == 20
    (path,) = stored.iterdir()

    def refused(path: Path, content: bytes) -> None:
        raise PermissionError

    monkeypatch.setattr(kernels, "_write", refused)
    found, new = imported(tmp_path, 1, standalone), imported(tmp_path, 2, standalone)
    assert (found(1), new(1)) == (20, 30)
    assert (was_stored(found), was_stored(new)) == (True, False)
    assert list(stored.iterdir()) == [path]


def test_what_a_wheel_brings_is_used_on_processors_of_its_level(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is named as the build of a wheel names it, whose Numba compiles for the level."""
    if not is_of_the_level():
        pytest.skip("this processor is not of the level that wheels are built for")
    with monkeypatch.context() as building:
        for name, value in kernels.FOR_THE_LEVEL.items():
            building.setenv(name, value)
        made_by.cache_clear()
        assert not was_stored(used(tmp_path, standalone=True))
    made_by.cache_clear()
    brought = stored.rename(tmp_path / "brought")
    assert not was_stored(used(tmp_path, standalone=True))  # not found by its name for this processor
    shutil.rmtree(stored)
    monkeypatch.setattr(kernels, "BROUGHT", brought)
    assert was_stored(used(tmp_path, standalone=True))
    assert not stored.exists()
    assert imported(tmp_path, 2, standalone=True)(1) == 30  # another kernel is compiled
    assert len(list(stored.iterdir())) == 1
    shutil.rmtree(stored)
    monkeypatch.setattr(kernels, "is_of_the_level", lambda: False)
    assert not was_stored(used(tmp_path, standalone=True))


def test_a_processor_that_lacks_something_is_not_of_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    for lacking in (*kernels.FEATURES, None):
        found = {name: name != lacking for name in kernels.FEATURES}
        monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda found=found: found)
        monkeypatch.setattr("platform.machine", lambda: "x86_64")
        is_of_the_level.cache_clear()
        assert is_of_the_level() is (lacking is None)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    is_of_the_level.cache_clear()
    assert not is_of_the_level()
    is_of_the_level.cache_clear()


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, target: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        kernels._write(tmp_path / "x" / "one.kernel", b"content")
    assert list((tmp_path / "x").iterdir()) == []


def test_kernels_are_beside_their_source_or_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    assert folders("/a/b.py") == [Path("/somewhere")]
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    first, second = folders("/a/b.py")
    assert first == Path("/a/__pycache__")
    assert second == Path("/somewhere/cache/discreet/kernels")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere/home")
    assert folders("/a/b.py")[1].is_relative_to("/somewhere/home")


def kernel(**used: Any) -> Kernel:
    """A kernel that uses VALUE, a function in it, and an attribute of MODULE."""
    text = "def f(x):\n    return [VALUE for _ in range(3)][x] + MODULE.size"
    names: dict[str, Any] = {"__name__": "made", **used}
    exec(text, names)
    made: Kernel = njit(cache=True)(names["f"])
    return made


@njit()
def _one(x: Any) -> Any:
    return x


@njit(nogil=True)
def _two(x: Any) -> Any:
    return x


def test_a_digest_tells_values_and_kernels_apart() -> None:
    fake = ModuleType("discreet.fake")
    values = [
        1,
        1.0,
        True,
        np.uint64(1),
        "1",
        (1, 2),
        (1, 3),
        None,
        _one,
        _two,
        np.arange(3),
        np.arange(3.0),
        np.sum,
    ]
    found = [digest(kernel(VALUE=value, MODULE=fake)) for value in values]
    assert len(set(found)) == len(values)
    assert found == [digest(kernel(VALUE=value, MODULE=fake)) for value in values]
    fake.size = 3  # type: ignore[attr-defined]
    assert digest(kernel(VALUE=1, MODULE=fake)) not in found
    assert digest(kernel(VALUE=_one, MODULE=np)) == digest(kernel(VALUE=_one, MODULE=np))


def test_a_kernel_that_calls_itself_has_a_digest() -> None:
    names: dict[str, Any] = {"__name__": "made"}
    exec("def f(x):\n    return f(x - 1) if x else 0", names)
    names["f"] = njit(cache=True)(names["f"])
    assert len(digest(names["f"])) == 64


def test_a_digest_is_the_same_in_every_process() -> None:
    modules = (counting, cell_key, swap)
    own = {
        f"{module.__name__}.{name}": digest(value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Kernel)
    }
    program = (
        "import sys, importlib; from discreet.kernels import digest\n"
        "for name in sys.argv[1:]:\n"
        "    module, _, kernel = name.rpartition('.')\n"
        "    print(digest(getattr(importlib.import_module(module), kernel)))\n"
    )
    command = [sys.executable, "-c", program, *own]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert done.stdout.split() == list(own.values())


class Waited(Exception):
    """Instead of waiting for another process."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise Waited

    monkeypatch.setattr(kernels, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))


def locked_elsewhere(path: Path, mode: int = 0o644) -> IO[str]:
    """A file that another process has locked; locks are of opened files, so it may be this process."""
    path.parent.mkdir(exist_ok=True)
    file = path.open("w")
    path.chmod(mode)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def lock_of(folder: Path, tmp_path: Path, standalone: bool) -> Path:
    """The file that is locked while the kernel is compiled for a whole number."""
    assert imported(tmp_path, 1, standalone)(1) == 20
    (path,) = folder.iterdir()
    path.unlink()
    return path.with_name(f"{path.name}.lock")


def test_one_of_several_processes_compiles(stored: Path, tmp_path: Path, standalone: bool) -> None:
    imported(tmp_path, 1, standalone)
    program = (
        "from two import outer\nassert outer(1) == 20\n"
        "print('bare' not in vars(outer) if outer.is_standalone else sum(outer.compiled.stats.cache_hits.values()))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    processes = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    was_read = [
        int(process.communicate()[0].replace("True", "1").replace("False", "0")) for process in processes
    ]
    assert sorted(was_read) == [0, 1, 1]
    assert len(list(stored.iterdir())) == 1  # and no lock


def test_a_process_waits_for_the_one_that_compiles_and_reads_what_it_stored(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imported(tmp_path, 1, standalone)(1) == 20
    (path,) = stored.iterdir()
    lock, elsewhere = path.with_name(f"{path.name}.lock"), tmp_path / "elsewhere"
    path.rename(elsewhere)
    file = locked_elsewhere(lock)

    def stored_meanwhile(seconds: float) -> None:
        elsewhere.rename(path)
        lock.unlink()
        file.close()

    monkeypatch.setattr(time, "sleep", stored_meanwhile)
    assert was_stored(used(tmp_path, standalone))
    assert list(stored.iterdir()) == [path]


def test_a_lock_of_a_process_that_was_killed_is_free(
    stored: Path, tmp_path: Path, standalone: bool, impatient: None
) -> None:
    lock = lock_of(stored, tmp_path, standalone)
    program = (
        "import fcntl, os, sys\n"
        "fcntl.flock(os.open(sys.argv[1], os.O_CREAT), fcntl.LOCK_EX)\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(lock)], check=False).returncode == -9
    assert lock.exists()
    assert not was_stored(used(tmp_path, standalone))
    assert not lock.exists()
    assert was_stored(used(tmp_path, standalone))


def test_a_stopped_process_is_not_waited_for_for_ever(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    lock = lock_of(stored, tmp_path, standalone)
    with locked_elsewhere(lock):
        with pytest.raises(Waited):
            imported(tmp_path, 1, standalone)(1)
        monkeypatch.setattr(kernels, "PATIENCE", 0)
        assert not was_stored(used(tmp_path, standalone))
    assert lock.exists()  # it is the other one's
    assert was_stored(used(tmp_path, standalone))


def test_a_lock_of_another_user_is_not_waited_for(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    lock = lock_of(stored, tmp_path, standalone)
    with locked_elsewhere(lock, 0o666):
        assert not was_stored(used(tmp_path, standalone))
    lock.with_suffix("").unlink()
    with locked_elsewhere(lock):
        monkeypatch.setattr(kernels, "owners", lambda source: {os.geteuid() + 1})
        assert not was_stored(used(tmp_path, standalone))
    lock.unlink()
    lock.symlink_to(tmp_path / "made")
    assert not was_stored(used(tmp_path, standalone))
    assert not (tmp_path / "made").exists()


def test_where_files_cannot_be_locked_each_process_compiles_and_stores(
    stored: Path, tmp_path: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(number: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert not was_stored(used(tmp_path, standalone))
    assert [path.suffix for path in stored.iterdir()] == [".kernel"]
    assert was_stored(used(tmp_path, standalone))


def test_a_process_that_has_a_lock_waits_for_no_other(
    stored: Path, tmp_path: Path, standalone: bool, impatient: None
) -> None:
    """A kernel that needs another one, two processes in opposite orders, two threads: none waits with a lock."""
    lock = lock_of(stored, tmp_path, standalone)
    with locked_elsewhere(lock):
        with pytest.raises(Waited):
            imported(tmp_path, 1, standalone)(1)
        found: list[bool] = []
        with Store(counting.recode).alone("another kernel"):
            assert not was_stored(used(tmp_path, standalone))
            (stored / lock.stem).unlink()
            thread = Thread(target=lambda: found.append(was_stored(used(tmp_path, standalone))))
            thread.start()
            thread.join()
        assert found == [False]


def test_what_cannot_be_compiled_leaves_no_lock(
    stored: Path, tmp_path: Path, standalone: bool, impatient: None
) -> None:
    outer = imported(tmp_path, 1, standalone)
    for _ in range(2):
        with pytest.raises(numba_errors.TypingError):
            outer(b"text")
    assert not list(stored.glob("*.lock"))
    with locked_elsewhere(lock_of(stored, tmp_path, standalone)), pytest.raises(Waited):
        imported(tmp_path, 1, standalone)(1)
