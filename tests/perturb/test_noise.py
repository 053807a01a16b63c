"""What is told of a noise: its law in full where it is public, nothing where it is not."""

from fractions import Fraction

import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import LawKind, discrete_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.noise import (
    LEAST_LISTED,
    MOST_LISTED,
    Guarantee,
    Noise,
    NoiseBudget,
    _exact_totals,
    cell_key_noise,
    largest_variance,
)
from discreet.programme.cube import Signature
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.release import Disclosure
from discreet.text.phrase import Language, spoken

TABLE = PTableLaw(solve(PTableParameters(5, 3.0, js=2)))
TOTAL, OTHER = Signature("persons", "", "", ()), Signature("persons", "", "", (("A", 1),))


def additive(**known: object) -> Noise:
    return Noise(kind=LawKind.GEOMETRIC, drawing=Draw.DESCRIPTION, zeros=KeptZeros.STRUCTURAL, **known)  # type: ignore[arg-type]


def test_the_listed_changes_are_the_rows_of_the_p_table() -> None:
    listed = cell_key_noise(TABLE).listed()
    assert len(listed) == TABLE.ptable.last_row + 1
    for count, row in enumerate(listed):
        assert sum(row.values()) == pytest.approx(1)
        for change, p in row.items():
            assert p == pytest.approx(TABLE.row(count).at(count + change))
    assert listed[0] == {0: 1.0}
    assert sum(change * p for change, p in listed[-1].items()) == pytest.approx(0, abs=1e-9)


def test_added_noise_is_listed_once_down_to_what_is_negligible() -> None:
    law = discrete_laplace(1)
    (row,) = additive(law=law).listed()
    assert min(row.values()) > LEAST_LISTED
    assert sum(row.values()) == pytest.approx(1)
    assert {change for change in law.pmf.values.tolist() if law.pmf.at(change) > LEAST_LISTED} == set(row)
    assert len(row) < len(law.pmf.p)


def test_a_law_that_is_unknown_or_too_long_is_not_listed() -> None:
    assert cell_key_noise(variance=2.0, bound=5).listed() == ()
    half = MOST_LISTED // 2
    (row,) = additive(law=uniform(half - 1)).listed()
    assert len(row) == MOST_LISTED - 1
    assert additive(law=uniform(half)).listed() == ()
    (zero,) = additive(law=hellinger(20)).listed()  # every count has a law of its own: that of empty cells
    assert zero[0] == pytest.approx(hellinger(20).row(0).at(0))


def test_the_largest_variance_is_that_of_some_row_and_of_none_less() -> None:
    rows = [TABLE.row(count).variance for count in range(20)]
    assert largest_variance(TABLE) == pytest.approx(max(rows))
    assert min(rows) == 0
    known = cell_key_noise(variance=9.0, bound=20, disclosed=Disclosure.VARIANCE).knowing(TABLE)
    assert (known.variance, known.bound, known.law, known.disclosed) == (
        largest_variance(TABLE),
        TABLE.ptable.reach,
        TABLE,
        Disclosure.LAW,
    )


def test_the_parameters_of_the_cell_key_method_are_told_with_its_law_only() -> None:
    assert list(cell_key_noise(variance=2.0, bound=5).parameters()) == []
    told = dict(cell_key_noise(TABLE, variance=3.0, bound=5).parameters())
    assert told == {"D": 5, "V": 3.0, "js": 2}
    assert dict(cell_key_noise(TABLE).parameters()) == {"js": 2}
    assert cell_key_noise(variance=2.0).js is None


def test_a_cross_tabulation_has_its_own_law_and_else_that_of_the_release() -> None:
    wide, narrow = discrete_laplace("1/2"), discrete_laplace(2)
    noise = additive(law=wide, laws={str(OTHER): narrow}, publishing=Publishing(Negatives.ZERO))
    assert (noise.law_of(TOTAL), noise.law_of(OTHER)) == (wide, narrow)
    assert noise.variance_of(TOTAL) == pytest.approx(wide.pmf.variance)
    assert noise.variance_of(OTHER) == pytest.approx(narrow.pmf.variance)
    assert noise.published_of(OTHER).law is narrow
    assert noise.published_of(OTHER) is noise.published(narrow)
    assert noise.published_of(TOTAL).publishing == Publishing(Negatives.ZERO)
    assert not noise.published_of(TOTAL).keeps_zeros
    assert cell_key_noise(TABLE).published_of(TOTAL).keeps_zeros


def test_what_is_not_public_is_a_mistake_to_ask_for() -> None:
    rough = cell_key_noise(variance=2.04, bound=5).public(Disclosure.VARIANCE)
    assert rough.variance_of(TOTAL) == 2.1
    with pytest.raises(Mistakes, match="law is not public"):
        rough.law_of(TOTAL)
    with pytest.raises(Mistakes, match="variance is not public"):
        cell_key_noise(TABLE, variance=2.0).public(Disclosure.NONE).variance_of(TOTAL)


def test_who_has_the_same_noise_and_which_zeros_stay() -> None:
    keyed, described = cell_key_noise(TABLE), additive(law=discrete_laplace(1))
    assert (keyed.same_noise, keyed.keeps_zeros, keyed.is_open) == (True, True, False)
    assert (described.same_noise, described.keeps_zeros, described.is_open) == (False, False, True)
    assert described.public(Disclosure.NONE) is described
    assert keyed.public(Disclosure.LAW) is keyed


def test_the_parts_of_a_budget_are_named() -> None:
    """Two fractions in the wrong order would be another guarantee."""
    with pytest.raises(TypeError):
        NoiseBudget(Fraction(1), Split.EVEN, 3, Neighbours.ADD_REMOVE, Protects.PERSON)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Guarantee(Neighbours.ADD_REMOVE, Protects.PERSON, None)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (("total",), "The overall total is published exactly, and not protected"),
        (("STATE", "COUNTY"), "The totals of STATE, COUNTY are published exactly, and not protected"),
        (
            ("total", "STATE"),
            "The overall total and the totals of STATE are published exactly, and not protected",
        ),
    ],
)
def test_exact_totals_of_a_hierarchy_are_stated_in_words_of_readers(
    levels: tuple[str, ...], said: str
) -> None:
    sentence = _exact_totals(levels)
    assert str(sentence).startswith(said)
    assert "total" not in spoken(sentence, Language.GERMAN)
