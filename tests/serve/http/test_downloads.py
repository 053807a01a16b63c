"""Files of an answer: each holds the values, says what is withheld, and surprises no program that opens it."""

import csv
import io
import json
import time
import zipfile
from dataclasses import replace

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from openpyxl.utils.escape import unescape
from pysdmx.io import read_sdmx

from discreet.formats.columns import Texts
from discreet.formats.csv import harmless
from discreet.formats.xlsx import Cell
from discreet.serve.answer import Answer, AnswerAxis, Area, Rule
from discreet.serve.dataset import dataset_of
from discreet.serve.http.downloads import Format, written
from discreet.serve.http.layout import Layout, Percent
from discreet.serve.http.layout import laid_out as laid_out_dataset
from discreet.serve.http.problems import HttpProblem
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Query

GEO = AnswerAxis(
    "GEO", "GEO.L", ("_T", "A", "B"), ("Total", "=cmd()", 'B "x"'), ("", "_T", "_T"), (0, 1, 1), True
)
SEX = AnswerAxis("SEX", "SEX", ("1", "2"), ("same", "same"), ("", ""), (1, 1), False)


class NoRanges:
    """Nothing is known of the noise."""

    def of(self, _cell: int, _level: float) -> None:
        return None

    def all(self, _level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.full(1, np.nan), np.full(1, np.nan)


@pytest.fixture
def answer() -> Answer:
    """Six cells, those of B withheld."""
    return Answer(
        Query("persons", (Axis("GEO.L"), Axis("SEX", ("1", "2")))),
        (GEO, SEX),
        np.array([10, 20, 3, 0, 0, 0], dtype=np.int64),
        np.array([False, False, False, False, True, True]),
        "noise",
        "additivity",
        (Area("B", "B", Rule.SPARSITY),),
        ("a warning",),
        NoRanges(),
    )


def body(answer: Answer, form: Format, builder: TableBuilder, layout: Layout | None = None) -> bytes:
    return written(answer, form, builder.catalogue, layout).body


def laid_out(answer: Answer, builder: TableBuilder, layout: Layout) -> list[list[Cell]]:
    return list(laid_out_dataset(answer, dataset_of(answer, builder.catalogue), layout))


def test_csv_and_parquet_have_a_line_for_each_cell(answer: Answer, builder: TableBuilder) -> None:
    lines = list(csv.DictReader(io.StringIO(body(answer, Format.CSV, builder).decode())))
    table = pq.read_table(io.BytesIO(body(answer, Format.PARQUET, builder))).to_pylist()
    assert [one["value"] for one in table] == [10, 20, 3, 0, None, None]
    assert [one["value"] for one in lines] == ["10", "20", "3", "0", "", ""]
    assert [(one["GEO"], one["SEX"]) for one in lines] == [(g, s) for g in GEO.codes for s in SEX.codes]
    assert [one["status"] for one in table] == [""] * 4 + ["withheld"] * 2
    assert {one["GEO_label"] for one in lines} == {"Total", "'=cmd()", 'B "x"'}
    assert {one["GEO_label"] for one in table} == set(GEO.labels)


def test_the_same_answer_gives_the_same_bytes(
    answer: Answer, builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {form: body(answer, form, builder) for form in Format}
    hour = 3600
    with monkeypatch.context() as later:
        real = time.time()
        later.setattr(time, "time", lambda: real + hour)
        later.setattr(time, "localtime", lambda seconds=real + hour: time.gmtime(seconds))
        assert {form: body(answer, form, builder) for form in Format} == first
    with zipfile.ZipFile(io.BytesIO(first[Format.XLSX])) as book:
        assert {one.date_time for one in book.infolist()} == {(1980, 1, 31, 0, 0, 0)}
        assert b">2000-01-01T00:00:00Z</dcterms:created>" in book.read("docProps/core.xml")


def test_xlsx_has_notes_and_no_formulas(answer: Answer, builder: TableBuilder) -> None:
    book = openpyxl.load_workbook(io.BytesIO(body(answer, Format.XLSX, builder)))
    notes = {row[0].value: row[1].value for row in book["Notes"].iter_rows()}
    assert notes["Table"] == "persons by Place of usual residence (provinces), Sex"
    texts = " ".join(str(row[1].value) for row in book["Notes"].iter_rows())
    assert "additivity" in texts
    assert "a warning" in texts
    rows = list(book["Data"].iter_rows(values_only=True))
    assert rows[0] == ("GEO", "Place of usual residence", "SEX", "Sex", "level", "value", "status")
    assert rows[3] == ("A", "=cmd()", "1", "same", "GEO:1 x SEX:1", 3, None)
    assert book["Data"]["B4"].data_type == "s"
    assert rows[5][5:] == (None, "withheld")
    assert book["Data"].freeze_panes == "A2"
    assert "An area" not in texts
    assert notes["Withheld"] == "B B has too many small counts"
    assert json.loads(notes["Question"])["axes"][0] == {"breakdown": "GEO.L"}


def test_a_laid_out_table_has_variables_across(answer: Answer, builder: TableBuilder) -> None:
    lines = laid_out(answer, builder, Layout(("SEX",), Texts.CODES))
    assert lines == [["GEO", "1", "2"], ["_T", 10, 20], ["A", 3, 0], ["B", None, None]]
    both = laid_out(answer, builder, Layout(("GEO", "SEX"), Texts.CODES))
    assert both == [["_T", "_T", "A", "A", "B", "B"], ["1", "2"] * 3, [10, 20, 3, 0, None, None]]
    assert laid_out(answer, builder, Layout((), Texts.LABELS))[1] == ["Total", "same", 10]
    text = body(answer, Format.CSV, builder, Layout(("GEO",), Texts.CODES)).decode()
    assert text.splitlines() == ["SEX,_T,A,B", "1,10,3,", "2,20,0,"]
    book = openpyxl.load_workbook(io.BytesIO(body(answer, Format.XLSX, builder, Layout(("SEX",)))))
    assert [row[0] for row in book["Table"].iter_rows(5, values_only=True)] == [
        "Place of usual residence (provinces)",
        "_T Total",
        "A =cmd()",
        'B B "x"',
    ]


def lines_of(answer: Answer, builder: TableBuilder, layout: Layout) -> list[list[str]]:
    return list(csv.reader(io.StringIO(body(answer, Format.CSV, builder, layout).decode())))


def test_percentages_are_shares_of_published_totals_and_withheld_cells_stay_withheld(
    answer: Answer, builder: TableBuilder
) -> None:
    columns = Layout(("SEX",), Texts.CODES, percent=Percent.COLUMN)
    assert lines_of(answer, builder, columns) == [
        ["", "1", "2"],
        ["GEO", "percent_of_column", "percent_of_column"],
        ["_T", "100.0", "100.0"],
        ["A", "30.0", "0.0"],
        ["B", "", ""],
    ]
    beside = laid_out(answer, builder, replace(columns, counts=True))
    assert beside[0] == ["", "1", "1", "2", "2"]
    assert beside[1] == ["GEO", *["value", "percent_of_column"] * 2]
    assert beside[2:] == [["_T", 10, 100, 20, 100], ["A", 3, 30, 0, 0], ["B", None, None, None, None]]
    across = lines_of(answer, builder, Layout(("GEO",), Texts.CODES, percent=Percent.ROW))
    assert across[2:] == [["1", "100.0", "30.0", ""], ["2", "100.0", "0.0", ""]]
    rows = list(csv.DictReader(io.StringIO("\n".join(map(",".join, across)))))
    assert len(rows) == 3


def test_shares_are_empty_where_their_total_is_zero_or_withheld(
    answer: Answer, builder: TableBuilder
) -> None:
    layout = Layout(("SEX",), Texts.CODES, percent=Percent.COLUMN)
    nothing = replace(answer, values=np.array([0, 20, 3, 0, 0, 0], dtype=np.int64))
    assert [line[1] for line in laid_out(nothing, builder, layout)][2:] == [None, None, None]
    hidden = replace(answer, withheld=np.array([True, False, False, False, True, True]))
    assert [line[1] for line in laid_out(hidden, builder, layout)][2:] == [None, None, None]


def test_the_long_form_has_the_share_beside_the_count(answer: Answer, builder: TableBuilder) -> None:
    total = replace(SEX, codes=("_T", "2"))
    asked = Query("persons", (Axis("GEO.L"), Axis("SEX", ("_T", "2"))))
    whole = replace(answer, query=asked, axes=(GEO, total))
    layout = Layout(texts=Texts.CODES, percent=Percent.TOTAL)
    lines = lines_of(whole, builder, layout)
    assert lines[0] == ["GEO", "SEX", "level", "value", "percent_of_total", "status"]
    assert lines[2] == ["_T", "2", "SEX:1", "20", "200", ""]
    assert lines[6] == ["B", "2", "GEO:1 x SEX:1", "", "", "withheld"]
    book = openpyxl.load_workbook(io.BytesIO(body(whole, Format.XLSX, builder, layout)))
    assert [row[4] for row in book["Data"].iter_rows(values_only=True)][1:] == [100, 200, 30, 0, None, None]
    notes = " ".join(str(row[1].value) for row in book["Notes"].iter_rows())
    assert "share of the published total of the table" in notes
    assert "need not add up to 100 %" in notes


@pytest.mark.parametrize(
    ("form", "layout", "words"),
    [
        (Format.CSV, Layout(("AGE",)), "AGE is no axis of the table; it has GEO, SEX"),
        (Format.XLSX, Layout(("SEX",), percent=Percent.ROW), "the total of SEX"),
        (Format.CSV, Layout(percent=Percent.TOTAL), "the total of SEX"),
        (Format.CSV, Layout(percent=Percent.ROW), "put variables into rows and columns"),
        (Format.PX, Layout(percent=Percent.ROW), "CSV and XLSX"),
        (Format.JSON_STAT, Layout(percent=Percent.TOTAL), "CSV and XLSX"),
    ],
)
def test_layouts_that_a_table_cannot_have_are_explained(
    answer: Answer, builder: TableBuilder, form: Format, layout: Layout, words: str
) -> None:
    with pytest.raises(HttpProblem, match=words) as told:
        written(answer, form, builder.catalogue, layout)
    assert (told.value.status, told.value.kind) == (400, "layout")


def test_a_variable_that_is_named_twice_stands_across_once(answer: Answer, builder: TableBuilder) -> None:
    twice = body(answer, Format.CSV, builder, Layout(("SEX", "SEX")))
    assert twice == body(answer, Format.CSV, builder, Layout(("SEX",)))


def test_headers_of_a_laid_out_sheet_stay_in_sight_and_numbers_are_numbers(
    answer: Answer, builder: TableBuilder
) -> None:
    layout = Layout(("SEX",), percent=Percent.COLUMN, counts=True, link="https://example.org/q/1")
    book = openpyxl.load_workbook(io.BytesIO(body(answer, Format.XLSX, builder, layout)))
    assert book["Table"].freeze_panes == "B7"
    assert {cell.data_type for row in book["Table"].iter_rows(7, 8, 2) for cell in row} == {"n"}
    assert [row[0].value for row in book["Table"].iter_rows(7)] == ["_T Total", "A =cmd()", 'B B "x"']
    assert [cell.value for cell in book["Table"][6]][1:] == ["persons", "% of column"] * 2
    assert [cell.number_format for cell in book["Table"][7]][1:3] == ["#,##0", "0.00"]
    notes = {row[0].value: row[1].value for row in book["Notes"].iter_rows()}
    assert notes["Permanent link"] == "https://example.org/q/1"


def long_axis(name: str, length: int) -> AnswerAxis:
    codes = ("_T", *(f"c{k}" for k in range(length - 1)))
    return AnswerAxis(name, name, codes, codes, ("",) * length, (1,) * length, False)


@pytest.mark.parametrize(
    ("length", "layout", "fits"),
    [
        (16_383, Layout(("A",)), True),
        (16_384, Layout(("A",)), False),
        (8_193, Layout(("A",), percent=Percent.TOTAL, counts=True), False),
        (1_048_576, Layout(), False),
        (1_048_576, Layout(("B",)), False),
    ],
)
def test_a_table_that_no_sheet_can_hold_is_refused(
    answer: Answer, builder: TableBuilder, length: int, layout: Layout, fits: bool
) -> None:
    sizes = {"A": length} if "B" not in layout.columns else {"A": length, "B": 1}
    large = replace(
        answer,
        query=Query("persons", tuple(Axis(name) for name in sizes)),
        axes=tuple(long_axis(name, size) for name, size in sizes.items()),
        values=np.ones(length, dtype=np.int64),
        withheld=np.zeros(length, dtype=bool),
    )
    if fits:
        assert body(large, Format.XLSX, builder, layout)
        return
    with pytest.raises(
        HttpProblem, match="A sheet of Excel has at most 1,048,576 rows and 16,384 columns"
    ) as told:
        body(large, Format.XLSX, builder, layout)
    assert (told.value.status, told.value.kind) == (413, "size")


def test_texts_and_numbers_come_back_from_a_sheet_as_they_were(answer: Answer, builder: TableBuilder) -> None:
    texts = (
        "<b>&amp;",
        " two  spaces ",
        "a\nb",
        "\x07bell",
        "_x0041_",
        "Zürich 東京 \U0001f600",
        '"quoted"',
        "12",
    )
    size = len(texts)
    axis = AnswerAxis("GEO", "GEO", texts, texts, ("",) * size, (1,) * size, True)
    odd = replace(
        answer,
        axes=(axis,),
        values=np.array([0, 1, -5, 2**40, 7, 8, 9, 10], dtype=np.int64),
        withheld=np.arange(size) == 1,
    )
    book = openpyxl.load_workbook(io.BytesIO(body(odd, Format.XLSX, builder, Layout(texts=Texts.CODES))))
    rows = list(book["Data"].iter_rows(2, values_only=True))
    assert [unescape(row[0]) for row in rows] == list(texts)
    assert [row[2] for row in rows] == [0, None, -5, 2**40, 7, 8, 9, 10]
    assert book["Data"].dimensions == "A1:D9"


FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(1)")


@pytest.mark.parametrize("layout", [Layout(), Layout(("GEO",), title=True), Layout(("SEX",), Texts.LABELS)])
def test_no_text_of_a_file_is_a_formula(answer: Answer, builder: TableBuilder, layout: Layout) -> None:
    size = len(FORMULAS)
    names = AnswerAxis("GEO", "GEO", FORMULAS, FORMULAS, ("",) * size, (1,) * size, True)
    crafted = replace(
        answer,
        query=Query("=persons", (Axis("GEO"), Axis("SEX"))),
        axes=(names, SEX),
        values=np.arange(2 * size),
        withheld=np.zeros(2 * size, dtype=bool),
    )
    cells = [cell for line in lines_of(crafted, builder, layout) for cell in line]
    assert [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@")] == []
    assert sum(cell.startswith("'") for cell in cells) >= size
    book = openpyxl.load_workbook(io.BytesIO(body(crafted, Format.XLSX, builder, layout)))
    kinds = {cell.data_type for sheet in book for row in sheet.iter_rows() for cell in row}
    assert "f" not in kinds


@pytest.mark.parametrize("code", ["-1", "+5", "-1.5", "-", "+", "Y15-29", "_T", "65+", "1-2", ""])
def test_plain_codes_are_left_alone(code: str) -> None:
    assert harmless(code) == code


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
    people = int(total.values[0])
    for form in set(Format) - {Format.XLSX, Format.PARQUET}:
        assert str(people).encode() in body(total, form, builder), form
    book = openpyxl.load_workbook(io.BytesIO(body(total, Format.XLSX, builder)))
    assert people in {cell for sheet in book.worksheets for row in sheet.values for cell in row}
    assert pq.read_table(io.BytesIO(body(total, Format.PARQUET, builder)))["value"].to_pylist() == [people]


@pytest.mark.parametrize("form", list(Format))
def test_every_format_has_a_media_type_and_an_ending(
    answer: Answer, builder: TableBuilder, form: Format
) -> None:
    file = written(answer, form, builder.catalogue)
    assert "/" in file.media_type
    assert file.ending


def test_codes_without_those_above_keep_their_level(answer: Answer, builder: TableBuilder) -> None:
    """Codes of the second level that were chosen without their parents are of level 2, as in a release."""
    deep = AnswerAxis(
        "GEO", "GEO.L", ("A1", "A2"), ("x", "y"), ("", ""), (2, 2), True, ("GEO.N", "GEO.L", "GEO.M")
    )
    chosen = replace(
        answer,
        query=Query("persons", (Axis("GEO.L", ("A1", "A2")), Axis("SEX", ("1", "2")))),
        axes=(deep, SEX),
        values=np.array([1, 2, 3, 4], dtype=np.int64),
        withheld=np.zeros(4, dtype=bool),
    )
    book = openpyxl.load_workbook(io.BytesIO(body(chosen, Format.XLSX, builder)))
    assert {row[4] for row in book["Data"].iter_rows(2, values_only=True)} == {"GEO.L x SEX:1"}
    assert [row[0].alignment.indent for row in book["Table"].iter_rows(6)] == [0, 0]
