"""``discreet utility`` from the command line: what it says of one release and of several, and what it refuses."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.called import discreet
from tests.cli.town import build, edit


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One population, released with a variance of 2 (``noisy``) and of 0.5 (``calm``)."""
    folder = build(tmp_path_factory.mktemp("town"))
    (folder / "calm.toml").write_text((folder / "programme.toml").read_text())
    edit(folder, ("V = 2.0", "V = 0.5"), file="calm.toml")
    for name, programme in (("noisy", "programme.toml"), ("calm", "calm.toml")):
        secret = folder / "secret.key"
        told = ("protect", folder / programme, "--secret", secret, "--out", folder / name, "--quiet")
        done = discreet(*told, "--another-ptable")
        assert done.returncode == 0, done.stderr
    return folder


def words(town: Path, *more: str | Path) -> list[str | Path]:
    return [
        *("utility", town / "noisy", "--programme", town / "programme.toml"),
        *("--secret", town / "secret.key", *more),
    ]


def both(town: Path, *more: str | Path) -> list[str | Path]:
    return words(town, "--with", town / "calm", "--with-programme", town / "calm.toml", *more)


def test_one_release_as_json(town: Path) -> None:
    done = discreet(*words(town, "--by", "SEX", "--json"))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["release"] == "noisy"
    cells = told["errors"]["original"]["total"]["occupied"]
    assert cells["mean_l2"] == pytest.approx(cells["expected_mean_l2"], rel=0.6)
    assert {"GEO.L", "GEO.H"} <= set(told["errors"]["original"]["by_level"])
    assert {one["by"] for one in told["areas"]} == {"SEX"}
    assert told["additivity"]["SEX"]["totals"] > 0
    assert "side_by_side" not in told


def test_several_releases_side_by_side(town: Path) -> None:
    done = discreet(*both(town, "--json"))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert list(told["with"]) == ["calm"]
    compared = told["side_by_side"]["mean_l2"]
    assert compared["noisy"] > compared["calm"] > 0
    assert compared["noisy"] == told["errors"]["original"]["total"]["occupied"]["mean_l2"]


def test_in_words(town: Path) -> None:
    done = discreet(*both(town))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "noisy:"
    for said in (
        "Errors against the true counts",
        "occupied",
        "true count 3-9",
        "with GEO.H",
        "Small areas, persons, GEO.H",
        "Totals against the sums of their parts",
        "two-way tables",
        "Side by side",
    ):
        assert any(said in line for line in lines), said
    head, first = (next(line for line in lines if said in line) for said in ("median", "occupied"))
    assert len(head) == len(first), "numbers are below their names"
    tables = [line for line in lines if line.startswith("  ") and not line.startswith("  bias")]
    assert max(map(len, tables)) <= 80


def refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


def test_what_does_not_belong_together_is_refused(town: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    other.write_text("cd" * 32)
    other.chmod(0o600)
    programme = town / "programme.toml"
    refused(
        discreet("utility", town / "noisy", "--programme", programme, "--secret", other),
        "secret: is not the one that made this release; give the release's own secret",
    )
    wrong = words(town, "--with", town / "calm", "--with-programme", programme)
    refused(discreet(*wrong), "programme: is not the one that made this release")
    refused(discreet(*words(town, "--with", town / "calm")), "give one for each --with")
    refused(discreet(*words(town, "--by", "SHOE")), "choose from AGE, GEO, SEX, TENURE")
    nothing = discreet("utility", town, "--programme", programme, "--secret", town / "secret.key")
    refused(nothing, "no manifest.json there; give the folder of a release")
