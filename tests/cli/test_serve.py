"""``discreet serve`` and ``discreet token``: mistakes are told before anything listens, and tokens are shown once."""

import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.serve.http.api import catalogue_json
from discreet.serve.http.server import Serving
from discreet.serve.http.tokens import Role, TokenFile, read_tokens
from tests.cases import few
from tests.cli.town import build


def refused(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["serve", *map(str, arguments)])
    assert isinstance(found.exception, Mistakes), found.output
    return str(found.exception)


def test_mistakes_of_an_operator_are_told_before_anything_listens(tmp_path: Path) -> None:
    town = build(tmp_path / "town")
    store = ("--store", tmp_path / "s.sqlite", "--port", 0)
    assert "give a programme file or a release folder" in refused(tmp_path / "none", *store)
    assert "--secret" in refused(town / "programme.toml", *store)
    assert "write requests/seconds" in refused(town / "programme.toml", "--rate", "many", *store)
    missing = refused(
        town / "programme.toml", "--secret", town / "secret.key", "--tokens", tmp_path / "t", *store
    )
    assert "discreet token create" in missing
    unknown = ("--secret", town / "secret.key", "--store", "mysql://somewhere", "--port", 0)
    assert "unknown kind" in refused(town / "programme.toml", *unknown)
    ledger = ("--secret", town / "secret.key", "--ledger", tmp_path / "none", *store)
    assert "create a ledger" in refused(town / "programme.toml", *ledger)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, "no such file"),
        ("[population]", "is not JSON"),
        ("[1]", "not GeoJSON with features"),
        ('{"features": []}', "not GeoJSON with features"),
    ],
)
def test_a_map_that_is_none_is_told_before_anything_listens(
    tmp_path: Path, held: str | None, said: str
) -> None:
    town, path = build(tmp_path / "town"), tmp_path / "map.json"
    if held is not None:
        path.write_text(held)
    given = ("--secret", town / "secret.key", "--store", tmp_path / "s.sqlite", "--port", 0)
    assert said in refused(town / "programme.toml", *given, "--geometry", path)
    assert not (tmp_path / "s.sqlite").exists()


def test_a_language_is_a_tag(tmp_path: Path) -> None:
    town = build(tmp_path / "town")
    given = ("--secret", town / "secret.key", "--store", tmp_path / "s.sqlite", "--port", 0)
    assert "write a tag such as en" in refused(town / "programme.toml", *given, "--language", 'x"><b>')


def test_an_address_that_is_taken_or_not_ours_is_a_mistake(tmp_path: Path) -> None:
    town = build(tmp_path / "town")
    given = (
        "--secret",
        town / "secret.key",
        "--store",
        tmp_path / "s.sqlite",
        "--host",
        "192.0.2.1",
        "--port",
        1,
    )
    assert "choose another" in refused(town / "programme.toml", *given)


def test_a_token_is_shown_once_listed_without_itself_and_revoked(tmp_path: Path) -> None:
    file, run = tmp_path / "tokens.json", CliRunner().invoke
    made = run(app, ["token", "create", str(file), "ann", "--role", "trusted", "--json"])
    token = json.loads(made.output)["token"]
    found = TokenFile(file).find(token)
    assert found is not None
    assert found.role is Role.TRUSTED
    listed = run(app, ["token", "list", str(file)]).output
    assert listed.startswith("ann: trusted, since 20")
    assert token not in listed + file.read_text()
    assert json.loads(run(app, ["token", "list", str(file), "--json"]).output)["tokens"][0]["name"] == "ann"
    assert run(app, ["token", "revoke", str(file), "ann"]).output == "ann: revoked.\n"
    assert read_tokens(file) == ()


def test_a_plain_token_stands_alone_on_its_line(tmp_path: Path) -> None:
    output = CliRunner().invoke(app, ["token", "create", str(tmp_path / "t.json"), "bob"]).output
    assert output.startswith("dsc_")
    (tmp_path / "t.json").write_text("[]")
    with pytest.raises(Mistakes, match="not a file of tokens"):
        read_tokens(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("rules", "options", "warned"),
    few([("", (), False), ('[serve]\nrules = "none"\n', (), True), ("", ("--without-rules",), True)], 0, 2),
    ids=["default", "declared", "option"],
)
def test_a_server_without_rules_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, options: tuple[str, ...], warned: bool
) -> None:
    town = build(tmp_path / "town")
    path = town / "programme.toml"
    path.write_text(path.read_text() + rules)

    def run(
        serving: Serving, *_address: object, ready: Callable[[str, bool], None], **_options: object
    ) -> None:
        content = catalogue_json(serving.app().state.service.catalogue)
        gc.unfreeze()  # of what a server keeps for good
        assert bool(content["warnings"]) == serving.is_unlimited() == warned
        assert (content["history"]["success"] is None) == warned
        ready("http://x", serving.is_unlimited())

    monkeypatch.setattr("discreet.cli.serve.run", run)
    given = ("--secret", str(town / "secret.key"), "--store", str(tmp_path / "s.sqlite"), *options)
    found = CliRunner().invoke(app, ["serve", str(path), *given])
    assert found.exit_code == 0, found.output
    assert ("No rule limits what a user may collect" in found.stderr) == warned
