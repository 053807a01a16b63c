"""The invariants of an exchange on random populations, and how donors are drawn."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.maths import swap_pairing
from discreet.maths.cells.keys import hash_words
from discreet.maths.swap_pairing import Candidates, Outcome, Paired, Terms, pair

LEVELS = 3
NO_LIMIT = 10**9


def population(
    seed: int, number: int, kinds: int = 6, risky: float = 0.3, towns: int = 12, excluded: float = 0.1
) -> Candidates:
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(2**60, number, replace=False)).astype(np.uint64)
    town = rng.integers(0, towns, number).astype(np.int32)
    risk = np.sort(rng.random((LEVELS, number)), axis=0)  # finer, riskier
    level = np.where(rng.random(number) < risky, rng.integers(0, LEVELS, number), -1).astype(np.int8)
    kind = rng.integers(0, kinds, number).astype(np.int32)
    profiles = np.stack([kind, kind // 2])  # the later one is coarser
    return Candidates(
        ids, np.stack([town // 6, town // 2, town]), risk, level, rng.random(number) < excluded, profiles
    )


def terms(number: int, seed: int = 0, **changes: object) -> Terms:
    key = np.array([seed, 2**63 + 7], dtype=np.uint64)
    plain = Terms(key, 0, number, True, True, np.full(LEVELS, NO_LIMIT))
    return replace(plain, **changes)  # type: ignore[arg-type]


populations = st.builds(
    population,
    st.integers(0, 10**6),
    st.integers(2, 120),
    kinds=st.integers(1, 12),
    risky=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    towns=st.integers(1, 18),
    excluded=st.sampled_from([0.0, 0.2]),
)


def swapped(paired: Paired) -> np.ndarray:
    return np.flatnonzero(paired.partner >= 0)


def places_after(homes: Candidates, paired: Paired, level: int) -> np.ndarray:
    area: np.ndarray = homes.area[level]
    return np.asarray(np.where(paired.partner >= 0, area[paired.partner], area))


@given(populations, st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1, 0.6]))
def test_an_exchange_is_an_involution_between_regions_of_households_alike(
    homes: Candidates, by_risk: bool, inside: bool, rate: float
) -> None:
    number = len(homes.ids)
    paired = pair(homes, terms(number, by_risk=by_risk, inside_parent=inside, target=int(rate * number)))
    rows = swapped(paired)
    partner, level, profile = paired.partner[rows], paired.level[rows], paired.profile[rows]
    assert (paired.partner[partner] == rows).all()
    assert (partner != rows).all()
    assert (homes.area[level, rows] != homes.area[level, partner]).all()
    assert (homes.profiles[profile, rows] == homes.profiles[profile, partner]).all()
    assert not homes.excluded[rows].any()
    assert paired.swapped == len(rows)


class PlainSearch:
    """Pairs one household after the other, adding up all weights for each; without quotas of regions."""

    def __init__(self, homes: Candidates, terms: Terms) -> None:
        self.homes, self.terms, self.number = homes, terms, len(homes.ids)
        self.partner, self.at_level = [-1] * self.number, [0] * LEVELS
        for level in range(LEVELS):
            waiting = [row for row in self.free() if 0 <= homes.at_risk_level[row] <= level]
            waiting.sort(key=lambda row: -homes.risk[level, row])
            for profile in range(len(homes.profiles)):
                waiting = self.attempt(waiting, level, profile, self.number)
        left = sorted(self.free(), key=self.spread())
        for some in (left[: max(terms.target - sum(self.at_level), 0)], left):
            for profile in range(len(homes.profiles)):
                waiting = [row for row in some if self.partner[row] < 0]
                self.attempt(waiting, LEVELS - 1, profile, terms.target)

    def free(self) -> list[int]:
        return [row for row in range(self.number) if self.partner[row] < 0 and not self.homes.excluded[row]]

    def spread(self) -> Callable[[int], float]:
        """Where a household is among those of its town, from 0 to 1."""
        town = self.homes.area[-1]
        draws = hash_words(self.terms.key, self.homes.ids.view(np.int64)) >> np.uint64(11)
        return lambda row: float(
            ((town[:row] == town[row]).sum() + draws[row] * 2.0**-53) / (town == town[row]).sum()
        )

    def attempt(self, waiting: list[int], level: int, profile: int, target: int) -> list[int]:
        """Pair some households; return those that found no donor."""
        again = []
        for one in waiting:
            made, limit = sum(self.at_level), self.terms.level_quotas[level]
            if self.partner[one] >= 0 or made >= target or self.terms.cap - made < 2:
                continue
            found = self.donor(one, level, profile) if limit - self.at_level[level] >= 2 else -1
            if found < 0:
                again.append(one)
            else:
                self.partner[one], self.partner[found] = found, one
                self.at_level[level] += 2
        return again

    def donor(self, one: int, level: int, profile: int) -> int:
        homes, inside = self.homes, self.terms.inside_parent and level > 0
        area, values, upper = homes.area[level], homes.profiles[profile], homes.area[level - 1]
        similar = [row for row in self.free() if values[row] == values[one] and area[row] != area[one]]
        near = [row for row in similar if inside and upper[row] == upper[one]]
        some = sorted(near or similar, key=lambda row: (area[row], row))
        if not some:
            return -1
        ends = np.cumsum(np.maximum(1, np.rint(homes.risk[level][some] * 2**24)).astype(np.int64))
        if not self.terms.by_risk:
            ends = np.arange(1, len(some) + 1)
        step = ((level << 40 | profile << 32 | 1 << 56) * 0x9E3779B97F4A7C15) % 2**64
        bits = hash_words(self.terms.key, (homes.ids[[one]] ^ np.uint64(step)).view(np.int64))[0]
        return some[int(np.searchsorted(ends, int(bits) % int(ends[-1]), side="right"))]


@settings(max_examples=25, deadline=None)
@example(population(3, 120, risky=0.0), True, True, 0.3, 1, True)  # not all who wait are needed
@example(population(3, 120, risky=1.0), True, True, 0.0, 4, True)  # not all may be
@given(
    populations,
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.integers(1, 3),
    st.booleans(),
)
def test_pairs_are_those_of_a_plain_search(
    homes: Candidates, by_risk: bool, inside: bool, rate: float, share: int, in_turns: bool
) -> None:
    """Whether those who wait are taken in their order or, where that is the same, by their values."""
    number = len(homes.ids)
    limits = terms(
        number,
        by_risk=by_risk,
        inside_parent=inside,
        target=int(rate * number),
        cap=number // share,
        level_quotas=np.array([NO_LIMIT, number // share, NO_LIMIT]),
    )
    with patch.object(swap_pairing, "_FEW", 1 if in_turns else NO_LIMIT):
        paired = pair(homes, limits)
    assert paired.partner.tolist() == PlainSearch(homes, limits).partner


@given(populations, st.sampled_from([0.0, 0.3]))
def test_households_per_region_and_profile_stay_at_every_level(homes: Candidates, rate: float) -> None:
    paired = pair(homes, terms(len(homes.ids), target=int(rate * len(homes.ids))))
    coarsest = homes.profiles[-1]
    for level in range(LEVELS):
        before = Counter(zip(homes.area[level].tolist(), coarsest.tolist(), strict=True))
        after = Counter(zip(places_after(homes, paired, level).tolist(), coarsest.tolist(), strict=True))
        assert before == after


@given(populations)
def test_every_household_at_risk_is_swapped_or_listed_and_no_other_is_listed(homes: Candidates) -> None:
    paired = pair(homes, terms(len(homes.ids)))
    listed = np.isin(paired.outcome, (Outcome.NO_DONOR, Outcome.EXCLUDED, Outcome.CAP, Outcome.QUOTA))
    assert (listed == ((homes.at_risk_level >= 0) & (paired.partner < 0))).all()
    assert (homes.excluded[paired.outcome == Outcome.EXCLUDED]).all()


@given(populations)
def test_whoever_found_no_donor_has_none_left_at_any_level_with_any_profile(homes: Candidates) -> None:
    paired = pair(homes, terms(len(homes.ids)))
    left = (paired.partner < 0) & ~homes.excluded
    for row in np.flatnonzero(paired.outcome == Outcome.NO_DONOR):
        for level in range(homes.at_risk_level[row], LEVELS):
            elsewhere = homes.area[level] != homes.area[level, row]
            for values in homes.profiles:
                assert not (left & elsewhere & (values == values[row])).any()


@given(populations)
def test_nobody_at_risk_moves_at_a_coarser_level_than_the_risk(homes: Candidates) -> None:
    paired = pair(homes, terms(len(homes.ids)))
    rows = np.flatnonzero(paired.outcome == Outcome.AT_RISK)
    assert (paired.level[rows] >= homes.at_risk_level[rows]).all()


def test_a_household_is_retried_at_finer_levels_and_with_later_profiles_and_then_not_listed() -> None:
    homes = Candidates(
        np.arange(1, 4, dtype=np.uint64),
        np.array(
            [[0, 0, 0], [0, 1, 1]], dtype=np.int32
        ),  # one region above, so that only the finer level has donors
        np.ones((2, 3)),
        np.array([0, -1, -1], dtype=np.int8),
        np.zeros(3, dtype=bool),
        np.array([[0, 1, 2], [0, 0, 1]], dtype=np.int32),
    )
    paired = pair(homes, terms(3, level_quotas=np.full(2, 3)))
    assert paired.partner.tolist() == [1, 0, -1]
    assert (paired.level[0], paired.profile[0]) == (1, 1)
    assert paired.outcome.tolist() == [Outcome.AT_RISK, Outcome.DONOR, Outcome.LEFT]


@given(populations, st.sampled_from([0.05, 0.3, 1.0]))
def test_the_rate_is_met_or_the_reason_given(homes: Candidates, rate: float) -> None:
    target = int(rate * len(homes.ids))
    paired = pair(homes, terms(len(homes.ids), target=target))
    if paired.swapped >= target:
        rescued = int(np.isin(paired.outcome, (Outcome.AT_RISK, Outcome.DONOR)).sum())
        assert paired.swapped <= max(rescued, target + 1)
        return
    left = (paired.partner < 0) & ~homes.excluded
    for row in np.flatnonzero(left):
        for values in homes.profiles:
            assert not (left & (homes.area[-1] != homes.area[-1, row]) & (values == values[row])).any()


@given(populations, st.integers(0, 60), st.sampled_from([0.0, 0.5]))
def test_a_cap_holds_whatever_the_risk(homes: Candidates, cap: int, rate: float) -> None:
    number = len(homes.ids)
    paired = pair(homes, terms(number, cap=cap, target=int(rate * number)))
    assert paired.swapped <= cap
    if (paired.outcome == Outcome.CAP).any() or paired.short is Outcome.CAP:
        assert paired.swapped >= cap - 1


def test_a_cap_takes_the_riskiest() -> None:
    homes = population(3, 400, kinds=1, risky=1.0, excluded=0.0)
    homes = replace(homes, at_risk_level=np.zeros(400, dtype=np.int8))
    paired = pair(homes, terms(400, cap=40))
    begun = paired.outcome == Outcome.AT_RISK
    assert begun.sum() == 20
    assert homes.risk[0][begun].min() >= np.sort(homes.risk[0])[-40]


@given(populations, st.integers(0, 8), st.integers(0, 5))
def test_quotas_of_levels_and_regions_hold(homes: Candidates, at_level: int, in_region: int) -> None:
    number = len(homes.ids)
    quota = np.full(18, in_region)
    limits = terms(
        number,
        level_quotas=np.array([NO_LIMIT, at_level, NO_LIMIT]),
        region_quotas=((2, quota),),
        target=number // 2,
    )
    paired = pair(homes, limits)
    rows = swapped(paired)
    assert (paired.level[rows] == 1).sum() <= at_level
    assert np.bincount(homes.area[2][rows], minlength=1).max() <= in_region


@given(populations, st.sampled_from([0.0, 0.2]))
def test_parent_regions_keep_their_households_where_all_donors_came_from_inside(
    homes: Candidates, rate: float
) -> None:
    paired = pair(homes, terms(len(homes.ids), target=int(rate * len(homes.ids))))
    rows = swapped(paired)
    inside = rows[paired.inside[rows]]
    above = paired.level[inside] - 1
    assert (homes.area[above, inside] == homes.area[above, paired.partner[inside]]).all()
    assert (paired.level[inside] > 0).all()
    outside = rows[~paired.inside[rows] & (paired.level[rows] > 0)]
    above = paired.level[outside] - 1
    assert (homes.area[above, outside] != homes.area[above, paired.partner[outside]]).all()


@settings(max_examples=20)
@given(populations)
def test_the_key_decides_alone(homes: Candidates) -> None:
    number = len(homes.ids)
    one, two = (pair(homes, terms(number, target=number // 3)) for _ in range(2))
    assert (one.partner == two.partner).all()
    # other numbers for the same regions and the same likeness are other names, not other facts
    renamed = replace(homes, profiles=homes.profiles.max() - homes.profiles)
    assert (pair(renamed, terms(number, target=number // 3)).partner == one.partner).all()


def test_another_key_makes_other_pairs() -> None:
    homes = population(1, 500)
    one, two = (pair(homes, terms(500, seed)) for seed in (1, 2))
    assert (one.partner != two.partner).mean() > 0.3


def lone(risks: list[float]) -> Candidates:
    """One household at risk and donors of these risks in another region."""
    number = 1 + len(risks)
    area = np.array([[0] + [1] * len(risks)], dtype=np.int32)
    level = np.array([0] + [-1] * len(risks), dtype=np.int8)
    return Candidates(
        np.arange(1, number + 1, dtype=np.uint64),
        area,
        np.array([[1.0, *risks]]),
        level,
        np.zeros(number, dtype=bool),
        np.zeros((1, number), dtype=np.int32),
    )


@pytest.mark.parametrize(("by_risk", "share"), [(True, 5 / 6), (False, 1 / 2)])
def test_donors_are_drawn_in_proportion_to_their_risk_or_uniformly(by_risk: bool, share: float) -> None:
    homes = lone([0.5, 0.1])
    drawn = [
        int(pair(homes, terms(3, seed, by_risk=by_risk, level_quotas=np.array([3]))).partner[0])
        for seed in range(1500)
    ]
    assert abs(drawn.count(1) / 1500 - share) < 4 * (share * (1 - share) / 1500) ** 0.5


def test_random_pairs_are_spread_over_the_regions() -> None:
    homes = population(5, 2400, kinds=1, risky=0.0, excluded=0.0)
    paired = pair(homes, terms(2400, target=240))
    share = np.bincount(homes.area[2][swapped(paired)]) / np.bincount(homes.area[2])
    assert paired.swapped == 240
    assert share.min() > 0.05
    assert share.max() < 0.16


def test_random_pairs_are_spread_over_regions_of_unequal_size() -> None:
    """Every region has its share of those who look for a donor, however small it is."""
    town = np.repeat(np.arange(12), [700, 500, 300, 200, 150, 150, 100, 100, 50, 50, 50, 50]).astype(np.int32)
    homes = population(5, len(town), kinds=1, risky=0.0, excluded=0.0)
    homes = replace(homes, area=np.stack([town // 6, town // 2, town]))
    moved = np.zeros(12)
    for seed in range(10):
        moved += np.bincount(town[swapped(pair(homes, terms(len(town), seed, target=240)))], minlength=12)
    share = moved / (10 * np.bincount(town))
    assert abs(share[:3] - 0.1).max() < 0.02
    assert share.min() > 0.05
    assert share.max() < 0.2
