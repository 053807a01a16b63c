"""The workbook as people open it: title, fixed headers, indents, bold totals, number formats, print set-up, notes."""

from pathlib import Path

import numpy as np
import openpyxl
import pytest
from openpyxl.workbook import Workbook

from discreet.formats import xlsx
from discreet.formats.dataset import dataset_of, part_of
from discreet.formats.xlsx import WideForm, suitable_form, write_xlsx
from discreet.programme.cube import Shown
from discreet.tabulate.tables import ProtectedTable
from tests.release.small import AGE_L, GEO_M, PUBLICATION, SEX, cube, table


@pytest.fixture
def made() -> ProtectedTable:
    return table(cube("1.1", GEO_M, SEX, AGE_L, title="Region, sex and age"))


@pytest.fixture
def book(made: ProtectedTable, tmp_path: Path) -> Workbook:
    write_xlsx(dataset_of(made, PUBLICATION), tmp_path / "a.xlsx")
    return openpyxl.load_workbook(tmp_path / "a.xlsx")


def test_the_table_is_laid_out_with_its_title_and_every_cell(made: ProtectedTable, book: Workbook) -> None:
    sheet = book["Table"]
    assert book.active == sheet
    assert (sheet["A1"].value, sheet["A1"].font.b, sheet["A1"].font.sz) == ("Region, sex and age", True, 14)
    assert sheet["A2"].value == "persons. A small census"
    assert [cell.value for cell in sheet[5]] == ["GEO.M", "SEX", "Total", "band 1", "band 2"]
    grid = np.zeros(made.cube.size, dtype=np.int64)
    grid[made.cells] = made.values
    shown = np.array([[cell.value for cell in row] for row in sheet.iter_rows(6, min_col=3)])
    assert shown.tolist() == grid.reshape(-1, 3).tolist()  # zeros are written out
    stubs = [[cell.value for cell in row] for row in sheet.iter_rows(6, max_col=2)]
    assert stubs == [[geo, sex] for geo in GEO_M.labels for sex in SEX.labels]
    assert book.properties.title == "Region, sex and age"
    assert "DISCREET" not in str(book.properties)


def test_levels_are_indented_totals_bold_and_numbers_have_separators(book: Workbook) -> None:
    sheet = book["Table"]
    indents = {row[0].value: row[0].alignment.indent for row in sheet.iter_rows(6)}
    assert indents == {
        "Total": 0, "East & <North>": 1, 'Burgen"land"': 2, "Lower Austria, rural": 2, "South's": 1, "Kärnten": 2,
    }  # fmt: skip
    assert all(row[0].font.b == (row[0].value == "Total") for row in sheet.iter_rows(6))
    first, second = sheet[6], sheet[7]
    assert [bool(cell.font.b) for cell in first] == [True] * 5
    assert [bool(cell.font.b) for cell in second][1:] == [
        False,
        True,
        True,
        True,
    ]  # a total of the first variable
    assert {cell.number_format for row in sheet.iter_rows(6, min_col=3) for cell in row} == {"#,##0"}


def test_headers_stay_visible_and_are_printed_on_every_page(book: Workbook) -> None:
    sheet = book["Table"]
    assert sheet.freeze_panes == "C6"
    assert sheet.print_title_rows == "$1:$5"
    assert sheet.page_setup.orientation == "landscape"
    assert sheet.page_setup.fitToWidth in (None, 1)  # None: the default, which is 1
    assert sheet.page_setup.fitToHeight == 0
    assert sheet.sheet_properties.pageSetUpPr.fitToPage
    assert sheet.column_dimensions["A"].width > sheet.column_dimensions["C"].width
    assert book["Data"].freeze_panes == "A2"


def test_notes_have_citation_noise_and_levels(book: Workbook) -> None:
    notes = {row[0].value: row[1] for row in book["Notes"].iter_rows()}
    assert notes["Cite as"].value == "NSI: A small census, version 1.0, table 1.1, Region, sex and age."
    assert "variance" in notes["Noise"].value
    assert "count everyone once" in notes["Levels"].value
    assert notes["Noise"].alignment.wrap_text
    row = notes["Levels"].row
    assert book["Notes"].row_dimensions[row].height >= 30  # more than one line


def test_data_has_codes_labels_and_levels(made: ProtectedTable, book: Workbook) -> None:
    header, *rows = book["Data"].iter_rows(values_only=True)
    assert header == ("GEO", "GEO_label", "SEX", "SEX_label", "AGE", "AGE_label", "level", "value")
    assert len(rows) == len(made.values)
    finest = [row[-1] for row in rows if row[-2] == "AGE.L x GEO.M x SEX"]
    assert 0 < len(finest) <= 3 * 2 * 2


def test_cells_that_are_not_published_are_empty(tmp_path: Path) -> None:
    of = cube("p", GEO_M, SEX)
    object.__setattr__(of, "shown", Shown(frozenset({(2, 1), (0, 0)})))
    part = part_of(of)
    assert part is not None
    full = table(of)
    kept = ~part.absent(full.cells)
    write_xlsx(
        dataset_of(ProtectedTable(of, full.cells[kept], full.values[kept]), PUBLICATION), tmp_path / "a.xlsx"
    )
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["Table"]
    rows = {row[0].value: [cell.value for cell in row[1:]] for row in sheet.iter_rows(6)}
    assert rows["East & <North>"] == [None, None, None]
    assert None not in rows["Kärnten"][1:]


def test_weighted_estimates_have_a_decimal(tmp_path: Path) -> None:
    write_xlsx(dataset_of(table(cube("w", SEX, AGE_L, weight="grossing")), PUBLICATION), tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["Table"]
    assert sheet["B6"].number_format == "#,##0.0"


def test_a_table_with_one_axis_has_a_column_of_what_is_counted(tmp_path: Path) -> None:
    write_xlsx(dataset_of(table(cube("a", AGE_L, title="Age")), PUBLICATION), tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["Table"]
    assert [cell.value for cell in sheet[4]] == ["AGE.L", "persons"]
    assert [row[0].value for row in sheet.iter_rows(5)] == list(AGE_L.labels)


def test_places_are_in_rows_and_what_does_not_fit_is_not_laid_out(
    made: ProtectedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of(made, PUBLICATION)
    assert suitable_form(dataset) is not None
    moved = dataset.transposed((2, 1, 0))
    form = suitable_form(moved)
    assert isinstance(form, WideForm)
    assert form.across == (1,)  # not GEO, the last one
    monkeypatch.setattr(xlsx, "SHEET_ROWS", 8)
    assert suitable_form(dataset) is None
    monkeypatch.setattr(xlsx, "SHEET_ROWS", 1000)
    monkeypatch.setattr(xlsx, "SMALL_GRID", 10)
    monkeypatch.setattr(xlsx, "LARGEST_GRID", 1)
    assert suitable_form(dataset) is None
