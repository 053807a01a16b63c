"""The auditor's page stands alone, shows every figure and is for its owner only."""

import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.io.atomic_folder import AtomicFolder
from discreet.page.markup import decimal
from discreet.programme.programme import Programme
from discreet.report.swap import FIGURES, REPORT, machine_figures, risk_chart, swap_page, write_report
from discreet.swap.figures import SwapFigures, figures_of, read_members
from tests.swap.village_files import SECRET, build, household_ids, swapped

PAIRS = [(0, 1), (2, 7), (5, 10), (22, 20)]


def village(folder: Path) -> tuple[Programme, SwapFigures]:
    programme, result = build(folder), swapped(PAIRS)
    return programme, figures_of(result, read_members(programme, result.households, SECRET), 3, ["SIZE"])


def test_the_page_needs_no_network_and_names_nobody(tmp_path: Path) -> None:
    programme, figures = village(tmp_path)
    assert programme.swap is not None
    page = swap_page(figures, programme.swap, "census <2021>")
    text = page.html()
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert not re.search(r"https?://|<script src|<link|@import|url\((?!#)", without_names)
    assert text.count("<script") == 1
    assert "census &lt;2021&gt;" in text
    assert text.count("<figure") == len(page.charts) == 6
    assert not any(str(one) in text for one in household_ids("numbers"))


def test_the_page_tells_every_figure(tmp_path: Path) -> None:
    programme, figures = village(tmp_path)
    assert programme.swap is not None
    told = re.sub(r"<svg.*?</svg>", "", swap_page(figures, programme.swap, "census").html(), flags=re.DOTALL)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", told)
    for level in figures.levels:
        assert {str(level.at_risk_before), str(level.at_risk_after), str(level.true_uniques)} <= set(cells)
    for change in figures.tables:
        assert decimal(change.mean_absolute) in cells
    assert {"no donor", "at risk", "donor", "no common region"} <= set(cells)


def test_conflicts_are_shown_and_full_success_too(tmp_path: Path) -> None:
    programme, figures = village(tmp_path)
    assert programme.swap is not None
    found = replace(figures, conflicts=("the cap & the rate",), unswapped=())
    text = swap_page(found, programme.swap, "census").html()
    assert "Conflict: the cap &amp; the rate" in text
    assert "Every household at risk was swapped." in text


def test_without_risk_variables_no_tables_are_compared(tmp_path: Path) -> None:
    programme, figures = village(tmp_path)
    assert programme.swap is not None
    page = swap_page(replace(figures, tables=()), programme.swap, "census")
    assert "changes" not in {chart.name for chart in page.charts}
    assert "no tables are compared" in page.html()


def test_the_files_are_private_and_the_figures_readable(tmp_path: Path) -> None:
    programme, figures = village(tmp_path / "in")
    assert programme.swap is not None
    with AtomicFolder(tmp_path / "private", "--report") as folder:
        write_report(figures, programme.swap, "census", folder)
        folder.publish()
    files = {path.name: path for path in (tmp_path / "private").iterdir()}
    assert set(files) == {REPORT, FIGURES}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    read = json.loads(files[FIGURES].read_text())
    assert read["levels"][1]["swapped"] == 8
    assert read == json.loads(json.dumps(machine_figures(figures)))


@pytest.mark.parametrize("pairs", [[], PAIRS[:1]])
def test_pictures_of_little_are_drawn(tmp_path: Path, pairs: list[tuple[int, int]]) -> None:
    programme, result = build(tmp_path), swapped(pairs)
    figures = figures_of(result, read_members(programme, result.households, SECRET), 3, ["SIZE"])
    assert programme.swap is not None
    for chart in swap_page(figures, programme.swap, "census").charts:
        assert chart.svg().startswith("<svg")


def test_the_picture_of_risk_shows_before_and_after(tmp_path: Path) -> None:
    _, figures = village(tmp_path)
    chart = risk_chart(figures)
    rows = chart.spec()["layer"][0]["data"]["values"]
    assert [(row["kind"], row["value"]) for row in rows] == [
        (when, number)
        for level in figures.levels
        for when, number in (("before", level.at_risk_before), ("after", level.at_risk_after))
    ]
    assert all(
        f"{level.level}: {level.at_risk_before:,} before" in chart.description for level in figures.levels
    )
