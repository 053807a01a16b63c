import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from pydantic import ValidationError

from discreet.errors import BrokenRelease, Mistakes
from discreet.maths.noise.additive import LawKind, discrete_gaussian, discrete_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.noise import Guarantee, Noise, NoiseBudget, cell_key_noise
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.release import Disclosure
from discreet.release.manifest import (
    FileEntry,
    PrivateManifest,
    is_release,
    read_manifest,
    require_private_place,
    write_private_manifest,
)
from discreet.release.noise_entry import NoiseEntry, entry_of
from discreet.text.phrase import Language, said
from tests.release.small import publish

PARAMETERS = {"D": 7, "V": 3.5, "js": 2}


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
        *(
            "noise",
            "swapped",
            "places",
            "level_column",
            "digests",
            "secret_fingerprint",
            "cubes",
            "files",
            "seal",
        ),
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
        (
            {"noise": {"kind": "cell-key", "disclose": "none", "drawing": "participants", "zeros": "all"}},
            "seal",
        ),
        ({"noise": {"kind": "none"}}, "noise.kind"),
        ({"noise": {"method": "words"}}, "noise"),
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


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "../x", "a/../../x", "", "a/" + "x" * 256, "ä" * 128, "a/" * 501 + "x"]
)
def test_a_manifest_cannot_point_out_of_its_folder_or_to_what_no_file_is(place: str) -> None:
    with pytest.raises(ValidationError):
        FileEntry(path=place, sha256="", bytes=0)


def noise(variance: float = 3.5, bound: int = 7) -> Noise:
    return cell_key_noise(
        PTableLaw(solve(PTableParameters(bound, variance, 2))), variance=variance, bound=bound
    )


def test_the_public_knows_the_variance_and_a_rough_bound_by_default() -> None:
    known = noise().public(Disclosure.VARIANCE)
    assert (known.variance, known.bound, known.law, known.js) == (3.5, 10, None, None)
    assert "7" not in entry_of(known).model_dump_json()
    assert "at most 10" in known.sentence()


@pytest.mark.parametrize(("bound", "rough"), [(1, 10), (10, 10), (11, 20), (25, 30)])
def test_a_rough_bound_is_true(bound: int, rough: int) -> None:
    assert cell_key_noise(bound=bound).public(Disclosure.VARIANCE).bound == rough


@pytest.mark.parametrize(
    ("variance", "rough"),
    [(2.0, 2.0), (2.0 + 1e-9, 2.0), (2.0 - 1e-9, 2.0), (1.302, 1.4), (0.75, 0.8), (3, 3.0)],
)
def test_the_variance_does_not_tell_its_parameters_by_its_last_digits(variance: float, rough: float) -> None:
    assert cell_key_noise(variance=variance).public(Disclosure.VARIANCE).variance == rough


def test_the_law_is_told_in_full() -> None:
    known = noise().public(Disclosure.LAW)
    assert dict(known.parameters()) == PARAMETERS
    assert "D = 7, V = 3.5, js = 2." in known.sentence()


def test_silence_tells_the_method_only() -> None:
    known = noise().public(Disclosure.NONE)
    assert entry_of(known).model_dump(mode="json") == {
        "kind": "cell-key",
        "disclose": "none",
        "drawing": "participants",
        "zeros": "all",
    }
    assert known.sentence() == "Counts are perturbed by the cell key method."


GUARANTEES = [
    (
        Guarantee(neighbours=Neighbours.ADD_REMOVE, unit=Protects.PERSON, epsilon=Fraction(1, 3)),
        "with epsilon = 0.333333 and delta = 0, when one person is added or removed.",
    ),
    (
        Guarantee(neighbours=Neighbours.SUBSTITUTE, unit=Protects.PERSON, rho=Fraction(1, 3)),
        "with rho = 1/3 (zero-concentrated), when one person is replaced by another.",
    ),
    (
        Guarantee(
            neighbours=Neighbours.ADD_REMOVE,
            unit=Protects.HOUSEHOLD,
            largest_household=12,
            rho=Fraction(1, 2),
            delta=Fraction(1, 10**9),
        ),
        "delta = 1e-09, when one household of at most 12 members is added or removed.",
    ),
]


@pytest.mark.parametrize(("guarantee", "words"), GUARANTEES)
@pytest.mark.parametrize("disclose", list(Disclosure))
def test_a_guarantee_is_told_with_its_law_whatever_the_rule(
    guarantee: Guarantee, words: str, disclose: Disclosure
) -> None:
    """Rho is stated as rho: an epsilon stands beside it only at a delta that was declared."""
    kind = LawKind.GEOMETRIC if guarantee.rho is None else LawKind.DISCRETE_GAUSSIAN
    law = discrete_laplace("1/31") if guarantee.rho is None else discrete_gaussian("1/31")
    private = Noise(
        kind=kind,
        drawing=Draw.DESCRIPTION,
        zeros=KeptZeros.STRUCTURAL,
        law=law,
        laws={"persons///total": replace(law)},
        publishing=Publishing(Negatives.ZERO, 5, 3),
        budget=NoiseBudget(
            total=guarantee.epsilon or guarantee.rho or Fraction(0),
            split=Split.BY_AXES,
            cross_tabulations=31,
            neighbours=guarantee.neighbours,
            unit=guarantee.unit,
        ),
        guarantee=guarantee,
    )
    entry = entry_of(private.public(disclose))
    read = NoiseEntry.model_validate_json(entry.model_dump_json()).noise()
    assert read.sentence() == private.sentence()
    assert read.sentence().endswith(words)
    assert (read.guarantee, read.budget, read.law) == (guarantee, private.budget, law)
    assert (read.laws, read.publishing) == (private.laws, private.publishing)


def test_a_guarantee_is_told_in_german() -> None:
    told = said(GUARANTEES[2][0].sentence(), Language.GERMAN)
    assert "rho = 1/2 (zero-concentrated), das heißt epsilon = 6," in told
    assert told.endswith("wenn ein Haushalt mit höchstens 12 Mitgliedern hinzukommt oder wegfällt.")


def test_a_table_builder_states_what_a_user_can_spend() -> None:
    one = Guarantee(
        neighbours=Neighbours.ADD_REMOVE, unit=Protects.PERSON, rho=Fraction(2), each=Fraction(1, 10)
    )
    assert "rho = 2 at most; each new cross-tabulation costs rho = 1/10" in one.sentence()


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
    with pytest.raises(Mistakes, match="next to the secret"):
        require_private_place(tmp_path / "release" / "x" / "private.json", tmp_path / "release")


def test_a_place_for_the_private_manifest_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    require_private_place(tmp_path / "private.json", tmp_path / "release")
    with pytest.raises(Mistakes, match="cannot be written"):
        require_private_place(tmp_path / "missing" / "private.json", tmp_path / "release")


def test_what_is_not_a_private_manifest_is_never_replaced(tmp_path: Path) -> None:
    payroll, link = tmp_path / "payroll.json", tmp_path / "link.json"
    payroll.write_text('{"salaries": [1, 2]}')
    link.symlink_to(payroll)
    for path in (payroll, link, tmp_path):
        with pytest.raises(Mistakes, match="exists and is not a private manifest"):
            require_private_place(path, tmp_path / "release")
    assert payroll.read_text() == '{"salaries": [1, 2]}'
    kept = tmp_path / "secret.key.release.json"
    write_private_manifest(private(), kept)
    require_private_place(kept, tmp_path / "release")
