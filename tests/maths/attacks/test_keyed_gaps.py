from __future__ import annotations

import numpy as np
import pytest

from discreet.maths.attacks.tuples import keyed_gap_law
from discreet.maths.cells.lookup import KEYS, Lookup, Order, build
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve


def simulated(lookup: Lookup, parts: int, tuples: int, seed: int) -> Pmf:
    keys = np.random.default_rng(seed).integers(0, KEYS, (tuples, parts), dtype=np.int64)
    both = np.column_stack([keys, -(keys.sum(axis=1) % KEYS) - 1])
    begin, end = lookup.offsets[-2], lookup.offsets[-1]
    upper, change = lookup.upper[begin:end].astype(np.int64), lookup.change[begin:end]
    noise = change[np.searchsorted(upper, np.where(both < 0, -both - 1, both), side="right")]
    gaps = noise[:, :-1].sum(axis=1) - noise[:, -1]
    reach = int(np.abs(change).max()) * (parts + 1)
    return Pmf(-reach, np.bincount(gaps + reach, minlength=2 * reach + 1) / tuples)


@pytest.mark.parametrize("order", [Order.PLAIN, Order.SHUFFLED, Order.SPLIT])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_law_is_that_of_drawn_keys(order: Order, parts: int) -> None:
    lookup = build(solve(PTableParameters(2, 1.9)), order, None if order is Order.PLAIN else b"k" * 32)
    tuples = 400_000
    law, drawn = keyed_gap_law(lookup, parts), simulated(lookup, parts, tuples, 5)
    assert law.p.sum() == pytest.approx(1)
    assert law.first == drawn.first
    assert np.abs(law.p - drawn.p).max() < 5 * np.sqrt(0.25 / tuples)


def test_one_part_with_the_key_of_its_total_has_no_gap() -> None:
    lookup = build(solve(PTableParameters(3, 2.0)), Order.PLAIN)
    assert keyed_gap_law(lookup, 1).at(0) == pytest.approx(1, abs=0.01)


def test_in_plain_order_the_extremes_do_not_meet() -> None:
    """Two parts with the lowest keys have a total with a low key, too."""
    lookup = build(solve(PTableParameters(2, 1.9)), Order.PLAIN)
    law = keyed_gap_law(lookup, 2)
    assert law.at(6) < 1e-9
    assert law.at(-6) < 1e-9
