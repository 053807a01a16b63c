"""Every kind of table is read as it is: capsules, categories, enums, gaps, and text without copies."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fastapi import FastAPI

import discreet as ds
from discreet.io import memory
from discreet.programme.swap import DeclaredSwap
from tests.api.test_protect import CUBE, FRAME, KEY, NOISE, census
from tests.api.test_tables import answers


class Capsule:
    """An object of some other library, of which only the Arrow PyCapsule interface is known."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


ARROW = pa.Table.from_pandas(FRAME, preserve_index=False)


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    return ds.protect(census(), CUBE, NOISE, secret=KEY, progress=False).to_arrow()


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=7)


INPUTS: dict[str, Any] = {
    "a capsule": Capsule(ARROW),
    "a reader of batches": ARROW.to_reader(max_chunksize=300),
    "a record batch": ARROW.combine_chunks().to_batches()[0],
    "a dictionary of arrays": {name: FRAME[name].to_numpy() for name in FRAME},
    "a query of DuckDB": duckdb.connect().from_df(FRAME).filter("age >= 0"),
    "polars, lazy": pl.from_pandas(FRAME).lazy().collect(),
    "views of text": ARROW.set_column(2, "sex", ARROW["sex"].cast(pa.string_view())),
    "text in random order": shuffled(FRAME),
    "pandas with Arrow columns": FRAME.convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_any_object_gives_the_same_counts(kind: str, expected: pa.Table) -> None:
    found = ds.protect(census(INPUTS[kind]), CUBE, NOISE, secret=KEY, progress=False)
    assert found.to_arrow().equals(expected)


def test_categories_and_enums_give_their_codes_and_order() -> None:
    kinds = ["M", "F", "X"]  # X does not occur
    for table in (
        FRAME.assign(sex=pd.Categorical(FRAME["sex"], kinds, ordered=True)),
        pl.from_pandas(FRAME).with_columns(pl.col("sex").cast(pl.Enum(kinds))),
    ):
        found = ds.protect(census(table), ds.Cube("sex"), NOISE, secret=KEY, progress=False)
        assert found.axes[0].codes == ("_T", "M", "F", "X")
        assert found.value(sex="X") == 0


def test_gaps_of_every_kind_have_the_declared_meaning() -> None:
    some = np.arange(len(FRAME)) % 7 == 0
    gaps = FRAME.assign(sex=FRAME["sex"].where(~some, None), age=FRAME["age"].where(~some, np.nan))
    kinds = (
        gaps,
        pl.from_pandas(gaps).with_columns(pl.col("sex").cast(pl.Enum(["F", "M"]))),
        gaps.astype({"sex": "category"}),
        pa.Table.from_pandas(gaps, preserve_index=False),
    )
    cube = ds.Cube("sex", ds.bands("age", 0, 50))
    tables = [
        ds.protect(census(one, missing="unknown"), cube, NOISE, secret=KEY, progress=False).to_arrow()
        for one in kinds
    ]
    assert all(one.equals(tables[0]) for one in tables)
    assert set(tables[0]["age"].to_pylist()) == {"_T", "0-49", "50+", "unknown"}
    by_column = census(gaps, missing={"sex": "U", "age": "V"})
    found = ds.protect(by_column, cube, NOISE, secret=KEY, progress=False)
    assert found.axes[0].codes[-1] == "U"
    assert found.axes[1].codes[-1] == "V"
    with pytest.raises(ds.DiscreetError, match="age"):
        ds.protect(census(gaps, missing={"sex": "U"}), cube, NOISE, secret=KEY, progress=False)


def addresses(column: pa.ChunkedArray) -> list[int]:
    return [buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None]


def test_columns_are_not_copied() -> None:
    population = census(ARROW)
    ds.protect(population, CUBE, NOISE, secret=KEY, progress=False)
    stored = population._tables.sources["persons"].content  # type: ignore[union-attr]
    for name in ("pid", "age", "hid"):
        assert addresses(stored[name]) == addresses(ARROW[name]), name
    assert pa.types.is_dictionary(stored["lau"].type), "text is stored as codes once"


def test_text_is_encoded_as_arrow_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes of two bytes, in pieces and chunks, with gaps; where there are too many, those of Arrow."""
    monkeypatch.setattr(memory, "BATCH", 7)
    texts = [None if k % 11 == 3 else f"place {k % 17}" * (k % 3) for k in range(200)]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        column = pa.chunked_array(
            [pa.array(texts[:90], kind), pa.array([], kind), pa.array(texts, kind)[90:]]
        )
        found = memory.encoded_texts({"lau": column})["lau"]
        assert found.to_pylist() == texts
        assert found.type.index_type == pa.int16()
        assert found.combine_chunks().dictionary.to_pylist() == list(dict.fromkeys(filter_none(texts)))
    many = pa.chunked_array([[f"{k}" for k in range(40_000)]])
    monkeypatch.setattr(memory, "BATCH", 5_000)
    for column in (many, pa.chunked_array([], pa.string())):
        found = memory.encoded_texts({"pid": column})["pid"]
        assert found.to_pylist() == column.to_pylist()
        assert found.type.index_type == pa.int32()


def filter_none(texts: list[str | None]) -> list[str]:
    return [text for text in texts if text is not None]


def test_columns_with_any_name_are_variables() -> None:
    """Names of other letters and signs are replaced, never mixed up, and still select."""
    names = {
        "marital status": "sex",
        "Größe": "lau",
        "Φύλο": "sex",
        "Ηλικία": "lau",
        "Sex": "lau",
        "a.b": "sex",
    }
    frame = FRAME.assign(**{name: FRAME[of] for name, of in names.items()})
    found = ds.Population(persons=frame, person_id="pid")
    plain = ds.protect(found, ds.Cube("sex", "lau"), NOISE, secret=KEY, progress=False)
    for axes, variables in {
        ("marital status", "Größe"): ("marital_status", "Grosse"),
        ("Φύλο", "Ηλικία"): ("v", "v_2"),
        ("a.b", "Sex"): ("a_b", "Sex_2"),  # codelists are files, whose names may not tell capitals apart
        ("marital_status", "lau"): ("marital_status", "lau"),
    }.items():
        table = ds.protect(found, ds.Cube(*axes), NOISE, secret=KEY, progress=False)
        assert table.variables == variables
        assert table.values.tolist() == plain.values.tolist()
    cube = ds.Cube("marital status", "lau", where='marital_status == "F"')
    table = ds.protect(found, cube, NOISE, secret=KEY, progress=False)
    assert table.value(**{"marital status": "F"}) == plain.value(sex="F")
    declared = found.programme(cube, NOISE).declaration.content["variables"]
    assert declared["marital_status"]["label"] == "marital status"


def test_levels_of_a_codelist_are_axes(tmp_path: Path) -> None:
    file = tmp_path / "sex.csv"
    file.write_text("code,parent,label\nA,,All\nF,A,Women\nM,A,Men\n", encoding="utf-8")
    found = census(FRAME, codelists={"sex": file})
    table = ds.protect(found, ds.Cube("sex.level1"), NOISE, secret=KEY, progress=False)
    assert table.axes[0].codes == ("_T", "A")


def test_a_programme_file_keeps_everything_that_was_declared(tmp_path: Path) -> None:
    declared = census(of="person", labels={"sex": "Sex"}, missing={"sex": "U"}).programme(
        [CUBE, ds.Cube("nuts3", "sex", where='sex == "F"', title="Women", id="w")],
        ds.CellKey(V=2, D=5, js=1, keys="plain"),
        gates={"averaging": 0.9},
        disclose="law",
        name="census",
    )
    first = ds.load_programme(declared.to_toml(tmp_path / "one"))
    second = ds.load_programme(first.to_toml(tmp_path / "two"))
    for one in (first, second):
        assert one.summary() == declared.summary()
        assert one.resolved.noise == declared.resolved.noise
        assert one.resolved.gates == declared.resolved.gates
        assert one.resolved.labels == declared.resolved.labels
        made = ds.protect(one, secret=KEY, progress=False)
        assert made["w"].to_arrow().equals(ds.protect(declared, secret=KEY, progress=False)["w"].to_arrow())


def test_a_table_builder_is_mounted_in_another_application() -> None:
    release = ds.protect(census(), [CUBE], NOISE, secret=KEY, progress=False)
    builder = ds.serve(release, progress=False, rate=(1000, 1))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with builder.router.lifespan_context(builder):
            yield

    outer = FastAPI(lifespan=lifespan)
    outer.mount("/tables", builder)
    query = quote('{"unit": "persons", "axes": ["sex"]}')
    page, answer = asyncio.run(answers(outer, "/tables/", f"/tables/api/v1/table?query={query}"))
    assert page.status_code == 200
    assert not re.findall(r'(?:href|src|action)="/', page.text), "addresses of the page are relative"
    assert answer.status_code == 200
    assert answer.json()["value"][0] == release[CUBE.id].value()


def test_what_is_neither_a_release_nor_a_programme_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(ds.Mistakes, match="serve: does not exist; give a release folder or a programme file"):
        ds.serve(tmp_path / "absent", progress=False)
    with pytest.raises(
        ds.Mistakes, match="serve: is neither a release nor a programme; give a release folder"
    ):
        ds.serve(tmp_path, progress=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rate": (0, 1)}, "rate: (0, 1); give requests and seconds"),
        ({"tokens_only": True}, "tokens_only: needs a file of tokens"),
        ({"language": "english!"}, "language: 'english!'; write a tag"),
        ({"hosts": "example.org"}, "hosts: 'example.org'; give a list"),
    ],
)
def test_wrong_arguments_of_a_table_builder_are_named(wrong: dict[str, Any], said: str) -> None:
    release = ds.protect(census(), [CUBE], NOISE, secret=KEY, progress=False)
    with pytest.raises(ds.Mistakes) as refused:
        ds.serve(release, progress=False, **wrong)
    assert said in str(refused.value)


def test_a_swap_has_the_keys_of_a_programme_file_and_names_levels_of_hierarchies() -> None:
    assert set(ds.Swap.__dataclass_fields__) == set(DeclaredSwap.model_fields)
    frame = pd.DataFrame({
        "pid": range(400), "hid": [k // 2 for k in range(400)], "lau": [f"L{k // 50}" for k in range(400)],
        "job": [f"J{k % 3}{k % 2}" for k in range(400)], "branch": [f"J{k % 3}" for k in range(400)],
        "sex": ["F", "M"] * 200,
    })  # fmt: skip
    census = ds.Population(
        persons=frame, person_id="pid", household_id="hid", geography=["lau"], hierarchies=[["branch", "job"]],
        missing={"branch": "-"},
    )  # fmt: skip
    rule = ds.Swap(risk=["job", "branch"], similar=[["sex"]], quotas={"levels": {"lau": 0.05}})
    declared = census.programme(ds.Cube("lau", "sex"), ds.CellKey(V=2, D=5), swap=rule).declaration.content
    assert declared["swap"]["risk"] == ["job", "job.branch"]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ds.Swap(risk=["sex"], similar=["sex"]), 'similar=[["sex"]]'),
        (lambda: ds.Swap(risk="sex", similar=[["sex"]]), 'risk=["sex"]'),
        (lambda: ds.Population(persons={"uri": "duckdb:///a.db", "tables": "b"}), "unknown keys: tables"),
        (
            lambda: ds.Population(persons={"pid": [], "sex": []}, person_id="pid").programme(
                ds.Cube("sex"), ds.CellKey(V=2, D=5)
            ),
            "no record has a value",
        ),
        (
            lambda: ds.Population(persons={"pid": [1], "sex": ["F"]}, person_id="pid").programme(
                ds.Cube("sex"), ds.CellKey(V=2, D=5), thread={}
            ),
            "did you mean threads=?",
        ),
    ],
)
def test_a_wrong_argument_names_the_remedy(made: Any, message: str) -> None:
    with pytest.raises(ds.Mistakes) as found:
        made()
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_a_file_and_a_notebook_name_bands_and_levels_alike(tmp_path: Path) -> None:
    """Cubes that made a programme file can be made again from it."""
    frame = {
        "pid": list(range(60)), "nuts3": ["N1", "N2"] * 30, "lau": ["A", "B"] * 30, "age": list(range(60)),
    }  # fmt: skip
    census = ds.Population(persons=frame, person_id="pid", geography=["nuts3", "lau"])
    cubes, noise = [ds.Cube("nuts3", ds.bands("age", 0, 15, 30)), ds.Cube("lau")], ds.CellKey(V=2, D=5)
    path = census.programme(cubes, noise).to_toml(tmp_path / "declared")
    made, again = (
        ds.protect(one, cubes, noise, secret=bytes(32), progress=False)
        for one in (census, ds.Population.from_toml(path))
    )
    assert list(made) == list(again)
    assert made["nuts3_age"].to_arrow().equals(again["nuts3_age"].to_arrow())
