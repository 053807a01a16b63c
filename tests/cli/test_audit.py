"""``discreet audit`` and ``discreet attack`` from the command line: what they say, and what they refuse."""

import json
import resource
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import audit
from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.synth import generate
from tests.cli.called import discreet
from tests.pipeline.conftest import with_cubes

SECRET = "ab" * 32
CUBES = {"a": '["GEO.H", "SEX", "AGE.M"]', "b": '["GEO.H", "AGE.M", "POB.L"]'}
NOISE = '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n'
OTHERS = ("averaging", "bounds", "bayes", "reconstruction", "disclosure")
GATES = "\n[gates]\ntrue_uniques = {limit}\npinned_cells = 5\n"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    generate(2000, 5, folder / "census", tables=["1.1"], threads=1)
    secret = folder / "secret.key"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    programme = folder / "census/programme.toml"
    declared = with_cubes(programme.read_text(), CUBES)
    programme.write_text(declared + NOISE + GATES.format(limit=0.95))
    done = discreet("protect", programme, "--secret", secret, "--out", folder / "release", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def words(town: Path, *more: str | Path) -> list[str | Path]:
    return [
        *("audit", town / "release", "--programme", town / "census/programme.toml"),
        *("--secret", town / "secret.key", *more),
    ]


def test_an_audit_measures_judges_and_writes_a_private_report(town: Path, tmp_path: Path) -> None:
    done = discreet(*words(town, "--without", "reconstruction", "--out", tmp_path / "report", "--json"))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["passed"]
    assert [verdict["gate"] for verdict in told["verdicts"]] == ["pinned_cells", "true_uniques"]
    realised = told["averaging"]["realised"]["methods"]["weighted"]["hit"]
    assert abs(realised - told["averaging"]["attack"]["methods"]["weighted"]["expected"]) < 0.3 * realised
    assert json.loads((tmp_path / "report/audit.json").read_text()) == told
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "report/audit.json").stat().st_mode) == 0o600


def test_without_room_for_charts_nothing_is_audited(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    monkeypatch.setattr(audit, "read_lookup", None)  # what is read first
    asked = map(str, words(town, "--out", tmp_path / "report"))
    with pytest.raises(Mistakes, match="charts need"):
        CliRunner().invoke(app, list(asked), catch_exceptions=False)
    assert not (tmp_path / "report").exists()


@pytest.mark.long
def test_an_audit_reconstructs_records_under_this_and_other_protections(town: Path) -> None:
    others = [word for name in OTHERS if name != "reconstruction" for word in ("--without", name)]
    found = json.loads(discreet(*words(town, *others, "--json")).stdout)["reconstruction"]
    rates = {one["protection"]: one["r_recon"] for one in found["under_other_protections"]}
    assert rates["none"] > found["released"]["r_recon"]


def test_an_audit_in_words_and_without_the_long_measures(town: Path) -> None:
    done = discreet(*words(town, "--without", "reconstruction", "--without", "averaging"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "Passed: gates.true_uniques: the share of published ones that are one person is" in done.stdout
    assert "reconstruction" not in done.stdout


def test_an_attack_uses_the_public_files_alone(town: Path, tmp_path: Path) -> None:
    shutil.copytree(town / "release", tmp_path / "elsewhere")
    done = discreet("attack", tmp_path / "elsewhere", "--areas", "2", "--seconds", "0.5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["bounds"]["pinned"] == 0  # the public is told a bound of 10
    assert told["averaging"]["targets"] > 100
    assert "its law is not public" in told["bayes"]["not_possible"]
    known = discreet(
        "attack", tmp_path / "elsewhere", "--bound", "5", "--without", "reconstruction", "--json"
    )
    assert json.loads(known.stdout)["bounds"]["bound"] == 5


def test_a_release_beside_itself_has_not_changed(town: Path) -> None:
    others = [word for name in OTHERS for word in ("--without", name)]
    done = discreet("attack", town / "release", "--earlier", town / "release", *others, "--json")
    assert json.loads(done.stdout)["differencing"]["earlier_release"]["changed"] == 0


def refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


def test_what_does_not_belong_together_is_refused(town: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    other.write_text("cd" * 32)
    other.chmod(0o600)
    programme = town / "census/programme.toml"
    wrong = discreet("audit", town / "release", "--programme", programme, "--secret", other)
    refused(wrong, "secret: is not the one that made this release; give the release's own secret")
    changed = town / "census/changed.toml"
    changed.write_text(programme.read_text().replace("V = 2.0", "V = 2.5"))
    foreign = discreet("audit", town / "release", "--programme", changed, "--secret", town / "secret.key")
    refused(foreign, "programme: is not the one that made this release")
    refused(discreet(*words(town, "--out", town / "release/report")), "is inside the release")
    refused(discreet(*words(town, "--without", "everything")), "choose from redundancy, averaging")


def test_a_damaged_release_is_refused(town: Path, tmp_path: Path) -> None:
    shutil.copytree(town / "release", tmp_path / "r")
    (tmp_path / "r/parquet/b.parquet").unlink()
    refused(
        discreet("attack", tmp_path / "r"), "cube b: its Parquet file is missing; fetch the release again"
    )
    (tmp_path / "r/parquet/b.parquet").write_bytes(b"not a table")
    refused(discreet("attack", tmp_path / "r"), "cube b: its file is not readable as Parquet")
    refused(discreet("attack", town / "census"), "no manifest.json there; give the folder of a release")
    file = town / "census/persons.parquet"
    refused(discreet("attack", file), "persons.parquet: not a folder; give the folder of a release")


def test_a_broken_gate_is_an_exit_code_of_one_and_publishes_nothing(town: Path, tmp_path: Path) -> None:
    programme = town / "census/strict.toml"
    programme.write_text((town / "census/programme.toml").read_text().replace("0.95", "0.01"))
    asked: list[str | Path] = ["protect", programme, "--secret", town / "secret.key", "--out", tmp_path / "r"]
    rehearsed = discreet(*asked, "--report-only", "--json")
    assert rehearsed.returncode == 1
    assert {one["gate"]: one["passed"] for one in json.loads(rehearsed.stdout)["verdicts"]} == {
        "pinned_cells": True,
        "true_uniques": False,
    }
    done = discreet(*asked)
    assert done.returncode == 1
    assert "gates.true_uniques" in done.stderr
    assert "raise V, or swap more" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_map_of_two_geographies_is_used_and_its_mistakes_told(town: Path, tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("GEO,GRID\nXX_00001,a\nXX_00002,a\n")
    others = [word for name in OTHERS for word in ("--without", name)]
    asked: list[str | Path] = ["attack", town / "release", *others]
    alone = discreet(*asked, "--lookup", tmp_path / "map.csv")
    refused(alone, "--lookup, --geographies: missing; give both, e.g. GRID,LAU")
    missing = discreet(*asked, "--lookup", tmp_path / "map.csv", "--geographies", "GEO,LAU")
    refused(missing, "LAU")
    absent = discreet(*asked, "--lookup", tmp_path / "map.csv", "--geographies", "GEO,GRID", "--json")
    assert "GRID" in json.loads(absent.stdout)["differencing"]["not_possible"]
