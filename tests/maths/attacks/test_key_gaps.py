"""The gap attack on cell keys: its laws by enumeration, its chance by simulated keys, plain and permuted."""

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.maths.attacks.key_gaps import (
    evidence,
    independent_rule,
    keyed_rule,
    most_parts,
    right_guesses,
    unaided_chance,
)
from discreet.maths.cells.lookup import KEYS, Lookup, Order, build, change
from discreet.maths.cells.permutation import KeyPermutation, no_permutation, permuted, secret_permutation
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve

LAW = solve(PTableParameters(5, 2.0))
TUPLES = 300_000


def large(lookup: Lookup) -> Pmf:
    lengths = lookup.lengths(lookup.last_row)
    reach = max(map(abs, lengths))
    return Pmf(-reach, np.array([lengths.get(v, 0) / lookup.modulus for v in range(-reach, reach + 1)]))


def simulated(lookup: Lookup, permutation: KeyPermutation, parts: int) -> NDArray[np.int64]:
    """Tuples of large counts by (noise of the total, gap), from record keys that add up."""
    keys = np.random.default_rng(3).integers(0, KEYS, (parts, TUPLES), dtype=np.uint32)
    every = [*keys, keys.sum(axis=0, dtype=np.uint32)]
    counts = np.full(TUPLES, 1000)
    *noises, total = (change(lookup, counts, permuted(permutation, key)) for key in every)
    gap = np.sum(noises, axis=0) - total
    reach = 5
    seen = np.zeros((2 * reach + 1, 2 * (parts + 1) * reach + 1), dtype=np.int64)
    np.add.at(seen, (total + reach, gap + (parts + 1) * reach), 1)
    return seen


def off(share: float, chance: float) -> float:
    """In standard deviations."""
    return float((share - chance) / np.sqrt(chance * (1 - chance) / TUPLES))


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_independent_noise_by_enumeration(parts: int) -> None:
    noise = Pmf(-1, np.array([0.3, 0.5, 0.2]))
    joint: dict[tuple[int, int], float] = {}
    for at in np.ndindex(*(3,) * (parts + 1)):
        changes = np.array(at) - 1
        place = (int(changes[-1]), int(changes[:-1].sum() - changes[-1]))
        joint[place] = joint.get(place, 0.0) + float(np.prod(noise.p[list(at)]))
    best: dict[int, float] = {}
    for (_, gap), p in joint.items():
        best[gap] = max(best.get(gap, 0.0), p)
    rule = independent_rule(noise, parts)
    assert rule.chance == pytest.approx(sum(best.values()))
    for (v, gap), p in joint.items():
        assert rule.joint[v + 1, gap + parts + 1] == pytest.approx(p)
    assert unaided_chance(noise) == 0.5


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("parts", [2, 3])
def test_plain_sums_are_guessed_at_the_predicted_rate_and_better_than_independent_noise(
    order: Order, parts: int
) -> None:
    lookup = build(LAW, order, None if order is Order.PLAIN else bytes(32))
    seen = simulated(lookup, no_permutation(), parts)
    rule, baseline = keyed_rule(lookup, parts), independent_rule(large(lookup), parts)
    assert abs(off(right_guesses(rule, seen) / TUPLES, rule.chance)) < 5
    assert off(right_guesses(rule, seen) / TUPLES, baseline.chance) > 8
    assert evidence(rule, baseline, seen.sum(axis=0)) > 100


@pytest.mark.parametrize("parts", [2, 3])
def test_permuted_keys_give_the_chance_of_independent_noise_and_no_rule_does_better(parts: int) -> None:
    lookup = build(LAW, Order.PLAIN)
    seen = simulated(lookup, secret_permutation(bytes(32)), parts)
    rule, baseline = keyed_rule(lookup, parts), independent_rule(large(lookup), parts)
    assert abs(off(right_guesses(baseline, seen) / TUPLES, baseline.chance)) < 5
    assert right_guesses(rule, seen) < right_guesses(baseline, seen)
    assert seen.max(axis=0).sum() / TUPLES < baseline.chance + 0.003  # chosen with the true noises in hand
    assert evidence(rule, baseline, seen.sum(axis=0)) < -100


def test_the_chances_are_those_of_the_documentation() -> None:
    plain = build(LAW, Order.PLAIN)
    assert independent_rule(large(plain), 2).chance == pytest.approx(0.336, abs=5e-4)
    assert keyed_rule(plain, 2).chance == pytest.approx(0.355, abs=5e-4)
    shuffled = [keyed_rule(build(LAW, Order.SHUFFLED, bytes([k]) * 32), 2).chance for k in range(20)]
    assert min(shuffled) == pytest.approx(0.363, abs=5e-4)
    assert max(shuffled) == pytest.approx(0.507, abs=5e-4)


def test_wide_noise_has_no_tuples_to_use() -> None:
    assert most_parts(5) == 8
    assert most_parts(60) == 3
    assert most_parts(150) == 1
