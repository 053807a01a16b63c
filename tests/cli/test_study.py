"""The command reports the study, writes it where asked, and takes no data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from discreet.cli.study import PICTURE, REPORT, app
from discreet.errors import Mistakes

SMALL = ["prior-knowledge", "--records", "5000", "--k", "100,50", "--epsilon", "4.6"]


def test_the_report_in_json_and_in_the_folder_are_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*SMALL, "--json", "--out", str(tmp_path / "new" / "study")])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "new" / "study" / REPORT).read_text())
    assert (report["cells"], report["sensitivity"], report["persons"]) == (188, 2, 5000)
    assert [outcome["k"] for outcome in report["outcomes"]] == [50, 100]
    assert report["outcomes"][0]["predicted"] == pytest.approx(5.426, abs=5e-4)
    assert (tmp_path / "new" / "study" / PICTURE).read_bytes().startswith(b"\x89PNG")


def test_the_table_names_the_sensitivity_and_quiet_says_nothing() -> None:
    shown = CliRunner().invoke(app, SMALL)
    assert shown.exit_code == 0
    assert "the sensitivity is 2" in shown.stdout
    assert "never a release" in shown.stdout
    assert CliRunner().invoke(app, [*SMALL, "--quiet"]).output == ""


@pytest.mark.parametrize(
    "wrong", [["--k", "a"], ["--k", "1"], ["--k", f"50,{2**63}"], ["--epsilon", "1,-2"], ["--records", "5"]]
)
def test_a_wrong_number_is_refused_and_nothing_written(wrong: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*SMALL, *wrong, "--out", str(tmp_path / "study")])
    assert isinstance(result.exception, Mistakes)
    assert list(tmp_path.iterdir()) == []


def test_no_option_takes_microdata() -> None:
    command = get_command(app).commands["prior-knowledge"]  # type: ignore[attr-defined]
    assert {option.name for option in command.params} == {
        "records", "k", "epsilon", "seed", "out", "quiet", "as_json",
    }  # fmt: skip
