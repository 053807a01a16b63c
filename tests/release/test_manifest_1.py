"""Releases of format 1, written by the version before format 2, verify and are attacked, inferred from and served."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.audit.averaging import average
from discreet.audit.bounds import bound_attack
from discreet.audit.evidence import published
from discreet.errors import BrokenRelease
from discreet.inference import interval, noise_of
from discreet.maths.noise.additive import LawKind, discrete_gaussian, truncated_laplace
from discreet.maths.noise.publishing import UNCHANGED, Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.noise import Guarantee, Noise
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.release import Disclosure
from discreet.release.manifest import read_manifest
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from discreet.serve.query import Axis, Query

FOLDER = Path(__file__).with_name("format_1")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHOLE = ("cell-key-law", "laplace")
SENTENCES = {
    "cell-key-law": (
        "Counts are perturbed by the cell key method. Its parameters are D = 5, V = 2.0000000074505806, js = 1."
    ),
    "cell-key-variance": (
        "Counts are perturbed by the cell key method. The noise has a mean of zero and a variance of at most 2. A "
        "published count differs from the count before noise by at most 10."
    ),
    "laplace": (
        "Counts are perturbed by laplace noise in every cell. Its parameters are bound = 40, cross-tabulations = 6, "
        "draw = description, epsilon = 10, keep_zeros = structural, negatives = zero, neighbours = add-remove, noise "
        "per cross-tabulation = 5/3, protects = person, rounding = 1, split = even, threshold = 0. The whole release "
        "is differentially private with epsilon = 10 and delta = 4.56e-29, when one person is added or removed."
    ),
}


def noise(name: str) -> Noise:
    return open_release(FOLDER / name).noise


@pytest.mark.parametrize(("name", "sentence"), SENTENCES.items())
def test_the_sentences_are_those_of_its_readme(name: str, sentence: str) -> None:
    assert noise(name).sentence() == sentence
    if name in WHOLE:
        assert sentence in (FOLDER / name / "README.md").read_text()


def test_cell_key_noise_is_read_as_numbers() -> None:
    law, rough = noise("cell-key-law"), noise("cell-key-variance")
    assert (law.kind, law.drawing, law.zeros) == (LawKind.CELL_KEY, Draw.PARTICIPANTS, KeptZeros.ALL)
    assert (law.disclosed, law.bound, law.js, law.publishing) == (Disclosure.LAW, 5, 1, UNCHANGED)
    assert law.law is not None
    assert law.law.row(9).variance == pytest.approx(2.0, abs=1e-6)
    assert (rough.disclosed, rough.variance, rough.bound, rough.law) == (Disclosure.VARIANCE, 2.0, 10, None)


def test_a_law_and_its_guarantee_are_read_as_numbers() -> None:
    found = noise("laplace")
    assert found.law == truncated_laplace("5/3", 40)
    assert found.publishing == Publishing(Negatives.ZERO)
    assert found.guarantee == Guarantee(
        neighbours=Neighbours.ADD_REMOVE,
        unit=Protects.PERSON,
        epsilon=Fraction(10),
        delta=Fraction("4.56e-29"),
    )


def test_rho_is_read_as_rho() -> None:
    """Format 1 stated an epsilon at a delta of 0 where none was declared; that epsilon is not repeated."""
    bare, declared = noise("gaussian"), noise("gaussian-delta")
    assert bare.law == discrete_gaussian("5/27")
    assert bare.laws["persons///total"] == discrete_gaussian("10/9")
    assert bare.budget is not None
    assert (bare.budget.total, bare.budget.split, bare.budget.cross_tabulations) == (
        Fraction(20),
        Split.BY_AXES,
        6,
    )
    assert bare.publishing == Publishing(Negatives.ZERO, 5)
    assert bare.guarantee == Guarantee(
        neighbours=Neighbours.ADD_REMOVE, unit=Protects.HOUSEHOLD, largest_household=3, rho=Fraction(20)
    )
    assert bare.sentence().endswith(
        "private with rho = 20 (zero-concentrated), when one household of at most 3 members is added or removed."
    )
    assert declared.guarantee == Guarantee(
        neighbours=Neighbours.SUBSTITUTE, unit=Protects.PERSON, rho=Fraction(1, 2), delta=Fraction(1, 10**9)
    )
    assert "that is epsilon = 6.47407 and delta = 1e-09, when one person is replaced" in declared.sentence()


@pytest.mark.parametrize("name", WHOLE)
def test_it_verifies_and_damage_is_seen(name: str, tmp_path: Path) -> None:
    assert verify(FOLDER / name).problems == ()
    copy = shutil.copytree(FOLDER / name, tmp_path / name)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"Places and sex"', '"Other places"'))
    with pytest.raises(BrokenRelease, match="seal"):
        read_manifest(copy)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind": "laplace"', '"kind": "loud"'),
        ('"draw": "description"', '"draw": "by lot"'),
        ('"rounding": 1', '"rounding": "some"'),
        ('"law_parameter": "5/3"', '"law_parameter": "5/0"'),
    ],
)
def test_words_that_mean_nothing_are_a_damaged_release(old: str, new: str, tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER / "laplace", tmp_path / "r")
    manifest = copy / "manifest.json"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(BrokenRelease, match="fetch the release again"):
        read_manifest(copy)


@pytest.mark.parametrize("attack", [average, bound_attack])
def test_it_is_attacked(attack: Callable[..., object]) -> None:
    assert attack(published(open_release(FOLDER / "cell-key-law")))


@pytest.mark.parametrize("name", WHOLE)
def test_counts_are_inferred_from_it(name: str) -> None:
    found = interval(12, noise_of(FOLDER / name))
    assert found.interval.low <= 12 <= found.interval.high


@pytest.mark.parametrize("name", WHOLE)
def test_it_is_served(name: str, tmp_path: Path) -> None:
    builder = serve_release(open_release(FOLDER / name), Store(tmp_path / "s.sqlite", lambda: NOON))
    answer = builder.ask(Query("persons", (Axis("SEX"),)), "somebody")
    assert isinstance(answer, Answer)
    assert answer.noise == SENTENCES[name]
    found = answer.noise_range(0)
    assert found is not None
    assert found.low < found.high
