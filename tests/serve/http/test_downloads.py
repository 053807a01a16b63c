"""Files of an answer: each holds the values, says what is withheld, and surprises no program that opens it."""

import csv
import io

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from pysdmx.io import read_sdmx

from discreet.serve.answer import Answer, AnswerAxis, Area, Rule
from discreet.serve.answering import TableBuilder
from discreet.serve.http.downloads import Format, Layout, Texts, laid_out, written
from discreet.serve.query import Axis, Query

GEO = AnswerAxis(
    "GEO", "GEO.L", ("_T", "A", "B"), ("Total", "=cmd()", 'B "x"'), ("", "_T", "_T"), (0, 1, 1), True
)
SEX = AnswerAxis("SEX", "SEX", ("1", "2"), ("same", "same"), ("", ""), (1, 1), False)


@pytest.fixture
def answer() -> Answer:
    """Six cells, those of B withheld."""
    return Answer(
        Query("persons", (Axis("GEO.L"), Axis("SEX"))),
        (GEO, SEX),
        np.array([10, 20, 3, 0, 0, 0], dtype=np.int64),
        np.array([False, False, False, False, True, True]),
        "noise",
        "additivity",
        (Area("B", "B", Rule.SPARSITY),),
        ("a warning",),
        lambda _cell, _level: None,
    )


def body(answer: Answer, form: Format, builder: TableBuilder, layout: Layout | None = None) -> bytes:
    return written(answer, form, builder.catalogue, layout).body


def test_csv_and_parquet_have_a_line_for_each_cell(answer: Answer, builder: TableBuilder) -> None:
    lines = list(csv.DictReader(io.StringIO(body(answer, Format.CSV, builder).decode())))
    table = pq.read_table(io.BytesIO(body(answer, Format.PARQUET, builder))).to_pylist()
    assert [one["value"] for one in table] == [10, 20, 3, 0, None, None]
    assert [one["value"] for one in lines] == ["10", "20", "3", "0", "", ""]
    assert [(one["GEO"], one["SEX"]) for one in lines] == [(g, s) for g in GEO.codes for s in SEX.codes]
    assert [one["status"] for one in table] == [""] * 4 + ["withheld"] * 2
    assert {one["GEO_label"] for one in lines} == set(GEO.labels)


def test_the_same_answer_gives_the_same_bytes(answer: Answer, builder: TableBuilder) -> None:
    for form in Format:
        assert body(answer, form, builder) == body(answer, form, builder), form


def test_xlsx_has_notes_and_no_formulas(answer: Answer, builder: TableBuilder) -> None:
    book = openpyxl.load_workbook(io.BytesIO(body(answer, Format.XLSX, builder)))
    notes = {row[0].value: row[1].value for row in book["Notes"].iter_rows()}
    assert notes["Table"] == "persons by Place of usual residence (NUTS 2 regions), Sex"
    texts = " ".join(str(row[1].value) for row in book["Notes"].iter_rows())
    assert "additivity" in texts
    assert "a warning" in texts
    rows = list(book["Data"].iter_rows(values_only=True))
    assert rows[0] == ("GEO", "GEO_label", "SEX", "SEX_label", "value", "status")
    assert rows[3] == ("A", "=cmd()", "1", "same", 3, None)
    assert book["Data"]["B4"].data_type == "s"
    assert rows[5][4:] == (None, "withheld")


def test_a_laid_out_table_has_variables_across(answer: Answer, builder: TableBuilder) -> None:
    lines = list(laid_out(answer, Layout(("SEX",), Texts.CODES)))
    assert lines == [["GEO", "1", "2"], ["_T", 10, 20], ["A", 3, 0], ["B", None, None]]
    both = list(laid_out(answer, Layout(("GEO", "SEX"), Texts.CODES)))
    assert both == [["_T", "_T", "A", "A", "B", "B"], ["1", "2"] * 3, [10, 20, 3, 0, None, None]]
    assert list(laid_out(answer, Layout((), Texts.LABELS)))[1] == ["Total", "same", 10]
    text = body(answer, Format.CSV, builder, Layout(("GEO",), Texts.CODES)).decode()
    assert text.splitlines() == ["SEX,_T,A,B", "1,10,3,", "2,20,0,"]
    book = openpyxl.load_workbook(io.BytesIO(body(answer, Format.XLSX, builder, Layout(("SEX",)))))
    assert [row[0] for row in book["Data"].iter_rows(values_only=True)] == [
        "GEO",
        "_T Total",
        "A =cmd()",
        'B B "x"',
    ]


def test_sdmx_csv_is_read_by_pysdmx_and_tells_what_is_confidential(
    answer: Answer, builder: TableBuilder
) -> None:
    text = body(answer, Format.SDMX_CSV, builder).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [(one["OBS_VALUE"], one["OBS_STATUS"], one["CONF_STATUS"]) for one in lines][3:] == [
        ("0", "A", "F"),
        ("", "Q", "C"),
        ("", "Q", "C"),
    ]
    frame = read_sdmx(text).data[0].data
    assert [value for value in frame["OBS_VALUE"] if value not in ("", None)] == ["10", "20", "3", "0"]


def test_an_answer_without_axes_can_be_written(builder: TableBuilder, answer: Answer) -> None:
    total = builder.ask(Query("persons", ()), "somebody")
    assert isinstance(total, Answer)
    for form in Format:
        assert str(int(total.values[0])).encode() in body(total, form, builder) or form in (
            Format.XLSX,
            Format.PARQUET,
        )


@pytest.mark.parametrize("form", list(Format))
def test_every_format_has_a_media_type_and_an_ending(
    answer: Answer, builder: TableBuilder, form: Format
) -> None:
    file = written(answer, form, builder.catalogue)
    assert "/" in file.media_type
    assert file.ending
