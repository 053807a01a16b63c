"""Levels: every row has one, each is a partition of the records unless marked, and sums of one level are a total."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.formats.columns import batches
from discreet.formats.dataset import Dataset, DatasetAxis, dataset_of
from discreet.formats.levels import PART, axis_levels, levels_of
from discreet.formats.writers import level_place
from discreet.inference.released import released_cube
from discreet.pipeline.protect import protect
from discreet.programme.codelist import TOTAL, Code, breakdown, codelist, with_level_names
from discreet.programme.cube import Cube, Shown
from discreet.programme.programme import load_programme
from discreet.programme.release import ReleaseFormat
from discreet.release.folder import file_sha256
from discreet.release.manifest import AxisEntry, read_manifest
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from discreet.synth import generate
from tests.release.small import PUBLICATION, table
from tests.serve.conftest import NOON, SECRET, query

EVEN = [
    Code("1", "", ""),
    Code("1.1", "1", ""),
    Code("1.2", "1", ""),
    Code("2", "", ""),
    Code("2.1", "2", ""),
]
UNEVEN = [
    Code("1", "", ""),
    Code("1.1", "1", ""),
    Code("1.1.1", "1.1", ""),
    Code("1.2", "1", ""),
    Code("2", "", ""),
]


def axis(variable: str, codes: list[Code]) -> DatasetAxis:
    return DatasetAxis(
        variable=variable,
        name=variable,
        label=variable,
        codes=(TOTAL, *(one.code for one in codes)),
        labels=("Total", *(one.code for one in codes)),
        parents=("", *(one.parent or TOTAL for one in codes)),
    )


def test_codes_that_end_early_belong_to_the_deepest_level() -> None:
    found = axis_levels("A", *(getattr(axis("A", UNEVEN), part) for part in ("codes", "parents")))
    assert dict(zip(axis("A", UNEVEN).codes, found.levels.tolist(), strict=True)) == {
        TOTAL: 0, "1": 1, "1.1": 2, "1.1.1": 3, "1.2": 3, "2": 3,
    }  # fmt: skip
    assert found.whole == (True, False, False, True)
    assert levels_of([found]).names == ("total", "A:1 (part)", "A:2 (part)", "A:3")


@st.composite
def trees(draw: st.DrawFn) -> list[Code]:
    """A random tree of codes, every parent before its children."""
    codes: list[Code] = []
    for number in range(draw(st.integers(1, 12))):
        parent = draw(st.sampled_from(["", *(one.code for one in codes)]))
        codes.append(Code(f"c{number}", parent, ""))
    return codes


@settings(max_examples=60, deadline=None)
@given(trees(), trees())
def test_every_level_without_a_mark_has_each_finest_cell_exactly_once(
    first: list[Code], second: list[Code]
) -> None:
    axes = (axis("A", first), axis("B", second))
    levels = levels_of([axis_levels(one.variable, one.codes, one.parents) for one in axes])
    nodes = [place.ravel() for place in np.indices([len(one) for one in axes])]
    places = levels.places(nodes)
    above = [dict(zip(one.codes, one.parents, strict=True)) for one in axes]

    def leaves(one: DatasetAxis, code: str, parents: dict[str, str]) -> set[str]:
        finest = [leaf for leaf in one.codes if leaf != TOTAL and leaf not in one.parents]
        return {leaf for leaf in finest if code in _chain(leaf, parents)}

    every = len(leaves(axes[0], TOTAL, above[0])) * len(leaves(axes[1], TOTAL, above[1]))
    for number, name in enumerate(levels.names):
        seen: list[tuple[str, str]] = []
        for at in np.flatnonzero(places == number):
            cell = [one.codes[along[at]] for one, along in zip(axes, nodes, strict=True)]
            seen += [
                (a, b) for a in leaves(axes[0], cell[0], above[0]) for b in leaves(axes[1], cell[1], above[1])
            ]
        assert len(set(seen)) == len(seen)  # never twice
        assert (len(seen) == every) == (not name.endswith(PART))


def _chain(code: str, parents: dict[str, str]) -> set[str]:
    found = set()
    while code:
        found.add(code)
        code = parents[code]
    return found | {TOTAL}


def test_levels_that_are_not_published_in_full_are_marked() -> None:
    tree = codelist("A", UNEVEN)
    cube = Cube("x", "persons", (breakdown("A", "A", tree, tree.leaves),))
    part = replace(cube, shown=Shown(frozenset({(0,), (1,), (3,)})))
    made = dataset_of(table(part), PUBLICATION)
    assert made.levels.names == ("total", "A:1 (part)", "A:2 (part)", "A (part)")
    whole = replace(cube, shown=Shown(frozenset({(1,), (2,), (3,)})))
    assert dataset_of(table(whole), PUBLICATION).levels.names[3] == "A"


def test_levels_are_named_by_the_breakdowns_that_end_there() -> None:
    """An uneven tree: a level is named where a breakdown has its codes and those that end above it, else numbered."""
    tree = codelist("A", UNEVEN)
    cuts = {
        "REGION": tree.level(1),
        "PLACE": tree.level(3),
        "ODD": [tree.position[c] for c in ("1.1", "1.2", "2")],
    }
    made = with_level_names({name: breakdown("A", name, tree, sorted(cut)) for name, cut in cuts.items()})
    assert made["REGION"].levels == ("A.REGION",)
    assert made["PLACE"].levels == ("A.REGION", "A.ODD", "A.PLACE")
    assert made["ODD"].levels == ("A.REGION", "A.ODD")
    without = with_level_names({"PLACE": breakdown("A", "PLACE", tree, tree.leaves)})
    assert without["PLACE"].levels == ("A:1", "A:2", "A.PLACE")
    dataset = dataset_of(table(Cube("x", "persons", (made["PLACE"],))), PUBLICATION)
    assert dataset.levels.names == ("total", "A.REGION (part)", "A.ODD (part)", "A.PLACE")


def test_no_two_levels_have_the_same_file() -> None:
    names = ["A x B", "A_B", "A.x x B", "A:1", "A.one", "A (part)", "A x part", "A.part", "A x B (part)"]
    assert len({level_place("c", ReleaseFormat.CSV, name) for name in names}) == len(names)


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic census of 3000 persons with uneven household status, protected with one level per file."""
    folder = tmp_path_factory.mktemp("levels")
    generate(3000, 5, folder / "census", tables=["1.1", "3.3", "36.1"], threads=1)
    programme = folder / "census" / "programme.toml"
    text = programme.read_text().replace(
        'formats = ["parquet"]', 'formats = ["csv", "xlsx", "sdmx-csv"]\nlevels = "split"'
    )
    programme.write_text(text)
    protect(load_programme(programme), SECRET, folder / "release", folder / "p.json", clock=lambda: NOON)
    return folder / "release"


def test_a_naive_pivot_of_one_level_adds_up_to_the_total_within_the_noise(census: Path) -> None:
    release = open_release(census)
    assert release.manifest.level_column == "level"
    for entry in release.manifest.cubes:
        frame = release.read_cube(entry.id).to_pandas()
        axes = [one.variable for one in entry.axes]
        total = int(frame.loc[frame["level"] == "total", "value"].sum())
        assert not frame.duplicated(axes).any()
        for level, rows in frame[~frame["level"].str.endswith(PART)].groupby("level", observed=True):
            pivot = rows.pivot_table(
                index=axes[0], columns=axes[1:], values="value", aggfunc="sum", observed=True
            )
            noise = 6 * np.sqrt(2.0 * (len(rows) + 1))  # of the cell key method, and of cells made zero
            assert abs(float(pivot.to_numpy(na_value=0).sum()) - total) <= noise + 0.35 * len(rows), level
        assert frame["value"].sum() > 2 * total  # what the column prevents


def test_one_level_per_file(census: Path) -> None:
    assert verify(census).passed
    release = open_release(census)
    entry = release.cube("1.1")
    whole = release.read_cube("1.1").to_pandas().astype({"level": str})
    files = [file for file in entry.files if file.format is not None and file.format.value == "csv"]
    assert {file.level for file in files} == set(whole["level"])
    parts = [pd.read_csv(census / file.path, dtype=str, keep_default_na=False) for file in files]
    for file, part in zip(files, parts, strict=True):
        assert set(part["level"]) == {file.level}
        assert file.path.startswith("csv/1.1/")
    rows = pd.concat(parts)[["GEO", "SEX", "AGE", "value"]] if "AGE" in whole else pd.concat(parts)
    assert sorted(map(tuple, rows.to_numpy().tolist())) == sorted(
        map(tuple, whole[list(rows.columns)].astype(str).to_numpy().tolist())
    )
    books = [file for file in entry.files if file.format is not None and file.format.value == "xlsx"]
    assert len(books) == len(files)


def test_a_changed_level_is_found(census: Path, tmp_path: Path) -> None:
    """The level of a row must follow from its codes, even where all checksums match."""
    copy = tmp_path / "r"
    shutil.copytree(census, copy)
    path = copy / "parquet" / "1.1.parquet"
    read = pq.read_table(path)
    place = read.schema.get_field_index("level")
    levels = pa.array(["total"] * len(read)).dictionary_encode()
    field = read.schema.field("level")
    pq.write_table(read.set_column(place, field, levels.cast(field.type)), path)
    manifest = read_manifest(copy)
    cubes = tuple(
        cube.model_copy(
            update={
                "files": tuple(
                    file.model_copy(update={"sha256": file_sha256(path), "bytes": path.stat().st_size})
                    if copy / file.path == path
                    else file
                    for file in cube.files
                )
            }
        )
        for cube in manifest.cubes
    )
    (copy / "manifest.json").write_text(manifest.model_copy(update={"cubes": cubes}).to_json())
    assert json.loads((copy / "manifest.json").read_text())["level_column"] == "level"
    assert "cube 1.1: the column level does not have the levels of its codes" in verify(copy).problems


def test_a_release_with_numbered_levels_still_passes(census: Path, tmp_path: Path) -> None:
    """Releases made before levels had names: no names in the manifest, numbers in the column."""
    copy = tmp_path / "r"
    shutil.copytree(census, copy)
    _rename_levels(copy, names=lambda axis: (), column=_numbered)
    assert verify(copy).passed
    cube = released_cube(copy, "1.1")  # its areas are only a total
    assert cube.table(["AGE:1", "SEX"]).table.counts.shape[1] == 2
    with pytest.raises(Mistakes, match=r"'AGE.L'; .* SEX:1, AGE:1, AGE:2, AGE:3"):
        cube.table(["AGE.L", "SEX"])
    over = serve_release(open_release(copy), Store(tmp_path / "s.sqlite", lambda: NOON))
    assert isinstance(over.ask(query("SEX"), "a reader", job=True), Answer)


@pytest.mark.parametrize("names", [("AGE.H",), ("AGE:1", "AGE:1", "AGE.H"), ("AGE.L", "AGE.M", "AGE.L")])
def test_a_level_with_the_name_of_another_breakdown_is_found(
    census: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    copy = tmp_path / "r"
    shutil.copytree(census, copy)
    _rename_levels(copy, names=lambda axis: names if axis.breakdown == "AGE.H" else axis.levels, column=None)
    assert any("do not have the names of their breakdowns" in problem for problem in verify(copy).problems)


def _numbered(name: str, axes: Sequence[AxisEntry]) -> str:
    numbers = {one: f"{axis.variable}:{k}" for axis in axes for k, one in enumerate(axis.levels, start=1)}
    whole, mark, _ = name.partition(PART)
    return " x ".join(numbers.get(part, part) for part in whole.split(" x ")) + mark


def _rename_levels(
    folder: Path,
    names: Callable[[AxisEntry], tuple[str, ...]],
    column: Callable[[str, Sequence[AxisEntry]], str] | None,
) -> None:
    """Rename levels in the manifest of a release, and in its Parquet files, with checksums that match."""
    manifest, cubes = read_manifest(folder), []
    for cube in manifest.cubes:
        file = cube.file(ReleaseFormat.PARQUET)
        assert file is not None
        path = folder / file.path
        if column is not None:
            read = pq.read_table(path)
            place, field = read.schema.get_field_index("level"), read.schema.field("level")
            texts = [column(name, cube.axes) for name in read["level"].to_pylist()]
            levels = pa.array(texts).dictionary_encode().cast(field.type)
            pq.write_table(read.set_column(place, field, levels), path)
        changed = file.model_copy(update={"sha256": file_sha256(path), "bytes": path.stat().st_size})
        files = tuple(changed if one == file else one for one in cube.files)
        axes = tuple(axis.model_copy(update={"levels": names(axis)}) for axis in cube.axes)
        cubes.append(cube.model_copy(update={"files": files, "axes": axes}))
    (folder / "manifest.json").write_text(manifest.model_copy(update={"cubes": tuple(cubes)}).to_json())


def test_rows_carry_the_level_in_every_batch() -> None:
    made = Dataset(
        id="x", title="t", source="s", agency="A", version="1", counted="persons", unit="persons",
        axes=(axis("A", EVEN),), values=np.arange(1, 7),
    )  # fmt: skip
    (batch,) = batches(made)
    assert batch.column("level").to_pylist() == ["total", "A:1", "A:2", "A:2", "A:1", "A:2"]
