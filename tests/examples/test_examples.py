"""Every example at its small size: its verdicts hold, its page says what it finds, and its charts can be drawn."""

import math
import re
from functools import cache
from pathlib import Path

import pytest
from examples.all import EXAMPLES
from examples.claims import Claim, Verdict, differs, exact, half_unit, near, rounding_error, shown, unprinted
from examples.running import Example, Replication, Size, main, rows_of, specification, text, write_charts

from tests.cases import few

NAMES = [example.page for example in EXAMPLES]
DEVIATIONS = 4.5  # between our own two sizes; some hundred numbers are compared
INDEX = Path(__file__).parents[2] / "docs" / "explanation" / "index.md"


@cache
def found(name: str) -> Replication:
    return example(name).replicate(Size.SMALL)


def example(name: str) -> Example:
    return EXAMPLES[NAMES.index(name)]


QUICK = ("statistics-netherlands-2022", "soria-comas-drechsler-2013")


@pytest.mark.parametrize("name", few(NAMES, *QUICK))
def test_every_verdict_is_borne_out_by_the_numbers(name: str) -> None:
    assert [(claim.where, claim.what, claim.found.value) for claim in found(name).broken] == []


@pytest.mark.parametrize("name", few(NAMES, *QUICK))
def test_what_is_near_or_differs_has_a_reason(name: str) -> None:
    doubtful = [claim for claim in found(name).claims if claim.verdict in {Verdict.NEAR, Verdict.DIFFERS}]
    assert [claim.what for claim in doubtful if not claim.why] == []


@pytest.mark.parametrize("name", few(NAMES, *QUICK))
def test_the_page_says_what_the_script_finds(name: str) -> None:
    claims, rows = found(name).claims, rows_of(example(name).path.read_text(encoding="utf-8"))
    assert [row[:2] for row in rows] == [(claim.where, claim.what) for claim in claims]
    for claim, row in zip(claims, rows, strict=True):
        ours = claim.row()
        assert (row[2], row[4]) == (ours[2], ours[4])
        if claim.of_size:
            continue
        if claim.is_sampled:
            assert within_chance(row[3], claim), claim.what
        else:
            assert row[3] == ours[3], claim.what


def within_chance(cell: str, claim: Claim) -> bool:
    """The page has the numbers of the full size, with their standard error."""
    values, _, spread = cell.partition(" ± ")
    limit = DEVIATIONS * math.hypot(float(spread), claim.error)
    pairs = zip(values.split(", "), claim.ours, strict=True)
    return all(abs(float(value) - ours) <= limit + half_unit(value) for value, ours in pairs)


@pytest.mark.parametrize("name", few(NAMES, *QUICK))
def test_the_charts_can_be_drawn(name: str, tmp_path: Path) -> None:
    charts = found(name).charts
    texts = {chart: str(specification(drawn)) for chart, drawn in charts.items()}
    assert texts
    assert all(re.search(r"'values': \[\{", one) for one in texts.values())
    smallest = min(texts, key=lambda chart: len(texts[chart]))  # drawing takes longer than computing
    for path in write_charts(tmp_path, {smallest: charts[smallest]}):
        assert path.stat().st_size > 5_000


def test_swapping_and_noise_do_what_the_note_says_of_them() -> None:
    claims = [
        claim for claim in found("statistics-netherlands-2022").claims if "published ones" in claim.what
    ]
    ones = {claim.what.partition(":")[0]: claim.ours[0] for claim in claims}
    for V in ("V = 2", "V = 3"):
        assert ones[f"{V}, none"] == 100
        assert ones[f"{V}, both"] < min(ones[f"{V}, swapping only"], ones[f"{V}, noise only"])
        assert ones[f"{V}, noise only"] < 80


def test_the_pages_are_in_the_index() -> None:
    assert "replication/*" in INDEX.read_text(encoding="utf-8")


def test_a_script_prints_its_table_and_fails_where_a_verdict_does_not_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = Example("page", "A paper", lambda size: Replication([exact("Table 1", "x", "0.50", 0.496)]))
    assert main(good, ["--size", "small"]) == 0
    assert "Table 1  x     0.50     0.496  reproduces" in capsys.readouterr().out
    stale = Example("page", "A paper", lambda size: Replication([exact("Table 1", "x", "0.50", 0.494)]))
    assert main(stale, []) == 1
    assert "not reproduces but differs: Table 1, x" in capsys.readouterr().err
    assert "1 differs" in text(stale, stale.replicate(Size.SMALL))


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (exact("", "", "1.5e-7", 1.54e-7), True),
        (exact("", "", "1.5e-7", 1.56e-7), False),
        (exact("", "", ("1", "2"), (1.4, 2.6)), False),
        (exact("", "", "741", 731.7, printed_error=14), True),
        (near("", "", "100", 103, 0.05, "why"), True),
        (near("", "", "100", 100.2, 0.05, "why"), False),  # it reproduces, so the page would be wrong
        (near("", "", "100", 100.2, 0.05, "why").with_errors(0, 1), True),
        (near("", "", "100", 107, 0.05, "why"), False),
        (differs("", "", "100", 103, "why"), True),
        (differs("", "", "100", 100.3, "why"), False),
        (unprinted("", "", 3), True),
    ],
)
def test_verdicts(claim: Claim, holds: bool) -> None:
    assert claim.holds is holds


def test_numbers_are_shown_with_few_digits() -> None:
    assert [shown(value) for value in (2747.0, 75926059.0, 0.0867123, 0.0)] == [
        "2747",
        "7.593e+07",
        "0.08671",
        "0",
    ]
    with pytest.raises(TypeError):
        half_unit("nan")


def test_rounding_errors_are_not_shown() -> None:
    """They differ between processors, so that no page can have them."""
    assert {shown(rounding_error(value)) for value in (0.0, 2.8e-17, -5.3e-16, 9e-13)} == {"below 1e-12"}
    assert shown(1e-11) == "1e-11"
    assert shown(123456 + 3e-11) == "123456"
    assert {shown(value) for value in (0.53125, math.nextafter(0.53125, 1), math.nextafter(0.53125, 0))} == {
        "0.5312"
    }
