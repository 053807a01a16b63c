"""``discreet infer``: its forms, its JSON, and one clear line for what is wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.infer import app
from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.cells.lookup import Order, build
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from tests.release.small import publish

RUNNER = CliRunner()
LAPLACE = ("--kind", "laplace", "--epsilon", "0.5", "--bound", "7")


def run(*words: object) -> str:
    result = RUNNER.invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


@pytest.fixture
def square(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("area,a,b,c\nx,52,61,40\ny,33,41,30\nz,20,33,17\n", encoding="utf-8")
    return path


@pytest.fixture
def ptable(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    write_ptable(path, PTableFormat.R, build(solve(PTableParameters(5, 2.0, 0)), Order.PLAIN))
    return path


def test_independence(square: Path) -> None:
    report = run_json("independence", square, *LAPLACE)
    assert (report["rows"], report["columns"], report["df"]) == (3, 3, 4)
    assert report["p_value"] > report["naive_p_value"]
    assert "with the noise allowed for" in run("independence", square, *LAPLACE)


def test_known_margins_public_total_and_simulations(square: Path, tmp_path: Path) -> None:
    margins = tmp_path / "margins.csv"
    margins.write_text("rows,153,104,70\ncolumns,105,135,87\n", encoding="utf-8")
    words = ("independence", square, *LAPLACE, "--simulations", 19)
    known = run_json(*words, "--known-margins", margins)
    assert (known["test"], known["simulations"]) == ("score, margins known", 19)
    whole = run_json(*words, "--public-total", 327, "--seed", 3)
    assert whole["test"] == "likelihood ratio, total known"
    assert "Assumes: the stated noise" in run(*words, "--known-margins", margins)
    margins.write_text("153,104,70\n", encoding="utf-8")
    with pytest.raises(Mistakes, match="not two lines of numbers; give two lines"):
        run(*words, "--known-margins", margins)


@pytest.mark.parametrize("text", ["52,61,40\n33,41,30\n20,33,17\n", "a,b,c\n52,61,40\n33,41,30\n20,33,17\n"])
def test_labels_may_be_left_out(square: Path, tmp_path: Path, text: str) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text(text, encoding="utf-8")
    assert run_json("independence", bare, *LAPLACE) == run_json("independence", square, *LAPLACE)


def test_binomial() -> None:
    report = run_json("binomial", "--n", 80, "--x", 41, "--p0", 0.5, "--against", 0.7, *LAPLACE)
    assert report["p_value"] == pytest.approx(0.92, abs=0.01)
    assert report["low"] < 0.5125 < report["high"]
    assert report["power"] > 0.8


def test_interval_with_a_ptable_and_with_a_prior(ptable: Path) -> None:
    report = run_json("interval", "--count", 12, "--ptable", ptable)
    assert (report["interval"]["low"], report["interval"]["high"]) == (9, 15)
    small = run_json("interval", "--count", 12, "--ptable", ptable, "--prior-mean", 2)
    assert small["posterior_mean"] < report["posterior_mean"]
    capped = run_json("interval", "--count", 12, "--ptable", ptable, "--prior-largest", 12)
    assert capped["credible"]["high"] == 12


def test_interval_with_the_noise_of_a_release(tmp_path: Path) -> None:
    publish(tmp_path / "release")
    text = run("interval", "--count", 12, "--release", tmp_path / "release")
    assert "variance of at most 2" in text


def test_difference_ratio_and_total(square: Path) -> None:
    gap = run_json("difference", "--count", 30, "--other", 12, *LAPLACE)
    assert gap["published"] == 18
    assert run_json("ratio", "--count", 30, "--base", 12, *LAPLACE)["published"] == 2.5
    whole = run_json("total", square, *LAPLACE)
    helped = run_json("total", square, "--published-total", 325, *LAPLACE)
    assert whole["published"] == 327
    assert helped["interval"]["high"] - helped["interval"]["low"] < 20


def test_loglinear_of_long_and_square_tables(square: Path, tmp_path: Path) -> None:
    report = run_json("loglinear", square, "--model", "A+B", *LAPLACE)
    assert report["deviance"] == pytest.approx(
        run_json("independence", square, *LAPLACE)["statistic"], abs=1e-5
    )
    long = tmp_path / "long.csv"
    cells = [f"{s},{a},{10 * k + 20}" for k, (s, a) in enumerate((s, a) for s in "mf" for a in "123")]
    long.write_text("SEX,AGE,value\n" + "\n".join(cells) + "\n", encoding="utf-8")
    text = run("loglinear", long, "--model", "SEX*AGE", *LAPLACE)
    assert "SEX=f*AGE=3" in text


def test_post_processing_is_in_the_likelihood(tmp_path: Path) -> None:
    kept = run_json("interval", "--count", 0, *LAPLACE)
    zeroed = run_json("interval", "--count", 0, *LAPLACE, "--negatives", "zero")
    assert zeroed["empty"] > kept["empty"]
    rounded = run_json("interval", "--count", 10, *LAPLACE, "--negatives", "zero", "--rounding", 5)
    assert rounded["interval"]["high"] > run_json("interval", "--count", 10, *LAPLACE)["interval"]["high"]
    fixed = run_json("interval", "--count", 0, *LAPLACE, "--zeros-kept", "--negatives", "zero")
    assert fixed["empty"] > zeroed["empty"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("interval", "--count", 12), "give one: inference requires the law of the noise"),
        (("interval", "--count", -9, *LAPLACE), "published count: -9; this noise never publishes it"),
        (("interval", "--count", 9, *LAPLACE, "--level", 2), "level: 2"),
        (("interval", "--count", 9, *LAPLACE, "--prior-mean", 2, "--prior-largest", 5), "give one of them"),
        (("interval", "--count", 9, "--kind", "hellinger", "--epsilon", 1), "spreads too far"),
        (("interval", "--count", 9, "--kind", "laplace", "--epsilon", 1), "bound: missing"),
        (("binomial", "--n", 80, "--x", 41, "--p0", 2, *LAPLACE), "p0: 2"),
        (("difference", "--count", 9, "--other", -9, *LAPLACE), "published count: -9"),
        (
            ("binomial", "--n", 80, "--x", 41, "--p0", 0.5, "--threshold", 2**70, *LAPLACE),
            "0 to 1000000",
        ),
        (("loglinear", "{table}", "--model", "A*X", *LAPLACE), "join different axes"),
        (("loglinear", "{table}", "--model", " * ", *LAPLACE), "axes on both sides of each"),
    ],
)
def test_mistakes(square: Path, words: tuple[object, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said) as told:
        run(*(square if word == "{table}" else word for word in words))
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2,3\n", "1 x 3; give at least two rows"),
        ("1,2\n3,4.5\n", r"4\.5; give published counts"),
        ("1,2\n3\n", "lines of different length"),
        ("1,2\n3,\n", "an empty cell is 0"),
        ("1,2\n3,-20\n", "published count: -20"),
        ("", "empty"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Mistakes, match=said):
        run("independence", path, *LAPLACE)


def test_a_noise_is_given_once(square: Path, ptable: Path) -> None:
    with pytest.raises(Mistakes, match="give one"):
        run("independence", square, "--ptable", ptable, *LAPLACE)
    with pytest.raises(Mistakes, match="the noise is fully described"):
        run("independence", square, "--ptable", ptable, "--negatives", "zero")


def test_a_mistake_ends_with_exit_code_2(square: Path) -> None:
    command = [sys.executable, "-m", "discreet", "infer", "independence", str(square)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("infer") / "release"
    publish(folder)
    return folder


def test_tables_and_cells_come_straight_from_a_release(small: Path) -> None:
    cube = ("--release", small, "--cube", "1.1")
    report = run_json("independence", *cube, "--rows", "GEO:1", "--columns", "SEX", "--simulations", 0)
    assert (report["rows"], report["columns"], report["df"]) == (2, 2, 1)
    one = run_json("interval", *cube, "--where", 'GEO == "AT11" and SEX == "1"')
    assert one["interval"]["low"] <= one["published"] <= one["interval"]["high"]
    small_area, large_area = 'GEO == "AT11"', 'GEO == "AT12"'
    two = run_json("difference", *cube, "--where", small_area, "--other-where", large_area)
    first, second = (
        run_json("interval", *cube, "--where", where)["published"] for where in (small_area, large_area)
    )
    assert two["published"] == first - second
    share = run_json("ratio", *cube, "--where", small_area, "--base-where", large_area)
    assert share["published"] == pytest.approx(first / second)
    whole = run_json("total", *cube, "--where", 'AGE == "1" and GEO in ("AT11", "AT21")')
    assert whole["interval"]["low"] <= whole["published"] <= whole["interval"]["high"]
    fitted = run_json("loglinear", *cube, "--model", "GEO:1*SEX+AGE.L")
    assert [one["name"] for one in fitted["effects"]][:3] == ["intercept", "GEO=AT2", "SEX=2"]
    one = run_json("binomial", *cube, "--where", small_area, "--n", 2000, "--p0", 0.5)
    assert one["published"] == first


def test_a_proportion_with_a_noisy_whole(small: Path) -> None:
    report = run_json("proportion", "--count", 30, "--whole", 120, *LAPLACE)
    assert report["low"] < report["estimate"] == 0.25 < report["high"]
    assert report["exact"]
    text = run("proportion", "--count", 30, "--whole", 120, *LAPLACE)
    assert "independent in part and whole" in text
    assert "with about 95% confidence" in text
    large = run_json("proportion", "--count", 749_100, "--whole", 1_486_040, *LAPLACE)["sentence"]
    limits = re.search(r"between (\S+) and (\S+) with", large)
    assert limits is not None
    assert limits[1] != limits[2]  # enough digits
    cube = ("--release", small, "--cube", "1.1")
    part, whole = 'GEO == "AT11"', 'GEO == "AT12"'
    counts = {where: run_json("interval", *cube, "--where", where)["published"] for where in (part, whole)}
    with pytest.raises(Mistakes, match="--whole-where: missing; name the second cell"):
        run("proportion", *cube, "--where", part)
    found = run_json("proportion", *cube, "--where", "GEO=AT11", "--whole-where", whole)
    assert found["published"] == pytest.approx(counts[part] / counts[whole])
    assert found["low"] < found["published"] < found["high"]


@pytest.mark.parametrize(
    ("words", "stated"),
    [
        (("interval", "--cube", "1.1"), "--cube: 1.1; name its release"),
        (("interval", "--count", 3, "--where", 'SEX == "1"', *LAPLACE), "--where: without --cube"),
        (("interval", *LAPLACE), "count: none; give --count, or --release with --cube"),
        (("independence", *LAPLACE), "table: none; give a CSV file, or --release with --cube"),
        (("interval", "--release", "R", "--cube", "9.9"), "this release has 1.1, 2.1"),
        (("interval", "--release", "R", "--cube", "1.1", "--count", 3), "--count and --cube"),
        (("interval", "--release", "R", "--cube", "1.1", *LAPLACE), "the release describes it"),
        (("independence", "--release", "R", "--cube", "1.1"), "name two axes of the cube: GEO.M, SEX, AGE.L"),
        (
            ("independence", "--release", "R", "--cube", "1.1", "--rows", "SXE", "--columns", "AGE"),
            "did you mean 'SEX'",
        ),
        (("ratio", "--count", 3, "--base", 4, "--base-where", "x", *LAPLACE), "--base-where: without --cube"),
    ],
)
def test_mistakes_about_a_release_are_one_line(words: tuple[object, ...], stated: str, small: Path) -> None:
    with pytest.raises(Mistakes) as found:
        run(*(small if word == "R" else word for word in words))
    assert stated in str(found.value)
    assert len(str(found.value).splitlines()) == 1


def test_a_dash_is_a_cell_that_must_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("area,a,b,c\nx,-,61,40\ny,33,41,30\nz,20,33,17\nempty,0,0,0\n", encoding="utf-8")
    report = run_json("independence", path, *LAPLACE, "--simulations", 0)
    assert (report["df"], report["structural"], report["empty_rows"]) == (3, 1, 1)
    text = run("independence", path, *LAPLACE, "--simulations", 0)
    assert "1 row and 0 columns are empty and left out" in text
    fitted = run_json("loglinear", path, "--model", "A+B", *LAPLACE)
    assert fitted["df"] == 3
    assert fitted["deviance"] == pytest.approx(report["statistic"], abs=1e-5)
