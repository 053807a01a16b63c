"""``discreet advise`` as a user calls it."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli import advise
from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.programme import programme
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import load_programme
from discreet.programme.reading import DeclaredProgramme, read_declared
from discreet.programme.section import Findings
from tests.cli import town

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = town.build(tmp_path_factory.mktemp("town"))
    town.edit(made, ('weight = "weight"\n', ""))
    return made


def told(*arguments: str) -> dict[str, Any]:
    result = runner.invoke(app, ["advise", *arguments, "--json", "--threads", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_eu_programme_of_a_country() -> None:
    found = told("eu-census-2021", "--country", "LU", "--margin", "0")
    assert not found["feasible"]
    assert found["riskiest"]["same_noise"]["ratio"] == pytest.approx(0.0685, abs=1e-4)
    assert found["exposed"]["ratio"] == pytest.approx(0.0318, abs=1e-4)
    assert found["least_variance"] == pytest.approx(7.94, abs=0.01)
    assert found["relaxed"]["distortion"] == {"V": 8.0, "D": 8}
    assert found["contour"] == pytest.approx(0.2528, abs=5e-5)
    assert found["known_from"] == "regulation"


def test_a_programme_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def counted(findings: Findings) -> DeclaredProgramme:
        seen.append(findings.path)
        return read_declared(findings)

    monkeypatch.setattr(programme, "read_declared", counted)
    assert told(str(folder / "programme.toml"), "--without-data")["known_from"] == "declaration"
    assert seen == [folder / "programme.toml"]


def test_people_read_reasons(folder: Path) -> None:
    result = runner.invoke(app, ["advise", str(folder / "programme.toml"), "--threads", "1"])
    assert result.exit_code == 0
    assert "Proposed: kind = cell-key" in result.stdout
    assert "averaging:" in result.stdout
    assert "declared: V = 2, D = 5 satisfies all limits" in result.stdout


@pytest.mark.parametrize("more", [(), ("--kind", "geometric"), ("--confidence", "0.1", "--size", "10")])
def test_a_director_reads_it_in_80_columns(folder: Path, more: tuple[str, ...]) -> None:
    result = runner.invoke(app, ["advise", str(folder / "programme.toml"), "--threads", "1", *more])
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "What the limits are for:" in result.stdout
    if not more:
        assert "The proposal stays 10% inside every limit (--margin 0.1)" in result.stdout
        for row in ("proposed ", "safer ", "finer ", "coarser ", "declared "):
            assert f"\n  {row}" in result.stdout
        assert "gains safety: averaging succeeds in" in result.stdout
        assert "loses accuracy:" in result.stdout


def test_without_a_margin_less_noise_is_proposed(folder: Path) -> None:
    path = str(folder / "programme.toml")
    inside, edge = (told(path, "--margin", margin)["proposal"]["noise"]["V"] for margin in ("0.2", "0"))
    assert inside > edge


def test_what_is_written_is_what_was_proposed(tmp_path: Path) -> None:
    path = town.build(tmp_path) / "programme.toml"
    before = path.read_text()
    found = told(str(path), "--confidence", "0.4", "--write")
    noise = load_programme(path).noise
    assert isinstance(noise, CellKeyNoise)
    proposed = found["proposal"]["noise"]
    assert (proposed["V"], proposed["D"]) == (noise.table.V, noise.table.D)  # type: ignore[union-attr]
    kept = [line for line in before.splitlines() if line not in ("V = 2.0", "D = 5")]
    assert set(kept) <= set(path.read_text().splitlines())


def test_pictures_and_curves_stand_in_a_new_folder(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "advice"
    found = told(str(folder / "programme.toml"), "--curves", "--repeats", "2", "--out", str(out))
    assert {path.name for path in out.iterdir()} == set(found["pictures"])
    assert (out / "region.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "curves.svg").read_bytes()
    assert "Proposed:" in (out / "pictures.txt").read_text()
    assert len(found["curves"]["points"]) >= 4
    with pytest.raises(Mistakes, match="exists and is not empty"):
        told(str(folder / "programme.toml"), "--out", str(out))


def test_without_room_for_charts_nothing_is_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    monkeypatch.setattr(advise, "advise_programme", None)
    with pytest.raises(Mistakes, match="charts need"):
        told(str(folder / "programme.toml"), "--out", str(tmp_path / "advice"))
    assert not (tmp_path / "advice").exists()


def test_without_data_the_declaration_is_enough(tmp_path: Path) -> None:
    made = town.build(tmp_path)
    present = told(str(made / "programme.toml"), "--without-data")
    (made / "persons.parquet").unlink()
    (made / "households.parquet").unlink()
    absent = told(str(made / "programme.toml"))
    assert absent["known_from"] == present["known_from"] == "declaration"
    assert absent["tuples"] == present["tuples"]
    capped = told(str(made / "programme.toml"), "--population", "4")
    assert capped["tuples"] < absent["tuples"]


def test_nothing_feasible_is_no_error_but_cannot_be_written(folder: Path) -> None:
    tight = [str(folder / "programme.toml"), "--confidence", "0.1", "--size", "10", "--share", "0.01"]
    found = told(*tight)
    assert not found["feasible"]
    assert found["conflicts"]
    before = (folder / "programme.toml").read_bytes()
    with pytest.raises(Mistakes, match="--write: no proposal"):
        told(*tight, "--write")
    assert (folder / "programme.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eu-census-2021"], "--country: missing"),
        (["eu-census-2021", "--country", "XY"], "--country: XY; use one of BE"),
        (["eu-census-2021", "--country", "MT", "--write"], "--write: eu-census-2021; give a programme file"),
        (
            ["eu-census-2021", "--country", "MT", "--curves"],
            "--curves: eu-census-2021; give a programme file",
        ),
        (
            ["eu-census-2021", "--country", "MT", "--kind", "geometric"],
            "--kind: geometric; give a programme file",
        ),
        (["PROGRAMME", "--country", "MT"], "--country: MT; leave it out"),
        (["PROGRAMME", "--confidence", "1.5"], "--confidence: 1.5; give a number between 0 and 1"),
        (["PROGRAMME", "--share", "0"], "--share: 0; give a number between"),
        (["PROGRAMME", "--relative", "-1"], "--relative: -1; give a share above 0"),
        (["PROGRAMME", "--margin", "1"], "--margin: 1; give a share of at least 0 and below 1"),
        (["PROGRAMME", "--uniques", "2"], "--uniques: 2; give a number between"),
        (["PROGRAMME", "--kind", "normal"], "--kind: normal; the adviser supports"),
        (["PROGRAMME", "--curves", "--repeats", "0"], "--repeats: 0; give 2 to"),
        (["PROGRAMME", "--curves", "--without-data"], "--curves: the data are not available"),
        (["nowhere.toml"], "nowhere.toml"),
    ],
)
def test_mistakes_are_told_in_a_line(folder: Path, arguments: list[str], said: str) -> None:
    given = [str(folder / "programme.toml") if one == "PROGRAMME" else one for one in arguments]
    with pytest.raises(Mistakes) as caught:
        runner.invoke(app, ["advise", *given, "--threads", "1"], catch_exceptions=False)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
