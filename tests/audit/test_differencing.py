from __future__ import annotations

import json
import math

import numpy as np
import pytest

from discreet.audit.differencing import Judgement, difference, judge
from discreet.audit.differencing import nested as nested_bases
from discreet.audit.evidence import Published, Truth, Universe
from discreet.io.serialize import json_text, to_json
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Codelist
from tests.audit.known import known as known_noise
from tests.audit.made import cell_key, flat, nested, random_columns
from tests.audit.subsets import EXACT, record_keys, universe

TREES = [nested("GEO", 6, 30), flat("SEX", 2), flat("AGE", 5), flat("HOME", 4)]
CROSSES = [["GEO", "SEX"], ["SEX", "GEO", "AGE"]]
BASE = 'HOME in ("HOME0", "HOME1", "HOME2")'


def world(mechanism: Mechanism | None, known: Noise, seed: int) -> tuple[Published, Truth]:
    """All persons, and the few less who do not live in HOME3."""
    columns = dict(random_columns(TREES, 30_000, seed))
    columns["HOME"] = (np.random.default_rng(seed).random(30_000) < 0.04).astype(np.uint32) * 3
    keys = record_keys(30_000, seed)
    inside = columns["HOME"] != 3
    outer, everybody = universe(TREES, CROSSES, columns, keys, mechanism)
    inner, some = universe(TREES, CROSSES, columns, keys, mechanism, BASE, inside)
    counts = {**everybody, **some}
    return Published("made", (outer, inner), known), Truth(counts, counts)


def deviation(found: Judgement) -> float:
    """Of the number that is revealed from the expected one, in standard deviations (binomial, at most)."""
    assert found.expected is not None
    rate = found.expected / found.exact
    return abs(found.revealed - found.expected) / math.sqrt(found.exact * rate * (1 - rate) + 1e-9)


def test_exact_tables_give_every_small_remainder_away() -> None:
    published, truth = world(None, EXACT, 1)
    (found,) = judge(published, truth, 10)
    assert found.exact > 300
    assert found.revealed == found.exact == found.apparent == found.apparent_right
    (seen,) = difference(published, 10)
    assert (seen.small, seen.crosstabs) == (found.exact, 12)
    assert seen.examples
    assert all(0 < one.difference < 10 for one in seen.examples)


def test_weak_noise_is_subtracted_away_at_the_predicted_rate() -> None:
    published, truth = world(*cell_key(0.05, 1), 2)
    (found,) = judge(published, truth, 10)
    assert found.exact > 300
    assert found.revealed / found.exact > 0.85
    assert deviation(found) < 4
    assert found.apparent_right / found.apparent > 0.8


def test_sound_noise_hides_what_is_left_over() -> None:
    published, truth = world(*cell_key(5.0, 10), 3)
    (found,) = judge(published, truth, 10)
    assert found.exact > 300
    assert found.revealed / found.exact < 0.16
    assert deviation(found) < 4
    assert found.apparent_right / found.apparent < 0.2


def test_the_same_noise_still_tells_that_somebody_is_left_over() -> None:
    published, truth = world(*cell_key(5.0, 10), 4)
    (seen,) = difference(published, 10)
    assert seen.nonempty is not None
    # the same people have the same noise: a remainder is only ever seen where there is one
    assert 0 < seen.nonempty <= remainders(truth)
    fresh = Published("made", published.universes, known_noise(False, True, 5.0))
    assert difference(fresh, 10)[0].nonempty is None


def remainders(truth: Truth) -> int:
    """Cells, of each cross-tabulation once, that hold somebody outside the base beside somebody inside."""
    everybody, some = truth.counted["SEXxGEOxAGE"], truth.counted[f"{BASE}SEXxGEOxAGE"]
    inside = dict(zip(some[0].tolist(), some[1].tolist(), strict=True))
    return sum(
        0 < inside.get(cell, 0) < count
        for cell, count in zip(*map(np.ndarray.tolist, everybody), strict=True)
    )


def test_by_a_variance_alone_the_expectation_is_near_and_without_it_there_is_none() -> None:
    published, truth = world(*cell_key(2.0, 5), 5)
    (exact,) = judge(published, truth, 10)
    for said, expected in ((2.0, exact.expected), (None, None)):
        rough = Published("made", published.universes, known_noise(True, True, said))
        (found,) = judge(rough, truth, 10)
        assert found.revealed == exact.revealed
        if expected is None:
            assert found.expected is None
        else:
            assert found.expected == pytest.approx(expected, rel=0.1)


def test_swapping_is_judged_by_the_records_before_it() -> None:
    published, truth = world(None, EXACT, 6)
    changed = {
        cube: (cells, values + np.arange(len(values)) % 2) for cube, (cells, values) in truth.counted.items()
    }
    (found,) = judge(published, Truth(changed, truth.counted), 10)
    assert found.apparent_right == found.apparent
    assert found.apparent_original < found.apparent_right


def test_summaries_are_json_and_hold_no_size() -> None:
    published, truth = world(*cell_key(2.0, 5), 7)
    assert json.loads(json_text(difference(published)))
    (told,) = to_json(judge(published, truth))
    assert json.loads(json.dumps(told)) == told
    assert told["outer"] == "persons"
    assert told["revealed_rate"] == pytest.approx(told["revealed"] / told["exact"])


def bare(base: str, unit: str = "persons", count: str = "", trees: list[Codelist] | None = None) -> Universe:
    return Universe(unit, base, count, (), {tree.name: tree for tree in (TREES if trees is None else trees)})


@pytest.mark.parametrize(
    ("outer", "inner", "holds"),
    [
        (bare(""), bare(BASE), True),
        (bare(BASE), bare(""), False),
        (bare(""), bare(BASE, "households"), False),
        (bare(BASE), bare('HOME in ("HOME1")'), True),
        (bare('HOME in ("HOME1")'), bare('HOME in ("HOME2")'), False),
        (bare(BASE), bare('AGE in ("AGE1") and HOME in ("HOME1")'), True),
        (bare('AGE in ("AGE1") or HOME in ("HOME1")'), bare('AGE in ("AGE1")'), True),
        (bare('AGE in ("AGE1")'), bare('AGE in ("AGE1") or HOME in ("HOME1")'), False),
        (bare(BASE), bare('AGE in ("AGE1")'), False),
        (bare(BASE), bare(BASE, count="works"), True),
        (bare(BASE, count="works"), bare(BASE), False),
        (bare(BASE, count="works"), bare('HOME in ("HOME1")', count="works"), True),
        # codes that no published table has: what is said in the same words is known, nothing more
        (bare('X in ("1")', trees=[]), bare('X in ("1") and Y in ("2")', trees=[]), True),
        (bare('X in ("1")', trees=[]), bare('X in ("1") or Y in ("2")', trees=[]), False),
        (bare('X in ("1")', trees=[]), bare('Y in ("2")', trees=[]), False),
    ],
)
def test_a_base_inside_another_is_recognised(outer: Universe, inner: Universe, holds: bool) -> None:
    assert ((outer, inner) in list(nested_bases([outer, inner]))) == holds
