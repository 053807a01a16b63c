"""Protected tables in memory: parts, frames, arrays, pictures and intervals, all by published values only."""

import asyncio
import json
import re
from importlib import import_module
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

import discreet as ds
from discreet.api import tables
from tests.api.test_protect import CUBE, FRAME, KEY, NOISE, census


@pytest.fixture(scope="module")
def release() -> ds.Release:
    return ds.protect(census(), [CUBE, ds.Cube("sex", id="1.1")], NOISE, secret=KEY)


@pytest.fixture(scope="module")
def table(release: ds.Release) -> ds.Table:
    return release[CUBE.id]


def test_parts_have_the_values_of_the_whole(table: ds.Table) -> None:
    dense = table.to_numpy()
    assert dense.shape == table.shape == (16, 3, 6)
    assert np.array_equal(table.sel(sex="F").to_numpy(), dense[:, 1, :])
    assert np.array_equal(table.sel(sex=["M", "F"]).to_numpy(), dense[:, [2, 1], :])
    assert np.array_equal(table.sel(sex="F", age="_T", lau=["N0", "L03"]).to_numpy(), dense[[1, 5], 1, 0])
    assert table.value() == dense[0, 0, 0]
    assert table.value(lau="N0", age="15-29") == dense[1, 0, 2]
    assert np.asarray(table.finest("sex")).tolist() == dense[0, 1:, 0].tolist()


def test_frames_of_all_libraries_agree(table: ds.Table) -> None:
    long = table.to_pandas(zeros=True, labels=True)
    assert long["value"].tolist() == table.to_numpy().ravel().tolist()
    assert list(long.columns) == ["lau", "lau_label", "sex", "sex_label", "age", "age_label", "value"]
    assert table.to_polars(zeros=True)["value"].to_list() == long["value"].tolist()
    assert np.array_equal(table.to_xarray().sel(sex="F").values, table.sel(sex="F").to_numpy())
    wide = table.wide("sex")
    assert wide.loc[("N0", "15-29"), "F"] == table.value(lau="N0", sex="F", age="15-29")
    assert table.sel(lau="_T", age="_T").wide().to_numpy().tolist() == [table.to_numpy()[0, :, 0].tolist()]
    assert table.sel(lau="_T", sex="_T", age="_T").wide().to_numpy().tolist() == [[table.value()]]


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({"sex": "X"}, "unknown code 'X'"),
        ({"sex": 3}, "an object of type int; give a code as text"),
        ({"sax": "F"}, "'sax'; did you mean 'sex'?"),
    ],
)
def test_unknown_codes_and_axes_are_refused(table: ds.Table, codes: dict[str, str], said: str) -> None:
    with pytest.raises(ds.Mistakes) as refused:
        table.sel(**codes)
    assert said in str(refused.value)


def test_a_release_is_a_mapping(release: ds.Release) -> None:
    assert list(release) == [CUBE.id, "1.1"]
    assert "1.1" in release
    assert release.get("9.9") is None
    assert {name: len(one.axes) for name, one in release.items()} == {CUBE.id: 3, "1.1": 1}
    with pytest.raises(ds.Mistakes, match="use one of"):
        _ = release["nothing"]
    assert release.to_pandas()["table"].tolist() == list(release)
    assert "<table" in release._repr_html_()


def test_a_table_is_shown_with_its_published_values(table: ds.Table) -> None:
    shown = table._repr_html_()
    assert f"<td>{table.value():,}</td>" in shown
    assert shown.count("<tr>") == 32  # two headings and the first rows
    assert '<th class="text" colspan="6">age</th>' in shown
    assert '<th title="Total">_T</th>' in shown
    assert re.search(r"Not shown: [0-9]+ more rows\.", shown)
    assert table.sel(lau="_T", sex="_T", age="_T")._repr_html_().count("<td>") == 1
    spec = table.sel(lau="_T").chart().to_dict()
    assert {row["value"] for row in spec["data"]["values"]} <= set(table.values.tolist()) | {0}


@pytest.fixture(scope="module")
def repeated() -> list[ds.Table]:
    """The same cube under many secrets."""
    cube = ds.Cube("lau", "sex")
    return [
        ds.protect(census(), cube, NOISE, secret=bytes([seed] * 32), progress=False).finest()
        for seed in range(25)
    ]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_have_the_stated_coverage(level: float, repeated: list[ds.Table]) -> None:
    law = ds.ptable(V=2, D=5).found
    changes, probabilities = (
        law.changes(law.last_row),
        law.probabilities[law.last_row],
    )  # of all larger counts
    truth = FRAME.groupby(["lau", "sex"]).size()
    inside, reach = [], set()
    for table in repeated:
        found = table.interval(level).set_index(["lau", "sex"])
        reach |= {*(found["high"] - found["value"]), *(found["value"] - found["low"])}
        inside += [bool(found["low"][key] <= truth[key] <= found["high"][key]) for key in truth.index]
    (widest,) = reach
    expected = float(probabilities[np.abs(changes) <= widest].sum())
    narrower = float(probabilities[np.abs(changes) < widest].sum())
    assert narrower < level <= expected
    assert abs(np.mean(inside) - expected) < 4 * np.sqrt(expected * (1 - expected) / len(inside))


def test_libraries_that_are_not_installed_are_named(table: ds.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name) if name in ("polars", "xarray", "pandas") else AssertionError(import_module)

    monkeypatch.setattr(tables, "import_module", absent)
    for made in (table.to_polars, table.to_xarray, table.to_pandas, table.wide):
        with pytest.raises(ds.Mistakes, match="is not installed; install it: pip install"):
            made()


def test_cells_that_are_not_published_have_no_value() -> None:
    noise = ds.Geometric(epsilon=4, negatives="keep", split={"margins": ["sex", "interior"]})
    found = ds.protect(census(of="person"), ds.Cube("nuts3", "sex"), noise, secret=ds.Secret.new())
    assert found.value() is None
    assert found.value(sex="F") is not None
    assert np.isnan(found.to_numpy()[0, 0])
    assert np.isnan(found.to_numpy()[1, 0])
    assert not np.isnan(found.to_numpy()[1, 1])
    assert found.sel(sex="_T").to_pandas(zeros=True)["value"].isna().all()


async def answers(app: FastAPI, *paths: str) -> list[Response]:
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://builder") as client,
    ):
        return [await client.get(path) for path in paths]


def test_a_release_and_a_programme_are_served(release: ds.Release) -> None:
    table = json.dumps({"unit": "persons", "axes": ["sex"]})
    programme = census().programme(CUBE, NOISE)
    for app in (ds.serve(release), ds.serve(release["1.1"]), ds.serve(programme, secret=KEY)):
        page, answer = asyncio.run(answers(app, "/", f"/api/v1/table?query={quote(table)}"))
        assert page.status_code == 200
        assert answer.status_code == 200
        assert answer.json()["value"][0] == release["1.1"].value()
    with pytest.raises(ds.Mistakes, match="a population without cubes and noise"):
        ds.serve(census())  # type: ignore[arg-type]
    with pytest.raises(ds.Mistakes, match="secret: is missing"):
        ds.serve(programme)


def test_any_arrow_library_reads_a_table(table: ds.Table) -> None:
    assert pa.table(table).equals(table.to_arrow())
    assert pl.DataFrame(table).equals(table.to_polars())


def test_an_axis_of_a_coarser_level_is_named_in_full() -> None:
    frame = {"pid": [1, 2, 3], "nuts3": ["N", "N", "M"], "lau": ["A", "B", "C"]}
    census = ds.Population(persons=frame, person_id="pid", geography=["nuts3", "lau"])
    found = ds.protect(census, ds.Cube("nuts3"), ds.CellKey(V=2, D=5), secret=bytes(32), progress=False)
    assert "lau.nuts3 (3)" in found.summary()
    assert found.axis("nuts3").variable == "lau"


def test_other_noise_than_a_known_law_is_refused() -> None:
    with pytest.raises(ds.Mistakes, match=r"type CellKey; give Table\.noise"):
        ds.inference.interval(3, ds.CellKey(V=2, D=5))  # type: ignore[arg-type]
