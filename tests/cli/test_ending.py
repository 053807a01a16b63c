"""A signal that asks a command to end, at the worst moment: where what its handler raises is dropped by a library."""

import contextlib
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from discreet.cli import app
from discreet.io import ending
from tests.fuzz.commands import SOUND
from tests.fuzz.inputs import made, prepare

SLOW = {"demo", "forecast", "advise", "audit", "attack", "study declared-geography"}  # write as others do
CALLS = {name: call for name, (call, _) in SOUND.items() if name not in SLOW} | {
    "protect with a ledger": "protect private.toml --secret secret --out made --ledger ledger.sqlite --account a",
    "protect again": "protect programme.toml --secret secret --out release",
    "study with files": "study prior-knowledge --records 1000 --k 10 --epsilon 1 --quiet --out made",
    "picture": "risk redundancy programme.toml --picture made.html",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sound inputs of every kind."""
    folder = tmp_path_factory.mktemp("ending") / "sound"
    folder.mkdir()
    with contextlib.chdir(folder):
        prepare(folder)
    return folder


@pytest.fixture
def here(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of a copy of it, the working folder."""
    shutil.copytree(sound, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    return files()


def files() -> dict[str, bytes]:
    """All files, beside the work folder that the next run resumes."""
    return {
        str(path): path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and ".partial/" not in str(path) and path.suffix != ".lock"
    }


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The signals by which the process would have ended; each is raised once."""
    numbers: list[int] = []
    defaults = {signal.SIGINT: signal.default_int_handler}
    before = {
        number: signal.signal(number, defaults.get(number, signal.SIG_DFL)) for number in ending.SIGNALS
    }
    monkeypatch.setattr(ending, "PAUSE", 1e6)
    monkeypatch.setattr(app, "_require_readable", lambda _: dropped(numbers[0]))
    monkeypatch.setattr(signal, "raise_signal", numbers.append)
    yield numbers
    for number, how in before.items():
        signal.signal(number, how)


def dropped(number: int) -> None:
    """A request that a library ignores."""
    with contextlib.suppress(ending.Ended):
        signal.getsignal(number)(number, None)  # type: ignore[operator, misc]


@pytest.mark.parametrize("name", CALLS)
def test_a_command_writes_nothing_after_a_request_that_was_lost(
    name: str, here: dict[str, bytes], ended: list[int]
) -> None:
    ended.append(signal.SIGTERM)
    code, said = made(CALLS[name].split())
    assert (code, ended) == (0, [signal.SIGTERM] * 2), said
    assert said.strip().splitlines()[-1] == "Ended; existing files are unchanged."
    assert files() == here


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_each_signal_has_its_code(number: int, here: dict[str, bytes], ended: list[int]) -> None:
    ended.append(number)
    code, said = made(CALLS["protect"].split())
    assert files() == here
    if number == signal.SIGINT:
        assert (code, ended, said) == (130, [number], "Interrupted; existing files are unchanged.\n")
    else:
        assert (code, ended, said) == (0, [number] * 2, "Ended; existing files are unchanged.\n")


def test_what_was_written_before_is_named(
    here: dict[str, bytes], ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended.append(signal.SIGTERM)
    monkeypatch.setattr(app, "_require_readable", lambda _: None)
    monkeypatch.setattr("discreet.cli.secret.say", lambda *_: dropped(signal.SIGTERM), raising=False)
    _, said = made(CALLS["secret"].split())
    assert files().keys() - here.keys() == {"made"}
    assert said == "Ended after made was written.\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ((), "Ended; existing files are unchanged."),
        (("a",), "Ended after a was written."),
        (("a", "b"), "Ended after a, b were written."),
    ],
)
def test_the_message_names_what_was_written(written: tuple[str, ...], said: str) -> None:
    assert app._unfinished(ending.Ended(signal.SIGTERM, written)) == said
