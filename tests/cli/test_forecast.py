"""The command tells every cube, margin and cell size, never opens the data, and refuses what it cannot mean."""

import json
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from discreet.advise.forecast import SIZES
from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.programme.programme import load_declaration, load_programme
from tests.cases import few
from tests.cli.town import build, edit

AXES = {"people": {0, 1, 2, 3}, "workers": {0, 1, 2}, "homes": {0, 1, 2}}
MEASURES = {"count", "l1", "rmse", "relative", "unchanged", "false_zero", "false_positive"}


def run(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["forecast", str(folder / "programme.toml"), *options])


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A town without its records."""
    folder = build(tmp_path / "town")
    for data in folder.glob("*.parquet"):
        data.unlink()
    return folder


def test_json_tells_every_candidate_cube_margin_and_size(town: Path) -> None:
    told = run(town, "--epsilon", "1,20", "--json")
    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    assert (report["crosstabs"], report["sizes"]) == (22, list(SIZES))
    assert len(report["candidates"]) == 1 + 2 * 6  # geometric noise by three compositions
    for candidate in report["candidates"]:
        assert candidate["available"]
        for cube, axes in AXES.items():
            margins = [margin for margin in candidate["margins"] if margin["cube"] == cube]
            assert {margin["axes"] for margin in margins} == axes
        for margin in candidate["margins"]:
            assert [error["count"] for error in margin["errors"]] == list(SIZES)
            assert all(set(error) == MEASURES for error in margin["errors"])
    names = [candidate["name"] for candidate in report["candidates"]]
    geometric = report["candidates"][names.index("geometric, epsilon 20")]
    by_cube = {margin["cube"]: margin["parameter"] for margin in geometric["margins"]}
    assert by_cube == {"people": "10/11", "workers": "10/11", "homes": "5/11"}


def test_the_data_change_nothing_and_are_not_opened(town: Path, tmp_path: Path) -> None:
    absent = run(town, "--epsilon", "5", "--json")
    for name in ("persons", "households"):
        (town / f"{name}.parquet").write_bytes(b"no records, and no Parquet file either")
    assert run(town, "--epsilon", "5", "--json").stdout == absent.stdout
    (tmp_path / "whole").mkdir()
    whole = build(tmp_path / "whole" / town.name)  # a programme is named after its folder
    assert run(whole, "--epsilon", "5", "--json").stdout == absent.stdout


def test_only_absent_data_are_forgiven(town: Path) -> None:
    assert {cube.id for cube in load_declaration(town / "programme.toml").cubes} == set(AXES)
    with pytest.raises(Mistakes, match=r"no file 'persons\.parquet'"):
        load_programme(town / "programme.toml")
    edit(town, ('"sex.csv"', '"sexes.csv"'))
    result = run(town)
    assert isinstance(result.exception, Mistakes)
    assert [problem.key for problem in result.exception.problems] == ["variables.SEX.codelist"]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('{ uri = "sqlite://none.db", table = "t" }', None),
        ('{ uri = "sqlite://none.db", table = "t", query = "SELECT 1" }', "both a table and a query"),
        ('"none/*.csv"', None),
        ('"mysql://host/db"', "mysql://host/db"),
    ],
)
def test_absent_databases_are_forgiven_and_wrong_ones_are_not(
    town: Path, source: str, fault: str | None
) -> None:
    edit(town, ('"persons.parquet"', source))
    result = run(town, "--epsilon", "5")
    if fault is None:
        assert result.exit_code == 0, result.output
    else:
        assert isinstance(result.exception, Mistakes)
        assert fault in str(result.exception)


def test_the_table_is_readable_and_a_cube_is_shown_by_its_margins(town: Path) -> None:
    whole = run(town, "--epsilon", "5")
    assert "declared: cell-key" in whole.stdout
    assert "No data were read" in whole.stdout
    assert "people, workers: all" in whole.stdout
    assert "homes: 0" in whole.stdout
    assert "as if no one else changed; protect refuses it: variables: whose attribute is" in whole.stdout
    assert "weights in workers" in whole.stdout
    part = run(town, "--cube", "homes", "--epsilon", "5")
    assert "cube homes, 2 axes" in part.stdout
    assert "people" not in part.stdout
    report = json.loads(run(town, "--cube", "homes", "--epsilon", "5", "--json").stdout)
    assert {margin["cube"] for one in report["candidates"] for margin in one["margins"]} == {"homes"}
    assert report["crosstabs"] == 22


def test_too_much_noise_and_what_cannot_be_had_are_told(town: Path) -> None:
    result = run(town, "--epsilon", "1/10000")
    assert result.exit_code == 0
    assert "too much noise to draw" in result.stdout
    assert "needs a bound above 100000" in result.stdout


@pytest.mark.parametrize("ending", few(["png", "svg", "html"], "svg"))
def test_the_picture_names_every_candidate(town: Path, ending: str) -> None:
    path = town / f"forecast.{ending}"
    result = run(town, "--epsilon", "5", "--picture", str(path))
    assert result.exit_code == 0, result.output
    if ending == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
    else:
        text = path.read_text()
        names = (
            "declared: cell-key",
            "geometric, epsilon 5",
            "laplace, epsilon 5",
            "discrete-gaussian, epsilon 5",
        )
        assert all(name in text for name in names)
    assert "forecast." in result.stdout


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", "0"),
        ("--epsilon", "much"),
        ("--cube", "nowhere"),
        ("--cube", ","),
        ("--picture", "forecast.gif"),
        ("--picture", "no/such/folder/forecast.png"),
    ],
)
def test_wrong_input_is_refused_and_nothing_is_written(town: Path, options: tuple[str, str]) -> None:
    before = sorted(town.iterdir())
    result = run(town, *options)
    assert isinstance(result.exception, Mistakes)
    assert options[0] in str(result.exception)
    assert sorted(town.iterdir()) == before


def test_an_unknown_cube_lists_those_there_are(town: Path) -> None:
    assert "people, workers, homes" in str(run(town, "--cube", "person").exception)


def test_no_option_takes_a_secret_or_data() -> None:
    command = get_command(app).get_command(None, "forecast")  # type: ignore[attr-defined]
    assert {option.name for option in command.params} == {
        "programme",
        "epsilon",
        "cube",
        "picture",
        "as_json",
    }


def test_errors_before_and_after_adjusting_are_shown_where_totals_are_to_add_up(town: Path) -> None:
    assert json.loads(run(town, "--epsilon", "5", "--json").stdout)["adjusted"] == []
    declared = (town / "programme.toml").read_text().replace('weight = "weight"\n', "")
    assert "[release]" not in declared
    (town / "programme.toml").write_text(f"{declared}\n[release]\nconsistent = true\n")
    told = run(town, "--epsilon", "5", "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)["adjusted"]
    assert {(row["cube"], row["axes"]) for row in found} == {(cube, k) for cube in AXES for k in AXES[cube]}
    assert all(row["after"] < 1.15 * row["before"] for row in found)
    assert all(row["after"] < 0.95 * row["before"] for row in found if row["cells"] > 10)
    shown = run(town, "--epsilon", "5").stdout
    assert "before and after counts are adjusted" in shown
    assert "draws of noise" in shown
