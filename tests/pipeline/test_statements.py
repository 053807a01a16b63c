"""What a release states about its protection is true of the release: every count is compared with the records."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.case import make_case, recognise
from discreet.audit.evidence import Cells, Integers, Truth, published, values_at
from discreet.formats.publication import FILLED, promise
from discreet.io.progress import Quiet
from discreet.perturb.noise import Noise
from discreet.programme.programme import load_programme
from discreet.release.reader import Release, open_release
from discreet.report.public import public_page, public_view
from tests.pipeline.conftest import SECRET, run
from tests.pipeline.test_swap_stage import SWAP, swapping

EVERY_ATTACK = ("averaging", "removal", "bounds", "bayes", "differencing", "reconstruction", "disclosure")
PRIVATE = '[noise]\nkind = "geometric"\nepsilon = 2\nclaim = "none"\n'
LEVEL = 0.15  # of a mean over some hundred totals


def audited(folder: Path, release: Path) -> tuple[Release, Noise, Truth]:
    opened = open_release(release)
    case = make_case(recognise(load_programme(folder / "programme.toml"), SECRET, opened), opened)
    return opened, case.published.noise, case.truth


def errors(release: Release, truth: Mapping[str, Cells], cube: str) -> Integers:
    """Published minus true count of every cell that has either."""
    every = (table for universe in published(release).universes for table in universe.tables)
    shown = next(table.load() for table in every if table.id == cube)
    cells = np.union1d(shown[0], truth[cube][0])
    return values_at(shown, cells) - values_at(truth[cube], cells)


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.fixture(scope="module")
def swapped(census: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("swapped")
    run(swapping(census, folder / "census", SWAP), folder / "release")
    return folder / "census", folder / "release"


def test_no_bound_is_stated_that_swapping_breaks(swapped: tuple[Path, Path]) -> None:
    folder, place = swapped
    release, noise, truth = audited(folder, place)
    cubes = [cube.id for cube in release.manifest.cubes if not cube.weight]
    by_noise = np.concatenate([errors(release, truth.counted, cube) for cube in cubes])
    in_all = np.concatenate([errors(release, truth.original, cube) for cube in cubes])
    # the noise keeps what is stated of it, the release does not: swapping adds to it and fills empty cells
    assert np.abs(by_noise).max() <= (release.noise.bound or 0)
    assert (by_noise**2).mean() <= (release.noise.variance or 0.0)
    assert (in_all**2).mean() > 1.2 * (by_noise**2).mean()
    filled = sum(int((~np.isin(truth.counted[cube][0], truth.original[cube][0])).sum()) for cube in cubes)
    assert filled > 0
    readme = " ".join((place / "README.md").read_text().split())
    assert "The error by this is not part of what is stated about the noise" in readme
    assert FILLED in readme
    assert "from the count before noise by at most" in readme
    assert not re.search(r"zeros? stays? zero|has at least one member;|nobody is in", readme, re.IGNORECASE)
    page = text_of(public_page(public_view(release, EVERY_ATTACK, 1, Quiet())).html())
    assert "Error by noise" in page
    assert "swapping adds an error that is not published" in page
    assert "Error of a count" not in page
    assert not re.search(r"zeros? stays? zero", page, re.IGNORECASE)
    assert noise.keeps_zeros


def test_without_swapping_the_stated_bound_holds_and_listed_cells_have_people(
    census: Path, tmp_path: Path
) -> None:
    run(census, tmp_path / "release")
    release, _, truth = audited(census, tmp_path / "release")
    assert not truth.is_swapped
    for cube in release.manifest.cubes:
        if not cube.weight:
            assert np.abs(errors(release, truth.original, cube.id)).max() <= (release.noise.bound or 0)
            shown = next(
                table.load()
                for one in published(release).universes
                for table in one.tables
                if table.id == cube.id
            )
            assert np.isin(shown[0], truth.original[cube.id][0]).all()
    readme = (tmp_path / "release/README.md").read_text()
    assert "A listed cell has at least one member;" in readme
    assert "exchanged" not in readme


def small_town(folder: Path, noise: str) -> Path:
    """Two hundred areas by twenty ages, most of them empty, and a release."""
    generator = np.random.default_rng(4)
    for name, size in (("GEO", 200), ("AGE", 20)):
        rows = "".join(f"{name}{k},,\n" for k in range(size))
        (folder / f"{name.lower()}.csv").write_text(f"code,parent,label\n{rows}")
    persons = {
        "pid": np.arange(1500),
        "geo": generator.integers(0, 200, 1500),
        "age": generator.integers(0, 20, 1500),
    }
    named = {name: [f"{name.upper()}{k}" for k in column] for name, column in persons.items()}
    pq.write_table(pa.table(named), folder / "persons.parquet")
    variables = "".join(
        f'[variables.{name}]\nof = "person"\ncodelist = "{name.lower()}.csv"\n' for name in ("GEO", "AGE")
    )
    (folder / "programme.toml").write_text(
        '[population]\npersons = "persons.parquet"\nperson_id = "pid"\n'
        f'{variables}[[cubes]]\nid = "a"\naxes = ["GEO", "AGE"]\n{noise}'
    )
    run(folder, folder / "release")
    return folder / "release"


@pytest.fixture(scope="module", params=["keep", "zero"])
def private(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Path]:
    folder = tmp_path_factory.mktemp("private")
    place = small_town(folder, f'{PRIVATE}negatives = "{request.param}"\n')
    return request.param, folder, place


@pytest.mark.parametrize("disclose", ["law", "variance"])
def test_with_cell_keys_totals_differ_as_stated_too(disclose: str, tmp_path: Path) -> None:
    noise = f'[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n[release]\ndisclose = "{disclose}"\n'
    release, _, truth = audited(tmp_path, small_town(tmp_path, noise))
    readme = " ".join((tmp_path / "release/README.md").read_text().split())
    few = float(re.search(r"up to about ([\d.]+) on average if it has 10 parts", readme)[1])  # type: ignore[index]
    realised, parts, empty = differences(release, truth, "a")
    by_occupied = few * np.sqrt(
        (parts - empty + 1) / 11
    )  # empty cells have no noise: the statement is a limit
    assert np.abs(realised).mean() == pytest.approx(by_occupied.mean(), rel=LEVEL)
    assert np.abs(realised).mean() < (few * np.sqrt((parts + 1) / 11)).mean()
    word = "is" if disclose == "law" else "may be"
    assert f"of a count below 15 one standard deviation of the noise {word} more than a tenth" in readme
    assert np.sqrt(2.0) / 15 < 0.1 < np.sqrt(2.0) / 14


def test_where_nothing_is_disclosed_no_number_is_stated(tmp_path: Path) -> None:
    noise = '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n[release]\ndisclose = "none"\n'
    readme = (small_town(tmp_path, noise) / "README.md").read_text()
    assert "by an amount that is not published" in readme
    assert "take them as an indication only" in readme
    assert not re.search(r"up to about|below \d", readme)


def test_totals_differ_from_their_parts_as_stated(private: tuple[str, Path, Path]) -> None:
    negatives, folder, place = private
    release, _, truth = audited(folder, place)
    readme = " ".join((place / "README.md").read_text().split())
    few = float(re.search(r"up to about ([\d.]+) on average if it has 10 parts", readme)[1])  # type: ignore[index]
    many = float(re.search(r"by up to about ([\d.]+) if it has 100", readme)[1])  # type: ignore[index]
    assert "a little" not in readme
    realised, parts, empty = differences(release, truth, "a")
    predicted = few * np.sqrt((parts + 1) / 11)
    if negatives == "keep":
        assert many / few == pytest.approx(np.sqrt(101 / 11), rel=0.02)
        assert realised.mean() == pytest.approx(0, abs=4 * predicted.mean() / np.sqrt(len(realised)))
        assert np.abs(realised).mean() == pytest.approx(predicted.mean(), rel=LEVEL)
        assert "Negative counts" not in readme
    else:
        added = float(re.search(r"each empty or small part adds up to ([\d.]+)", readme)[1])  # type: ignore[index]
        noise = np.sqrt(parts + 1) * (few - 10 * added) / np.sqrt(11)
        assert np.abs(realised).mean() <= (noise + parts * added).mean()
        assert added * empty.mean() < realised.mean() < (parts * added).mean()
        assert many - 100 * added == pytest.approx((few - 10 * added) * np.sqrt(101 / 11), rel=0.05)


def differences(release: Release, truth: Truth, cube: str):  # type: ignore[no-untyped-def]
    """For each area the sum of its published ages minus the published area, their number, and how many are empty."""
    table = release.read_cube(cube).to_pandas()
    geo, age = release.read_codes("GEO"), release.read_codes("AGE")
    leaves = [code for code in age.codes if code not in age.parents and code != "_T"]
    cells, counts = truth.original[cube]
    width = len(age.codes)
    true = {
        (geo.codes[cell // width], age.codes[cell % width]): n for cell, n in zip(cells, counts, strict=True)
    }
    shown = {(row.GEO, row.AGE): row.value for row in table.itertuples()}
    found, empty = [], []
    for area in geo.codes[1:]:
        found.append(sum(shown.get((area, code), 0) for code in leaves) - shown.get((area, "_T"), 0))
        empty.append(sum((area, code) not in true for code in leaves))
    return np.array(found), np.full(len(found), len(leaves)), np.array(empty)


def test_empty_cells_are_listed_with_the_stated_probability(private: tuple[str, Path, Path]) -> None:
    _, folder, place = private
    release, noise, truth = audited(folder, place)
    readme = " ".join((place / "README.md").read_text().split())
    stated = float(re.search(r"an empty cell is listed with a probability of up to ([\d.]+?)\.? ", readme)[1])  # type: ignore[index]
    tables = {table.id: table for one in published(release).universes for table in one.tables}
    listed, possible, missing, occupied = 0, 0, 0, 0
    for name, table in tables.items():
        shown, true = table.load()[0], truth.original[name][0]
        listed += int((~np.isin(shown, true)).sum())
        possible += table.cube.size - len(true)
        missing += int((~np.isin(true, shown)).sum())
        occupied += len(true)
    assert listed > 50
    assert listed / possible == pytest.approx(stated, rel=LEVEL)
    assert missing > 0  # people are in cells that are not listed
    assert "people may be in them" in readme
    assert "at least one member" not in readme
    assert "has the same published count in every table" in readme
    assert noise.listed_if_empty is not None


def test_what_is_promised_is_a_guarantee_or_none(
    swapped: tuple[Path, Path], private: tuple[str, Path, Path]
) -> None:
    keyed, drawn = open_release(swapped[1]).noise, open_release(private[2]).noise
    for noise in (keyed, drawn):
        assert noise.guarantee is None
        assert "no formal guarantee" in promise(noise, swapped=False)
    assert "swapped between areas" in promise(keyed, swapped=True)
