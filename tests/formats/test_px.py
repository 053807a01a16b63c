"""PX files: keywords in the order of the format, texts that tell values apart, data by stub and heading."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest

from discreet.formats import px
from discreet.formats.dataset import Dataset, DatasetAxis
from discreet.formats.px import write_px

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
GEO = DatasetAxis(
    variable="GEO",
    name="Place",
    label="Place (regions)",
    codes=("_T", "A", "B"),
    labels=("Total", "=cmd()", 'B "x"'),
    parents=("", "_T", "_T"),
    is_place=True,
)
SEX = DatasetAxis(
    variable="SEX", name='the "Sex"', label="Sex", codes=("1", "2"), labels=("same", "same"), parents=("", "")
)
# six cells, those of B withheld, and a note that takes several lines
DATASET = Dataset(
    id="9.2",
    table="9.2",
    language_tag="en",
    title="A title",
    source="Census",
    agency="NSI",
    version="1.0",
    counted="persons",
    unit="persons",
    axes=(GEO, SEX),
    values=np.array([10, 20, 3, 0, 0, 0], dtype=np.int64),
    withheld=np.array([False, False, False, False, True, True]),
    notes=("additivity", "noise, said at length" * 40, "a warning"),
)


def px_file(dataset: Dataset, *columns: str) -> str:
    file = io.BytesIO()
    write_px(dataset, file, columns)
    return file.getvalue().decode()


def keyword(text: str, name: str) -> list[str]:
    found = re.search(rf"^{re.escape(name)}=(.*?);$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return re.findall(r'"([^"]*)"', found[1])


def test_the_keywords_are_there_in_order_and_no_line_is_too_long() -> None:
    text = px_file(DATASET)
    names = re.findall(r"^([A-Z][A-Z0-9-]*)(?:\(.*?\))?=", text, re.MULTILINE)
    assert list(dict.fromkeys(names)) == ORDER
    assert set(MANDATORY) <= set(names)
    assert all(len(line) <= 256 for line in text.splitlines())
    assert (keyword(text, "TITLE"), keyword(text, "CONTENTS")) == (["A title"], ["persons"])
    assert "".join(keyword(text, "NOTEX")) == " ".join(DATASET.notes)
    assert keyword(text, "CODEPAGE") == ["utf-8"]
    assert (keyword(text, "LANGUAGE"), keyword(text, "TABLEID"), keyword(text, "MATRIX")) == (
        ["en"],
        ["9.2"],
        ["9.2"],
    )


def test_variables_and_values_are_told_apart_by_their_texts() -> None:
    text = px_file(DATASET)
    assert (keyword(text, "STUB"), keyword(text, "HEADING")) == (["Place"], ["the 'Sex'"])
    assert keyword(text, 'CODES("Place")') == ["_T", "A", "B"]
    assert keyword(text, 'VALUES("Place")') == ["Total", "=cmd()", "B 'x'"]
    assert keyword(text, "VALUES(\"the 'Sex'\")") == ["1 same", "2 same"]
    assert keyword(text, 'VARIABLECODE("Place")') == ["GEO"]
    assert keyword(text, 'ELIMINATION("Place")') == ["Total"]
    assert keyword(text, 'VARIABLE-TYPE("Place")') == ["G"]
    alike = replace(DATASET, axes=(replace(GEO, name="Same"), replace(SEX, name="Same")))
    text = px_file(alike)
    assert (keyword(text, "STUB"), keyword(text, "HEADING")) == (["Same (GEO)"], ["Same (SEX)"])


def test_data_follow_stub_and_heading_and_withheld_cells_are_two_dots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def data(*columns: str) -> str:
        return px_file(DATASET, *columns).partition("DATA=\n")[2]

    for cells_at_once in (1 << 20, 2):
        monkeypatch.setattr(px, "ROWS_AT_ONCE", cells_at_once)
        assert data() == data("SEX") == '10 20 \n3 0 \n".." "..";\n'
        assert data("GEO") == '10 3 ".." \n20 0 "..";\n'
        assert data("GEO", "SEX") == '10 20 3 0 ".." "..";\n'
        assert data("SEX", "GEO") == '10 3 ".." 20 0 "..";\n'


def test_cells_that_are_not_listed_are_written_as_zeros() -> None:
    sparse = replace(DATASET, cells=np.array([0, 5]), values=np.array([7, 2]), withheld=None)
    text = px_file(sparse)
    assert text.partition("DATA=\n")[2] == "7 0 \n0 0 \n0 2;\n"
    assert "DATASYMBOL2" not in text
    estimates = replace(sparse, values=np.array([7.5, 2.0]))
    assert px_file(estimates, "GEO").partition("DATA=\n")[2] == "7.5 0.0 0.0 \n0.0 0.0 2.0;\n"
    assert "\nDECIMALS=1;\nSHOWDECIMALS=1;" in px_file(estimates)


def test_a_table_without_variables_has_one() -> None:
    total = replace(DATASET, axes=(), values=np.array([12]), withheld=np.array([False]))
    text = px_file(total)
    assert keyword(text, "HEADING") == ["contents"]
    assert text.partition("DATA=\n")[2] == "12;\n"
