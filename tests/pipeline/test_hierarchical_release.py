"""Hierarchical releases from records to files: sums, invariants, estimates, measurements, the budget, every refusal."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import norm

import discreet as ds
from discreet.advise.hierarchical import hierarchy_forecast
from discreet.advise.strategy import advise_strategy
from discreet.audit.attack import ATTACKS
from discreet.audit.bayes_measurements import smallest_areas
from discreet.audit.case import Case, make_case, recognise
from discreet.audit.estimates import EstimateFindings
from discreet.errors import BrokenRelease, GateBroken, Mistakes
from discreet.hierarchy.cubes import (
    CubeEstimates,
    count_table,
    cube_errors,
    cube_estimates,
    leaf_counts,
    query_cells,
)
from discreet.hierarchy.estimate import estimate
from discreet.hierarchy.integers import Fit, Limits, Tables, integers, limits_of
from discreet.hierarchy.mechanism import HierarchicalMechanism, hierarchical_mechanism
from discreet.hierarchy.topdown import totals_first
from discreet.inference.hierarchy import estimated
from discreet.inference.noise import noise_of
from discreet.io.progress import Quiet
from discreet.io.register import Register
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import Neighbours, Rho
from discreet.perturb.ledger import Ledger
from discreet.pipeline.audit import audit
from discreet.pipeline.check import check_data
from discreet.pipeline.protect import protect
from discreet.pipeline.spending import Spending
from discreet.programme.programme import Programme, load_programme
from discreet.programme.release import ReleaseFormat
from discreet.programme.strategy import pl94_2020
from discreet.release.certify import verify_certificate
from discreet.release.hierarchy import PublishedHierarchy, published_hierarchy
from discreet.release.manifest import read_manifest
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.release.verify_hierarchy import hierarchy_problems
from discreet.report.findings import audit_lines
from discreet.report.hierarchy import hierarchy_part
from discreet.report.public import public_page, public_view
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.noise_ranges import AskedCells, EstimateRanges
from discreet.serve.open import serve_programme, serve_release
from tests.cases import few
from tests.hierarchy.sampling import is_binomial, is_chi_squared, normal_reach
from tests.pipeline.conftest import NOON, SECRET
from tests.pipeline.small_country import CUBES, NOISE, blocks, make_country, table
from tests.serve.conftest import cells, query

OWN_SECRET = hashlib.sha256(b"bytes that occur nowhere by chance").digest()


def released(folder: Path, **given: str) -> Path:
    programme = load_programme(make_country(folder, **given))
    protect(programme, SECRET, folder / "release", folder / "private.json", clock=lambda: NOON)
    return folder / "release"


@pytest.fixture(scope="module")
def country(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("country")
    released(folder)
    return folder


def _bounded(folder: Path, rows: list[str]) -> Path:
    noise = NOISE + '[noise.invariants.bounds]\nfile = "bounds.csv"\nquery = "MAR"\n'
    path = make_country(folder, noise=noise)
    (folder / "bounds.csv").write_text("\n".join(["GEO,MAR,lower,upper", *rows]) + "\n")
    return path


def _married(folder: Path) -> dict[str, int]:
    """The true number of married persons of each block."""
    married = {code: 0 for code, _ in blocks() if "B" in code}
    for row in (folder / "persons.csv").read_text().splitlines()[1:]:
        _, place, _, _, status = row.split(",")
        married[place] += status == "W"
    return married


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same country with bounds on married persons that are nearly exact, and a release of it."""
    folder = tmp_path_factory.mktemp("bounded")
    make_country(folder)
    (folder / "bounds.csv").write_text("")
    rows = [f"{place},W,{number},{number + 1}" for place, number in _married(folder).items()]
    programme = load_programme(_bounded(folder, rows))
    protect(programme, OWN_SECRET, folder / "release", folder / "private.json", clock=lambda: NOON)
    return folder


def values(release: Path, cube: str) -> dict[tuple[str, ...], int]:
    """Codes of a cube's listed cells -> value."""
    opened = open_release(release)
    axes = [axis.variable for axis in opened.cube(cube).axes]
    return {tuple(row[axis] for axis in axes): row["value"] for row in opened.read_cube(cube).to_pylist()}


def test_a_release_passes_all_checks(country: Path) -> None:
    found = verify(country / "release")
    assert found.problems == ()
    assert found.compared > 0
    certified = verify_certificate(country / "release")
    assert certified.problems == ()
    assert certified.claim == "rho = 1/2"


def test_every_level_adds_up_and_exact_totals_are_exact(country: Path) -> None:
    found = values(country / "release", "tracts")
    persons = (country / "persons.csv").read_text().splitlines()[1:]
    for state in ("S0", "S1"):
        assert found[state, "_T", "_T"] == sum(row.split(",")[1].startswith(state) for row in persons)
    assert found["_T", "_T", "_T"] == 2000
    for tract in ("S0C0T0", "S1C0T1"):
        parts = [found.get((tract, sex, age), 0) for sex in "MF" for age in ("YOUNG", "MIDDLE", "OLD")]
        assert sum(parts) == found[tract, "_T", "_T"]


def test_files_written_in_many_parts_are_the_same(
    country: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of measurements and estimates do not depend on how many areas are in memory, nor on threads."""
    snapshot = NOISE.replace("[noise.strategy]", 'snapshot = "2021"\n[noise.strategy]')
    found = []
    for folder, rows, threads in ((tmp_path / "a", 1 << 20, 1), (tmp_path / "b", 40, 2)):
        make_country(folder, noise=snapshot)
        Register.of(folder / "register", SECRET).bound("2021", {}, bytes(32))
        monkeypatch.setattr("discreet.release.measurements.ROWS_AT_ONCE", rows)
        monkeypatch.setattr("discreet.hierarchy.cubes.CELLS_AT_ONCE", rows)
        programme = load_programme(folder / "programme.toml")
        protect(
            programme,
            SECRET,
            folder / "release",
            folder / "private.json",
            clock=lambda: NOON,
            threads=threads,
            register=Register.of(folder / "register", SECRET),
        )
        assert verify(folder / "release").problems == ()
        files = sorted((folder / "release").glob("[em]*s/**/*.parquet"))
        found.append({str(path.relative_to(folder)): pq.read_table(path).to_pylist() for path in files})
        groups = [pq.ParquetFile(path).num_row_groups for path in files]
        assert max(groups) == 1 if rows > 40 else max(groups) > 3
    assert len(found[0]) > 8
    assert found[0] == found[1]


def test_structural_zeros_are_empty(country: Path) -> None:
    found = values(country / "release", "blocks")
    assert all(not (age in ("A0", "A1") and married == "W") for age, _, married in found)


def test_measurements_have_the_noise_of_the_strategy(country: Path) -> None:
    table = pq.read_table(country / "release/measurements/TRACT/AGE.L_x_SEX.parquet").to_pylist()
    # two tracts with several blocks in each county; the others are measured as their only block
    assert {row["GEO"] for row in table} == {
        f"S{s}C{c}T{t}" for s, c in ((0, 0), (0, 1), (1, 0)) for t in (0, 1)
    }
    # rho 1/2 x 1/4 x 1/3 for a change of two counts: each costs half
    assert {Fraction(row["parameter"]) for row in table} == {Fraction(1, 48)}
    assert {round(row["variance"], 6) for row in table} == {24.0}
    bypassed = pq.read_table(country / "release/measurements/BLOCK/total.parquet").to_pylist()
    shares = {row["GEO"]: Fraction(row["parameter"]) for row in bypassed}
    assert shares["S0C0T0B0"] == Fraction(1, 2) * Fraction(1, 8) / 2
    assert shares["S0C0T2B0"] == Fraction(1, 2) * (Fraction(1, 8) + Fraction(1, 12)) / 2


def test_every_path_spends_the_declared_budget(country: Path) -> None:
    document = json.loads((country / "release/certificate.json").read_text())
    spent: dict[int, Fraction] = {}
    for one in document["statistics"]:
        spent[one["kind"]] = spent.get(one["kind"], Fraction(0)) + Fraction(one["share"])
    assert sum(path["areas"] for path in document["paths"]) == 27
    assert len(document["paths"]) > 1
    for path in document["paths"]:
        assert sum(spent.get(kind, Fraction(0)) for kind in path["kinds"]) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d["statistics"][0].update(share="1/3"), "its share is not its parameter times"),
        (lambda d: d["paths"][0]["kinds"].pop(), "spends rho"),
        (lambda d: d["total"].update(rho="1/4"), "not 1/4"),
        (lambda d: d["paths"].pop(), "on a path"),
    ],
)
def test_a_changed_certificate_is_found(
    country: Path, tmp_path: Path, change: Callable[[dict[str, object]], object], problem: str
) -> None:
    document = json.loads((country / "release/certificate.json").read_text())
    change(document)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    assert any(problem in one for one in verify_certificate(path).problems)


def _rewritten(
    release: Path, place: str, column: str, value: object, row: Mapping[str, object] | None = None
) -> None:
    """Change one value of a file, and its entry in the manifest, as one would who wants it to pass."""
    path = release / place
    table = pq.read_table(path)
    changed = table[column].to_pylist()
    rows = table.to_pylist()
    changed[next(at for at, one in enumerate(rows) if one.items() >= (row or {}).items())] = value
    kind = table.schema.field(column).type
    pq.write_table(
        table.set_column(table.column_names.index(column), column, pa.array(changed).cast(kind)), path
    )
    manifest = read_manifest(release)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def renewed(file: object) -> object:
        same = file.path != place  # type: ignore[attr-defined]
        new = {"sha256": digest, "bytes": path.stat().st_size}
        return file if same else file.model_copy(update=new)  # type: ignore[attr-defined]

    cubes = tuple(
        cube.model_copy(update={"files": tuple(renewed(file) for file in cube.files)})
        for cube in manifest.cubes
    )
    files = tuple(renewed(file) for file in manifest.files)
    text = manifest.model_copy(update={"cubes": cubes, "files": files}).to_json()
    (release / "manifest.json").write_text(text)


@pytest.mark.parametrize(
    ("place", "column", "value", "problem"),
    few(
        [
            ("measurements/TRACT/total.parquet", "variance", 1.0, "its noise is not that of the strategy"),
            ("measurements/TRACT/total.parquet", "parameter", "1/7", "its noise is not that of the strategy"),
            ("measurements/TRACT/total.parquet", "GEO", "S0C0T1", "that are measured"),
            ("measurements/TRACT/total.parquet", "value", 900, "the measurements give"),
            ("measurements/BLOCK/detailed.parquet", "value", 50, "the measurements give"),
            ("estimates/tracts.parquet", "value", 1999, "its counts are not those of the cube"),
            (
                "estimates/tracts.parquet",
                "standard_error",
                5.0,
                "is 0.0000 by the strategy, and published as 5",
            ),
            ("estimates/tracts.parquet", "upper", 2005.0, "an interval is not that of its estimate"),
            ("estimates/tracts.parquet", "estimate", 1990.0, "is exact, 1990, and published as 2000"),
        ],
        0,
        2,
        3,
        5,
        8,
    ),
)
def test_changed_files_are_found(
    country: Path, tmp_path: Path, place: str, column: str, value: object, problem: str
) -> None:
    shutil.copytree(country / "release", tmp_path / "release")
    assert verify(tmp_path / "release").passed
    _rewritten(tmp_path / "release", place, column, value)
    assert any(problem in one for one in verify(tmp_path / "release").problems)


@pytest.mark.parametrize("rows", [0, 1, 10])
def test_files_with_other_columns_or_rows_are_refused(country: Path, tmp_path: Path, rows: int) -> None:
    """By everyone who reads them, also without verifying the release first."""
    shutil.copytree(country / "release", tmp_path / "release")
    opened = open_release(tmp_path / "release")
    for place in ("estimates/tracts.parquet", "measurements/TRACT/total.parquet"):
        path = tmp_path / "release" / place
        table = pq.read_table(path)
        pq.write_table(table.slice(0, rows) if rows < 10 else table.remove_column(0), path)
    found = published_hierarchy(opened)
    assert found is not None
    with pytest.raises(BrokenRelease, match="not the columns and cells of cube tracts"):
        found.estimates("tracts")
    with pytest.raises(BrokenRelease, match=r"TRACT/total\.parquet: not the cells of its query"):
        _ = found.stored


@pytest.mark.parametrize("code", ["S0C0T1B0", "nowhere", None])
def test_rows_of_another_area_among_those_of_an_area_are_refused(
    country: Path, tmp_path: Path, code: str | None
) -> None:
    release, place = tmp_path / "release", "measurements/BLOCK/detailed.parquet"
    shutil.copytree(country / "release", release)
    first, second = pq.read_table(release / place).slice(0, 2).to_pylist()
    assert first["GEO"] == second["GEO"] != code
    _rewritten(release, place, "GEO", code, second)
    found = published_hierarchy(open_release(release))
    assert found is not None
    with pytest.raises(
        BrokenRelease, match=r"detailed\.parquet: (not the cells of its query|the column GEO has gaps)"
    ):
        _ = found.stored
    refused = ("areas that are measured", "the column GEO has gaps")
    assert any(one in problem for problem in verify(release).problems for one in refused)


def test_an_area_that_is_there_twice_is_refused(country: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(country / "release", release)
    path = release / "hierarchy/areas.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    found = published_hierarchy(open_release(release))
    assert found is not None
    with pytest.raises(BrokenRelease, match="an area is there twice"):
        _ = found.plan


def test_estimates_that_no_measurements_lead_to_are_found(country: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(country / "release", release)
    row = {"GEO": "S0C0T0", "SEX": "F", "AGE": "OLD"}
    place = "estimates/tracts.parquet"
    before = next(one for one in pq.read_table(release / place).to_pylist() if one.items() >= row.items())
    _rewritten(
        release, place, "estimate", before["estimate"] + 0.002, row
    )  # within what intervals are rounded to
    (problem,) = verify(release).problems
    assert f"GEO=S0C0T0, SEX=F, AGE=OLD: the measurements give {before['estimate']:.3f}" in problem


def test_what_is_computed_again_is_stated(country: Path, tmp_path: Path) -> None:
    assert "all estimates, from " in verify(country / "release").recomputed
    found = verify(
        released(
            tmp_path, noise=NOISE.replace("[noise.strategy]", 'outputs = ["estimates"]\n[noise.strategy]', 1)
        )
    )
    assert found.passed
    assert "not computed again: the measurements are not published" in found.recomputed


def _file(release: Path, cube: str) -> str:
    found = open_release(release).cube(cube).file(ReleaseFormat.PARQUET)
    assert found is not None
    return found.path


@pytest.mark.parametrize(
    ("cube", "row", "column", "value", "problem"),
    [
        ("country", {"SEX": "M", "AGE": "A5", "MAR": "S"}, "value", -1, "a listed value is not positive"),
        ("country", {"SEX": "M", "AGE": "A0", "MAR": "S"}, "MAR", "W", "AGE=A0, MAR=W is "),
        (
            "blocks",
            {"AGE": "_T", "GEO": "S0C0T0", "MAR": "W"},
            "value",
            999,
            "is 999: not within hierarchy/bou",
        ),
        (
            "tracts",
            {"GEO": "S0C0", "SEX": "_T", "AGE": "OLD"},
            "value",
            7,
            "its counts are not those of the cube",
        ),
    ],
)
def test_counts_outside_of_invariants_are_found(
    bounded: Path, tmp_path: Path, cube: str, row: dict[str, str], column: str, value: object, problem: str
) -> None:
    release = tmp_path / "release"
    shutil.copytree(bounded / "release", release)
    assert verify(release).problems == ()
    _rewritten(release, _file(release, cube), column, value, row)
    problems = list(hierarchy_problems(release, read_manifest(release)))
    assert any(problem in one for one in problems), problems
    assert not verify(release).passed


def test_totals_that_are_no_sums_are_found(bounded: Path, tmp_path: Path) -> None:
    """A cell that only one cube has, so that no other contradicts it."""
    release = tmp_path / "release"
    shutil.copytree(bounded / "release", release)
    _rewritten(release, _file(release, "blocks"), "value", 1, {"AGE": "A5", "GEO": "S0C0", "MAR": "S"})
    assert any("S0C0" in one and "A5" in one for one in verify(release).problems)


def test_other_bounds_than_the_stated_ones_are_found(bounded: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(bounded / "release", release)
    path = release / "hierarchy/bounds.csv"
    path.write_text(path.read_text().replace(",0,1\n", ",0,2\n"))
    problems = list(hierarchy_problems(release, read_manifest(release)))
    assert problems == ["hierarchy/bounds.csv: not the bounds that the manifest states"]


def test_no_file_has_the_secret_its_keys_true_counts_or_records(bounded: Path) -> None:
    purposes = ("manifest", "fingerprint", "record-keys")
    keys = [OWN_SECRET, *(derive(OWN_SECRET, purpose) for purpose in purposes)]
    true = _true_leaf_counts(bounded, load_programme(bounded / "programme.toml"))
    people = [row.split(",")[0] for row in (bounded / "persons.csv").read_text().splitlines()[1:]]
    columns = 0
    for path in sorted(path for path in (bounded / "release").rglob("*") if path.is_file()):
        held = path.read_bytes()
        for key in keys:
            for text in (key, key.hex().encode(), base64.b64encode(key)):
                assert text not in held, path
        for kind in (np.int8, np.int16, np.int32, np.int64, np.float64):
            assert true.astype(kind).tobytes() not in held, path
        if path.suffix == ".parquet":
            found = pq.read_table(path)
            for name in found.column_names:
                listed = found[name].to_numpy()
                assert not set(people) & {str(one) for one in listed[:50]}, path
                if listed.dtype.kind in "iuf" and len(listed) >= 16:
                    columns += 1
                    assert not np.array_equal(listed[listed > 0], true[true > 0]), (path, name)
        elif path.suffix in (".csv", ".json", ".md"):
            assert "P1999" not in held.decode(), path
    assert columns > 20


def _true_leaf_counts(folder: Path, programme: Programme) -> NDArray[np.int64]:
    """The true counts of the smallest areas by histogram, in the order in which measurements are published."""
    chosen = hierarchical_mechanism(programme)
    places = {code: at for at, code in enumerate(chosen.codes[-1])}
    cells = {key: at for at, key in enumerate(query_cells(chosen, "detailed"))}
    found = np.zeros((len(places), len(cells)), dtype=np.int64)
    for row in (folder / "persons.csv").read_text().splitlines()[1:]:
        _, place, sex, age, status = row.split(",")
        found[places[place], cells[sex, age, status]] += 1
    return found.reshape(-1)


DRAWS = 300


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates of the tracts' cube in many releases of the same counts, their standard errors, and the true counts."""
    programme = load_programme(make_country(tmp_path_factory.mktemp("drawn")))
    plain = hierarchical_mechanism(programme)
    true = np.random.default_rng(3).poisson(2.0, (plain.leaf.shape[0] - 1, 32))
    true[:, ~plain.plan.strategy.histogram.possible] = 0
    counts = csr_array(true)
    limits = limits_of(plain.plan.spine, plain.plan.strategy, counts, plain.hierarchy.totals)
    cube = programme.cubes[0]
    found: list[CubeEstimates] = []
    for draw in range(DRAWS):
        chosen = replace(plain, key=draw.to_bytes(32, "big"))
        found += cube_estimates(chosen, estimate(chosen.drawn(counts), limits.totals), cube)
    return np.stack([one.values for one in found]), found[0].errors, _sums(plain, true, cube)


def test_estimates_are_unbiased_and_have_the_stated_variance(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    observed, stated, true = drawn
    exact = stated == 0
    assert exact.any()
    assert not exact.all()
    assert (observed[:, exact] == observed[0, exact]).all()
    error, stated = observed[:, ~exact] - true[~exact], stated[~exact]
    checks = 3 * len(stated)
    assert (np.abs(error.mean(axis=0)) < normal_reach(checks) * stated / np.sqrt(DRAWS)).all()
    assert is_chi_squared((error**2).sum(axis=0) / stated**2, DRAWS, checks)
    inside = (np.abs(error) < norm.ppf(0.975) * stated).sum(axis=0)
    assert is_binomial(inside, DRAWS, 0.95, checks)
    # a standard error that is half as large, or twice, is noticed in every single cell
    for wrong in (0.5, 2):
        for cell in range(len(stated)):
            assert not is_chi_squared(
                (error[:, cell] ** 2).sum() / (wrong * stated[cell]) ** 2, DRAWS, checks
            )


def test_ranges_of_the_table_builder_are_those_of_the_normal_law(
    country: Path, drawn: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Estimates are normal (the test above), so that such ranges have nominal coverage."""
    observed, stated, _ = drawn
    asked = AskedCells(load_programme(country / "programme.toml").cubes[0], (), np.zeros((), dtype=np.int64))
    for level in (0.8, 0.95):
        for cell in np.flatnonzero(stated > 0).tolist():
            for draw in range(0, DRAWS, 60):
                value, error = float(observed[draw, cell]), float(stated[cell])
                shown = EstimateRanges(partial(_given, value, error)).of(asked, level)
                assert shown is not None
                reach = norm.ppf((1 + level) / 2) * error
                assert abs(shown.low - max(value - reach, 0)) <= 1
                assert abs(shown.high - max(value + reach, 0)) <= 1


def _given(estimate: float, error: float, _: AskedCells) -> tuple[np.ndarray, np.ndarray]:
    return np.array(estimate), np.array(error)


def _sums(chosen: object, true: np.ndarray, cube: object) -> np.ndarray:
    """The true counts of the tracts' cube, by direct sums over the codes."""
    leaf = chosen.leaf  # type: ignore[attr-defined]
    grid = true.reshape((-1, 2, 8, 2))
    places, ages = leaf.axes[0].codes[1:], leaf.axes[2].codes[1:]
    groups = {"YOUNG": range(3), "MIDDLE": range(3, 6), "OLD": range(6, 8)}
    found = []
    for area in cube.axes[0].codes:  # type: ignore[attr-defined]
        rows = [k for k, code in enumerate(places) if area == "_T" or code == area or code.startswith(area)]
        for sex in ("_T", "M", "F"):
            for age in ("_T", "YOUNG", "MIDDLE", "OLD"):
                columns = [k for k, code in enumerate(ages) if age == "_T" or int(code[1:]) in groups[age]]
                some = range(2) if sex == "_T" else ["MF".index(sex)]
                found.append(grid[np.ix_(rows, list(some), columns, [0, 1])].sum())
    return np.array(found)


def test_an_audit_measures_errors_and_attacks_the_measurements(country: Path) -> None:
    programme, release = load_programme(country / "programme.toml"), open_release(country / "release")
    case = make_case(recognise(programme, SECRET, release), release)
    found = audit(case, without=("reconstruction",))
    assert found.averaging is None
    assert found.utility is not None
    assert found.hierarchy is not None
    rows = {(row.cube, row.crosstab): row for row in found.hierarchy.accuracy}
    assert rows["tracts", "GEO.STATE"].counts == 0
    assert rows["tracts", "GEO.TRACT"].counts > 0
    assert 0.85 < rows["blocks", "AGE.M x GEO.BLOCK x MAR"].coverage <= 1
    detailed = [one for one in found.hierarchy.adversary if one.query == "detailed"]
    assert detailed
    assert all(one.targets > 0 and 0.4 < one.mean_posterior < 0.6 for one in detailed)
    assert found.hierarchy.not_possible["averaging"]
    row = rows["blocks", "AGE.M x GEO.BLOCK x MAR"]
    assert abs(row.recovered - row.recovery) < 0.1
    fits = found.hierarchy.fits
    assert fits is not None
    errors = {(one.level, one.query): one for one in fits.queries}
    assert errors["STATE", "total"].tree == 0
    assert errors["BLOCK", "detailed"].tree < errors["BLOCK", "detailed"].estimates
    # the root is not measured, so that it cannot be fitted by itself
    assert "level total" in fits.without
    assert any("errors of three fits" in line for line in audit_lines(found))
    text = hierarchy_part(found.hierarchy).html()
    assert "What the measurements disclose about one person" in text
    assert "Totals of areas by their size" in text


@dataclass(frozen=True)
class Again:
    """A release as it is fitted again from its published measurements."""

    programme: Programme
    case: Case
    chosen: HierarchicalMechanism
    found: PublishedHierarchy
    limits: Limits

    @classmethod
    def of(cls, folder: Path) -> "Again":
        programme, release = load_programme(folder / "programme.toml"), open_release(folder / "release")
        case, found = make_case(recognise(programme, SECRET, release), release), published_hierarchy(release)
        chosen = case.mechanism
        assert isinstance(chosen, HierarchicalMechanism)
        assert found is not None
        plan, counts = chosen.plan, smallest_areas(case, chosen)
        limits = limits_of(plan.spine, plan.strategy, counts, chosen.hierarchy.totals)
        return cls(programme, case, chosen, found, limits)

    def gives(self, tables: Tables) -> bool:
        """Whether these tables are the published ones."""
        whole, same = leaf_counts(tables), True
        for cube in self.programme.cubes:
            made = count_table(self.chosen, whole, cube)
            listed = dict(zip(made.cells.tolist(), made.values.tolist(), strict=True))
            tables_ = (t for u in self.case.published.universes for t in u.tables if t.id == cube.id)
            cells, values = next(tables_).load()
            same &= listed == dict(zip(cells.tolist(), values.tolist(), strict=True))
        return same


def test_the_published_measurements_lead_to_the_published_counts_and_estimates(country: Path) -> None:
    again = Again.of(country)
    assert again.gives(integers(again.found.stored, again.limits))
    fitted = estimate(again.found.stored, again.limits.totals)
    cube = again.programme.cubes[0]
    (estimates,) = cube_estimates(again.chosen, fitted, cube)
    assert np.abs(again.found.estimated("tracts")[0] - estimates.values).max() < 1e-3
    assert np.abs(cube_errors(again.chosen, cube) - estimates.errors).max() < 1e-9
    # cells of the cube that are queries have their variance
    shape = tuple(len(axis) for axis in cube.axes)
    tracts = [cube.axes[0].codes.index(code) for code in again.chosen.codes[3]]
    errors = estimates.errors.reshape(shape)[tracts]
    for asked, part in (
        ("AGE.L*SEX", errors[:, 1:, 1:]),
        ("SEX", errors[:, 1:, 0]),
        ("total", errors[:, 0, 0]),
    ):
        variances = np.sort(fitted.at("TRACT", asked).variances, axis=1)
        np.testing.assert_allclose(np.sort(part.reshape(len(tracts), -1) ** 2, axis=1), variances, atol=1e-9)


def test_gates_by_the_declaration_are_judged_and_others_refused(tmp_path: Path) -> None:
    gated = NOISE.replace('rho = "1/2"', 'rho = "1/2"\ndelta = "1e-9"') + "[gates]\n"
    passing = released(tmp_path / "a", noise=gated + "epsilon = 10\naveraging = 0.5\n")
    assert verify(passing).passed
    with pytest.raises(GateBroken, match="an estimate recovers a true count") as broken:
        released(tmp_path / "b", noise=gated + "epsilon = 1\naveraging = 0.01\n")
    assert "epsilon of the release" in str(broken.value)
    assert not (tmp_path / "b" / "release").exists()
    with pytest.raises(Mistakes, match=r"gates.posterior: looks at the data.*only the office reads$"):
        load_programme(make_country(tmp_path / "c", noise=gated + "posterior = {}\n"))


def test_intervals_of_the_library_and_the_table_builder_are_those_of_the_estimates(
    country: Path, tmp_path: Path
) -> None:
    release = ds.open_release(country / "release")
    frame = release["tracts"].interval(0.9)
    assert len(frame) == (1 + 2 + 3 + 9) * 3 * 4
    one = frame[(frame.GEO == "S0C0T0") & (frame.SEX == "F") & (frame.AGE == "_T")].iloc[0]
    found = estimated(country / "release", "tracts", "GEO=S0C0T0 and SEX=F", level=0.9)
    assert (one.low, one.high, one.estimate) == pytest.approx((found.low, found.high, found.estimate))
    part = release["tracts"].sel(SEX="F", AGE=["OLD", "_T"]).interval(0.9)
    same = part[(part.GEO == "S0C0T0") & (part.AGE == "_T")].iloc[0]
    assert (same.low, same.high) == (one.low, one.high)
    builder = serve_release(open_release(country / "release"), Store(tmp_path / "store", lambda: NOON))
    answer = builder.ask(query("SEX", "GEO.TRACT"), "u")
    assert isinstance(answer, Answer)
    tract, sex = answer.axes[1].codes.index("S0C0T0"), answer.axes[0].codes.index("F")
    shown = answer.noise_range(sex * len(answer.axes[1]) + tract, 0.9)
    assert shown is not None
    assert (shown.estimate, shown.error) == (found.estimate, found.standard_error)
    assert (shown.low, shown.high) == (np.ceil(found.low), np.floor(found.high))
    assert "standard error" in shown.message
    state = answer.axes[1].codes.index("S0"), answer.axes[0].codes.index("_T")
    exact = answer.noise_range(state[1] * len(answer.axes[1]) + state[0])
    assert exact is not None
    assert exact.low == exact.high
    with pytest.raises(Mistakes, match="level"):
        release["tracts"].interval(2.0)


def test_users_read_estimates_and_serve_the_tables(country: Path, tmp_path: Path) -> None:
    release = country / "release"
    found = estimated(release, "tracts", "GEO=S0C0T0 and SEX=F", level=0.9)
    assert found.low < found.estimate < found.high
    assert found.standard_error > 0
    assert estimated(release, "tracts", 'GEO == "S0"').standard_error == 0
    with pytest.raises(Mistakes, match="use its estimates"):
        noise_of(release)
    with pytest.raises(Mistakes, match=r"unknown code 'S9' of GEO; .*S0"):
        estimated(release, "tracts", "GEO = S9")
    with pytest.raises(Mistakes, match="2 codes of GEO"):
        estimated(release, "tracts", "GEO in (S0C0T0, S0C0T1)")
    builder = serve_release(open_release(release), Store(tmp_path / "store", lambda: NOON))
    answer = cells(builder.ask(query("GEO.TRACT", "SEX"), "u"))
    assert sum(answer.values()) > 0


def test_single_answers_from_records_are_refused(tmp_path: Path) -> None:
    """They would be other counts than the release's, and would not add up."""
    noise = NOISE.replace('rho = "1/2"', 'rho = "1/2"\nsnapshot = "2026"')
    release = "[serve]\naccount = { each = 0.1, user = 5 }"
    programme = load_programme(make_country(tmp_path, noise=noise, release=release))
    with pytest.raises(Mistakes, match="hierarchical noise, for a table builder; serve the release"):
        serve_programme(programme, SECRET, Store(tmp_path / "store", lambda: NOON))


def test_a_snapshot_repeats_its_noise_and_is_charged_once(tmp_path: Path) -> None:
    noise = NOISE.replace('rho = "1/2"', 'rho = "1/2"\nsnapshot = "2026"')
    register = Register.of(tmp_path / "register", SECRET)
    ledger = Ledger.create(tmp_path / "ledger.db", lambda: NOON)
    ledger.create_account("census", Rho(Fraction(2)), Neighbours.SUBSTITUTE, "person")
    found = {}
    for name, own in {"a": noise, "b": noise, "c": noise.replace('"AGE.L*SEX"', '"SEX"')}.items():
        folder = tmp_path / name
        programme = load_programme(make_country(folder, noise=own))
        protect(
            programme,
            SECRET,
            folder / "release",
            folder / "private.json",
            clock=lambda: NOON,
            register=register,
            spending=Spending(ledger, "census"),
        )
        measured = sorted((folder / "release/measurements").glob("*/total.parquet"))  # chance makes few alike
        found[name] = [value for path in measured for value in pq.read_table(path)["value"].to_pylist()]
        assert len(found[name]) > 20
    assert found["a"] == found["b"]
    assert found["a"] != found["c"]  # another strategy is other noise, of which nothing is shared
    assert ledger.spent("census") == Rho(Fraction(1))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'STATE = "1/4", COUNTY',
            'STAT = "1/4", COUNTY',
            "unknown level 'STAT'; the levels of GEO are total, STATE",
        ),
        ('TRACT = "1/4"', 'TRACT = "1/3"', "the shares of total, STATE, COUNTY, TRACT, BLOCK sum to 13/12"),
        (
            'TRACT = { total = "1/3"',
            'TRACT = { total = "1/4"',
            "the shares of total, AGE.L*SEX, detailed sum to 11/12",
        ),
        (
            'BLOCK = { total = "1/2", detailed = "1/2" }',
            'BLOCK = { total = "1/2", SEX = "1/2" }',
            "level BLOCK: its queries (total, SEX) do not determine every cell",
        ),
        ('"AGE.L*SEX" = "1/4"', '"AGE.L*EDU" = "1/4"', "'EDU' is not in the histogram"),
        ('"AGE.L*SEX" = "1/4"', '"AGE.X*SEX" = "1/4"', "unknown breakdown 'AGE.X'"),
        ('histogram = ["SEX", "AGE.M", "MAR"]', 'histogram = ["SEX", "EDU"]', "unknown variable 'EDU'"),
        (
            'histogram = ["SEX", "AGE.M", "MAR"]',
            'histogram = ["SEX", "AGE.L"]',
            "MAR is not in the histogram",
        ),
        ('totals = ["STATE"]', 'totals = ["PARISH"]', "unknown level 'PARISH'"),
        ('geography = "GEO"', 'geography = "PLACE"', "unknown variable 'PLACE'"),
        ('rho = "1/2"', 'epsilon = "1/2"', "noise.rho: is missing"),
        ('rho = "1/2"', 'rho = "0"', "noise.rho: 0"),
        (
            'neighbours = "substitute"',
            'neighbours = "add-remove"',
            'noise.invariants.totals: exact totals with neighbours = "add-remove"',
        ),
        ("[noise.strategy]", '[noise.strategy]\nqueues = "x"', "unknown key 'queues'"),
    ],
)
def test_a_wrong_strategy_is_refused_before_anything_is_read(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    assert old in NOISE
    path = make_country(tmp_path, noise=NOISE.replace(old, new, 1))
    (tmp_path / "persons.csv").write_text("person_id\n")
    with pytest.raises(Mistakes) as refused:
        load_programme(path)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('id = "tracts"', 'id = "tracts"\nbase = \'SEX == "M"\'', "cube tracts: has a base"),
        ('axes = ["SEX", "AGE.M", "MAR"]', 'axes = ["SEX", "AGE.M", "EDU"]', "unknown variable 'EDU'"),
    ],
)
def test_cubes_that_are_no_sums_are_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(Mistakes) as refused:
        load_programme(make_country(tmp_path, cubes=CUBES.replace(old, new, 1)))
    assert problem in str(refused.value)


def test_fits_that_were_stopped_are_reported_and_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.maths.tree.nonnegative.MOST_LOOKS", 0)
    programme = load_programme(make_country(tmp_path))
    made = protect(programme, SECRET, tmp_path / "release", tmp_path / "private.json", clock=lambda: NOON)
    assert any("without a proof that no fit is much better" in one for one in made.notes)
    assert verify(tmp_path / "release").problems == ()


def test_structural_zeros_of_some_areas_are_refused(tmp_path: Path) -> None:
    """They are no cells of the histogram, so that they would not be empty."""
    zero = """[[structural_zeros]]\nwhere = 'GEO == "S0" and MAR == "W"'\n"""
    with pytest.raises(Mistakes, match=r"structural_zeros: GEO in .* depends on GEO, the tree of areas"):
        load_programme(make_country(tmp_path, cubes=zero + CUBES))


def test_a_fit_that_is_not_possible_is_refused_before_the_account_is_charged(tmp_path: Path) -> None:
    noise = NOISE.replace('rho = "1/2"', 'rho = "1/2"\nfit = "own-level"')
    programme = load_programme(make_country(tmp_path, noise=noise))
    ledger = Ledger.create(tmp_path / "ledger.db", lambda: NOON)
    ledger.create_account("census", Rho(Fraction(2)), Neighbours.SUBSTITUTE, "person")
    problem = r"level total: its queries \(nothing\) do not determine every cell"
    with pytest.raises(Mistakes, match=problem):
        protect(
            programme,
            SECRET,
            tmp_path / "release",
            tmp_path / "private.json",
            clock=lambda: NOON,
            spending=Spending(ledger, "census"),
        )
    assert ledger.spent("census") == Rho(Fraction(0))
    assert any(re.search(problem, str(one)) for one in check_data(programme))


def test_consistent_beside_hierarchical_noise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="hierarchical tables always add up"):
        load_programme(make_country(tmp_path, release="consistent = true"))


def test_bounds_hold_in_every_area(bounded: Path) -> None:
    found = values(bounded / "release", "blocks")
    for place, number in _married(bounded).items():
        assert number <= found.get(("_T", place, "W"), 0) <= number + 1


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["S0C0T0B0,W,5,3"], "line 2: lower is 5, above upper 3"),
        (["S0C0T0B0,W,5000,"], "the data are outside of the bounds in 1 areas: BLOCK S0C0T0B0 (W)"),
        (["S9,W,0,3"], "line 2: no smallest area of this code"),
        (["S0C0T0B0,X,0,3"], "line 2: no count of the query with these codes"),
        (["S0C0T0B0,W,0,many"], "line 2: upper is 'many', no whole number"),
        (["S0C0T0B0,W,-1,9"], "line 2: lower is '-1', no whole number"),
        (["S0C0T0B0,W,0,9", "S0C0T0B0,W,0,8"], "line 3: bounds of this count were given above"),
        (["S0C0T0B0,W,0"], "Expected 4 columns, got 3"),
    ],
)
def test_wrong_bounds_are_refused_before_noise_is_drawn(
    tmp_path: Path, rows: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_country(tmp_path)
    (tmp_path / "bounds.csv").write_text("")
    programme = load_programme(_bounded(tmp_path, rows))

    def drawn(*_: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("discreet.hierarchy.measure.Drawn.noisy", drawn)
    with pytest.raises(Mistakes) as refused:
        protect(programme, SECRET, tmp_path / "release", tmp_path / "private.json", clock=lambda: NOON)
    assert problem in str(refused.value)
    assert not (tmp_path / "release").exists()
    # what the file itself shows is found before a record is counted
    assert any(problem in str(one) for one in check_data(programme)) == ("outside" not in problem)


def test_the_library_and_the_public_page_know_fitted_counts(country: Path) -> None:
    report = ds.audit(
        country / "release",
        country / "programme.toml",
        secret=SECRET,
        without=["reconstruction"],
        progress=False,
    )
    assert report.hierarchy is not None
    assert len(report.hierarchy.accuracy) > 0
    with pytest.raises(Mistakes, match="does not apply to this release"):
        assert report.averaging
    attacked = ds.attack(country / "release", areas=2, progress=False)
    exposed = attacked["estimates"]
    assert isinstance(exposed, EstimateFindings)
    assert exposed.counts > 1000
    assert 0 < exposed.success < 0.5
    assert "averaging: not possible: tables add up" in attacked.summary()
    assert "public about the noise: the law of every measurement" in attacked.summary()
    assert "took the fitted counts as exact" in attacked.summary()
    levels = ds.forecast(country / "programme.toml")
    assert levels.found == hierarchy_forecast(load_programme(country / "programme.toml"))
    assert "BLOCK, total: noise 4, standard deviation of the estimate 3.41" in levels.summary()
    shares = ds.advise(country / "programme.toml", progress=False)
    assert shares.proposed == advise_strategy(load_programme(country / "programme.toml")).proposed
    assert "Proposed shares of rho 1/2" in shares.summary()
    seen = public_view(open_release(country / "release"), ATTACKS, 1, Quiet())
    text = public_page(seen).html()
    assert "the folder estimates has an unbiased estimate of every count" in text
    assert "is not published, so the error" not in text
    assert "a standard error for every count" in text


def test_geometric_noise_of_an_epsilon(tmp_path: Path) -> None:
    noise = NOISE.replace('rho = "1/2"', 'law = "geometric"\nepsilon = 4')
    release = released(tmp_path, noise=noise)
    assert verify(release).passed
    certified = verify_certificate(release)
    assert certified.problems == ()
    assert certified.claim.startswith("epsilon = 4, delta = ")


@pytest.mark.parametrize("more", few(['fit = "own-level"', "spine = false", 'outputs = ["counts"]'], 2))
def test_other_fits_and_outputs(tmp_path: Path, more: str) -> None:
    noise = NOISE.replace('rho = "1/2"', f'rho = "1/2"\n{more}')
    noise = noise.replace('levels = { STATE = "1/4"', 'levels = { total = "1/8", STATE = "1/8"')
    noise = noise.replace("STATE = { total", 'total = { detailed = "1" }\nSTATE = { total')
    release = released(tmp_path, noise=noise)
    assert verify(release).passed
    assert verify_certificate(release).passed
    assert (release / "estimates").exists() == ("outputs" not in more)
    if "own-level" in more:  # the measurements fitted in TopDown's order
        again = Again.of(tmp_path)
        measured, limits = again.found.stored, again.limits
        assert again.gives(integers(totals_first(measured, limits), limits, Fit.OWN_LEVEL))
        assert not again.gives(integers(measured, limits, Fit.OWN_LEVEL))


PL94 = """
[population]
persons = "persons.csv"
person_id = "person_id"
geography = ["geo"]
[variables.GEO]
codelist = "geo.csv"
of = "person"
breakdowns = { County = 1, Tract = 2, Block_Group = 3, Block = 4 }
[variables.HHGQ]
codelist = "hhgq.csv"
of = "person"
breakdowns = { INST = 1, FULL = 2 }
[variables.VOTINGAGE]
codelist = "votingage.csv"
of = "person"
[variables.HISPANIC]
codelist = "hispanic.csv"
of = "person"
[variables.CENRACE]
codelist = "cenrace.csv"
of = "person"
[[cubes]]
id = "race"
axes = ["GEO.Tract", "VOTINGAGE", "CENRACE"]
[[cubes]]
id = "quarters"
axes = ["GEO.Block", "HHGQ.FULL", "VOTINGAGE"]
[noise]
kind = "hierarchical"
geography = "GEO"
rho = "293764/114921"
neighbours = "substitute"
strategy = "pl94-2020"
outputs = ["counts", "measurements"]
[noise.invariants]
totals = ["County"]
"""


def make_pl94(folder: Path) -> Path:
    """600 generated persons with the variables of the 2020 redistricting data."""
    head = ("code", "parent", "label")
    areas = [(f"C{c}", "") for c in range(2)]
    areas += [(f"C{c}T{t}", f"C{c}") for c in range(2) for t in range(2)]
    areas += [(f"C{c}T{t}G{g}", f"C{c}T{t}") for c in range(2) for t in range(2) for g in range(2)]
    areas += [(f"{code}B{b}", code) for code, _ in areas if "G" in code for b in range(3)]
    table(folder / "geo.csv", [head, *((code, above, code) for code, above in areas)])
    groups = [("HOME", range(1)), ("INSTITUTION", range(1, 5)), ("OTHER", range(5, 8))]
    rows = [(name, "", name) for name, _ in groups]
    table(
        folder / "hhgq.csv", [head, *rows, *((f"H{k}", name, f"H{k}") for name, some in groups for k in some)]
    )
    for name, size in (("votingage", 2), ("hispanic", 2), ("cenrace", 63)):
        table(folder / f"{name}.csv", [head, *((f"{name[0].upper()}{k}", "", str(k)) for k in range(size))])
    random = np.random.default_rng(11)
    blocks = [code for code, _ in areas if "B" in code]
    persons = []
    for k in range(600):
        home = 0 if random.random() < 0.9 else int(random.integers(1, 8))
        adult = 1 if home == 3 else int(random.random() < 0.7)
        race = int(random.integers(63)) if random.random() < 0.2 else int(random.integers(3))
        place = blocks[int(random.integers(len(blocks)))]
        persons.append(
            (f"P{k}", place, f"H{home}", f"V{adult}", f"H{int(random.random() < 0.2)}", f"C{race}")
        )
    columns = ("person_id", "geo", "hhgq", "votingage", "hispanic", "cenrace")
    table(folder / "persons.csv", [columns, *persons])
    (folder / "programme.toml").write_text(PL94)
    return folder / "programme.toml"


def test_the_strategy_of_the_2020_redistricting_data(tmp_path: Path) -> None:
    programme = load_programme(make_pl94(tmp_path))
    rule = programme.hierarchy
    assert rule is not None
    shares = {one.level: one.share for one in rule.strategy.levels}
    # the shares of the nation and the states move down to the counties, the first level there is
    assert shares["County"] == Fraction(104 + 1440 + 447, 4099)
    assert shares["Block"] == Fraction(165, 4099)
    protect(programme, SECRET, tmp_path / "release", tmp_path / "private.json", clock=lambda: NOON)
    assert verify(tmp_path / "release").problems == ()
    assert verify_certificate(tmp_path / "release").problems == ()
    found = values(tmp_path / "release", "quarters")
    assert not any(home == "H3" and age == "V0" for _, home, age in found)
    assert found["_T", "_T", "_T"] == 600
    assert (tmp_path / "release/measurements/Tract/VOTINGAGE_x_HISPANIC_x_CENRACE.parquet").exists()
    assert (tmp_path / "release/measurements/Block/HHGQ.INST.parquet").exists()


def test_the_strategy_of_puerto_rico(tmp_path: Path) -> None:
    path = make_pl94(tmp_path)
    path.write_text(path.read_text().replace('"pl94-2020"', '"pl94-2020-pr"'))
    rule = load_programme(path).hierarchy
    assert rule is not None
    assert rule.name == "pl94-2020-pr"
    published = pl94_2020("persons-pr", ("County", "Tract", "Block_Group", "Block"))
    ours, theirs = (
        [(one.level, one.share, [part for _, part in one.queries]) for one in levels if one.share]
        for levels in (rule.strategy.levels, published.levels)
    )
    assert ours == theirs


UNITS = """
[population]
dwellings = "dwellings.csv"
dwelling_id = "did"
geography = ["geo"]
[variables.GEO]
codelist = "geo.csv"
of = "dwelling"
fixed = true
breakdowns = { County = 1, Tract = 2, Block_Group = 3, Block = 4 }
[variables.OCCUPANCY]
codelist = "occupancy.csv"
of = "dwelling"
fixed = true
[[cubes]]
id = "units"
unit = "dwellings"
axes = ["GEO.Block", "OCCUPANCY"]
[noise]
kind = "hierarchical"
geography = "GEO"
rho = "11417641/152349649"
neighbours = "substitute"
strategy = "pl94-2020"
[noise.invariants]
totals = ["Block"]
"""


def test_the_units_of_2020_have_their_published_noise_and_known_numbers_in_every_block(
    tmp_path: Path,
) -> None:
    """One unit replaced changes two counts: the variance is 1 over its part of rho."""
    make_pl94(tmp_path)
    head = ("code", "parent", "label")
    table(tmp_path / "occupancy.csv", [head, ("O", "", "occupied"), ("V", "", "vacant")])
    random = np.random.default_rng(5)
    codes = [row.split(",")[0] for row in (tmp_path / "geo.csv").read_text().splitlines() if "B" in row]
    units = [(str(k), codes[random.integers(len(codes))], "OV"[random.random() < 0.2]) for k in range(400)]
    table(tmp_path / "dwellings.csv", [("did", "geo", "occupancy"), *units])
    (tmp_path / "programme.toml").write_text(UNITS)
    programme = load_programme(tmp_path / "programme.toml")
    protect(programme, SECRET, tmp_path / "release", tmp_path / "private.json", clock=lambda: NOON)
    assert verify(tmp_path / "release").problems == ()
    assert verify_certificate(tmp_path / "release").claim == "rho = 11417641/152349649"
    measured = pq.read_table(tmp_path / "release/measurements/Block/detailed.parquet").to_pylist()
    part = Fraction(11417641, 152349649) * Fraction(99, 820)
    assert {round(row["variance"], 6) for row in measured} == {round(float(1 / part), 6)}
    found = values(tmp_path / "release", "units")
    for code in codes:
        assert found.get((code, "_T"), 0) == sum(place == code for _, place, _ in units)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Block = 4", "Houses = 4", "name its breakdowns as the published levels"),
        ("INST = 1, ", "", "pl94-2020 measures hhinstlevels: add a breakdown of 1 + 4 + 3 codes"),
        ("[variables.CENRACE]", "[variables.RACE]", "CENRACE: is missing"),
        ('"pl94-2020"', '"pl94-2030"', 'write "pl94-2020"'),
    ],
)
def test_a_programme_that_does_not_fit_the_built_in_strategy(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    path = make_pl94(tmp_path)
    text = path.read_text().replace(old, new)
    text = text.replace('GEO.Block"', 'GEO.Houses"') if "Houses" in new else text
    if "RACE]" in new:
        text = text.replace('"CENRACE"]', '"RACE"]')
    path.write_text(text)
    with pytest.raises(Mistakes) as refused:
        load_programme(path)
    assert problem in str(refused.value)
