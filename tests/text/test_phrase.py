"""Phrases: English to all who take a text, said in another language with its numbers, and known again."""

import copy
import json
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.text.phrase import Language, Phrase, joined, phrase, said, spoken

DE, EN = Language.GERMAN, Language.ENGLISH
LARGE = phrase("The table has {cells} cells; {most} are allowed.", cells=1_234_567, most=100_000)
LARGE_DE = "Die Tabelle hat 1.234.567 Zellen; erlaubt sind höchstens 100.000."


def test_a_phrase_is_an_english_text_wherever_a_text_is_taken() -> None:
    text = "The table has 1,234,567 cells; 100,000 are allowed."
    assert text == LARGE
    assert json.dumps([LARGE]) == json.dumps([text])
    assert type(said(LARGE, EN)) is str
    assert hash(text) == hash(LARGE)


def test_a_phrase_is_said_in_german_and_a_plain_text_as_it_is() -> None:
    assert said(LARGE, DE) == LARGE_DE
    assert said("The table {why}.", DE) == "The table {why}."


def test_an_empty_phrase_is_empty_in_every_language() -> None:
    assert [said(joined("", ""), language) for language in Language] == ["", ""]


def test_phrases_inside_a_phrase_are_said_in_its_language() -> None:
    offer = joined(
        "",
        phrase("larger areas: {new} for {old}", new="GEO.L", old="GEO.H"),
        phrase("without {variable}", variable="SEX"),
        by=", ",
    )
    assert offer == "larger areas: GEO.L for GEO.H, without SEX"
    assert said(offer, DE) == "größere Gebiete: GEO.L statt GEO.H, ohne SEX"
    names = phrase("{names} and {last}", names=("AGE", "SEX"), last="GEO")
    assert said(phrase("{names} may not be combined in one table.", names=names), DE) == (
        "AGE, SEX und GEO dürfen nicht in einer Tabelle stehen."
    )


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (12_345, "12,345", "12.345"),
        (-1_000, "-1,000", "-1.000"),
        (0.025, "0.025", "0,025"),
        (1e-9, "1e-09", "1e-09"),
        (99.99, "99.99", "99,99"),
        (Fraction(1, 10), "1/10", "1/10"),
        ("1,5.2", "1,5.2", "1,5.2"),
        (("a", 1_000), "a, 1,000", "a, 1.000"),
    ],
)
def test_numbers_are_written_as_the_language_does(value: object, english: str, german: str) -> None:
    made = phrase("at most {bound}", bound=value)
    assert (said(made, EN), said(made, DE)) == (f"at most {english}", f"höchstens {german}")


@given(st.text(), st.text())
def test_braces_in_what_is_filled_in_are_no_places(one: str, other: str) -> None:
    made = phrase("coarser: {new} for {old}", new=one, old=other)
    assert made == f"coarser: {one} for {other}"
    assert said(made, DE) == f"gröber: {one} statt {other}"


def test_everything_in_a_structure_is_said() -> None:
    told = {"words": LARGE, "list": [LARGE, 3, None], "deep": ({"words": LARGE},), "plain": "total"}
    assert spoken(told, DE) == {
        "words": LARGE_DE,
        "list": [LARGE_DE, 3, None],
        "deep": [{"words": LARGE_DE}],
        "plain": "total",
    }


@dataclass(frozen=True)
class Told:
    words: str


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), replace]
)
def test_a_copy_can_still_be_said(again: object) -> None:
    made = again(Told(LARGE))  # type: ignore[operator]
    assert isinstance(made.words, Phrase)
    assert said(made.words, DE) == LARGE_DE
