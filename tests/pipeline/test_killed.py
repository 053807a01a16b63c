"""A run killed at any moment leaves the old release or the new one, and goes on from its finished cubes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.io.secret import make_secret
from discreet.release.verify import verify
from tests.forked import Forked, discreet
from tests.pipeline.conftest import contents
from tests.waiting import PATIENCE


def command(census: Path, secret: Path, out: Path) -> list[str]:
    programme = census / "programme.toml"
    run = "from discreet.cli.app import main; main()"
    return [
        sys.executable,
        "-c",
        run,
        "protect",
        str(programme),
        "--secret",
        str(secret),
        "--out",
        str(out),
        "--json",
    ]


def finish(call: list[str]) -> str:
    return subprocess.run(call, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def rounds(census: Path, tmp_path: Path, kills: int) -> None:
    first, second, out = tmp_path / "first.key", tmp_path / "second.key", tmp_path / "release"
    make_secret(first)
    make_secret(second)
    finish(command(census, first, tmp_path / "a"))
    began = time.monotonic()
    finish(command(census, second, tmp_path / "b"))
    length = time.monotonic() - began
    wanted = [contents(tmp_path / "a"), contents(tmp_path / "b")]
    finish(command(census, first, out))
    dice = random.Random(5)
    for _ in range(kills):
        call = command(census, second if contents(out) == wanted[0] else first, out)
        running = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(dice.uniform(0.3, 1.05) * length)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert contents(out) in wanted
        assert verify(out).passed
    finish(command(census, second, out))
    finish(command(census, first, out))
    assert contents(out) == wanted[0]
    left = {path.name for path in tmp_path.iterdir()} - {"a", "b", "release"}
    assert all(name.startswith(("first.key", "second.key")) for name in left), left


@pytest.mark.long
def test_kill_at_many_random_moments(census: Path, tmp_path: Path) -> None:
    rounds(census, tmp_path, kills=60)


def test_a_killed_run_goes_on_from_its_finished_cubes(census: Path, tmp_path: Path) -> None:
    """Kill the run as soon as some cubes are recorded; the next one takes them up."""
    secret, out = tmp_path / "s.key", tmp_path / "release"
    make_secret(secret)
    running = Forked(discreet, *command(census, secret, out)[3:])
    while running.process.is_alive() and not list(tmp_path.glob(".release.*.partial/records/*.json")):
        time.sleep(0.002)
    os.kill(running.pid, signal.SIGSTOP)
    recorded = len(list(tmp_path.glob(".release.*.partial/records/*.json")))
    running.kill()
    running.ended()
    if not recorded:
        pytest.skip("the run was finished before it could be stopped")
    code, written = Forked(discreet, *command(census, secret, out)[3:]).ended()
    assert code == 0, written
    assert f'"resumed": {recorded}' in written
    assert verify(out).passed
