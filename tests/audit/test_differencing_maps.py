from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.differencing_areas import difference_maps, judge_maps
from discreet.audit.evidence import Published, Truth
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.maths.attacks.differencing import CrossedGeography, differences
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from tests.audit.hamlets import Hamlets, hamlets
from tests.audit.made import cell_key, flat
from tests.audit.subsets import EXACT, record_keys, universe


def release(place: Hamlets, mechanism: Mechanism | None, known: Noise, seed: int) -> tuple[Published, Truth]:
    trees = [flat("GRID", place.cells), flat("LAU", place.districts), flat("SEX", 2)]
    sex = np.random.default_rng(seed).integers(0, 2, len(place.cell)).astype(np.uint32)
    columns = {"GRID": place.cell, "LAU": place.district, "SEX": sex}
    keys = record_keys(len(place.cell), seed)
    whole, truth = universe(trees, [["GRID", "SEX"], ["SEX", "LAU"]], columns, keys, mechanism)
    return Published("town", (whole,), known), Truth(truth, truth)


def test_exact_tables_and_a_map_give_slivers_away_by_category_too() -> None:
    place = hamlets(200, 1)
    published, truth = release(place, None, EXACT, 1)
    seen = difference_maps(published, place.lookup(), 10)
    assert seen.complete
    assert seen.crosstabs == 2  # areas alone, and areas by sex
    found = judge_maps(published, truth, place.lookup(), 10)
    assert found.exact == found.revealed == found.apparent == found.apparent_right == seen.small > 50
    assert all(0 < one.difference < 10 and set(one.cell) <= {"SEX"} for one in seen.examples)


def test_small_differences_equal_those_counted_from_the_records() -> None:
    place = hamlets(50, 2)
    published, _ = release(place, None, EXACT, 2)
    lookup = place.lookup()
    sex = np.random.default_rng(2).integers(0, 2, len(place.cell))
    wanted = 0
    for one in differences(lookup.a, lookup.b, lookup.counts, 4).found:
        first, second = (place.cell, place.district)[:: 1 if one.plus_of is CrossedGeography.A else -1]
        inside = np.isin(first, one.plus) & ~np.isin(second, one.minus)
        sizes = [inside.sum(), (inside & (sex == 0)).sum(), (inside & (sex == 1)).sum()]
        wanted += sum(0 < size < 10 for size in sizes)
    assert difference_maps(published, lookup, 10, weight=3).small == wanted > 0


@pytest.mark.parametrize(("V", "D", "low", "high"), [(0.02, 1, 0.85, 1.0), (5.0, 10, 0.0, 0.15)])
def test_noise_is_beaten_where_it_is_weak_and_holds_where_it_is_not(
    V: float, D: int, low: float, high: float
) -> None:
    place = hamlets(600, 3)
    published, truth = release(place, *cell_key(V, D), 3)
    found = judge_maps(published, truth, place.lookup(), 10)
    assert found.exact > 1500
    assert found.expected is not None
    assert low <= found.revealed / found.exact <= high
    rate = found.expected / found.exact
    assert abs(found.revealed - found.expected) < 4 * np.sqrt(found.exact * rate * (1 - rate))


def test_summaries_are_json() -> None:
    place = hamlets(20, 5)
    published, truth = release(place, *cell_key(2.0, 5), 5)
    assert json.loads(json_text(difference_maps(published, place.lookup())))
    assert json.loads(json_text(judge_maps(published, truth, place.lookup())))


def test_a_map_of_other_areas_is_refused() -> None:
    place = hamlets(5, 6)
    published, _ = release(place, None, EXACT, 6)
    lookup = place.lookup()
    with pytest.raises(Mistakes, match="two variables that tables"):
        difference_maps(published, replace(lookup, names=("GRID", "NOWHERE")))
    strange = (("elsewhere", *lookup.codes[0][1:]), lookup.codes[1])
    with pytest.raises(Mistakes, match="'elsewhere' is no code"):
        difference_maps(published, replace(lookup, codes=strange))
