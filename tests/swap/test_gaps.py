"""Households without a place take part in a swap where ``missing`` gives them a code; otherwise they are refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app

PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"
household_id = "hid"
geography = ["county", "town"]

[variables.TOWN]
codelist = "town.csv"
missing = "none"

[variables.JOB]
codelist = "job.csv"

[swap]
risk = ["JOB"]
k = 3
similar = [["JOB"]]
rate = 0.2

[[cubes]]
id = "1"
axes = ["TOWN", "JOB"]

[noise]
kind = "cell-key"
V = 2
D = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """300 households of one person, a tenth of them without a town, and half of these without a county."""
    rng = np.random.default_rng(4)
    town = [f"t{one}" for one in rng.integers(0, 6, 300)]
    places = [(f"c{int(one[1]) // 3}", one) for one in town]
    places[::10] = [(county if k % 2 else None, None) for k, (county, _) in enumerate(places[::10])]  # type: ignore[misc]
    columns = {
        "pid": np.arange(300),
        "hid": np.arange(300),
        "county": [county for county, _ in places],
        "town": [one for _, one in places],
        "job": [f"j{one}" for one in rng.integers(0, 9, 300)],
    }
    pq.write_table(pa.table(columns), tmp_path / "persons.parquet")
    towns = "".join(f"t{k},,\n" for k in range(6)) + "none,,\n"
    (tmp_path / "town.csv").write_text("code,parent,label\n" + towns)
    (tmp_path / "job.csv").write_text("code,parent,label\n" + "".join(f"j{k},,\n" for k in range(9)))
    (tmp_path / "programme.toml").write_text(PROGRAMME)
    (tmp_path / "secret.key").write_text("ab" * 32)
    (tmp_path / "secret.key").chmod(0o600)
    return tmp_path


def run(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    wrong = "" if done.exception is None else str(done.exception)
    return done.exit_code, done.output + wrong


def test_a_gap_is_exchanged_like_a_place(folder: Path) -> None:
    programme, secret = folder / "programme.toml", folder / "secret.key"
    assert run("check", programme)[0] == 0
    code, out = run(
        "swap", programme, "--secret", secret, "--out", folder / "swapped", "--report", folder / "log"
    )
    assert code == 0, out
    before, after = (pq.read_table(folder / name) for name in ("persons.parquet", "swapped/persons.parquet"))
    place = ["county", "town"]
    assert before.select(place).group_by(place).aggregate([([], "count_all")]).sort_by(
        [(name, "ascending") for name in place]
    ) == after.select(place).group_by(place).aggregate([([], "count_all")]).sort_by(
        [(name, "ascending") for name in place]
    )
    gone = np.array([one is None for one in before["town"].to_pylist()])
    come = np.array([one is None for one in after["town"].to_pylist()])
    assert gone.sum() == come.sum() == 30
    assert (gone & ~come).any()  # some moved to a town, and others to none
    assert run("protect", programme, "--secret", secret, "--out", folder / "r", "--quiet")[0] == 0
    assert run("verify", folder / "r")[0] == 0


def test_without_a_code_a_gap_is_refused_by_check_already(folder: Path) -> None:
    programme = folder / "programme.toml"
    programme.write_text(programme.read_text().replace('missing = "none"\n', ""))
    code, out = run("check", programme)
    assert (code != 0, "some records have no place" in out) == (True, True)
