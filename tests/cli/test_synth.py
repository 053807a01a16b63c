"""The command makes a census, reports it and refuses what it cannot make."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from discreet.cli.synth import synth
from discreet.errors import Mistakes
from discreet.synth import generate

app = typer.Typer()
app.command()(synth)


def test_the_report_in_json_names_files_rows_and_seconds(tmp_path: Path) -> None:
    out = tmp_path / "census"
    result = CliRunner().invoke(
        app, ["--persons", "2000", "--seed", "5", "--out", str(out), "--tables", "1, 3", "--json"]
    )
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["files"][0]["rows"] == 2000
    assert {entry["file"] for entry in report["files"]} == {path.name for path in out.glob("*.parquet")}
    assert report["seconds"] >= 0
    assert 'tables = ["1", "3"]' in (out / "programme.toml").read_text()


def test_the_summary_says_what_to_do_next_and_quiet_says_nothing(tmp_path: Path) -> None:
    loud = CliRunner().invoke(app, ["--persons", "500", "--out", str(tmp_path / "a")])
    assert "discreet check" in loud.stdout
    quiet = CliRunner().invoke(app, ["--persons", "500", "--out", str(tmp_path / "b"), "--quiet"])
    assert quiet.exit_code == 0
    assert quiet.output == ""


def test_a_bad_size_is_refused_and_nothing_written(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--persons", "0", "--out", str(tmp_path / "census")])
    assert isinstance(result.exception, Mistakes)
    assert list(tmp_path.iterdir()) == []


def test_progress_moves_within_the_only_block_and_ends_with_all_persons(tmp_path: Path) -> None:
    seen: list[int] = []
    census = generate(3000, 1, tmp_path / "census", country="MT", threads=2, progress=seen.append)
    assert seen == sorted(seen)
    assert len(set(seen)) >= 5
    assert seen[0] < 1500
    assert seen[-1] == census.rows["persons"]
