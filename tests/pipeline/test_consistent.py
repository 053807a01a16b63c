"""Releases whose totals add up, from records to files: every noise, every reader, every refusal."""

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.audit.case import make_case, recognise
from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.inference.noise import noise_of
from discreet.maths.consistent import node_depths
from discreet.pipeline.check import check_data
from discreet.programme.programme import load_programme
from discreet.release.manifest import read_manifest
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme, serve_release
from tests.cases import few
from tests.pipeline.conftest import NOON, SECRET, contents, run, with_cubes

CUBES = {
    "place-age": '["GEO.M", "SEX", "AGE.M"]',
    "place-work": '["GEO.H", "SEX", "CAS.L"]',
    "age-work": '["SEX", "AGE.M", "CAS.H"]',
    "small": '["SEX", "AGE.L"]',
}
NOISES = {
    "cell key": 'kind = "cell-key"\nV = 2.0\nD = 5\njs = 0',
    "geometric": 'kind = "geometric"\nepsilon = 40',
    "gaussian": 'kind = "discrete-gaussian"\nrho = 10\ndelta = 1e-9',
    "by axes": 'kind = "geometric"\nepsilon = 60\n'
    'split = { by_axes = { "0" = "1/10", "1" = "2/10", "2" = "3/10", "3" = "4/10" } }',
    "zeros kept": 'kind = "geometric"\nepsilon = 40\nkeep_zeros = "all"\nclaim = "none"',
}


def declare(
    census: Path, folder: Path, noise: str, release: str = "consistent = true", more: str = ""
) -> Path:
    shutil.copytree(census, folder)
    programme = folder / "programme.toml"
    text = with_cubes(programme.read_text(), CUBES)
    programme.write_text(f"{text}{more}\n[noise]\nallow_weak = true\n{noise}\n[release]\n{release}\n")
    return folder


def described(folder: Path, name: str) -> dict[tuple[tuple[str, str], ...], int]:
    """What a cube's file lists: the codes that are not totals -> value."""
    opened = open_release(folder)
    axes = [axis.variable for axis in opened.cube(name).axes]
    return {
        tuple(sorted((axis, row[axis]) for axis in axes if row[axis] != "_T")): row["value"]
        for row in opened.read_cube(name).to_pylist()
    }


def require_sums(folder: Path, name: str) -> None:
    """Every total is the sum of the codes directly below it, along each axis, read from the files alone."""
    opened = open_release(folder)
    found = described(folder, name)
    for axis in opened.cube(name).axes:
        codes = opened.read_codes(axis.breakdown)
        children: dict[str, list[str]] = {}
        for code, parent in zip(codes.codes, codes.parents, strict=True):
            children.setdefault(parent, []).append(code)
        for cell, value in found.items():
            held = dict(cell)
            code = held.pop(axis.variable, "_T")
            below = children.get(code, [])
            if below:
                parts = (found.get(tuple(sorted({**held, axis.variable: one}.items())), 0) for one in below)
                assert sum(parts) == value, (name, cell)


@pytest.mark.parametrize("noise", few(NOISES.values(), 0, 1), ids=NOISES)
def test_totals_add_up_and_every_cell_has_one_value(census: Path, tmp_path: Path, noise: str) -> None:
    run(declare(census, tmp_path / "census", noise), tmp_path / "r")
    outcome = verify(tmp_path / "r")
    assert outcome.passed, outcome.problems
    assert outcome.compared > 50
    for name in CUBES:
        require_sums(tmp_path / "r", name)
    opened = open_release(tmp_path / "r")
    codes = {
        name: {axis.variable: set(opened.read_codes(axis.breakdown).codes) for axis in opened.cube(name).axes}
        for name in CUBES
    }
    for one, other in combinations(CUBES, 2):
        mine, its = described(tmp_path / "r", one), described(tmp_path / "r", other)
        for cell in {*mine, *its}:
            if all(code in codes[cube].get(axis, ()) for axis, code in cell for cube in (one, other)):
                assert mine.get(cell, 0) == its.get(cell, 0), (one, other, cell)


def test_the_release_says_that_counts_are_adjusted(census: Path, tmp_path: Path) -> None:
    formats = 'consistent = true\nformats = ["csv", "sdmx-csv", "json-stat", "px", "xlsx"]'
    folder = declare(census, tmp_path / "census", NOISES["geometric"], formats)
    run(folder, tmp_path / "r")
    assert read_manifest(tmp_path / "r").noise.adjusted
    noise = open_release(tmp_path / "r").noise
    assert (noise.law, noise.variance, noise.bound, noise.adjusted) == (None, None, None, True)
    readme = (tmp_path / "r/README.md").read_text()
    assert "**Totals add up.**" in readme
    assert "adjusted to each other" in readme
    assert "epsilon = 40 and delta" in readme  # post-processing leaves the guarantee
    metadata = pq.read_schema(tmp_path / "r/parquet/small.parquet").metadata
    assert metadata[b"discreet.adjusted"] == b"true"
    for place in ("json-stat/small.json", "px/small.px", "sdmx/structures.xml"):
        text = (tmp_path / "r" / place).read_text(encoding="utf-8")
        assert "adjusted to each other" in text.replace('"\n"', ""), place
    (folder / "programme.toml").write_text(
        (folder / "programme.toml").read_text().replace("consistent = true", "consistent = false")
    )
    run(folder, tmp_path / "plain")
    assert '"adjusted"' not in (tmp_path / "plain/manifest.json").read_text()
    assert "**Totals may not add up.**" in (tmp_path / "plain/README.md").read_text()


def test_the_same_run_gives_the_same_bytes_whatever_the_threads(census: Path, tmp_path: Path) -> None:
    folder = declare(census, tmp_path / "census", NOISES["geometric"] + '\nsnapshot = "2021"')
    run(folder, tmp_path / "a")
    run(folder, tmp_path / "b", threads=3)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_errors_are_smaller_than_without(census: Path, tmp_path: Path) -> None:
    """The realised errors of all cells of a private release, against the same noise left as it is."""
    squares = {}
    for release in ("consistent = true", "consistent = false"):
        folder = declare(census, tmp_path / release.split()[-1], NOISES["geometric"], release)
        out = tmp_path / f"r-{release.split()[-1]}"
        run(folder, out)
        case = make_case(
            recognise(load_programme(folder / "programme.toml"), SECRET, open_release(out)), open_release(out)
        )
        errors = []
        for table in (table for universe in case.published.universes for table in universe.tables):
            (cells, values), (true, counts) = table.load(), case.truth.counted[table.id]
            grid = np.zeros(table.cube.size)
            grid[cells] += values
            grid[true] -= counts
            finest = np.ones(table.cube.size, dtype=bool)
            for k, axis in enumerate(table.cube.axes):
                depths = node_depths(axis.parents)
                finest &= (depths > 0)[table.cube.nodes(np.arange(table.cube.size), k)]
            errors.append([(grid**2)[finest].mean(), (grid**2)[~finest].mean()])
        squares[release] = np.array(errors)
    before, after = (squares[f"consistent = {name}"].mean(axis=0) for name in ("false", "true"))
    assert (after < before).all(), squares


def test_verify_finds_a_total_that_is_not_the_sum(census: Path, tmp_path: Path) -> None:
    """A release made without, whose manifest says otherwise, sealed again: only the sums show it."""
    noise = (
        'kind = "geometric"\nepsilon = 1'  # four grand totals that are equal by chance: one in ten thousand
    )
    run(declare(census, tmp_path / "census", noise, "consistent = false"), tmp_path / "r")
    manifest = read_manifest(tmp_path / "r")
    claimed = manifest.model_copy(update={"noise": manifest.noise.model_copy(update={"adjusted": True})})
    (tmp_path / "r/manifest.json").write_text(claimed.to_json(), encoding="utf-8")
    outcome = verify(tmp_path / "r")
    assert not outcome.passed
    assert any("but its parts add up to" in problem for problem in outcome.problems)
    assert any(": the grand total" in problem for problem in outcome.problems)


def test_nobody_takes_adjusted_counts_for_independent_noise(census: Path, tmp_path: Path) -> None:
    folder = declare(census, tmp_path / "census", NOISES["geometric"] + '\nsnapshot = "2021"')
    run(folder, tmp_path / "r")
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET.hex().encode())
    secret.chmod(0o600)
    with pytest.raises(Mistakes, match="adjusted so that totals add up"):
        noise_of(tmp_path / "r")
    runner = CliRunner()
    for command in (
        ["attack", str(tmp_path / "r")],
        [
            "audit",
            str(tmp_path / "r"),
            "--programme",
            str(folder / "programme.toml"),
            "--secret",
            str(secret),
        ],
    ):
        result = runner.invoke(app, command)
        assert isinstance(result.exception, Mistakes), result.output
        assert "their errors depend on each other" in str(result.exception)
    store = Store(tmp_path / "store.sqlite", lambda: NOON)
    with pytest.raises(Mistakes, match="serve the release folder instead"):
        serve_programme(load_programme(folder / "programme.toml"), SECRET, store)
    builder = serve_release(open_release(tmp_path / "r"), store)
    assert "adjusted to each other" in builder.catalogue.noise.sentence()


@pytest.mark.parametrize(
    ("noise", "more", "told"),
    [
        ('kind = "hellinger"\nepsilon = 200', "", "depend on the count"),
        ('kind = "geometric"\nepsilon = 40\nthreshold = 3', "", "negatives, rounding or threshold"),
        ('kind = "geometric"\nepsilon = 40\nrounding = 5', "", "negatives, rounding or threshold"),
        ('kind = "geometric"\nepsilon = 40\nnegatives = "keep"', "", "negatives, rounding or threshold"),
        ('kind = "cell-key"\nV = 2.0\nD = 5\njs = 1', "", "never published"),
        (NOISES["cell key"], "[gates]\naveraging = 0.5", "no attack knows the law"),
    ],
)
def test_what_adjusted_counts_cannot_keep_is_refused(
    census: Path, tmp_path: Path, noise: str, more: str, told: str
) -> None:
    folder = declare(census, tmp_path / "census", noise, more=more)
    with pytest.raises(Mistakes, match=told):
        load_programme(folder / "programme.toml")


@pytest.mark.long
def test_the_whole_eu_programme_of_persons_is_refused_before_anything_is_counted(
    census: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "census"
    shutil.copytree(census, folder)
    text = (folder / "programme.toml").read_text()
    start, end = text.index("[standard]"), text.index("[[structural")
    standard = "\n".join(line for line in text[start:end].splitlines() if not line.startswith("tables"))
    text = text[:start] + standard + "\n" + text[end:]
    (folder / "programme.toml").write_text(text.replace("[release]", "[release]\nconsistent = true"))
    programme = load_programme(folder / "programme.toml")
    assert len(programme.cubes) > 100
    (problem,) = [one for one in check_data(programme) if one.key == "release.consistent"]
    assert "share margins in a circle" in problem.value
    with pytest.raises(Mistakes, match="share margins in a circle"):
        run(folder, tmp_path / "r")
    assert not (tmp_path / "r").exists()
