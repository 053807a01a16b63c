"""Differences of relative frequencies, against tables worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.advise.prior_knowledge import differences

ALL = np.arange(4)


def test_two_attributes_by_hand() -> None:
    true, protected = np.array([[60, 60, 60, 20]]), np.array([[66, 54, 60, 20]])
    found = differences(true, protected, np.array([200]), ALL, (2, 2))
    # first attribute: 120, 80 -> 0, 0; second: 120, 80 -> 3, 3; both: 60, 60, 60 -> 3, 3, 0 (20 is too few)
    assert found.compared == 7
    assert found.mean == pytest.approx(12 / 7)
    assert found.quantiles[0.5] == pytest.approx(3)
    assert found.largest == pytest.approx(3)


def test_cells_that_cannot_exist_are_left_out() -> None:
    found = differences(
        np.array([[100, 100]]), np.array([[120, 120]]), np.array([200]), np.array([0, 3]), (2, 2)
    )
    assert found.compared == 6
    assert found.mean == pytest.approx(10)


def test_equal_shares_do_not_differ_whatever_the_size() -> None:
    true = np.array([[50, 70, 80, 90], [100, 200, 300, 400]])
    found = differences(true, 3 * true, 3 * true.sum(axis=1), ALL, (2, 2))
    assert found.largest == pytest.approx(0)


def test_an_emptied_zip_code_loses_all_its_shares() -> None:
    found = differences(np.array([[100, 0, 0, 0]]), np.zeros((1, 4), np.int64), np.array([0]), ALL, (2, 2))
    assert found.quantiles[0.5] == pytest.approx(100)


def test_nothing_large_enough_to_compare() -> None:
    few = np.ones((3, 4), dtype=np.int64)
    assert differences(few, few, few.sum(axis=1), ALL, (2, 2)).compared == 0
