"""Differences, sums, quotients and tests from the estimates of a hierarchical release; library and commands."""

import json
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.inference import (
    estimated,
    estimated_difference,
    estimated_independence,
    estimated_proportion,
    estimated_ratio,
    estimated_total,
)
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from tests.cli.called import discreet
from tests.pipeline.conftest import NOON, SECRET
from tests.pipeline.small_country import make_country

TRACT, OTHER = "GEO=S0C0T0", "GEO=S0C0T1"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimates")
    programme = load_programme(make_country(folder))
    protect(programme, SECRET, folder / "release", folder / "private.json", clock=lambda: NOON)
    return folder / "release"


def test_a_sum_of_cells_has_the_error_of_the_published_sum(release: Path) -> None:
    """Variances and covariances of parts add up to the published variance of the whole."""
    for parts, whole in (
        (f"{TRACT} and SEX in (F, M)", TRACT),
        ("GEO in (S0C0T0, S0C0T1, S0C0T2) and SEX=F", "GEO=S0C0 and SEX=F"),
    ):
        name, codes = parts.split(" and ")[-1 if "SEX in" in parts else 0].split(" in ")
        chosen = [part for part in parts.split(" and ") if " in " not in part]
        singles = [" and ".join([*chosen, f"{name}={code}"]) for code in codes.strip("()").split(", ")]
        differences = [estimated_difference(release, "tracts", one, singles[0]) for one in singles[1:]]
        published = [estimated(release, "tracts", one) for one in singles]
        # Var(sum) = sum of variances + 2 covariances, each from Var(a - b) = Var a + Var b - 2 Cov
        errors = {one: two.standard_error for one, two in zip(singles, published, strict=True)}
        covariance = 0.0
        for first in range(len(singles)):
            for second in range(first):
                apart = estimated_difference(release, "tracts", singles[first], singles[second])
                both = errors[singles[first]] ** 2 + errors[singles[second]] ** 2
                covariance += (both - apart.standard_error**2) / 2
        variance = sum(error**2 for error in errors.values()) + 2 * covariance
        wanted = estimated(release, "tracts", whole)
        assert variance == pytest.approx(wanted.standard_error**2, rel=1e-2)
        assert sum(one.estimate for one in published) == pytest.approx(wanted.estimate, abs=0.01)
        assert all(one.correlation is not None and abs(one.correlation) > 1e-6 for one in differences)
        total = estimated_total(release, "tracts", parts)
        assert (total.estimate, total.standard_error) == pytest.approx(
            (wanted.estimate, wanted.standard_error), abs=0.01
        )


def test_sums_need_be_no_cell_and_may_be_exact(release: Path) -> None:
    two = estimated_total(release, "tracts", "GEO in (S0C0T0, S0C0T1)")
    assert two.cells == 2
    assert two.standard_error > 0
    assert two.p_value is None
    exact = estimated_total(release, "tracts", "GEO=S0")
    assert (exact.standard_error, exact.low) == (0, exact.high)
    assert exact.estimate == exact.published
    states = estimated_difference(release, "tracts", "GEO=S0", "GEO=S1")
    assert (states.standard_error, states.statistic) == (0, None)
    assert states.estimate == states.published
    with pytest.raises(Mistakes, match="both cells are GEO = S0"):
        estimated_difference(release, "tracts", "GEO=S0", "GEO=S0")


def test_quotients_of_a_part_and_of_another(release: Path) -> None:
    share = estimated_proportion(release, "tracts", f"{TRACT} and SEX=F", TRACT)
    ratio = estimated_ratio(release, "tracts", f"{TRACT} and SEX=F", f"{TRACT} and SEX=M")
    parts = [estimated(release, "tracts", f"{TRACT} and SEX={sex}").estimate for sex in "FM"]
    assert share.estimate == pytest.approx(parts[0] / sum(parts), abs=1e-3)
    assert ratio.estimate == pytest.approx(parts[0] / parts[1], abs=1e-3)
    assert 0 <= share.low < (share.estimate or 0) < share.high <= 1
    # a share and a ratio of the same two parts are the same statement
    assert ratio.low / (1 + ratio.low) == pytest.approx(share.low, abs=1e-3)
    with pytest.raises(Mistakes, match="is not within"):
        estimated_proportion(release, "tracts", TRACT, OTHER)


def test_independence_from_estimates(release: Path) -> None:
    found = estimated_independence(release, "tracts", "SEX", "AGE", "GEO=S0")
    assert (found.rows - 1) * (found.columns - 1) == found.df > 0
    assert 0 <= found.p_value <= 1
    assert "independence" in found.sentence


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("interval", "--where", TRACT), "estimate"),
        (("difference", "--where", TRACT, "--other-where", OTHER), "correlation"),
        (("total", "--where", "GEO in (S0C0T0, S0C0T1)"), "cells"),
        (("ratio", "--where", TRACT, "--base-where", OTHER), "estimate"),
        (("proportion", "--where", TRACT, "--whole-where", ""), "estimate"),
        (("independence", "--rows", "SEX", "--columns", "AGE"), "df"),
    ],
)
def test_the_commands_use_the_estimates_of_a_release(release: Path, words: tuple[str, ...], key: str) -> None:
    given: tuple[str | Path, ...] = ("infer", *words, "--release", release, "--cube", "tracts")
    told = discreet(*given)
    assert told.returncode == 0, told.stderr
    assert "Assumes: the estimate" in told.stdout.replace("\n", " ")
    assert key in json.loads(discreet(*given, "--json").stdout)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("difference", "--where", TRACT), "--other-where: missing"),
        (("difference", "--where", TRACT, "--other-where", "GEO=X"), "unknown code 'X' of GEO"),
        (("interval", "--count", "4"), "leave them out"),
        (("independence", "--rows", "SEX"), "--rows and --columns: missing"),
        (("proportion", "--where", TRACT, "--whole-where", OTHER), "is not within"),
        (("total", "--where", "GEO = S0", "--level", "2"), "level"),
        (("binomial", "--n", "9", "--p0", "0.5"), "use its estimates"),
    ],
)
def test_wrong_questions_have_one_clear_answer(release: Path, words: tuple[str, ...], message: str) -> None:
    told = discreet("infer", *words, "--release", str(release), "--cube", "tracts")
    assert told.returncode == 2
    text = " ".join(told.stderr.split())
    assert message in text
    assert len(told.stderr.strip().splitlines()) <= 4
