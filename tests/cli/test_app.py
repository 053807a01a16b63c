"""The command line as a whole: mistyped words, folders of any name, signals, and what a machine may lack."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.io.ending import SIGNALS
from tests.cases import few
from tests.cli import town
from tests.cli.called import discreet
from tests.waiting import PATIENCE, until


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("protct", "x"), "Did you mean 'protect'"),
        (("leger", "show"), "Did you mean 'ledger'"),
        (("ledger", "shwo", "x"), "Did you mean 'show'"),
        (("risk", "bays", "count"), "Did you mean 'bayes'"),
        (("protect", "--secert", "x"), "--secret"),
        (("ptable", "make", "--pstya", "1"), "--pstay"),
    ],
)
def test_a_mistyped_word(words: tuple[str, ...], meant: str) -> None:
    said = discreet(*words)
    assert said.returncode == 2
    assert meant in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("chosen", few([None, "mimalloc"], 0))
def test_commands_reuse_the_memory_that_arrow_frees(chosen: str | None) -> None:
    """Arrow's own allocators return it to the system between two batches; a user may still choose one."""
    words = "from discreet.cli.group import built; built('protect', 'protect'); import pyarrow"
    own = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    said = subprocess.run(
        [sys.executable, "-c", f"{words}; print(pyarrow.default_memory_pool().backend_name)"],
        env=own | ({"ARROW_DEFAULT_MEMORY_POOL": chosen} if chosen else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == [chosen or "system"]


def test_a_folder_may_be_named_like_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes a relative path with a colon for an address, of a file system that it does not know."""
    monkeypatch.chdir(tmp_path)
    made = discreet("demo", "--out", "census:2021", "--persons", "600", "--quiet")
    assert (made.returncode, made.stderr) == (0, "")
    folder = Path("census:2021")
    assert discreet("verify", folder / "release").returncode == 0
    words = ("--programme", folder / "census/programme.toml", "--secret", folder / "secret.key")
    assert discreet("utility", folder / "release", *words).returncode == 0
    drawn = discreet(
        "noise", "sample", "--kind", "geometric", "--epsilon", "1", "--n", "9", "--out", "a:b.parquet"
    )
    assert drawn.returncode == 0, drawn.stderr
    assert Path("a:b.parquet").is_file()


@pytest.mark.parametrize(
    "words", [("check", "d\udcff/p.toml"), ("synth", "--out", "\udce9", "--persons", "60")]
)
def test_a_path_that_is_not_utf8_is_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = discreet(*words)
    assert said.returncode == 2
    assert "not text in UTF-8" in said.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["9" * 400, f"1,{'9' * 400}", f"known={'9' * 100},published=3", f"-{'9' * 400}"]
)
def test_a_number_that_no_float_represents_is_refused(text: str) -> None:
    said = discreet("risk", "bayes", "levels", "--rho", "0.1", "--level", text)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.strip().endswith("..; give numbers of fewer than 100 digits")
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.parametrize("text", [f"{'9' * 400}.toml", f"0.{'9' * 400}", f"a{'9' * 400}", "9" * 99])
def test_digits_of_names_and_decimals_are_not_counted(text: str) -> None:
    assert "100 digits" not in discreet("check", text).stderr


@pytest.mark.parametrize(
    ("environment", "code", "says"),
    [({"LC_ALL": "C"}, 0, "no mistakes"), ({"LC_ALL": "C", "PYTHONUTF8": "0"}, 2, "LC_ALL=C.UTF-8")],
)
def test_paths_that_are_not_ascii_where_the_locale_is_c(
    environment: dict[str, str], code: int, says: str, tmp_path: Path
) -> None:
    town.build(tmp_path / "dé ñ Ω")
    command = [sys.executable, "-m", "discreet", "check", "dé ñ Ω/programme.toml"]
    told = {**os.environ, **environment}
    found = subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, check=False)
    assert found.returncode == code, found.stderr
    assert says in (found.stdout + found.stderr).decode()
    assert b"Traceback" not in found.stderr


def started(folder: Path, *words: str, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "discreet", *words]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def defaults() -> None:
    """Let the signals be those of a new terminal."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", few(SIGNALS, 0))
def test_a_signal_that_asks_to_end_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """A user, a service manager, or a terminal that is closed, while kernels are loaded."""
    words = ("synth", "--persons", "3000000", "--out", "census", "--quiet")
    process = started(tmp_path, *words, preexec_fn=defaults)
    until(lambda: list(tmp_path.glob(".census-*")) or process.poll() is not None)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    how, code = ("Interrupted", 130) if number == signal.SIGINT else ("Ended", -number)
    assert (process.returncode, said) == (code, f"{how}; existing files are unchanged.\n")
    assert not list(tmp_path.iterdir())


STARTING = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from discreet.__main__ import main
main()
"""


def test_an_interruption_while_the_program_starts_has_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTING, "check", "none.toml"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, "", "")


def test_signals_of_a_caller_are_its_own_again(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert discreet("check", tmp_path / "none.toml").returncode == 2
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "Not enough memory; give Discreet more of it"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "Not enough memory; give Discreet more of it"),
        (ImportError("libx.so: failed to map segment"), "A library cannot be loaded: libx.so"),
        (OSError(errno.ENOSPC, "Error writing bytes to file. Detail: .."), "No space left on device"),
        (OSError("a reason of a library"), "a reason of a library"),
    ],
)
def test_what_a_machine_lacks_is_a_line(error: Exception, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr("discreet.cli.app.app", broken)
    said = discreet("check", "x.toml")
    assert said.returncode == 2
    assert said.stderr.startswith(says)
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_terminal_without_columns_shows_everything(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert "no such file or directory" in discreet("check", tmp_path / "none.toml").stderr


@pytest.mark.parametrize("word", ["/dev/zero", "/dev/full", "--private-manifest=/dev/urandom"])
def test_devices_that_never_end_are_refused(word: str) -> None:
    said = discreet("check", "x.toml", word)
    assert (said.returncode, said.stderr) == (2, f"{word}: is a device; give a file\n")
    assert "is a device" not in discreet("check", "/dev/null").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("check", "pipe"),
        ("sign", "release", "--key=pipe"),
        ("protect", "x.toml", "--secret", "pipe", "--out", "made"),
    ],
)
def test_named_pipes_are_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading one that nobody writes to would never end."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    said = discreet(*words)
    assert (said.returncode, said.stderr.partition(": ")[2]) == (2, "is a named pipe; give a file\n")


@pytest.mark.parametrize(
    "words", [("protect", "x.toml", "--out"), ("init", "persons.csv", "--out"), ("check",)]
)
def test_paths_of_hundreds_of_folders_are_refused(words: tuple[str, ...]) -> None:
    said = discreet(*words, "a/" * 501)
    assert (said.returncode, said.stderr.partition("..: ")[2]) == (
        2,
        "more than 500 folders; use a shorter path\n",
    )
    assert "folders;" not in discreet("check", "a/" * 500).stderr


def test_pipes_that_have_a_writer_are_read(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet", "check", "/dev/stdin"]
    found = subprocess.run(command, cwd=tmp_path, input=b"x = 1", capture_output=True, check=False)
    assert (found.returncode, found.stderr.partition(b":")[0]) == (2, b"/dev/stdin")
    assert b"named pipe" not in found.stderr


def test_the_exit_code_is_right_where_nothing_can_be_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "discreet", "check", "none.toml"]
        assert subprocess.run(command, cwd=tmp_path, stderr=full, check=False).returncode == 2


def test_a_demo_that_is_refused_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert discreet("demo", "--out", "d", "--persons", str(1 << 63)).returncode == 2
    assert not list(tmp_path.iterdir())


def test_a_demo_replaces_an_earlier_one_unless_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secrets = []
    for persons, code in (("60", 0), ("80", 0), ("0", 2)):
        found = discreet("demo", "--out", "d", "--persons", persons, "--quiet")
        assert found.returncode == code, found.stderr
        secrets.append(Path("d/secret.key").read_bytes())
    assert secrets[0] != secrets[1] == secrets[2]


def test_the_folder_of_a_demo_may_be_named_like_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = discreet("demo", "--out", "env:NONE", "--persons", "60", "--quiet")
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "env:NONE/release/manifest.json").is_file()


def test_a_file_without_a_name_is_refused() -> None:
    made = discreet("ptable", "make", "--D", "2", "--V", "1", "--out", "")
    assert (made.returncode, made.stderr) == (2, ".: file: is a folder; name a file\n")
