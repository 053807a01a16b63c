import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.risk import app
from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.cells.lookup import Order, build
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

RUNNER = CliRunner()


def run(*words: object) -> str:
    result = RUNNER.invoke(app, ["bayes", *(str(word) for word in words)], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


def test_any_law_by_its_kind(tmp_path: Path) -> None:
    laplace = run_json(
        "count", "--kind", "laplace", "--epsilon", 1, "--bound", 4, "--known", 2, "--published", "3,7,-1"
    )
    expected = Adversary(truncated_laplace(1, 4), 2)
    assert [one["posterior"] for one in laplace["published"]] == pytest.approx(
        [expected.posterior(j) for j in (3, 7, -1)]
    )
    assert laplace["published"][1]["posterior"] == 1
    table = tmp_path / "t.csv"
    write_ptable(table, PTableFormat.R, build(solve(PTableParameters(5, 2.0)), Order.PLAIN))
    solved = run_json("count", "--kind", "cell-key", "--D", 5, "--V", 2, "--known", 3)
    read = run_json("count", "--ptable", table, "--known", 3)
    assert read["correct"] == pytest.approx(solved["correct"], abs=1e-6)
    assert run_json("count", "--kind", "hellinger", "--epsilon", 2)["risk"] > 1


def test_the_law_of_what_is_published() -> None:
    """Negative counts as zero: a zero then stands for all of them."""
    law = discrete_gaussian("0.1")
    report = run_json("count", "--rho", "0.1", "--negatives", "zero", "--published", "0,1")
    zero, one = report["published"]
    odds = math.log(law.pmf.cdf(-1)) - math.log(law.pmf.cdf(0))
    assert zero["posterior"] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert zero["probability"] == pytest.approx(law.pmf.cdf(-1))
    assert one["posterior"] == pytest.approx(Adversary(law).posterior(1))
    small = run_json("count", "--rho", "0.1", "--threshold", 3, "--published", "1")
    assert small["published"][0]["probability"] == 0


def test_several_levels_and_releases() -> None:
    report = run_json(
        "levels", "--rho", "0.1", "--prior", "0.2", "--published", "2,3",
        "--level", "known=12,published=15,rho=1/4", "--release", "published=3", "--release", "published=0,epsilon=1",
    )  # fmt: skip
    found = report["together"]
    assert found["observations"] == 4
    for first, one in zip((2, 3), found["published"], strict=True):
        odds = math.log(0.25) + 0.1 * (2 * first - 1) + 0.25 * (2 * 3 - 1) + 0.1 * 5 - 1
        assert one["counts"] == [first, 15, 3, 0]
        assert one["posterior"] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert found["risk"] > report["risk"]
    text = run("levels", "--rho", "0.1", "--published", 2, "--level", "known=12,published=15")
    assert "published 2, 15 together" in text


def test_chances_need_no_published_counts() -> None:
    found = run_json("levels", "--epsilon", "1", "--release", "epsilon=1", "--release", "epsilon=1")[
        "together"
    ]
    p = math.e / (1 + math.e)  # that one count speaks for the target who is there: a cell at 1 or above
    assert found["correct"] == pytest.approx(p**3 + 3 * p**2 * (1 - p))
    assert found["mistaken"] == pytest.approx(1 - found["correct"])
    assert found["published"] == []


def test_the_whole_histogram() -> None:
    report = run_json("histogram", "--epsilon", 2, "--known", "3,1,0x3", "--target", "1,5")
    expected = HistogramAdversary(discrete_laplace(2), (3, 1, 0, 0, 0), (0.2,) * 5)
    assert report["categories"] == 5
    assert report["baseline"] == 0.2
    assert report["success"] == pytest.approx(expected.success)
    assert [one["category"] for one in report["targets"]] == [1, 5]
    assert report["targets"][1]["correct"] == pytest.approx(expected.correct(4))
    assert report["posteriors"] is None
    words = (
        "histogram", "--epsilon", 2, "--known", "3,1,0x3", "--published", "3,1,0,2,0", "--prior", "4,2,2,1,1",
    )  # fmt: skip
    posteriors = HistogramAdversary(
        discrete_laplace(2), (3, 1, 0, 0, 0), (0.4, 0.2, 0.2, 0.1, 0.1)
    ).posterior([3, 1, 0, 2, 0])
    assert run_json(*words)["posteriors"] == pytest.approx(posteriors.tolist())
    assert run_json(*words)["decision"] == 4
    assert "published histogram: category 4" in run(*words)


def test_a_histogram_of_a_table_where_zeros_stay(tmp_path: Path) -> None:
    law = PTableLaw(solve(PTableParameters(3, 1.0)))
    table = tmp_path / "t.csv"
    write_ptable(table, PTableFormat.R, build(law.ptable, Order.PLAIN))
    found = run_json("histogram", "--ptable", table, "--known", "6,0,0", "--published", "6,1,0")
    assert found["posteriors"] == [0, 1, 0]
    assert found["targets"][1]["correct"] > 1 - law.row(1).at(0) - 1e-6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("count", "--kind", "laplace", "--epsilon", "1"), "largest change"),
        (("count", "--kind", "laplace", "--ptable", "t.csv"), "give one of them"),
        (("count", "--epsilon", "1", "--bound", "3"), "name the noise with --kind"),
        (("count", "--rho", "1", "--rounding", "0"), "give 1 to 1000"),
        (("count", "--rho", "1", "--rounding", "9" * 30), "give 1 to 1000"),
        (("count", "--rho", "1", "--threshold", "9" * 30), "0 to 1000000"),
        (("levels", "--rho", "1"), "--level or --release: missing"),
        (("levels", "--rho", "1", "--level", "published=3"), "number of known others"),
        (("levels", "--rho", "1", "--level", "12"), r"e\.g\. known=12"),
        (("levels", "--rho", "1", "--level", "known=x"), "whole numbers"),
        (("levels", "--rho", "1", "--level", "known=-1"), "at least 0"),
        (("levels", "--rho", "1", "--release", "known=3"), r"e\.g\. published=3"),
        (("levels", "--rho", "1", "--release", "rho=1,epsilon=1"), "give one of them"),
        (("levels", "--rho", "1", "--release", "rho=-1"), "above zero"),
        (("histogram", "--rho", "1", "--known", "1,a"), "whole numbers"),
        (("histogram", "--rho", "1", "--known", "1,-2"), "at least 0"),
        (("histogram", "--rho", "1", "--known", "0x99999999"), "categories"),
        (("histogram", "--rho", "1", "--known", "1,2", "--published", "1"), "one count for each"),
        (("histogram", "--rho", "1", "--known", "1,2", "--prior", "1"), "one probability"),
        (("histogram", "--rho", "1", "--known", "1,2", "--prior", "0,0"), "not all 0"),
        (("histogram", "--rho", "1", "--known", "1,2", "--target", "3"), "1 to 2"),
    ],
)  # fmt: skip
def test_mistakes_in_what_is_asked(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        run(*words)


def test_each_sub_command_has_its_own_options() -> None:
    for words in (("count", "--level", "known=3"), ("histogram", "--known", "1,2", "--groups", "3")):
        assert RUNNER.invoke(app, ["bayes", *words, "--rho", "1"]).exit_code == 2
    assert RUNNER.invoke(app, ["bayes", "histogram", "--rho", "1"]).exit_code == 2  # --known is required
    negative = ("--rho", "1", "--groups", "3", "--larger-rho", "1", "--negatives", "zero")
    assert RUNNER.invoke(app, ["bayes", "hierarchy", *negative]).exit_code == 2


def test_the_old_spelling_names_the_sub_commands_in_one_line() -> None:
    command = [sys.executable, "-m", "discreet", "risk", "bayes", "--rho", "0.1", "--prior", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == (
        "discreet risk bayes: --rho; name a sub-command first: count, levels, histogram, hierarchy, nested"
    )
    assert RUNNER.invoke(app, ["bayes", "--help"]).exit_code == 0


def test_larger_and_larger_groups_with_priors_and_invariants() -> None:
    two = run_json(
        "hierarchy", "--rho", "1/10", "--larger-rho", "1/4", "--groups", 27, "--published", "2,1,-1"
    )
    noise = ["nested", "--rho", "1/10", "--published", 2]
    same = run_json(*noise, "--within", "published=1,others=-1,groups=27,rho=1/4")
    assert same["posterior"] == pytest.approx(two["posterior"])
    bounded = run_json(*noise, "--within", "published=1,others=-1,groups=27,rho=1/4,most=1")
    assert bounded["posterior"] != pytest.approx(same["posterior"], abs=0.01)
    expected = run_json(*noise, "--within", "published=1,others=-1,groups=27,rho=1/4,mean=0.5,most=9")
    assert expected["posterior"] != pytest.approx(same["posterior"], abs=0.01)
    three = run_json(*noise, "--within", "published=1,others=-1,groups=27,rho=1/4", "--within", "exact=0")
    assert (three["levels"], three["posterior"]) == (3, 0.0)
    found = run_json("nested", "--rho", 1, "--within", "published=0", "--counts", "1,2", "--draws", 200)
    assert 0 < found["above_half"] <= 1
    assert "posterior 0.0000" in run(*noise, "--within", "exact=0")


def test_all_but_n_members_known() -> None:
    one = run_json("count", "--epsilon", 1)
    four = run_json("count", "--epsilon", 1, "--unknown", "0.2x2,0.5")
    assert four["risk"] < one["risk"]
    nested = run_json(
        "nested", "--epsilon", 1, "--published", 2, "--within", "exact=9", "--unknown", "0.2x2,0.5"
    )
    assert nested["unknown"] == 3
    shown = next(each for each in four["published"] if each["count"] == 2)
    assert nested["posterior"] == pytest.approx(shown["posterior"])


@pytest.mark.parametrize(
    "words",
    [
        ["nested", "--rho", "1", "--published", "1", "--within", "published=1,exact=1"],
        ["nested", "--rho", "1", "--published", "1", "--within", "exact=1,rho=1"],
        ["nested", "--rho", "1", "--published", "1", "--within", "rho=1"],
        ["nested", "--rho", "1", "--published", "1", "--within", "published=1,others=2"],
        ["nested", "--rho", "1", "--published", "1", "--within", "published=1,most=-1"],
        ["nested", "--rho", "1", "--published", "1", "--within", "published=1,mean=0"],
        ["nested", "--rho", "1", "--within", "published=1"],
        ["nested", "--D", "5", "--V", "2", "--published", "1", "--within", "published=1"],
        ["nested", "--rho", "1", "--counts", "2,1", "--within", "published=1"],
        ["count", "--rho", "1", "--unknown", "1.2"],
        ["count", "--rho", "1", "--unknown", "a"],
    ],
)
def test_wrong_groups_priors_and_members_are_refused(words: list[str]) -> None:
    with pytest.raises(Mistakes):
        run(*words)
