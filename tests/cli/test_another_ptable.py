"""One secret, one p-table: what is recorded, what is refused with its risk, and what is accepted and recorded."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import main
from discreet.run.issued import Issuing
from tests.cli.town import PROGRAMME, build

NAMED = '[release]\nname = "town"\n'
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


@pytest.fixture
def town(tmp_path: Path) -> Path:
    folder = tmp_path / "town"
    build(folder)
    declare(folder, "", "")
    return folder


def declare(town: Path, old: str, new: str) -> None:
    path = town / "programme.toml"
    path.write_text((PROGRAMME.replace(old, new) if old else PROGRAMME) + NAMED)


def protect(run: Run, town: Path, out: str, *more: str | Path) -> tuple[int, str, str]:
    words = ("--secret", town / "secret.key", "--out", town / out, *more)
    return run("protect", town / "programme.toml", *words)


def recorded(town: Path) -> list[dict[str, Any]]:
    path = town / "secret.key.register"
    assert path.stat().st_mode & 0o077 == 0
    issued = json.loads(path.read_text())["issued"]
    assert isinstance(issued, list)
    return issued


def test_every_release_is_recorded_once_beside_the_secret(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    assert protect(run, town, "one")[0] == 0
    [found] = recorded(town)
    manifest = json.loads((town / "one/manifest.json").read_text())
    assert found["ptable"] == manifest["digests"]["ptable"]
    assert found["inputs"] == manifest["digests"]["inputs"]
    assert found["parameters"] == manifest["digests"]["parameters"]
    assert found["keys"] == "permuted"
    assert sum(length for _, length in found["large"]) == 2**32
    assert not found["forced"]
    (town / "programme.toml").write_text(PROGRAMME + '[release]\nname = "second"\n')
    assert protect(run, town, "two")[0] == 0
    assert [one["release"] for one in recorded(town)] == [found["release"], "second"]


@pytest.mark.parametrize(
    ("old", "new"), [("V = 2.0", "V = 1.0"), ("D = 5", "D = 6"), ("D = 5", 'D = 5\nkeys = "plain"')]
)
def test_another_ptable_or_use_of_keys_is_refused_and_nothing_is_written(
    run: Run, town: Path, old: str, new: str
) -> None:
    assert protect(run, town, "one")[0] == 0
    before = (town / "secret.key.register").read_bytes()
    declare(town, old, new)
    code, output, error = protect(run, town, "two")
    assert code == 2
    assert not output
    assert len(error.strip().splitlines()) <= 2
    assert "under this secret" in error
    assert "% of large counts are guessed exactly, from one" in error
    assert "--another-ptable" in error
    assert not (town / "two").exists()
    assert (town / "secret.key.register").read_bytes() == before


def test_the_stated_risk_is_that_of_the_pair(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    for new, both, alone in (("V = 1.0", "45%", "40%"), ("V = 3.0", "33%", "28%")):
        declare(town, "V = 2.0", new)
        error = protect(run, town, "two")[2]
        assert f"from both {both} of large counts" in error
        assert f"from one {alone}" in error


def test_a_forced_one_is_recorded_as_such_and_both_may_be_used_from_then_on(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    declare(town, "V = 2.0", "V = 1.0")
    code, _, error = protect(run, town, "two", "--another-ptable")
    assert code == 0
    assert "Note: release" in error
    assert [one["forced"] for one in recorded(town)] == [False, True]
    assert protect(run, town, "two")[0] == 0
    declare(town, "V = 2.0", "V = 2.0 ")
    assert protect(run, town, "one")[0] == 0
    declare(town, "V = 2.0", "V = 3.0")
    assert protect(run, town, "three")[0] == 2


def test_another_secret_may_have_another_ptable(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    assert run("secret", "--out", town / "other.key")[0] == 0
    declare(town, "V = 2.0", "V = 1.0")
    words = ("--secret", town / "other.key", "--out", town / "two", "--quiet")
    assert run("protect", town / "programme.toml", *words)[0] == 0


def test_a_secret_without_a_file_needs_a_register(
    run: Run, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWN_SECRET", (town / "secret.key").read_text().strip())
    words = (
        "--secret",
        "env:TOWN_SECRET",
        "--out",
        town / "one",
        "--private-manifest",
        town / "private.json",
    )
    code, _, error = run("protect", town / "programme.toml", *words)
    assert code == 2
    assert "--register" in error
    assert not (town / "one").exists()
    assert run("protect", town / "programme.toml", *words, "--register", town / "r", "--quiet")[0] == 0
    assert json.loads((town / "r").read_text())["issued"]


def test_a_register_that_cannot_be_stored_is_refused_before_any_work(run: Run, town: Path) -> None:
    before = sorted(town.iterdir())
    code, _, said = protect(run, town, "release", "--register", town / "nowhere" / "register")
    assert code == 2
    assert "register: its folder does not exist; give a file that you can read and write" in said
    assert sorted(town.iterdir()) == before
    code, _, said = protect(run, town, "release", "--register", "http://127.0.0.1:1/")
    assert (code, sorted(town.iterdir())) == (2, before), said


def test_another_ptable_that_was_recorded_meanwhile_leaves_no_work_folder(
    run: Run, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert protect(run, town, "first")[0] == 0
    declare(town, "V = 2.0", "V = 3.0")
    monkeypatch.setattr(Issuing, "require", lambda _: None)  # as if the other run began later
    code, _, said = protect(run, town, "second")
    assert code == 2, said
    assert "p-table" in said
    assert not [path for path in town.iterdir() if "second" in path.name and path.suffix == ".partial"]
    assert not (town / "second").exists()


def test_attack_and_audit_see_another_ptable_and_not_people_who_moved(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    first = (town / "programme.toml").read_text()
    (town / "first.toml").write_text(first)
    declare(town, "V = 2.0", "V = 1.0")
    assert protect(run, town, "two", "--another-ptable", "--quiet")[0] == 0
    words = ["attack", town / "two", "--earlier", town / "one"]
    only = [word for name in ("reconstruction", "averaging", "removal") for word in ("--without", name)]
    code, output, _ = run(*words, *only)
    assert code == 0
    assert "Another p-table under the same secret" in output
    code, output, _ = run(*words, *only, "--json")
    found = json.loads(output)["differencing"]
    assert found["earlier_release"]["participants"] is None
    assert found["ptable_change"]["release"] == json.loads((town / "one/manifest.json").read_text())["name"]
    only = [word for name in ("reconstruction", "region", "bayes", "utility") for word in ("--without", name)]
    code, output, _ = run(
        "audit", town / "two", "--programme", town / "programme.toml", "--secret", town / "secret.key",
        "--earlier", town / "one", "--earlier-programme", town / "first.toml", *only, "--json",
    )  # fmt: skip
    judged = json.loads(output)["differencing"]["ptable_change"]["judged"]
    assert judged["cells"] >= judged["right"]
    assert json.loads(output)["key_gaps"]["realised"]["keys"] == "permuted"


def test_a_table_builder_is_recorded_and_refused_alike(run: Run, town: Path) -> None:
    assert protect(run, town, "one")[0] == 0
    declare(town, "V = 2.0", "V = 1.0")
    words = ("serve", town / "programme.toml", "--secret", town / "secret.key", "--store", town / "s.sqlite")
    code, _, error = run(*words)
    assert code == 2
    assert "--another-ptable" in error
    assert len(recorded(town)) == 1
