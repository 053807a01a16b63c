"""Tables and cells straight from a release: axes, levels, filters, structural zeros, and the noise of each cell."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.inference import independence, loglinear, released_cube
from discreet.inference.released import ReleasedCube
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from tests.cli.town import build
from tests.release.small import publish
from tests.serve.conftest import NOON, SECRET


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "r"
    publish(folder)
    return folder


@pytest.fixture(scope="module")
def cube(small: Path) -> ReleasedCube:
    return released_cube(small, "1.1")  # GEO.M, SEX, AGE.L


def value(folder: Path, **codes: str) -> int:
    """The published value of one cell of cube 1.1, read independently."""
    table = pq.read_table(folder / "parquet" / "1.1.parquet").to_pylist()
    wanted = {"GEO": "_T", "SEX": "_T", "AGE": "_T", **codes}
    return next((row["value"] for row in table if all(row[k] == v for k, v in wanted.items())), 0)


def test_a_cell_is_at_the_codes_that_are_named_and_at_totals_elsewhere(
    small: Path, cube: ReleasedCube
) -> None:
    assert int(cube.cell().table.counts) == value(small)
    assert int(cube.cell('SEX == "1"').table.counts) == value(small, SEX="1")
    both = 'GEO.M == "AT11" and AGE == "2"'
    assert int(cube.cell(both).table.counts) == value(small, GEO="AT11", AGE="2")
    assert int(cube.cell('GEO in ("AT11", "AT12")').table.counts) == value(small, GEO="AT1")


def test_a_table_has_the_finest_codes_or_those_of_a_level(small: Path, cube: ReleasedCube) -> None:
    finest = cube.table(["GEO", "SEX"], 'AGE == "1"').table
    assert finest.labels == (("AT11", "AT12", "AT21"), ("1", "2"))
    assert finest.counts.tolist() == [
        [value(small, GEO=geo, SEX=sex, AGE="1") for sex in "12"] for geo in finest.labels[0]
    ]
    assert cube.table(["GEO.M", "SEX"], 'AGE == "1"').table.counts.tolist() == finest.counts.tolist()
    coarse = cube.table(["GEO:1", "SEX"]).table
    assert coarse.labels[0] == ("AT1", "AT2")
    assert coarse.counts[1, 0] == value(small, GEO="AT2", SEX="1")
    inside = cube.table(["GEO", "SEX"], 'GEO == "AT1"').table
    assert inside.labels[0] == ("AT11", "AT12")
    assert cube.table(["SEX"], 'GEO != "AT2"').table.counts[1] == value(small, GEO="AT1", SEX="2")


def test_the_cells_of_a_total_are_the_fewest_that_have_the_records(small: Path, cube: ReleasedCube) -> None:
    found = cube.cells('GEO in ("AT11", "AT21") and SEX == "1"').table
    assert found.counts.size == 2
    assert sorted(found.counts.ravel().tolist()) == sorted(
        [value(small, GEO="AT2", SEX="1"), value(small, GEO="AT11", SEX="1")]
    )


def test_levels_have_the_names_of_the_column(cube: ReleasedCube) -> None:
    for name in ("GEO.L", "GEO:1"):
        assert cube.table([name]).table.labels == (("AT1", "AT2"),)
    assert cube.table(["M"]).table.labels == cube.table(["GEO"]).table.labels
    with pytest.raises(Mistakes, match="'L'; use one of"):  # of GEO or of AGE
        cube.table(["L"])


def test_results_need_no_table_cut_out_by_hand(cube: ReleasedCube) -> None:
    found = cube.table(["GEO", "SEX"])
    assert found.cross_tabulations == ("persons///GEO:2 x SEX:1",)
    assert independence(found.table, found.noise, simulations=0).df == 2
    assert loglinear(found.table, ["GEO", "SEX"], found.noise).df == 2


@pytest.mark.parametrize(
    ("axes", "where", "stated"),
    [
        (["GEO", "HEIGHT"], "", "'HEIGHT'; use one of GEO, SEX, AGE, GEO.L, GEO.M, AGE.L"),
        (["GEO", "SXE"], "", "did you mean 'SEX'"),
        (["GEO:9", "SEX"], "", "use one of GEO, SEX, AGE, GEO.L, GEO.M, AGE.L"),
        (["SEX", "SEX"], "", "name different axes"),
        (["SEX", "AGE"], 'GEO == "AT9"', "unknown code 'AT9' of GEO; did you mean 'AT2'"),
        (["SEX", "AGE"], 'REGION == "AT1"', "unknown variable 'REGION'"),
        (["SEX", "AGE"], 'GEO.H == "AT1"', "unknown breakdown 'H' of GEO"),
        (["SEX", "AGE"], "GEO = AT1,", "in a filter"),
        (["SEX", "AGE"], 'GEO in ("AT11", "AT21")', "2 codes of GEO"),
        (["SEX", "AGE"], 'GEO == "AT1" or SEX == "1"', "joined by and"),
        (["GEO:1", "SEX"], 'GEO == "AT11"', "GEO has no code of that level inside"),
    ],
)
def test_wrong_names_list_the_alternatives(
    cube: ReleasedCube, axes: list[str], where: str, stated: str
) -> None:
    with pytest.raises(Mistakes, match=stated.replace("(", r"\(").replace("?", r"\?")) as found:
        cube.table(axes, where)
    assert len(str(found.value).splitlines()) <= 2


def test_an_unknown_cube_lists_those_of_the_release(small: Path) -> None:
    with pytest.raises(Mistakes, match=r"this release has 1\.1, 2\.1"):
        released_cube(small, "9.9")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    programme = load_programme(build(folder) / "programme.toml")
    protect(programme, SECRET, folder / "r", folder / "p.json", clock=lambda: NOON)
    return folder / "r"


def test_structural_zeros_of_the_programme_are_in_the_manifest_and_in_tables(town: Path) -> None:
    assert open_release(town).manifest.structural_zeros == ('AGE == "child" and SEX == "9"',)
    people = released_cube(town, "people")
    found = people.table(["SEX", "AGE"]).table
    assert found.structural is not None
    wanted = np.zeros((3, 2), dtype=np.bool_)
    wanted[found.labels[0].index("9"), found.labels[1].index("child")] = True
    assert found.structural.tolist() == wanted.tolist()
    assert people.table(["GEO", "SEX"]).table.structural is None
    child = people.table(["GEO", "SEX"], 'AGE == "child"').table.structural
    assert child is not None
    assert child[:, 2].all()
    assert not child[:, :2].any()
    assert released_cube(town, "homes").table(["GEO", "TENURE"]).table.structural is None


def test_weighted_estimates_are_refused(town: Path) -> None:
    with pytest.raises(Mistakes, match=r"weighted estimates, .* `discreet infer weighted`"):
        released_cube(town, "workers").cell()
