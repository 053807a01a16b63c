import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from discreet.errors import BrokenRelease, Mistakes
from discreet.perturb.mechanism import NoiseFacts
from discreet.perturb.statement import noise_statement
from discreet.programme.release import Disclosure
from discreet.release.manifest import (
    FileEntry,
    PrivateManifest,
    is_release,
    read_manifest,
    require_private_place,
    write_private_manifest,
)
from tests.release.small import publish

PARAMETERS = {"D": 7, "V": 1.5, "js": 2}


def test_a_manifest_reads_back_equal(tmp_path: Path) -> None:
    made = publish(tmp_path / "r")
    assert read_manifest(tmp_path / "r") == made
    assert is_release(tmp_path / "r")


def test_a_manifest_says_the_same_every_time(tmp_path: Path) -> None:
    first, second = (publish(tmp_path / name).to_json() for name in ("a", "b"))
    assert first == second


def test_a_manifest_knows_no_time_and_no_number_of_records(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert set(content) == {
        *("kind", "format_version", "discreet_version", "name", "title", "agency", "version"),
        *("noise", "swapped", "places", "digests", "secret_fingerprint", "cubes", "files", "seal"),
    }
    assert set(content["cubes"][0]) == {
        "id",
        "title",
        "unit",
        "base",
        "base_normal",
        "count",
        "weight",
        "axes",
        "cells",
        "files",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "other"}, "seal"),
        ({"noise": {"method": "none at all", "kind": "cell-key", "disclose": "none"}}, "seal"),
        ({"extra": 1}, "extra"),
        ({"cubes": 3}, "cubes"),
        ({"kind": "something"}, "not the manifest"),
        ({"format_version": 99}, "format version 99"),
    ],
)
def test_a_changed_manifest_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    publish(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BrokenRelease, match=message):
        read_manifest(tmp_path / "r")


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_what_is_no_manifest_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert not is_release(tmp_path)
    with pytest.raises(BrokenRelease):
        read_manifest(tmp_path)


@pytest.mark.parametrize("place", ["/etc/passwd", "../x", "a/../../x", ""])
def test_a_manifest_cannot_point_out_of_its_folder(place: str) -> None:
    with pytest.raises(ValidationError):
        FileEntry(path=place, sha256="", bytes=0)


def facts(variance: float = 1.5, bound: int = 7) -> NoiseFacts:
    return NoiseFacts("m", variance, bound, PARAMETERS, ({0: 1.0},))


def test_the_default_statement_gives_the_variance_and_a_rough_bound() -> None:
    said = noise_statement(facts(), Disclosure.VARIANCE)
    assert (said.variance, said.bound, said.parameters) == (1.5, "at most 10", None)
    assert "7" not in said.model_dump_json()
    assert "at most 10" in said.sentence()


@pytest.mark.parametrize(("bound", "rough"), [(1, 10), (10, 10), (11, 20), (25, 30)])
def test_a_rough_bound_is_true(bound: int, rough: int) -> None:
    said = noise_statement(facts(bound=bound), Disclosure.VARIANCE)
    assert said.bound == f"at most {rough}"


@pytest.mark.parametrize(
    ("variance", "rough"),
    [(2.0, 2.0), (2.0 + 1e-9, 2.0), (2.0 - 1e-9, 2.0), (1.302, 1.4), (0.75, 0.8), (3, 3.0)],
)
def test_the_variance_does_not_tell_its_parameters_by_its_last_digits(variance: float, rough: float) -> None:
    assert noise_statement(facts(variance=variance), Disclosure.VARIANCE).variance == rough


def test_the_law_is_told_in_full() -> None:
    said = noise_statement(facts(), Disclosure.LAW)
    assert said.parameters == PARAMETERS
    assert "D = 7" in said.sentence()


def test_a_guarantee_is_told_with_its_law_whatever_the_rule() -> None:
    private = replace(facts(), guarantee="It is private.", is_open=True)
    said = noise_statement(private, Disclosure.NONE)
    assert said.law == ({0: 1.0},)
    assert said.sentence().endswith("It is private.")


def test_silence_tells_the_method_alone() -> None:
    said = noise_statement(facts(), Disclosure.NONE)
    assert said.model_dump(exclude_none=True) == {
        "method": "m",
        "kind": "cell-key",
        "disclose": Disclosure.NONE,
    }


def private() -> PrivateManifest:
    return PrivateManifest(
        release="small",
        run_id="run1",
        discreet_version="0.1.0",
        finished=datetime(2021, 1, 1, tzinfo=UTC),
        parameters=PARAMETERS,
        digests={"inputs": "11"},
        rows={"persons": 123},
        secret_fingerprint="44",
    )


def test_the_private_manifest_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "private.json"
    path.write_text("old")
    before = os.umask(0)
    try:
        write_private_manifest(private(), path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["parameters"] == PARAMETERS
    assert [path.name for path in tmp_path.iterdir()] == ["private.json"]


def test_the_private_manifest_never_enters_a_release(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="beside the secret"):
        require_private_place(tmp_path / "release" / "x" / "private.json", tmp_path / "release")


def test_a_place_for_the_private_manifest_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    require_private_place(tmp_path / "private.json", tmp_path / "release")
    with pytest.raises(Mistakes, match="cannot be written"):
        require_private_place(tmp_path / "missing" / "private.json", tmp_path / "release")
