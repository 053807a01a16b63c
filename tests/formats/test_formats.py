"""Every other format says the same as the Arrow columns, read by independent programs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyjstat import pyjstat
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import Codelist, ConceptScheme, Dataflow, DataStructureDefinition, Hierarchy

from discreet.errors import Mistakes
from discreet.formats import xlsx
from discreet.formats.columns import batches
from discreet.formats.csv import harmless, write_csv
from discreet.formats.dataset import Dataset
from discreet.formats.dataset import dataset_of as made_of
from discreet.formats.json_stat import write_json_stat
from discreet.formats.sdmx_data import write_csv_file
from discreet.formats.sdmx_ids import code_ids, component_id
from discreet.formats.sdmx_structures import write_structures
from discreet.formats.writers import WRITERS, place, with_parquet
from discreet.formats.xlsx import write_xlsx
from discreet.programme.cube import Shown
from discreet.programme.release import ReleaseFormat
from discreet.tabulate.tables import ProtectedTable
from tests.release.small import AGE_M, GEO_L, GEO_M, PUBLICATION, SEX, cube, cubes, table


def dataset_of(made: ProtectedTable) -> Dataset:
    return made_of(made, PUBLICATION)


@pytest.fixture
def small() -> ProtectedTable:
    return table(cubes()[1])


def rows_of(made: ProtectedTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pa.Table.from_batches(batches(dataset_of(made))).to_pylist()]


def sparse_one() -> ProtectedTable:
    return ProtectedTable(cubes()[1], np.array([0, 5, 40]), np.array([9, 2, 7]))


@pytest.mark.parametrize("form", ReleaseFormat)
def test_bytes_depend_on_content_alone(form: ReleaseFormat, small: ProtectedTable, tmp_path: Path) -> None:
    for name in ("a", "b"):
        WRITERS[form](dataset_of(small), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("form", ReleaseFormat)
def test_an_empty_cube_can_be_written(form: ReleaseFormat, tmp_path: Path) -> None:
    empty = ProtectedTable(cubes()[0], np.array([], np.int64), np.array([], np.int64))
    WRITERS[form](dataset_of(empty), tmp_path / "a")
    assert (tmp_path / "a").stat().st_size > 0


def test_parquet_is_always_among_the_formats() -> None:
    assert with_parquet([ReleaseFormat.XLSX]) == (ReleaseFormat.PARQUET, ReleaseFormat.XLSX)


def test_a_place_never_leaves_its_folder() -> None:
    assert place("../a b", ReleaseFormat.CSV) == "csv/..%2Fa%20b.csv"


def test_csv_reads_back(small: ProtectedTable, tmp_path: Path) -> None:
    write_csv(dataset_of(small), tmp_path / "a.csv")
    frame = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False).astype({"value": int})
    spelled = [tuple(harmless(x) if isinstance(x, str) else x for x in row) for row in rows_of(small)]
    assert [tuple(row) for row in frame.itertuples(index=False)] == spelled


def test_no_text_of_a_csv_file_is_a_formula(small: ProtectedTable, tmp_path: Path) -> None:
    data = dataset_of(small)
    hostile = ['=HYPERLINK("http://x")', "+1+2", "@SUM(A1)", "-2+3", "\t=1"]
    labels = (*hostile, *data.axes[0].labels[len(hostile) :])[: len(data.axes[0].labels)]
    axes = (replace(data.axes[0], labels=labels), *data.axes[1:])
    write_csv(replace(data, axes=axes), tmp_path / "a.csv")
    frame = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    texts = {text for column in frame for text in frame[column]}
    assert not [
        text for text in texts if text.strip()[:1] in tuple("=+@-") and not text.lstrip("-").isdigit()
    ]
    assert {f"'{text}" for text in labels} & texts


def test_sdmx_csv_has_the_prescribed_header(small: ProtectedTable, tmp_path: Path) -> None:
    write_csv_file(dataset_of(small), tmp_path / "a.csv")
    first, second = (tmp_path / "a.csv").read_text().splitlines()[:2]
    assert first.replace('"', "") == "STRUCTURE,STRUCTURE_ID,ACTION,SEX,AGE,GEO,OBS_VALUE"
    assert second.replace('"', "").startswith("dataflow,NSI:DF_2_1(1.0),I,_T,_T,_T,")


def test_pysdmx_reads_structures_and_data_together(small: ProtectedTable, tmp_path: Path) -> None:
    write_structures(cubes(), tmp_path / "structures.xml", PUBLICATION)
    write_csv_file(dataset_of(small), tmp_path / "a.csv")
    (dataset,) = get_datasets(tmp_path / "a.csv", tmp_path / "structures.xml")
    spelled = dict(zip(AGE_M.codes, code_ids(AGE_M.codes), strict=True))
    expected = [(sex, spelled[age], geo, value) for sex, _, age, _, geo, _, _, value in rows_of(small)]
    assert [
        (str(a), str(b), str(c), int(d)) for a, b, c, d in dataset.data.itertuples(index=False)
    ] == expected
    assert [component.id for component in dataset.structure.components] == [
        "SEX", "AGE", "GEO", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS", "LOWER_BOUND", "UPPER_BOUND",
    ]  # fmt: skip


def test_pysdmx_reads_the_structures_back(tmp_path: Path) -> None:
    write_structures(cubes(), tmp_path / "structures.xml", PUBLICATION)
    read = read_sdmx(tmp_path / "structures.xml").structures
    lists = {item.id: item for item in read if isinstance(item, Codelist)}
    assert set(lists) == {
        "CL_GEO_M", "CL_GEO_L", "CL_SEX", "CL_AGE_L", "CL_AGE_M", "CL_OBS_STATUS", "CL_CONF_STATUS",
    }  # fmt: skip
    assert [(code.id, code.name) for code in lists["CL_GEO_M"]] == list(
        zip(GEO_M.codes, GEO_M.labels, strict=True)
    )
    changed = next(code for code in lists["CL_AGE_M"] if code.id == "1_2")
    assert [note.text for note in changed.annotations] == ["1.2"]
    assert {item.id for item in read if isinstance(item, Dataflow)} == {"DF_1_1", "DF_2_1", "DF_3_a_b"}
    assert {item.id for item in read if isinstance(item, DataStructureDefinition)} == {
        "DSD_1_1",
        "DSD_2_1",
        "DSD_3_a_b",
    }
    (concepts,) = (item for item in read if isinstance(item, ConceptScheme))
    assert {concept.id for concept in concepts} == {
        "GEO", "SEX", "AGE", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS", "LOWER_BOUND", "UPPER_BOUND",
    }  # fmt: skip


def test_sdmx_hierarchies_hold_the_parents(tmp_path: Path) -> None:
    write_structures(cubes(), tmp_path / "structures.xml", PUBLICATION)
    trees = {
        item.id: item
        for item in read_sdmx(tmp_path / "structures.xml").structures
        if isinstance(item, Hierarchy)
    }
    assert set(trees) == {"H_GEO_M", "H_AGE_M"}
    (total,) = trees["H_GEO_M"].codes
    assert [code.id for code in total.codes] == ["AT1", "AT2"]
    assert [code.id for code in total.codes[0].codes] == ["AT11", "AT12"]


def test_a_nested_agency_and_a_long_version_are_sound(small: ProtectedTable, tmp_path: Path) -> None:
    nested = replace(PUBLICATION, agency="NSI.CENSUS", version="1.0.2")
    write_structures(cubes(), tmp_path / "structures.xml", nested)
    write_csv_file(made_of(small, nested), tmp_path / "a.csv")
    (dataset,) = get_datasets(tmp_path / "a.csv", tmp_path / "structures.xml")
    assert len(dataset.data) == len(small)


def test_structures_are_the_same_bytes_twice(tmp_path: Path) -> None:
    for name in ("a.xml", "b.xml"):
        write_structures(cubes(), tmp_path / name, PUBLICATION)
    assert (tmp_path / "a.xml").read_bytes() == (tmp_path / "b.xml").read_bytes()


def test_cubes_that_sdmx_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="DF_1_1"):
        write_structures([cube("1.1", SEX), cube("1_1", SEX)], tmp_path / "a.xml", PUBLICATION)


def test_a_variable_with_an_id_that_sdmx_needs_itself_is_refused(tmp_path: Path) -> None:
    taken = replace(SEX, variable="OBS_STATUS")
    with pytest.raises(Mistakes, match="OBS_STATUS"):
        write_structures([cube("1.1", taken)], tmp_path / "a.xml", PUBLICATION)


def test_sdmx_ids_stay_distinct() -> None:
    assert code_ids(["1.1", "1_1", "1-1", "é"]) == ("1_1", "1_1_2", "1-1", "_")
    assert component_id("1st") == "V_1st"


@pytest.mark.filterwarnings("ignore:Shouldn't use this function:DeprecationWarning")
@pytest.mark.parametrize(("made", "kind"), [(table(cubes()[1]), list), (sparse_one(), dict)])
def test_pyjstat_reads_the_values(made: ProtectedTable, kind: type, tmp_path: Path) -> None:
    write_json_stat(dataset_of(made), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert isinstance(json.loads(text)["value"], kind)
    frame = pyjstat.Dataset.read(text).write("dataframe", naming="id")
    filled = frame[frame["value"].fillna(0) != 0]
    codes = [(sex, age, geo, value) for sex, _, age, _, geo, _, _, value in rows_of(made)]
    assert [(a, b, c, int(d)) for a, b, c, d in filled.itertuples(index=False)] == codes


def test_json_stat_tells_places_hierarchy_and_notes(tmp_path: Path) -> None:
    write_json_stat(dataset_of(table(cubes()[0])), tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text())
    assert (read["version"], read["class"], read["role"]) == ("2.0", "dataset", {"geo": ["GEO"]})
    assert (read["id"], read["size"]) == (["GEO", "SEX", "AGE"], [6, 3, 3])
    category = read["dimension"]["GEO"]["category"]
    assert category["child"] == {"_T": ["AT1", "AT2"], "AT1": ["AT11", "AT12"], "AT2": ["AT21"]}
    assert category["label"]["AT21"] == "Kärnten"
    assert any("variance" in note for note in read["note"])


def test_json_stat_has_no_value_of_what_is_not_published(small: ProtectedTable, tmp_path: Path) -> None:
    """An empty cell is 0, also where cells beside it are not published."""
    of, left_out = small.cube, small.cube.depths[0]
    part = replace(of, shown=Shown(frozenset(of.depths) - {left_out}))
    listed = small.cells != 0
    write_json_stat(
        dataset_of(ProtectedTable(part, small.cells[listed], small.values[listed])), tmp_path / "a.json"
    )
    found = json.loads((tmp_path / "a.json").read_text())["value"]
    assert found[0] is None, "the total of all"
    assert None not in found[1:]
    assert 0 in found


def test_weighted_values_are_decimals(tmp_path: Path) -> None:
    made = table(cube("w", SEX, weight="grossing"))
    write_json_stat(dataset_of(made), tmp_path / "a.json")
    write_csv_file(dataset_of(made), tmp_path / "a.csv")
    assert json.loads((tmp_path / "a.json").read_text())["value"][0] == round(made.values[0] * 1.26, 1)
    assert pd.read_csv(tmp_path / "a.csv")["OBS_VALUE"][0] == round(made.values[0] * 1.26, 1)


def test_openpyxl_reads_notes_and_cells(small: ProtectedTable, tmp_path: Path) -> None:
    write_xlsx(dataset_of(small), tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx", read_only=True)
    assert book.sheetnames == ["Table", "Notes", "Data"]
    notes = dict(book["Notes"].iter_rows(values_only=True))
    assert "differs from the sum of its parts by up to about" in notes["Why totals may differ"]
    assert "variance" in notes["Noise"]
    assert notes["Cite as"] == "NSI: A small census, version 1.0, table 2.1, The same | with more age."
    header, *rows = book["Data"].iter_rows(values_only=True)
    assert header == ("SEX", "SEX_label", "AGE", "AGE_label", "GEO", "GEO_label", "level", "value")
    assert rows == rows_of(small)
    book.close()


def test_a_workbook_spills_onto_further_sheets(
    small: ProtectedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "SHEET_ROWS", 20)
    write_xlsx(dataset_of(small), tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx", read_only=True)
    names = [name for name in book.sheetnames if name.startswith("Data")]
    assert len(names) > 1
    sheets = [list(book[name].iter_rows(values_only=True)) for name in names]
    assert [len(sheet) for sheet in sheets[:-1]] == [20] * (len(sheets) - 1)
    assert [row for sheet in sheets for row in sheet[1:]] == rows_of(small)
    book.close()


def test_the_total_alone_makes_an_axis(tmp_path: Path) -> None:
    only = type(GEO_L)("GEO", "N", ("_T",), ("Total",), np.array([-1], np.int32), np.zeros(3, np.int32))
    made = ProtectedTable(cube("n", only, SEX), np.array([0, 1]), np.array([5, 3]))
    for form, write in WRITERS.items():
        write(dataset_of(made), tmp_path / form.value)
    write_structures([made.cube], tmp_path / "structures.xml", PUBLICATION)
    assert "CL_GEO_N" in (tmp_path / "structures.xml").read_text()
