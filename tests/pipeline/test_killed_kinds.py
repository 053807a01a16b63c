"""Kills at random moments of every kind of run: what is there is whole, what is charged is charged once, and the next
run ends as one that nothing interrupted.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from discreet.io.secret import read_secret
from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.release.verify import verify
from tests.fuzz.inputs import prepare
from tests.pipeline.conftest import NOON, contents
from tests.waiting import PATIENCE

KILLS = int(os.environ.get("DISCREET_KILLS", "15"))  # of each kind, in the long run


@dataclass(frozen=True)
class Kind:
    """A command, and the folders that it writes."""

    words: str
    folders: tuple[str, ...]
    is_release: bool = True


KINDS = {
    "cell keys": Kind("protect programme.toml --secret secret --out made", ("made",)),
    "signed": Kind("protect programme.toml --secret secret --out made --sign k", ("made",)),
    "a ledger": Kind(
        "protect private.toml --secret secret --out made --ledger ledger.sqlite --account a", ("made",)
    ),
    "swapped and protected": Kind("protect swap.toml --secret secret --out made --another-ptable", ("made",)),
    "swapped": Kind("swap swap.toml --secret secret --out made --report made2", ("made", "made2"), False),
}


def command(kind: Kind) -> list[str]:
    return [sys.executable, "-c", "from discreet.cli.app import main; main()", *kind.words.split(), "--quiet"]


def finish(kind: Kind, folder: Path) -> None:
    subprocess.run(command(kind), cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


def whole(kind: Kind, folder: Path) -> list[dict[str, bytes]]:
    return [contents(folder / name) if (folder / name).exists() else {} for name in kind.folders]


def unmarked(found: list[dict[str, bytes]]) -> list[dict[str, bytes]]:
    return [{name: text for name, text in one.items() if name != ".unfinished"} for one in found]


def spent(folder: Path) -> str:
    seal = derive(read_secret(str(folder / "secret"), {}), "ledger")
    return str(Ledger.open(folder / "ledger.sqlite", lambda: NOON, seal).spent("a"))


def rounds(kind: Kind, folder: Path, kills: int, seed: int) -> int:
    """Kill so many runs; the number of kills that met a run before its end."""
    with contextlib.chdir(folder):
        prepare(folder)
    began = time.monotonic()
    finish(kind, folder)
    charged = spent(folder)  # the same snapshot is paid once
    length, wanted = time.monotonic() - began, whole(kind, folder)
    dice, met = random.Random(seed), 0
    for _ in range(kills):
        if not kind.is_release:
            for name in kind.folders:
                for path in (folder / name).glob("*"):
                    path.unlink()
                (folder / name).rmdir()
        running = subprocess.Popen(
            command(kind), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(dice.uniform(0.2, 1.0) * length)
        met += running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.communicate()
        found = unmarked(whole(kind, folder))
        assert all(one in ({}, right) for one, right in zip(found, wanted, strict=True))
        if kind.is_release:
            assert found == wanted  # the release that was there before
            assert verify(folder / "made").passed
        elif found != wanted or any(path.name == ".unfinished" for path in (folder / "made2").glob(".*")):
            finish(kind, folder)
        assert whole(kind, folder) == wanted
    assert spent(folder) == charged
    if kind.is_release:
        finish(kind, folder)
        assert whole(kind, folder) == wanted
        assert not list(folder.glob(".made*"))
    return met


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_kill_every_kind_of_run_at_random_moments(tmp_path: Path, name: str) -> None:
    assert (
        rounds(KINDS[name], tmp_path, KILLS, seed=3) > 0
    )  # how many is decided by other work of the machine
