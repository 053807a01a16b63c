"""Requests to end: an exception that libraries may drop, and that is not lost for all that."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import Mistakes
from discreet.io import ending
from discreet.io.ending import SIGNALS, Ended, putting, until_asked_to_end
from discreet.io.whole_file import OWNER_ONLY_FILE, PUBLIC_FILE, new_file, whole_file
from tests.waiting import PATIENCE

SIGTERM = signal.SIGTERM
NEVER = 1e6  # seconds until a lost request is raised again


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """The signals as a new program has them."""
    defaults: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, how) for number, how in defaults.items()}
    yield
    for number, how in before.items():
        signal.signal(number, how)


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is raised once only."""
    monkeypatch.setattr(ending, "PAUSE", NEVER)


def goes_on() -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(0.01)


def in_a_block(number: int) -> None:
    with suppress(BaseException):
        signal.raise_signal(number)


def in_a_destructor(number: int) -> None:
    class Dropping:
        def __del__(self) -> None:
            signal.raise_signal(number)

    Dropping()


def in_a_callback(number: int) -> None:
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))()


@pytest.mark.parametrize("dropped", [in_a_block, in_a_destructor, in_a_callback])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_request_that_is_dropped_is_raised_again(
    number: int, dropped: Callable[[int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    reached = []

    def work() -> None:
        dropped(number)
        reached.append(True)
        goes_on()

    with pytest.raises(Ended) as found:
        until_asked_to_end(work)
    assert reached
    assert found.value.number == number
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("number", SIGNALS)
def test_nothing_is_put_in_place_after_a_request(number: int, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    refused = []

    def work() -> None:
        for path, write in (
            (tmp_path / "old", whole_file),
            (tmp_path / "new", whole_file),
            (tmp_path / "n", new_file),
        ):
            in_a_block(number)
            with pytest.raises(Ended), write(path, PUBLIC_FILE):
                pass
            refused.append(path.name)

    with pytest.raises(Ended) as found:
        until_asked_to_end(work)
    assert refused == ["old", "new", "n"]
    assert found.value.written == ()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("raised", [None, SystemExit(0), RuntimeError("Query interrupted")])
def test_work_does_not_end_as_if_there_had_been_no_request(raised: BaseException | None) -> None:
    def work() -> None:
        with putting("a"), putting("a"), putting("b"):
            pass
        in_a_block(SIGTERM)
        if raised is not None:
            raise raised

    with pytest.raises(Ended) as found:
        until_asked_to_end(work)
    assert (found.value.number, found.value.written) == (SIGTERM, ("b", "a"))


@pytest.mark.parametrize("again", [SIGTERM, signal.SIGHUP])
def test_what_removes_a_work_folder_is_not_interrupted(again: int) -> None:
    removed = []

    def work() -> None:
        try:
            signal.raise_signal(SIGTERM)
        finally:
            signal.raise_signal(again)
            time.sleep(3 * ending.PAUSE)
            removed.append(True)

    with pytest.raises(Ended) as found:
        until_asked_to_end(work)
    assert removed
    assert found.value.number == SIGTERM


def test_a_module_is_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = f"import signal, time\nsignal.raise_signal(15)\ntime.sleep({3 * ending.PAUSE})\nis_whole = True\n"
    (tmp_path / "imported_whole.py").write_text(text)

    def work() -> None:
        import_module("imported_whole")
        goes_on()

    with pytest.raises(Ended):
        until_asked_to_end(work)
    assert sys.modules["imported_whole"].is_whole


def test_a_thread_that_would_put_something_in_place_ends_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # prints; that of pytest does not
    put = []

    def store() -> None:
        while True:
            with ending.putting("a table"):
                put.append(time.monotonic())
            time.sleep(0.001)

    def work() -> None:
        thread = threading.Thread(target=store)
        thread.start()
        try:
            signal.raise_signal(SIGTERM)
        finally:
            thread.join(10)
            assert not thread.is_alive()

    with pytest.raises(Ended):
        until_asked_to_end(work)
    assert capsys.readouterr().err == ""


def test_a_second_interruption_waits_for_nothing() -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            raise AssertionError

    with pytest.raises(Ended):
        until_asked_to_end(work)


def test_signals_are_as_they_were_afterwards() -> None:
    def other(_number: int, _frame: object) -> None:
        raise AssertionError

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    during, hook = {}, sys.unraisablehook

    def work() -> None:
        during.update({number: signal.getsignal(number) for number in before})
        signal.raise_signal(signal.SIGHUP)
        in_a_block(SIGTERM)

    with pytest.raises(Ended):
        until_asked_to_end(work)
    assert sys.unraisablehook is hook
    assert {number: signal.getsignal(number) for number in before} == before
    assert during[signal.SIGHUP] is signal.SIG_IGN
    assert during[SIGTERM] is not before[SIGTERM]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    until_asked_to_end(lambda: None)


CYTHON = """
import abc, signal
from discreet.io.ending import until_asked_to_end, Ended
register = abc.ABCMeta.register
def interrupted(this, other):
    if other.__name__ == "_memoryviewslice":
        signal.raise_signal(signal.SIGTERM)
    return register(this, other)
abc.ABCMeta.register = interrupted
def work():
    import numpy.random
    print("goes on", flush=True)
    import time
    time.sleep(300)
try:
    until_asked_to_end(work)
except Ended as ended:
    print(ended.number)
"""


def test_a_request_is_not_lost_where_a_compiled_module_starts(tmp_path: Path) -> None:
    """What happened: Cython drops it when its types are registered, here those of NumPy's generators."""
    found = subprocess.run(
        [sys.executable, "-c", CYTHON],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert found.stdout.splitlines()[-1] == "15", found.stderr


def test_a_device_a_pipe_and_what_is_open_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "stdout", "null"):
        with (
            pytest.raises(Mistakes, match="is a device or a pipe; give the name of a file"),
            whole_file(tmp_path / name, PUBLIC_FILE),
        ):
            pass
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == ["null", "stdout"]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_is_whole_has_its_mode_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / f"{'é' * 100}.toml"
    with whole_file(path, OWNER_ONLY_FILE) as draft:
        assert draft.suffix == ".toml"
        draft.write_text("new")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, "new")
    with pytest.raises(FileNotFoundError), whole_file(path, PUBLIC_FILE) as draft:
        draft.unlink()
    assert path.read_text() == "new"
    with pytest.raises(FileExistsError), new_file(path, OWNER_ONLY_FILE):
        pass
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
