"""The register of a secret: what an id is bound to, by whom it can be read, and several processes at once."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.io.register import Issue, Register, Snapshot
from tests.forked import Forked

SECRET = bytes(range(32))


@pytest.fixture
def register(tmp_path: Path) -> Register:
    return Register.of(tmp_path / "s.register", SECRET)


def test_an_id_keeps_its_seed_and_its_inputs(register: Register) -> None:
    first = register.snapshot("2021", {"persons": "aa"})
    assert not register.path.exists(), "nothing is bound before it is used"
    first.bind()
    assert register.snapshot("2021", {"persons": "aa"}).seed == first.seed
    register.snapshot("2021", {"persons": "aa", "households": "bb"}).bind()
    for inputs in ({"persons": "ab"}, {"households": "bc"}, {"persons": "aa", "households": "b"}):
        with pytest.raises(Mistakes, match="bound to other contents"):
            register.snapshot("2021", inputs)
    assert register.snapshot("2022", {"persons": "ab"}).seed != first.seed
    assert register.snapshot("2021", {}).seed == first.seed


def test_it_is_private_and_of_one_secret(register: Register, tmp_path: Path) -> None:
    register.snapshot("2021", {"persons": "aa"}).bind()
    assert register.path.stat().st_mode & 0o077 == 0
    with pytest.raises(Mistakes, match="belongs to another secret"):
        Register.of(register.path, bytes(32)).snapshot("2021", {})
    register.path.chmod(0o644)
    with pytest.raises(Mistakes, match="chmod 600"):
        register.snapshot("2021", {})


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"kind": "ledger"}', '{"secret_fingerprint": "x", "snapshots": {"a": {}}}', "\xff"]
)  # fmt: skip
def test_a_damaged_one_is_refused_in_one_line(register: Register, text: str) -> None:
    register.path.write_bytes(text.encode("latin-1"))
    register.path.chmod(0o600)
    with pytest.raises(Mistakes) as refused:
        register.snapshot("2021", {})
    assert len(str(refused.value).splitlines()) == 1


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """Reading it would wait for a writer."""
    os.mkfifo(tmp_path / "r")
    with pytest.raises(Mistakes, match="register: is a named pipe"):
        Register.of(tmp_path / "r", b"x" * 32).snapshot("2021", {})


def test_a_folder_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="a file that you can read and write"):
        Register.of(tmp_path / "absent" / "s.register", SECRET).snapshot("a", {}).bind()


def test_of_two_first_runs_one_must_start_again(register: Register) -> None:
    one, other = (register.snapshot("2021", {"persons": "aa"}) for _ in range(2))
    one.bind()
    one.bind()
    with pytest.raises(Mistakes, match="run the command again"):
        other.bind()


@pytest.mark.parametrize("other", [bytes(32), bytes([255] * 32)], ids=["lower", "higher"])
def test_noise_of_any_seed_but_the_bound_one_is_refused(register: Register, other: bytes) -> None:
    bound = register.bound("2021", {"persons": "aa"}, bytes([128] * 32))
    bound.bind()
    with pytest.raises(Mistakes, match="has just been bound by another run"):
        Snapshot(register, "2021", other, {"persons": "aa"}).bind()


def bind(path: Path) -> None:
    sys.stdin.readline()  # all start together
    print(Register.of(path, bytes(range(32))).bound("a", {"persons": "x"}).seed.hex())


def test_many_processes_agree_on_one_seed(register: Register) -> None:
    processes = [Forked(bind, register.path) for _ in range(6)]
    for process in processes:
        process.go()
    ended = {process.ended() for process in processes}
    assert len(ended) == 1, ended
    assert ended == {(0, json.loads(register.path.read_text())["snapshots"]["a"]["seed"] + "\n")}


def issue(ptable: str, release: str = "r", forced: bool = False) -> Issue:
    return Issue(
        release=release, version="1", run_id="id", time=datetime(2026, 1, 1, tzinfo=UTC), ptable=ptable, keys="plain",
        large=((-1, 1), (1, 1)), inputs="i", parameters="p", forced=forced,
    )  # fmt: skip


def test_issues_are_recorded_once_and_another_ptable_only_if_forced(register: Register) -> None:
    assert register.record(issue("a")) == ()
    assert register.record(issue("a")) == ()
    assert register.others(issue("a", "s")) == ()
    assert register.others(issue("b")) == register.record(issue("b")) == (issue("a"),)
    assert register.record(issue("b", "s", forced=True)) == ()
    assert register.others(issue("b", "t")) == ()
    assert [one["ptable"] for one in json.loads(register.path.read_text())["issued"]] == ["a", "b"]
    assert register.path.stat().st_mode & 0o077 == 0


def test_of_many_runs_at_once_all_recorded_ones_have_one_ptable(register: Register) -> None:
    with ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(lambda k: register.record(issue("ab"[k % 2], f"r{k}")), range(16)))
    held = json.loads(register.path.read_text())["issued"]
    assert len({one["ptable"] for one in held}) == 1
    assert len(held) == sum(not others for others in refused) == 8


def test_snapshots_and_issues_do_not_disturb_each_other(register: Register) -> None:
    register.record(issue("a"))
    register.snapshot("2021", {"persons": "aa"}).bind()
    register.record(issue("a", "s"))
    content = json.loads(register.path.read_text())
    assert len(content["issued"]) == 2
    assert list(content["snapshots"]) == ["2021"]
