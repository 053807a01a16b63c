import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.risk import app
from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.cells.lookup import Order, build
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

RUNNER = CliRunner()


def run(*words: object) -> str:
    result = RUNNER.invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


def test_redundancy_of_the_eu_programme() -> None:
    report = run_json("redundancy", "eu-census-2021", "--country", "MT", "--mode", "literal")
    assert report["regions"] == {"NUTS1": 1, "NUTS2": 1, "NUTS3": 2, "LAU": 68}
    persons = report["universes"][0]
    assert (persons["counted"], persons["tables"]) == ("persons", 103)
    found = {one["statistic"]: one for one in persons["statistics"]}
    assert (found["total"]["same_noise"]["t"], found["total"]["fresh_noise"]["t"]) == (1244, 3432)
    assert (found["AGE.M x SEX"]["same_noise"]["t"], found["AGE.M x SEX"]["fresh_noise"]["t"]) == (221, 630)
    for one in found.values():
        same = one["same_noise"]
        assert same["k_over_t2"] == pytest.approx(same["k"] / same["t"] ** 2)
        assert same["riskiest"]["k_over_t2"] <= same["first_minimum"]["k_over_t2"] * (1 + 1e-12)
    assert persons["most_exposed"]["same_noise"][0] == "total"


def test_regions_can_be_given_by_number() -> None:
    numbers = run_json("redundancy", "eu-census-2021", "--regions", "1,1,2,68")
    assert numbers["universes"] == run_json("redundancy", "eu-census-2021", "--country", "MT")["universes"]


def test_redundancy_is_shown_as_tables() -> None:
    text = run("redundancy", "eu-census-2021", "--country", "LU", "--mode", "bach-2020")
    assert "2747" in text
    assert "6330" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eu-census-2021",), "give one of them"),
        (("eu-census-2021", "--country", "XX"), "use one of BE"),
        (("eu-census-2021", "--country", "MT", "--regions", "1,1,1,1"), "both"),
        (("eu-census-2021", "--regions", "1,2,3"), "four whole numbers"),
        (("eu-census-2021", "--regions", "4,3,2,1"), "do not fall"),
        (("absent.toml",), "absent.toml"),
        (("absent.toml", "--country", "MT"), "leave it out"),
    ],
)
def test_mistakes_in_what_is_asked_of_redundancy(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match=said):
        run("redundancy", *words)


def test_averaging_tells_the_paper_s_example() -> None:
    report = run_json("averaging", "--V", 2, "--k", 1000, "--t", 100, "--D", 5)
    assert report["k_over_t2"] == pytest.approx(0.1)
    assert report["success"] == pytest.approx(0.7364, abs=5e-5)
    assert report["chebyshev"] == pytest.approx(0.2)
    assert report["exact"] == pytest.approx(0.7317, abs=5e-5)
    assert report["contour"] == pytest.approx(0.2528, abs=5e-5)
    assert report["least_variance"] == pytest.approx(2.528, abs=5e-4)
    assert "0.7364" in run("averaging", "--V", 2, "--k", 1000, "--t", 100)


def test_bound_tells_how_well_it_is_hidden() -> None:
    report = run_json("bound", "--V", 2, "--D", 5, "--tuples", 28000000, "--counts", 68, "--records", 10**6)
    assert report["p1"] == pytest.approx(1.52e-7, rel=2e-3)
    assert report["m"] == 7488040
    assert report["uniform_p1"] == pytest.approx(20 / 11**3)
    assert report["revealed"] > 0.98
    assert report["expected_pinned"] < 0.01
    assert max(one["probability"] for one in report["pinned_small"]) > report["pinned"]
    assert report["epsilon_of_bound"] == pytest.approx(5.359 / 5, abs=1e-3)
    text = run("bound", "--V", 2, "--D", 5, "--tuples", 28000000, "--counts", 68)
    assert "1.522e-07" in text


def test_bound_reads_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    write_ptable(table, PTableFormat.R, build(solve(PTableParameters(5, 2.0)), Order.PLAIN))
    report = run_json("bound", "--ptable", table)
    assert report["D"] == 5
    assert report["p1"] == pytest.approx(1.52e-7, rel=2e-3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("averaging", "--V", "0", "--k", "1", "--t", "1"), "above 0"),
        (("averaging", "--V", "1e-300", "--k", "1", "--t", "1"), "above 0"),
        (("averaging", "--V", "1", "--k", "4", "--t", "5"), "give 5, one cell"),
        (("averaging", "--V", "1", "--k", "9" * 400, "--t", "5"), "give 5, one cell"),
        (("averaging", "--V", "1", "--k", "1", "--t", "1", "--alpha", "1e-320"), "between 0 and 1"),
        (("bound", "--V", "1e-320", "--D", "5"), "above 0"),
        (("averaging", "--V", "nan", "--k", "1", "--t", "1"), "above 0"),
        (("averaging", "--V", "1", "--k", "1", "--t", "1", "--alpha", "1"), "between 0 and 1"),
        (("bound", "--V", "2"), "give both"),
        (("bound", "--V", "2", "--D", "0"), "1 to 1000"),
        (("bound", "--V", "-2", "--D", "5"), "above 0"),
        (("bound", "--V", "2", "--D", "5", "--alpha", "nan"), "between 0 and 1"),
        (("bound", "--V", "2", "--D", "5", "--ptable", "t.csv"), "leave out"),
    ],
)
def test_mistakes_in_what_is_asked_of_noise(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        run(*words)


def test_dp_tells_the_exact_delta_of_a_table(tmp_path: Path) -> None:
    table, law = tmp_path / "t.csv", PTableLaw(solve(PTableParameters(5, 2.0)))
    write_ptable(table, PTableFormat.R, build(law.ptable, Order.PLAIN))
    report = run_json("dp", "--ptable", table, "--epsilon", "1,0,50")
    assert [point["epsilon"] for point in report["curve"]] == [1, 0, 50]
    for point in report["curve"]:
        assert point["delta"] == pytest.approx(law.delta(point["epsilon"]), abs=1e-7)
        assert point["delta"] >= report["fixed_zeros_delta"] - 1e-12
    assert report["delta"] == report["curve"][0]["delta"]
    assert report["fixed_zeros_delta"] == pytest.approx(1 - law.row(1).at(0), abs=1e-7)
    far = report["same_participants"][-1]
    p = law.row(100).p
    assert far["delta"] == pytest.approx(1 - float(p[1:] @ p[:-1]), abs=1e-6)
    assert "at every epsilon" in run("dp", "--ptable", table, "--epsilon", 1)


def test_dp_takes_laws_too() -> None:
    report = run_json("dp", "--kind", "laplace", "--noise-epsilon", 1, "--bound", 10, "--epsilon", 1)
    assert report["delta"] == pytest.approx(2.1e-5, rel=0.01)
    assert report["fixed_zeros_delta"] == 0
    assert run_json("dp", "--kind", "geometric", "--noise-epsilon", 1, "--epsilon", 1)["delta"] < 1e-15


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", "1"), "give one of them"),
        (("--epsilon", "x", "--kind", "uniform", "--bound", "3"), "numbers of at least 0"),
        (("--epsilon", "-1", "--kind", "uniform", "--bound", "3"), "numbers of at least 0"),
        (("--epsilon", "1", "--kind", "uniform"), "bound"),
        (("--epsilon", "1", "--ptable", "absent.csv"), "no such file"),
        (("--epsilon", "1", "--ptable", "absent.csv", "--kind", "uniform"), "both"),
    ],
)
def test_mistakes_in_what_is_asked_of_dp(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        run("dp", *words)


def test_bayes_tells_what_the_adversary_learns() -> None:
    report = run_json("bayes", "count", "--rho", "0.0992264", "--prior", "0.5")
    assert report["posterior"] == pytest.approx(0.524, abs=5e-4)
    assert report["risk"] == pytest.approx(1.047, abs=5e-4)
    assert report["risk"] <= report["largest_risk"]
    assert report["correct"] == pytest.approx(0.5889, abs=5e-5)
    assert [one["count"] for one in report["published"]] == [1, 2, 3, 4, 5]
    assert report["published"][1]["posterior"] == pytest.approx(0.574, abs=5e-4)
    assert "risk 1.047" in run("bayes", "count", "--rho", "0.0992264", "--prior", "1/2")


def test_bayes_knows_a_larger_group() -> None:
    words = ("bayes", "hierarchy", "--rho", "0.09922635", "--larger-rho", "0.24648451", "--groups", 27)
    asked = ("--counts", "1,8", "--published", "2,1,-1")
    found = run_json(*words, *asked)
    assert [one["correct"] for one in found["correct"]] == pytest.approx([0.318, 0.5897], abs=5e-4)
    assert found["posterior"] == pytest.approx(0.503, abs=5e-4)
    paper = run_json(*words, *asked, "--chain", "paper")
    assert paper["posterior"] == pytest.approx(0.578, abs=5e-4)
    assert "(paper)" in run(*words, *asked, "--chain", "paper")


def test_bayes_reads_a_table_and_takes_geometric_noise(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    write_ptable(table, PTableFormat.R, build(solve(PTableParameters(5, 2.0)), Order.PLAIN))
    found = run_json("bayes", "count", "--ptable", table, "--published", "0,2")
    assert found["published"][1]["posterior"] == 1
    report = run_json("bayes", "count", "--epsilon", 1, "--known", 3, "--prior", "1/5", "--published", -2)
    assert report["published"][0]["posterior"] == pytest.approx(1 / (1 + 4 * math.e))
    with pytest.raises(Mistakes, match="must not depend on counts"):
        run("bayes", "hierarchy", "--ptable", table, "--larger-rho", 1, "--groups", 3, "--counts", 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("count",), "give one of them"),
        (("count", "--rho", "1", "--epsilon", "1"), "give one of them"),
        (("count", "--rho", "-1"), "above zero"),
        (("count", "--rho", "1", "--prior", "1"), "between 0 and 1"),
        (("count", "--rho", "1", "--prior", "x"), "give a number from"),
        (("count", "--rho", "1", "--published", "a"), "whole numbers"),
        (("hierarchy", "--rho", "1", "--groups", "3", "--counts", "2"), "give one of them"),
        (
            ("hierarchy", "--rho", "1", "--groups", "3", "--larger-rho", "1"),
            "--counts or --published: missing",
        ),
        (("hierarchy", "--rho", "1", "--groups", "3", "--larger-rho", "1", "--counts", "0"), "at least 1"),
        (("hierarchy", "--rho", "1", "--groups", "3", "--larger-rho", "1", "--published", "0"), "three"),
    ],
)
def test_mistakes_in_what_is_asked_of_bayes(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        run("bayes", *words)


def test_the_exponential_law_needs_its_utility(tmp_path: Path) -> None:
    file = tmp_path / "utility.csv"
    file.write_text("change,utility\n" + "".join(f"{v},{-abs(v)}\n" for v in range(-9, 10)))
    words = ("dp", "--epsilon", "1", "--kind", "exponential", "--noise-epsilon", "1")
    with pytest.raises(Mistakes, match="utility: missing for exponential noise"):
        run(*words)
    laplace = ("dp", "--epsilon", "1", "--kind", "laplace", "--noise-epsilon", "1", "--bound", "9")
    found, known = run_json(*words, "--utility", str(file)), run_json(*laplace)
    assert found["delta"] == pytest.approx(known["delta"])


def test_subsets_report_how_many_records_come_back() -> None:
    noisy = ["subsets", "--records", "64", "--queries", "64,1108", "--repetitions", "3"]
    found = [
        json.loads(RUNNER.invoke(app, [*noisy, *law, "--json"]).stdout)["reconstructions"]
        for law in (["--V", "2", "--D", "5"], ["--kind", "uniform", "--bound", "2"], ["--budget", "1"])
    ]
    assert [one[-1]["queries"] for one in found] == [1108] * 3
    assert found[0][-1]["share"] == found[1][-1]["share"] == 1.0
    assert found[0][0]["share"] < 1.0
    assert found[2][-1]["share"] < 0.65
    shown = RUNNER.invoke(app, [*noisy, "--V", "2", "--D", "5"])
    assert "guessing: 50%" in shown.stdout


@pytest.mark.parametrize(
    "wrong",
    [
        ["--budget", "1", "--epsilon", "1"],
        ["--budget", "0"],
        ["--epsilon", "1", "--queries", "a"],
        ["--epsilon", "1", "--records", "1"],
        ["--kind", "hellinger", "--epsilon", "1"],
        [],
    ],
)
def test_subsets_refuse_what_they_cannot_ask(wrong: list[str]) -> None:
    assert isinstance(RUNNER.invoke(app, ["subsets", *wrong]).exception, Mistakes)
