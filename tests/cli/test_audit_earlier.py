"""``discreet audit`` beside an earlier release and a map: what is given away, how much is true, and what is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import main
from tests.cli.town import PROGRAMME, TOWNS, build, persons

OTHERS = (
    "redundancy", "averaging", "bounds", "privacy", "bayes", "reconstruction", "disclosure", "utility", "region",
    "protection",
)  # fmt: skip
GRID = """
[variables.GRID]
units = ["persons"]
codelist = "grid.csv"

[[cubes]]
id = "squares"
axes = ["GRID", "SEX"]
"""
HOUSEHOLD_CROSSTABS = 6  # GEO (two levels and none) x TENURE (with and without)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, output, errors."""

    def ran(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def town(folder: Path, without_last: bool = False) -> Path:
    """The town with squares of a grid; the last square lies in two towns."""
    columns = persons()
    columns["grid"] = [f"q{TOWNS.index(one)}" for one in columns["town"]]
    columns["grid"][0] = "q1"  # one person of the first town lives in the square of the second
    if without_last:
        columns = {name: column[:-1] for name, column in columns.items()}
    build(folder, persons=columns)
    (folder / "grid.csv").write_text("code,parent,label\nq0,,\nq1,,\nq2,,\n")
    head, noise, tail = PROGRAMME.partition("[noise]")
    (folder / "programme.toml").write_text(head + GRID + noise + tail)
    return folder


@pytest.fixture
def pair(tmp_path: Path, run: Run) -> tuple[Path, Path]:
    """The town before and after one person came, each with its release."""
    before, now = town(tmp_path / "before", without_last=True), town(tmp_path / "now")
    for folder in (before, now):
        words = ("--secret", folder / "secret.key", "--out", folder / "release", "--quiet")
        assert run("protect", folder / "programme.toml", *words) == (0, "", "")
    return before, now


def asked(now: Path, *more: str | Path) -> list[str | Path]:
    others = [word for name in OTHERS for word in ("--without", name)]
    return [
        "audit", now / "release", "--programme", now / "programme.toml", "--secret", now / "secret.key", *others,
        *more,
    ]  # fmt: skip


def differencing(output: str) -> dict[str, Any]:
    return dict(json.loads(output)["differencing"])


def test_one_newcomer_is_seen_and_judged(pair: tuple[Path, Path], tmp_path: Path, run: Run) -> None:
    before, now = pair
    words = asked(now, "--earlier", before / "release", "--earlier-programme", before / "programme.toml")
    code, output, errors = run(*words, "--json", "--out", tmp_path / "report")
    assert (code, errors) == (0, "")
    found = differencing(output)["earlier_release"]
    judged = found["judged"]
    assert found["crosstabs"] > 10
    assert judged["moved"] == found["crosstabs"] - HOUSEHOLD_CROSSTABS  # the newcomer is in one cell of each
    assert found["participants"] == found["changed"] == judged["seen"] > 0
    assert judged["unfounded"] == 0
    assert 0 <= judged["apparent_right"] <= judged["apparent"] <= found["changed"]
    assert judged["apparent_share"] == judged["apparent_right"] / judged["apparent"]
    assert judged["apparent_right"] == judged["revealed"]
    page = (tmp_path / "report/audit.html").read_text()
    assert f"small differences, {judged['apparent_right']} of them true." in page
    code, output, _ = run(*words)
    assert code == 0
    assert f"Earlier release: {found['changed']} of {found['compared']} cells changed" in output
    assert (
        f"  {judged['apparent_right']} of {judged['apparent']} published small changes are correct" in output
    )


def test_without_its_programme_an_earlier_release_is_not_judged(
    pair: tuple[Path, Path], tmp_path: Path, run: Run
) -> None:
    before, now = pair
    words = asked(now, "--earlier", before / "release")
    code, output, _ = run(*words, "--json", "--out", tmp_path / "report")
    found = differencing(output)["earlier_release"]
    assert (code, found["judged"]) == (0, None)
    assert found["changed"] > 0
    assert "Subtracting an earlier release shows" in (tmp_path / "report/audit.html").read_text()
    assert "  not compared with true counts: give --earlier" in run(*words)[1]


def test_a_map_is_judged_by_the_truth(pair: tuple[Path, Path], tmp_path: Path, run: Run) -> None:
    _, now = pair
    (tmp_path / "map.csv").write_text("GEO,GRID\nN1,q0\nN1,q1\nN2,q1\nS1,q2\n")
    code, output, errors = run(
        *asked(now, "--lookup", tmp_path / "map.csv", "--geographies", "GEO,GRID"), "--json"
    )
    assert (code, errors) == (0, "")
    found = differencing(output)["maps"]
    assert found["geographies"] == ["GEO", "GRID"]
    assert found["compared"] > 0
    # the one person of N1 in q1 is a difference of the total and of one sex
    assert found["judged"]["exact"] == 2
    assert found["judged"]["apparent"] == found["small"]
    assert differencing(run(*asked(now), "--json")[1]).keys() == {"bases", "geographies"}


def test_what_does_not_belong_together_is_refused_in_one_line(pair: tuple[Path, Path], run: Run) -> None:
    before, now = pair
    other = before / "other.toml"
    other.write_text((before / "programme.toml").read_text().replace("V = 2.0", "V = 2.5"))
    (before / "other.key").write_text("cd" * 32)
    (before / "other.key").chmod(0o600)
    earlier = ("--earlier", before / "release")
    mine = ("--earlier-programme", before / "programme.toml")
    (before / "map.csv").write_text("GEO,LAU\nN1,a\n")
    for words, said in (
        (("--earlier", before), "no manifest.json there; give the folder of a release"),
        ((*earlier, "--earlier-programme", other), "programme: is not the one that made this release"),
        (
            (*earlier, "--earlier-programme", now / "programme.toml"),
            "microdata: are not those of this release",
        ),
        ((*earlier, *mine, "--earlier-secret", before / "other.key"), "secret: is not the one that made"),
        (mine, "--earlier-programme: without --earlier; give the folder"),
        (
            (*earlier, "--earlier-secret", before / "secret.key"),
            "--earlier-secret: without --earlier-programme",
        ),
        (
            ("--lookup", before / "map.csv", "--geographies", "GEO,LAU"),
            "lookup: GEO x LAU; name two variables",
        ),
    ):
        code, output, errors = run(*asked(now, *words))
        assert (code, output) == (2, ""), said
        assert said in errors
        assert len(errors.splitlines()) == 1
