"""A hierarchical release from the command line: check, forecast, advise, protect, verify, infer, audit."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.io.secret import make_secret
from tests.pipeline.small_country import NOISE, make_country


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(found.exception, Mistakes):  # what ``main`` prints, with exit code 2
        return 2, str(found.exception)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.output


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    make_country(folder)
    make_secret(folder / "s.key")
    code, said = run(
        "protect",
        folder / "programme.toml",
        "--secret",
        folder / "s.key",
        "--out",
        folder / "release",
        "--threads",
        "1",
    )
    assert code == 0, said
    return folder


def test_a_programme_is_checked_and_forecast_without_its_data(tmp_path: Path) -> None:
    path = make_country(tmp_path)
    assert run("check", path)[0] == 0
    (tmp_path / "persons.csv").unlink()
    code, said = run("forecast", path, "--json")
    assert code == 0
    rows = {(row["level"], row["query"]): row for row in json.loads(said)["queries"]}
    assert rows["STATE", "total"]["largest"] == 0  # exact
    assert rows["TRACT", "total"]["mean"] < rows["TRACT", "total"]["noise"]
    assert rows["BLOCK", "AGE.L*SEX"]["noise"] is None
    code, said = run("forecast", path)
    assert "38 measured areas, 4 equal to their only child" in said
    code, said = run("forecast", path, "--cube", "tracts")
    assert code == 2
    assert "by level and query" in said


def test_advice_proposes_shares_that_fit_the_programme(tmp_path: Path) -> None:
    path = make_country(tmp_path)
    code, said = run("advise", path, "--kind", "hierarchical", "--json")
    assert code == 0, said
    found = json.loads(said)
    assert found["saved"] < 1  # better than the declared shares
    assert found["census_2020"] > 1
    start = NOISE.index("levels = {")
    end = NOISE.index("[noise.invariants]")
    proposed = NOISE[:start] + "\n".join(found["toml"]) + "\n" + NOISE[end:]
    assert run("check", make_country(tmp_path / "again", noise=proposed))[0] == 0
    other = make_country(tmp_path / "other", noise='[noise]\nkind = "geometric"\nepsilon = 1\n')
    code, said = run("advise", other, "--kind", "hierarchical")
    assert code == 2
    assert "is not hierarchical" in said


def test_a_release_is_verified_inferred_from_and_audited(office: Path) -> None:
    release = office / "release"
    assert run("verify", release)[0] == 0
    code, said = run("verify", release, "--certificate")
    assert code == 0
    assert "certified, rho = 1/2" in said
    code, said = run(
        "infer", "estimate", release, "--cube", "tracts", "--where", "GEO=S0C0T0 and SEX=F", "--json"
    )
    assert code == 0
    assert json.loads(said)["low"] < json.loads(said)["high"]
    assert run("infer", "estimate", release, "--cube", "tracts", "--where", "GEO")[0] == 2
    assert run("infer", "estimate", release, "--cube", "tracts", "--where", "EDU=1")[0] == 2
    code, said = run("infer", "interval", "--release", release, "--count", "3")
    assert code == 2
    assert "discreet infer interval" in said


def test_an_audit_writes_its_report(office: Path) -> None:
    words = (
        "--programme",
        office / "programme.toml",
        "--secret",
        office / "s.key",
        "--without",
        "reconstruction",
    )
    code, said = run("audit", office / "release", *words, "--out", office / "report", "--threads", "1")
    assert code == 0, said
    assert "Not applicable: averaging" in said
    assert "Bayesian adversary, detailed of BLOCK in TRACT" in said
    found = json.loads((office / "report/audit.json").read_text())
    assert found["hierarchy"]["accuracy"]
    assert (office / "report/public.html").exists()


def test_a_change_of_the_release_fails_verification(office: Path, tmp_path: Path) -> None:
    shutil.copytree(office / "release", tmp_path / "release")
    (tmp_path / "release/measurements/TRACT/total.parquet").unlink()
    code, said = run("verify", tmp_path / "release")
    assert code == 1
    assert "measurements/TRACT/total.parquet: missing" in said
