"""The parts of the generator keep their promises for any input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.programme.codelist import codelist
from discreet.synth.block import blocks
from discreet.synth.draw import BITS, Dice, age_law, identifiers, law
from discreet.synth.geography import COUNTRIES, geography, region_counts


@given(st.lists(st.integers(1, 500), min_size=1, max_size=60), st.integers(1, 700))
def test_blocks_hold_everyone_once_in_order_and_within_the_limit(sizes: list[int], limit: int) -> None:
    cut = list(blocks(np.array(sizes), limit))
    assert max(block.persons.sum() for block in cut) <= limit
    assert min(block.persons.min() for block in cut) >= 1
    lau = np.concatenate([np.repeat(block.lau, block.persons) for block in cut])
    assert (lau == np.repeat(np.arange(len(sizes)), sizes)).all()
    assert [block.first for block in cut] == [limit * block.number for block in cut]


@given(st.integers(0, 2**BITS - 1000), st.integers(0, 2**32), st.integers(1, 4))
def test_identifiers_are_one_to_one_and_positive(first: int, seed: int, kind: int) -> None:
    ids = identifiers(np.arange(first, first + 1000), seed, kind)
    assert np.unique(ids).size == 1000
    assert ids.min() >= 1
    assert ids.max() <= 2**BITS


@given(
    st.lists(st.sampled_from([0.0, 0.0, 1e-9, 0.3, 5.0]), min_size=1, max_size=12).filter(any),
    st.integers(0, 9),
)
def test_an_outcome_without_weight_is_never_drawn(weights: list[float], seed: int) -> None:
    drawn = Dice(seed).pick_many(law([weights]), 2_000)
    assert all(weights[outcome] > 0 for outcome in np.unique(drawn))


def test_outcomes_come_with_the_frequencies_of_their_row() -> None:
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    rows = np.arange(200_000) % 2
    drawn = Dice(1).pick(law(weights), rows)
    for row in (0, 1):
        found = np.bincount(drawn[rows == row], minlength=3) / 100_000
        assert np.abs(found - weights[row]).max() < 0.006


def test_smoothed_ages_stay_between_the_first_and_the_last() -> None:
    drawn = Dice(1).pick_many(age_law([(18, 30, 0.5), (31, 40, 0.5)]), 20_000)
    assert (drawn.min(), drawn.max()) == (18, 40)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3_000_000), st.sampled_from(["XX", *COUNTRIES]), st.integers(0, 99))
def test_regions_nest_hold_everyone_and_tile_the_country(persons: int, country: str, seed: int) -> None:
    geo = geography(persons, country, Dice(seed))
    assert geo.persons.sum() == persons
    assert geo.persons.min() >= 1
    assert tuple(len(level) for level in geo.regions) == region_counts(persons, country)
    tree = codelist("GEO", geo.rows())
    assert tree.leaf_codes == geo.regions[3]
    assert tree.depth == 4
    area = ((geo.east - geo.west) * (geo.north - geo.south)).sum()
    whole = (geo.east.max() - geo.west.min()) * (geo.north.max() - geo.south.min())
    assert np.isclose(area, whole)


def test_the_regions_of_ten_million_are_those_of_a_middling_country() -> None:
    assert region_counts(10_000_000, "XX") == (3, 11, 44, 1500)
