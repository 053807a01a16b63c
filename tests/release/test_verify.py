import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.evidence import published
from discreet.errors import BrokenRelease
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.programme.filter import parse_filter
from discreet.release import reader
from discreet.release import verify as compare
from discreet.release.manifest import Manifest, read_manifest
from discreet.release.verify import verify
from discreet.tabulate.tables import ProtectedTable
from tests.cases import few
from tests.release.small import AGE_L, AGE_M, ALL, GEO_L, GEO_M, SEX, SEX_CODES, cube, cubes, publish, table


def reseal(folder: Path, change: dict[str, object]) -> None:
    """Change a manifest as a forger would, seal included."""
    content = {**json.loads((folder / "manifest.json").read_text()), **change}
    del content["seal"]
    (folder / "manifest.json").write_text(Manifest.model_validate(content).to_json())


def with_value(made: ProtectedTable, row: int, value: int) -> ProtectedTable:
    values = made.values.copy()
    values[row] = value
    return ProtectedTable(made.cube, made.cells, values)


def without(made: ProtectedTable, row: int) -> ProtectedTable:
    return ProtectedTable(made.cube, np.delete(made.cells, row), np.delete(made.values, row))


def test_a_sound_release_passes(tmp_path: Path) -> None:
    publish(tmp_path / "r", formats=ALL)
    found = verify(tmp_path / "r")
    assert found.passed
    assert (found.cubes, found.cells) == (3, sum(len(table(of)) for of in cubes()))
    assert 0 < found.compared < found.cells


def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    made = publish(tmp_path / "r", formats=ALL)
    for file in made.all_files():
        path = tmp_path / "r" / file.path
        sound = path.read_bytes()
        path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        assert verify(tmp_path / "r").problems == (f"{file.path}: its content does not match the manifest",)
        path.write_bytes(sound)
    assert verify(tmp_path / "r").passed


def test_missing_and_foreign_files_are_found(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    (tmp_path / "r" / "codelists" / "SEX.csv").unlink()
    (tmp_path / "r" / ".hidden").write_text("")
    (tmp_path / "r" / "link").symlink_to(tmp_path)
    assert verify(tmp_path / "r").problems == (
        "link: is a link; a release has files only",
        ".hidden: not listed in the manifest",
        "link: not listed in the manifest",
        "codelists/SEX.csv: missing",
    )


def test_a_forged_manifest_without_its_parquet_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    content["cubes"][1]["files"] = []
    content["cubes"].append(content["cubes"][0])
    reseal(tmp_path / "r", {"cubes": content["cubes"], "files": content["files"][1:]})
    problems = "\n".join(verify(tmp_path / "r").problems)
    assert "cube 2.1 has no Parquet file" in problems
    assert "cube 1.1 occurs twice" in problems
    assert "parquet/2.1.parquet: not listed" in problems
    assert "which is not listed" in problems


@pytest.mark.parametrize("more", [1, 10**15, 10**30])
def test_a_wrong_number_of_cells_is_found(more: int, tmp_path: Path) -> None:
    publish(tmp_path / "r")
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    content["cubes"][0]["cells"] += more
    reseal(tmp_path / "r", {"cubes": content["cubes"]})
    assert "the manifest states" in verify(tmp_path / "r").problems[0]


@pytest.mark.parametrize("wrong", [{"bound": -1}, {"variance": -0.5}, {"variance": -1e300}])
def test_noise_that_cannot_be_is_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    publish(tmp_path / "r")
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    text = json.dumps({**content, "noise": {**content["noise"], **wrong}})
    (tmp_path / "r" / "manifest.json").write_text(text)
    with pytest.raises(BrokenRelease, match=rf"noise\.{next(iter(wrong))}"):
        verify(tmp_path / "r")


def test_every_damaged_byte_of_a_forged_cube_is_found_or_harmless(tmp_path: Path) -> None:
    """Whatever the Parquet reader raises for a page, a header or a name that is not text, it is a broken release."""
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    sound = (tmp_path / "r" / place).read_bytes()
    for at in range(4, len(sound), 29):
        forge(tmp_path / "r", place, sound[:at] + bytes([sound[at] ^ 0xA5]) + sound[at + 1 :])
        verify(tmp_path / "r")


def forge(folder: Path, place: str, content: bytes) -> None:
    """Replace a file and its checksums, as a forger would."""
    (folder / place).write_bytes(content)
    text = (folder / "manifest.json").read_text()
    old = next(file for file in read_manifest(folder).all_files() if file.path == place)
    text = text.replace(old.sha256, hashlib.sha256(content).hexdigest())
    content_of = json.loads(text)
    for file in (*content_of["files"], *(file for entry in content_of["cubes"] for file in entry["files"])):
        if file["path"] == place:
            file["bytes"] = len(content)
    (folder / "manifest.json").write_text(json.dumps(content_of))
    reseal(folder, {})


def as_parquet(rows: pa.Table) -> bytes:
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer)
    return bytes(buffer.getvalue())


def rows_of(path: Path) -> pa.Table:
    return pq.read_table(path)


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (lambda _: b"nonsense", "not readable as Parquet"),
        (lambda rows: as_parquet(rows.drop_columns(["SEX"])), "columns of its axes"),
        (
            lambda rows: as_parquet(rows.set_column(7, "value", rows["value"].cast(pa.float64()))),
            "columns of its axes",
        ),
        (
            lambda rows: as_parquet(rows.set_column(7, "value", rows["value"].cast(pa.float16()))),
            "columns of its axes",
        ),
        (lambda rows: as_parquet(rows.take(list(range(len(rows)))[::-1])), "order of its codes"),
        (
            lambda rows: as_parquet(pa.concat_tables([rows.slice(1), rows.slice(len(rows) - 1)])),
            "occurs twice",
        ),
        (lambda rows: as_parquet(rows.slice(1)), "the manifest states"),
        (lambda rows: as_parquet(rows.set_column(7, "value", pa.array([0] * len(rows)))), "not positive"),
        (
            lambda rows: as_parquet(
                rows.set_column(0, "GEO", pa.array(["XX"] * len(rows)).dictionary_encode())
            ),
            "unlisted code 'XX'",
        ),
    ],
)
def test_a_forged_cube_is_found(forged: Callable[[pa.Table], bytes], message: str, tmp_path: Path) -> None:
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    forge(tmp_path / "r", place, forged(rows_of(tmp_path / "r" / place)))
    (problem,) = verify(tmp_path / "r").problems
    assert problem.startswith("cube 1.1: ")
    assert message in problem


def test_impossible_values_are_found_beside_a_cube_that_cannot_be_read(tmp_path: Path) -> None:
    """Of the population of an unreadable cube, and of all where an axis is wrong: each mistake at once."""
    publish(tmp_path / "r")
    other = read_manifest(tmp_path / "r").cubes[1]
    place = f"parquet/{other.id}.parquet"
    values = rows_of(tmp_path / "r" / place)
    column = values.column_names.index("value")
    changed = values.set_column(column, "value", pa.array([2**60] * len(values), pa.int64()))
    forge(tmp_path / "r", place, as_parquet(changed))
    found = f"cube {other.id}: {len(values)} values that its noise cannot give, for example {2**60}"
    assert verify(tmp_path / "r").problems == (found,)
    forge(tmp_path / "r", "parquet/1.1.parquet", b"nonsense")
    assert verify(tmp_path / "r").problems == (found,), (
        "what cannot be read is reported when this is corrected"
    )
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    content["cubes"][0]["axes"][0]["codes"] += 1
    reseal(tmp_path / "r", {"cubes": content["cubes"]})
    first, second = verify(tmp_path / "r").problems
    assert "the manifest states" in first
    assert second == found


def test_every_cube_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "r")
    opened: list[str] = []
    read = pq.ParquetFile

    def counted(place: Path, **options: object) -> pq.ParquetFile:
        opened.append(Path(place).name)
        return read(place, **options)

    monkeypatch.setattr(pq, "ParquetFile", counted)
    assert verify(tmp_path / "r").passed
    assert sorted(opened) == sorted(place.name for place in (tmp_path / "r" / "parquet").iterdir())


@pytest.mark.parametrize(
    "content", [b"", b"code,parent,label\n", b"a,b\n1,2\n", b"\xff", b"code,parent,label\n_T,,\n_T,,\n"]
)
def test_a_forged_codelist_is_found(content: bytes, tmp_path: Path) -> None:
    publish(tmp_path / "r")
    forge(tmp_path / "r", "codelists/SEX.csv", content)
    (problem,) = verify(tmp_path / "r").problems
    assert "codelists/SEX.csv" in problem


@pytest.mark.parametrize(("axes", "codes", "is_chain"), [(4, 5, True), (12, 40, False)])
def test_codelists_of_more_levels_or_cells_than_a_cube_can_have_are_found(
    axes: int, codes: int, is_chain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be counted out one by one, and positions of cells would not fit into 64 bits."""
    monkeypatch.setattr(reader, "MOST_CROSSTABS", 6**4 - 1 if is_chain else 2**12)
    names = [f"V{k}" for k in range(axes)]
    above = ["", *(str(code) for code in range(codes - 1))] if is_chain else [""] * codes
    tree = codelist("V", [Code(str(code), parent, "") for code, parent in enumerate(above)])
    of = cube("1", *(breakdown(name, name, tree, tree.leaves) for name in names))
    publish(tmp_path / "r", tables=[ProtectedTable(of, np.zeros(1, np.int64), np.full(1, 5))])
    message = "cube 1: its codelists have more codes or levels than those of a cube can have"
    assert verify(tmp_path / "r").problems == (message,)
    with pytest.raises(BrokenRelease, match=message):  # nor does an attack try
        published(reader.open_release(tmp_path / "r"))


@pytest.mark.parametrize(
    ("stated", "problems"),
    [("sums", ()), ("public", ("cube 1: its public total is not the None that the manifest states",))],
)
def test_a_cube_without_cells_may_state_sums(stated: str, problems: tuple[str, ...], tmp_path: Path) -> None:
    nothing = np.zeros(0, np.int64)
    publish(tmp_path / "r", tables=[ProtectedTable(cube("1", SEX), nothing, nothing)])
    content = json.loads((tmp_path / "r" / "manifest.json").read_text())
    content["cubes"][0][stated] = ["SEX:1"]
    reseal(tmp_path / "r", {"cubes": content["cubes"]})
    assert verify(tmp_path / "r").problems == problems


def test_no_release_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenRelease):
        verify(tmp_path)


def test_two_values_for_one_cell_are_named(tmp_path: Path) -> None:
    one, two = table(cube("1", GEO_M, SEX)), table(cube("2", SEX, GEO_L, AGE_L))
    row = 1  # GEO=_T, SEX=1 or the next that is not zero
    sex = SEX.codes[int(one.cube.nodes(one.cells, 1)[row])]
    publish(tmp_path / "r", tables=[with_value(one, row, 7777), two])
    (problem,) = verify(tmp_path / "r").problems
    assert problem.startswith(f"persons: SEX={sex}: 7777 in 1, ")
    assert problem.endswith(" in 2")


def test_a_cell_that_one_cube_lacks_is_named(tmp_path: Path) -> None:
    one, two = table(cube("1", GEO_M, SEX)), table(cube("2", SEX, GEO_L, AGE_L))
    publish(tmp_path / "r", tables=[one, without(two, 0)])
    assert verify(tmp_path / "r").problems == (
        f"persons: the grand total: {one.values[0]} in 1, not listed in 2",
    )


def test_other_populations_are_not_compared(tmp_path: Path) -> None:
    of = cube("1", SEX)
    others = [
        Cube("2", "households", of.axes),
        Cube("3", "persons", of.axes, base=parse_filter("SEX == '1'", {"SEX": SEX_CODES})),
        Cube("5", "persons", of.axes, count="flag"),
        Cube("4", "persons", of.axes, weight="w"),
    ]
    publish(
        tmp_path / "r", tables=[table(of), *(table(other, number) for number, other in enumerate(others, 1))]
    )
    found = verify(tmp_path / "r")
    assert found.passed
    assert found.compared == 0


def test_bases_that_mean_the_same_are_compared(tmp_path: Path) -> None:
    texts = ("SEX == '1'", "SEX != '2'", "SEX in ('1', '2')", "")
    bases = [parse_filter(text, {"SEX": SEX_CODES}) if text else None for text in texts]
    tables = [table(Cube(f"{n}", "persons", (AGE_L,), base=base)) for n, base in enumerate(bases)]
    publish(tmp_path / "r", tables=tables)
    assert verify(tmp_path / "r").compared == 4 * len(tables[0])
    publish(tmp_path / "r", tables=[*tables[:3], table(tables[3].cube, version=1)], run_id="run2")
    assert all("in 2" in problem and "in 3" in problem for problem in verify(tmp_path / "r").problems)


def test_weighted_values_may_differ_in_the_last_digit_only(tmp_path: Path) -> None:
    one, two = (table(cube(name, SEX, weight="w")) for name in "ab")
    assert two.weighted is not None
    for step, passed in ((0.1, True), (0.3, False)):
        moved = ProtectedTable(two.cube, two.cells, two.values, two.weighted + step)
        publish(tmp_path / f"r{step}", tables=[one, moved])
        assert verify(tmp_path / f"r{step}").passed is passed


def test_many_findings_are_counted(tmp_path: Path) -> None:
    one, two = table(cube("1", GEO_M, SEX, AGE_M)), table(cube("2", GEO_M, SEX, AGE_M), version=1)
    publish(tmp_path / "r", tables=[one, two])
    problems = verify(tmp_path / "r").problems
    assert len(problems) == compare.NAMED + 1
    assert problems[-1].endswith("more cells disagree")


def test_more_cubes_than_bits_in_a_word(tmp_path: Path) -> None:
    tables = [table(cube(f"{number}", SEX, AGE_L)) for number in range(70)]
    publish(tmp_path / "sound", tables=tables)
    assert verify(tmp_path / "sound").compared == 70 * len(tables[0])
    publish(tmp_path / "odd", tables=[*tables[:-1], without(tables[-1], 1)])
    (problem,) = verify(tmp_path / "odd").problems
    assert problem.endswith("not listed in 69")


def described(made: ProtectedTable) -> dict[frozenset[tuple[str, str]], int]:
    """What each cell says, zeros included, worked out the slow way."""
    values = dict(zip(made.cells.tolist(), made.values.tolist(), strict=True))
    found = {}
    for cell in range(made.cube.size):
        nodes = [int(made.cube.nodes(np.array([cell]), axis)[0]) for axis in range(len(made.cube.axes))]
        pairs = frozenset(
            (axis.variable, axis.codes[node])
            for axis, node in zip(made.cube.axes, nodes, strict=True)
            if node
        )
        found[pairs] = values.get(cell, 0)
    return found


def disagreeing(tables: list[ProtectedTable]) -> int:
    seen: dict[frozenset[tuple[str, str]], set[int]] = {}
    for made in tables:
        for pairs, value in described(made).items():
            seen.setdefault(pairs, set()).add(value)
    return sum(len(values) > 1 for values in seen.values())


@settings(max_examples=20)
@given(
    which=st.integers(0, 2),
    row=st.integers(0, 1000),
    change=st.sampled_from([lambda made, row: with_value(made, row, 5555), without]),
    rows_per_pass=st.sampled_from([11, 10**6]),
)
def test_exactly_the_cells_that_disagree_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    which: int,
    row: int,
    change: Callable[[ProtectedTable, int], ProtectedTable],
    rows_per_pass: int,
) -> None:
    tables = [table(of) for of in cubes()]
    tables[which] = change(tables[which], row % len(tables[which]))
    folder = tmp_path_factory.mktemp("release") / "r"
    publish(folder, tables=tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "ROWS_PER_PASS", rows_per_pass)
        assert len(verify(folder).problems) == disagreeing(tables)


def test_a_level_with_the_name_of_another_breakdown_is_found(tmp_path: Path) -> None:
    """Column and manifest agree with each other, but the breakdown of that name has other codes."""
    strange = replace(GEO_M, upper=("AGE.L",))
    publish(tmp_path / "r", tables=[table(cube("a", strange)), table(cube("b", AGE_L))])
    assert verify(tmp_path / "r").problems == (
        "cube a: the levels of GEO.M do not have the names of their breakdowns",
    )


def in_lines(text: str, value: str) -> str:
    return f"{text.rstrip().rpartition(',')[0]},{value}\n"


def in_json(text: str, value: str) -> str:
    content = json.loads(text)
    some = content["value"]
    some[0 if isinstance(some, list) else next(iter(some))] = value if value == "x" else int(value)
    return json.dumps(content)


def in_px(text: str, value: str) -> str:
    head, data, numbers = text.partition("DATA=\n")
    return f"{head}{data}{value} {numbers.partition(' ')[2]}"


CHANGED = {
    "csv/1.1.csv": in_lines,
    "sdmx/1.1.csv": in_lines,
    "json-stat/1.1.json": in_json,
    "px/1.1.px": in_px,
}


@pytest.mark.parametrize("place", few(CHANGED, 0, 2))
def test_a_value_that_one_format_has_and_parquet_has_not_is_found(place: str, tmp_path: Path) -> None:
    publish(tmp_path / "r", formats=ALL)
    text = (tmp_path / "r" / place).read_text()
    for changed in ("", "garbage", *(CHANGED[place](text, value) for value in ("-5", "9999", "0", "x"))):
        forge(tmp_path / "r", place, changed.encode())
        (problem,) = verify(tmp_path / "r").problems
        assert problem.startswith(f"{place}: ")
        assert problem.endswith(
            "cells of parquet/1.1.parquet" if "not all" in problem else "those of parquet/1.1.parquet"
        )
    forge(tmp_path / "r", place, text.encode())
    assert verify(tmp_path / "r").passed


def labels_changed(column: pa.ChunkedArray, change: Callable[[list[str]], list[str]]) -> pa.Array:
    whole = column.combine_chunks()
    texts = pa.array(change(whole.dictionary.to_pylist()))
    return pa.DictionaryArray.from_arrays(whole.indices, texts)


@pytest.mark.parametrize("change", [lambda labels: [*labels[:-1], "other"], lambda labels: labels[::-1]])
def test_labels_of_parquet_that_the_codelist_does_not_have_are_found(
    change: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    """A label of its own, or labels that are exchanged."""
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    rows = rows_of(tmp_path / "r" / place)
    at = rows.column_names.index("SEX_label")
    changed = rows.set_column(at, rows.schema.field(at), labels_changed(rows["SEX_label"], change))
    forge(tmp_path / "r", place, as_parquet(changed))
    assert verify(tmp_path / "r").problems == (
        "cube 1.1: the column SEX_label does not have the labels of the codelist",
    )


def test_missing_labels_are_found(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    forge(tmp_path / "r", place, as_parquet(rows_of(tmp_path / "r" / place).drop_columns(["SEX_label"])))
    assert verify(tmp_path / "r").problems == ("cube 1.1: its file does not have the columns of its axes",)


def test_labels_that_are_there_twice_are_found(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    rows = rows_of(tmp_path / "r" / place)
    forge(tmp_path / "r", place, as_parquet(rows.append_column("SEX_label", rows["SEX_label"])))
    assert verify(tmp_path / "r").problems == ("cube 1.1: its file does not have the columns of its axes",)


@pytest.mark.parametrize("place", ["csv/1.1.csv", "json-stat/1.1.json"])
def test_labels_of_other_formats_that_the_codelist_does_not_have_are_found(
    place: str, tmp_path: Path
) -> None:
    publish(tmp_path / "r", formats=ALL)
    text = (tmp_path / "r" / place).read_text()
    for changed in (text.replace("female", "femele", 1), text.replace("female", "=male")):
        forge(tmp_path / "r", place, changed.encode())
        (problem,) = verify(tmp_path / "r").problems
        assert problem == f"{place}: its cells, or their labels, are not those of parquet/1.1.parquet"


def test_a_column_that_no_cube_has_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    rows = rows_of(tmp_path / "r" / place)
    forge(tmp_path / "r", place, as_parquet(rows.append_column("count", rows["value"])))
    assert verify(tmp_path / "r").problems == (f"{place}: has the column 'count', which no cube has",)


def test_values_without_a_dictionary_are_found(tmp_path: Path) -> None:
    """Texts that are all missing have an empty dictionary, of which NumPy can take nothing."""
    publish(tmp_path / "r")
    place = "parquet/1.1.parquet"
    rows = rows_of(tmp_path / "r" / place)
    at = rows.column_names.index("value")
    nothing = pa.DictionaryArray.from_arrays(pa.nulls(len(rows), pa.int32()), pa.array([], pa.string()))
    forge(tmp_path / "r", place, as_parquet(rows.set_column(at, "value", nothing)))
    assert not verify(tmp_path / "r").passed
