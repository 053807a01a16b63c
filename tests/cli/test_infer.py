"""``discreet infer``: its forms, its JSON, and one clear line for what is wrong."""

import json
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
        (("loglinear", "{table}", "--model", "A*X", *LAPLACE), "join different axes"),
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
