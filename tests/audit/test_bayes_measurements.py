"""The adversary on the measurements of a release decides as often as the exact formula states, and not as another."""

from math import sqrt

import pytest
from examples.kazan_reiter_2022 import RHO_1, RHO_2
from examples.kazan_reiter_2022_run import CELLS, Attacked, run

from discreet.audit.bayes_measurements import AdversaryFinding


@pytest.fixture(scope="module")
def attacked() -> Attacked:
    """864 persons, each the only one of a cell in a county of 28 districts; the noise is always the same."""
    return run(RHO_1, RHO_2, {1: 1})


def test_right_decisions_are_those_of_the_adversary_with_the_hierarchy(attacked: Attacked) -> None:
    found: AdversaryFinding = attacked.finding
    assert (found.targets, found.left_out) == (CELLS, 0)
    error = sqrt(0.25 / CELLS)
    assert found.expected == pytest.approx(0.318, abs=5e-4)
    assert abs(found.right - found.expected) < 4 * error
    assert abs(found.absent - found.absent_expected) < 4 * error
    assert abs(found.own_right - found.own_expected) < 4 * error
    # not those of one who looks at the own count only
    assert found.own_expected - found.right > 8 * error
    assert found.right == pytest.approx(found.own_right + found.mended - found.spoiled)
    assert found.balanced > 0.5


def test_tables_of_risk_are_those_of_the_law(attacked: Attacked) -> None:
    found = attacked.finding
    assert [round(1 / one.prior) for one in found.priors] == [2, 5, 10, 50, CELLS]
    for one in found.priors:
        assert one.risk == pytest.approx(one.expected_risk, rel=0.06)
    for count in found.counts:
        assert abs(count.share - count.expected_share) < 4 * sqrt(0.25 / CELLS)
    assert [(one.least, one.targets) for one in found.larger] == [(1, CELLS)]
