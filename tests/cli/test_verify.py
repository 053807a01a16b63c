import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from discreet.cli.verify import verify
from discreet.errors import BrokenRelease
from tests.release.small import publish


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(verify)
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    publish(tmp_path / "release")
    return tmp_path / "release"


def test_a_sound_release_passes_with_a_short_report(release: Path) -> None:
    result = run(str(release))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{release}: passed. 9 files, 3 cubes, ")


def test_quiet_says_nothing_when_all_is_well(release: Path) -> None:
    result = run(str(release), "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_broken_release_fails_and_says_why(release: Path) -> None:
    (release / "README.md").unlink()
    for quiet in ([], ["--quiet"]):
        result = run(str(release), *quiet)
        assert result.exit_code == 1
        assert result.stdout == f"{release}: failed.\nREADME.md: missing\n"


def test_machines_read_json(release: Path) -> None:
    passed = json.loads(run(str(release), "--json").stdout)
    assert (passed["passed"], passed["cubes"], passed["problems"]) == (True, 3, [])
    (release / "README.md").unlink()
    result = run(str(release), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == ["README.md: missing"]


def test_what_is_no_release_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    assert isinstance(run(str(tmp_path)).exception, BrokenRelease)
