"""The page of coverage and size: rows recomputed by its script, and what results state agrees with it."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.inference.estimates import CHECKED_PROPORTIONS, CHECKED_SUMS, CHECKED_TESTS
from tests.cases import few

DOCS = Path(__file__).parent.parent / "docs"
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "inference_coverage.py"))
PAGE = (DOCS / "reference" / "inference-coverage.md").read_text(encoding="utf-8")


def shares(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"([0-9.]+) %", line)]


def row(name: str, second: int) -> str:
    """The row of a table by its first two cells."""
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {name} | {second} |"))


COVERAGES = [
    share for name in SCRIPT["LAWS"] for cells in SCRIPT["CELLS"] for share in shares(row(name, cells))
]
SIZES = [shares(row(name, mean)) for name in SCRIPT["TESTED"] for mean in (3, 10)]


def test_the_page_has_every_row_and_the_text_of_the_script() -> None:
    assert PAGE.startswith(SCRIPT["INTRODUCTION"])
    assert SCRIPT["SECOND"] in PAGE
    assert len(COVERAGES) == len(SCRIPT["LAWS"]) * len(SCRIPT["CELLS"]) * len(SCRIPT["TRUTHS"])
    assert all(row(name, mean) for name in SCRIPT["TESTED"] for mean in SCRIPT["MEANS"])


def test_no_coverage_is_below_its_level_by_more_than_chance() -> None:
    assert min(COVERAGES) >= 95 - 1 - 300 * np.sqrt(0.95 * 0.05 / SCRIPT["DRAWS"])


def test_results_state_the_figures_of_the_page() -> None:
    corrected = [
        share
        for name, noise in SCRIPT["LAWS"].items()
        if not noise.is_additive
        for cells in SCRIPT["CELLS"]
        for share in shares(row(name, cells))
    ]
    stated = int(re.search(r"nominal 95 %: (\d+) %", CHECKED_SUMS).group(1))  # type: ignore[union-attr]
    assert stated <= min(corrected)
    low, high = map(int, re.search(r"nominal 5 %: (\d+) to (\d+) %", CHECKED_TESTS).groups())  # type: ignore[union-attr]
    found = [share for _, *reported in SIZES for share in reported]
    assert low <= min(found)
    assert max(found) <= high
    sparse = [shares(row(name, 1))[1:3] for name in SCRIPT["TESTED"]]
    assert max(max(pair) for pair in sparse) < 5


@pytest.mark.parametrize("name", ["Laplace, negatives zero", "cell key, js 2"])
def test_rows_of_coverage_come_out_again(name: str) -> None:
    assert shares(SCRIPT["coverage_line"](name, 20)) == pytest.approx(shares(row(name, 20)), abs=1.0)


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPT["LAWS"])
def test_every_row_of_coverage_comes_out_again(name: str) -> None:
    for cells in SCRIPT["CELLS"]:
        assert shares(SCRIPT["coverage_line"](name, cells)) == pytest.approx(
            shares(row(name, cells)), abs=1.0
        )


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPT["TESTED"])
def test_every_row_of_sizes_comes_out_again(name: str) -> None:
    for mean in SCRIPT["MEANS"]:
        assert shares(SCRIPT["size_line"](name, mean)) == pytest.approx(shares(row(name, mean)), abs=2.0)


def shown(name: str) -> list[float]:
    """The shares of a row of proportions."""
    after = PAGE.split(SCRIPT["THIRD"])[1]
    return shares(next(line for line in after.splitlines() if line.startswith(f"| {name} |")))


def test_proportions_are_covered_as_stated() -> None:
    found = [share for name in SCRIPT["LAWS"] for share in shown(name)]
    assert len(found) == len(SCRIPT["LAWS"]) * len(SCRIPT["PROPORTIONS"])
    assert min(found) >= 95 - 300 * np.sqrt(0.95 * 0.05 / SCRIPT["DRAWS"])
    stated = int(re.search(r"nominal 95 %: (\d+) %", CHECKED_PROPORTIONS).group(1))  # type: ignore[union-attr]
    assert stated <= min(found)


@pytest.mark.parametrize("name", few(["Laplace, negatives zero", "cell key, js 2"], 1))
def test_rows_of_proportions_are_recomputed(name: str) -> None:
    assert shares(SCRIPT["proportion_line"](name)) == pytest.approx(shown(name), abs=1.0)
