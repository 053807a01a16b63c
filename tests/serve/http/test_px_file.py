"""PX files: keywords in the order of the format, texts that tell values apart, data by stub and heading."""

import re
from dataclasses import replace

import numpy as np
import pytest

from discreet.programme.labels import Labels
from discreet.serve.answer import Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.px_file import Named, px_file
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Query

# as far as we write them, in the order that the description of the format (AXIS-VERSION 2013) recommends
ORDER = [
    "CHARSET",
    "AXIS-VERSION",
    "CODEPAGE",
    "LANGUAGE",
    "TABLEID",
    "DECIMALS",
    "SHOWDECIMALS",
    "MATRIX",
    "AGGREGALLOWED",
    "SUBJECT-CODE",
    "SUBJECT-AREA",
    "COPYRIGHT",
    "DESCRIPTION",
    "TITLE",
    "DESCRIPTIONDEFAULT",
    "CONTENTS",
    "UNITS",
    "STUB",
    "HEADING",
    "VALUES",
    "CODES",
    "VARIABLECODE",
    "VARIABLE-TYPE",
    "ELIMINATION",
    "SOURCE",
    "NOTEX",
    "DATASYMBOL2",
    "DATA",
]
MANDATORY = [
    "MATRIX",
    "SUBJECT-CODE",
    "SUBJECT-AREA",
    "DECIMALS",
    "TITLE",
    "CONTENTS",
    "UNITS",
    "HEADING",
    "VALUES",
    "DATA",
]
NAMED = Named("A title", "9.2", "en")
GEO = AnswerAxis(
    "GEO", "GEO.L", ("_T", "A", "B"), ("Total", "=cmd()", 'B "x"'), ("", "_T", "_T"), (0, 1, 1), True
)
SEX = AnswerAxis("SEX", "SEX", ("1", "2"), ("same", "same"), ("", ""), (1, 1), False)


@pytest.fixture
def answer() -> Answer:
    """Six cells, those of B withheld, and a note that takes several lines."""
    return Answer(
        Query("persons", (Axis("GEO.L"), Axis("SEX"))),
        (GEO, SEX),
        np.array([10, 20, 3, 0, 0, 0], dtype=np.int64),
        np.array([False, False, False, False, True, True]),
        "noise, said at length" * 40,
        "additivity",
        (),
        ("a warning",),
        lambda _cell, _level: None,
    )


@pytest.fixture
def catalogue(builder: TableBuilder) -> Catalogue:
    return replace(builder.catalogue, labels=Labels({"GEO": "Place", "SEX": 'the "Sex"'}))


def keyword(text: str, name: str) -> list[str]:
    found = re.search(rf"^{re.escape(name)}=(.*?);$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return re.findall(r'"([^"]*)"', found[1])


def test_the_keywords_are_there_in_order_and_no_line_is_too_long(
    answer: Answer, catalogue: Catalogue
) -> None:
    text = px_file(answer, catalogue, NAMED).decode()
    names = re.findall(r"^([A-Z][A-Z0-9-]*)(?:\(.*?\))?=", text, re.MULTILINE)
    assert list(dict.fromkeys(names)) == ORDER
    assert set(MANDATORY) <= set(names)
    assert all(len(line) <= 256 for line in text.splitlines())
    assert (keyword(text, "TITLE"), keyword(text, "CONTENTS")) == (["A title"], ["persons"])
    assert "".join(keyword(text, "NOTEX")) == f"additivity {answer.noise} a warning"
    assert keyword(text, "CODEPAGE") == ["utf-8"]
    assert (keyword(text, "LANGUAGE"), keyword(text, "TABLEID"), keyword(text, "MATRIX")) == (
        ["en"],
        ["9.2"],
        ["9.2"],
    )


def test_variables_and_values_are_told_apart_by_their_texts(answer: Answer, catalogue: Catalogue) -> None:
    text = px_file(answer, catalogue, NAMED).decode()
    assert (keyword(text, "STUB"), keyword(text, "HEADING")) == (["Place"], ["the 'Sex'"])
    assert keyword(text, 'CODES("Place")') == ["_T", "A", "B"]
    assert keyword(text, 'VALUES("Place")') == ["Total", "=cmd()", "B 'x'"]
    assert keyword(text, "VALUES(\"the 'Sex'\")") == ["1 same", "2 same"]
    assert keyword(text, 'VARIABLECODE("Place")') == ["GEO"]
    assert keyword(text, 'ELIMINATION("Place")') == ["Total"]
    assert keyword(text, 'VARIABLE-TYPE("Place")') == ["G"]
    alike = replace(catalogue, labels=Labels({"GEO": "Same", "SEX": "Same"}))
    text = px_file(answer, alike, NAMED).decode()
    assert (keyword(text, "STUB"), keyword(text, "HEADING")) == (["Same (GEO)"], ["Same (SEX)"])


def test_data_follow_stub_and_heading_and_withheld_cells_are_two_dots(
    answer: Answer, catalogue: Catalogue
) -> None:
    def data(*columns: str) -> str:
        return px_file(answer, catalogue, NAMED, columns).decode().partition("DATA=\n")[2]

    assert data() == data("SEX") == '10 20 \n3 0 \n".." "..";\n'
    assert data("GEO") == '10 3 ".." \n20 0 "..";\n'
    assert data("GEO", "SEX") == '10 20 3 0 ".." "..";\n'
    assert data("SEX", "GEO") == '10 3 ".." 20 0 "..";\n'


def test_a_table_without_variables_has_one(builder: TableBuilder) -> None:
    total = builder.ask(Query("persons", ()), "somebody")
    assert isinstance(total, Answer)
    text = px_file(total, builder.catalogue, Named("All")).decode()
    assert keyword(text, "HEADING") == ["contents"]
    assert text.partition("DATA=\n")[2] == f"{total.values[0]};\n"
