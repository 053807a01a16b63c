"""Sessions against the history guard: what solving all answers at once finds, and what an honest person is refused."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from discreet.programme.serve import SAFE_HISTORY, HistoryRule
from discreet.serve.answer import Refusal, Rule
from discreet.serve.open import TableBuilder
from tests.cases import few
from tests.serve.attacker import KINDS, Kind, Result, crossed, filters, groups, mixed, session
from tests.serve.honest import SESSION

Make = Callable[..., TableBuilder]
COUNTS = 119  # of GEO.H x SEX with five records or more
TOLERANCE = 3 * (0.25 / COUNTS) ** 0.5  # three standard deviations of a share of them
AGAINST = HistoryRule(success=SAFE_HISTORY.success, largest=SAFE_HISTORY.largest)


def attacked(ruled: Make, kind: Kind, requests: int, rule: HistoryRule, seed: int = 5) -> Result:
    builder = ruled(history=rule, groupings=("AGE",))
    return session(builder, list(islice(kind(builder, np.random.default_rng(seed)), requests)))


@pytest.mark.parametrize(
    "kind",
    [filters, *(pytest.param(kind, marks=pytest.mark.long) for kind in (groups, mixed))],
    ids=lambda kind: str(kind.__name__),
)
def test_without_a_guard_most_counts_are_found(ruled: Make, kind: Kind) -> None:
    """So that the next test can fail."""
    found = attacked(ruled, kind, 60, HistoryRule())
    assert found.answered == found.asked
    assert found.pairs > 0.75


@pytest.mark.parametrize("kind", few(KINDS, 0), ids=lambda kind: str(kind.__name__))
def test_no_session_finds_more_than_is_declared(ruled: Make, kind: Kind) -> None:
    found = attacked(ruled, kind, 60, AGAINST)
    assert AGAINST.success is not None
    assert 0 < found.answered < found.asked / 2, "the guard has refused, and not from the start"
    assert max(found.pairs, found.triples) <= AGAINST.success + TOLERANCE


@pytest.mark.parametrize("kind", few([filters, groups], 1), ids=lambda kind: str(kind.__name__))
def test_nor_do_filters_and_groups_find_counts_above_the_largest(ruled: Make, kind: Kind) -> None:
    """With 5 as the largest count that other tables may not show, all counts by area and sex are above it."""
    found = attacked(ruled, kind, 60, replace(AGAINST, largest=5))
    assert AGAINST.success is not None
    assert 0 < found.answered < found.asked / 2, "the guard has refused, and not from the start"
    assert found.pairs <= AGAINST.success + TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize("kind", [filters, crossed, mixed], ids=lambda kind: str(kind.__name__))
def test_nor_do_100000_requests(ruled: Make, kind: Kind) -> None:
    found = attacked(ruled, kind, 100_000, AGAINST, seed=6)
    assert AGAINST.success is not None
    assert max(found.pairs, found.triples) <= AGAINST.success + TOLERANCE


@pytest.mark.parametrize(
    ("success", "most"), few([(0.5, 30), (0.75, 10)], 0), ids=["as by default", "as a small town may choose"]
)
def test_what_an_honest_session_loses_in_a_town_of_4000(ruled: Make, success: float, most: int) -> None:
    """The worst case for honest people: with 4,000 records, nearly every count is small."""
    rule = HistoryRule(success=success, largest=1000, difference=10)
    builder = ruled(history=rule)
    refused = [one for query in SESSION if isinstance(one := builder.ask(query, "ann"), Refusal)]
    assert {one.rule for one in refused} <= {Rule.HISTORY, Rule.DIFFERENCE}
    assert len(refused) <= most
