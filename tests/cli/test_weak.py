"""Noise below any protection is refused by check, protect and serve alike, from parameters and from a file."""

import json
from pathlib import Path

import pytest

from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.cells.lookup import Order, build
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from tests.cli.test_another_ptable import Run, run
from tests.cli.town import PROGRAMME
from tests.cli.town import build as build_town

__all__ = ["run"]
COUNTS = PROGRAMME.partition("[[structural_zeros]]")[0].replace('weight = "weight"\n', "")
WEAK = {
    "V": 'kind = "cell-key"\nV = 0.0001\nD = 5',
    "V of a tenth": 'kind = "cell-key"\nV = 0.1\nD = 5',
    "file": 'kind = "cell-key"\nptable = "t.csv"',
    "epsilon": 'kind = "geometric"\nepsilon = 100000\nclaim = "none"',
    "rho": 'kind = "discrete-gaussian"\nrho = 100000\nclaim = "none"',
}


@pytest.fixture
def town(tmp_path: Path) -> Path:
    folder = tmp_path / "town"
    build_town(folder)
    write_ptable(folder / "t.csv", PTableFormat.R, build(solve(PTableParameters(3, 0.01)), Order.PLAIN))
    return folder


def declare(town: Path, noise: str) -> Path:
    (town / "programme.toml").write_text(f"{COUNTS}[noise]\n{noise}\n")
    return town / "programme.toml"


@pytest.mark.parametrize("noise", WEAK.values(), ids=WEAK)
def test_it_is_refused_everywhere_and_accepted_where_it_is_declared(run: Run, town: Path, noise: str) -> None:
    programme, out = declare(town, noise), town / "release"
    words = ("--secret", town / "secret.key", "--out", out, "--quiet")
    for code, output, error in (run("check", programme), run("protect", programme, *words)):
        assert code == 2
        assert not output
        assert "is the true one with probability" in error
        assert "noise.allow_weak = true" in error
    assert not out.exists()
    declare(town, f"{noise}\nallow_weak = true")
    code, _, error = run("check", programme)
    assert "allow_weak" not in error
    code, _, error = run("protect", programme, *words)
    assert code == 0, error


def test_a_table_builder_refuses_it(run: Run, town: Path) -> None:
    programme = declare(town, WEAK["V"])
    code, _, error = run(
        "serve", programme, "--secret", town / "secret.key", "--store", town / "s.sqlite", "--port", "0"
    )
    assert code == 2
    assert "is the true one with probability" in error


@pytest.mark.parametrize("noise", ['kind = "cell-key"\nV = 0.5\nD = 3', 'kind = "cell-key"\nV = 2.0\nD = 5'])
def test_usual_noise_is_not_touched(run: Run, town: Path, noise: str) -> None:
    code, output, _ = run("check", declare(town, noise), "--json")
    assert code == 0
    assert json.loads(output)["sound"]
