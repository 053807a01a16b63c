import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.bayes import Belief, scan, scan_levels
from discreet.audit.evidence import values_at
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.maths.attacks.bayes import Adversary, Together
from discreet.programme.noise import Draw
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns
from tests.audit.private import gaussian

TREES = [nested("GEO", 5, 8), flat("AGE", 6)]
CROSSES = [["GEO", "AGE"], ["AGE"]]
BELIEF = Belief(0.5, 0.9)


def world(rho: Fraction, persons: int = 700) -> Made:
    mechanism, known = gaussian(TREES, CROSSES, rho)
    return made(TREES, CROSSES, random_columns(TREES, persons, 1), mechanism, known, 2)


def key_world(persons: int) -> Made:
    mechanism, known = cell_key(1.5, 4)
    return made(TREES, CROSSES, random_columns(TREES, persons, 1), mechanism, known, 2)


def brute_force(one: Made, coarsest: int) -> tuple[int, int]:
    """Chains of the first table, and those whose levels together are above the gate."""
    table, noise = one.published.universes[0].tables[0], one.published.noise
    axis, true, shown = table.cube.axes[0], one.truth.counted[table.id], table.load()
    assert noise.law is not None
    law = noise.published(noise.law)
    chains = above = 0
    for town in np.flatnonzero(axis.depths == 2).tolist():
        for age in range(len(table.cube.axes[1])):
            nodes = [town, int(axis.parents[town]), 0][: 3 - coarsest]
            cells = np.array([node * table.cube.strides[0] + age for node in nodes])
            counts, values = values_at(true, cells).tolist(), values_at(shown, cells).tolist()
            if not 1 <= counts[0] <= BELIEF.largest:
                continue
            chains += 1
            kept = [
                k for k in range(len(counts)) if k == 0 or not noise.same_noise or counts[k] != counts[k - 1]
            ]
            parts = tuple(Adversary(law, counts[k] - 1) for k in kept)
            above += Together(parts, 0.5).posterior([values[k] for k in kept]) > BELIEF.gate
    return chains, above


@pytest.mark.parametrize("coarsest", [0, 1])
@pytest.mark.parametrize(
    "one", [world(Fraction(1, 2)), key_world(700), key_world(60)], ids=["dp", "key", "sparse"]
)
def test_chains_are_those_found_one_by_one(one: Made, coarsest: int) -> None:
    found = scan_levels(one.published, one.truth, BELIEF, "GEO", coarsest)
    assert (found.cells, found.above) == brute_force(one, coarsest)


def test_several_levels_give_away_more_at_the_predicted_rate() -> None:
    """The exact chance of two levels together, within 4 standard errors; clipping left aside by few small counts."""
    rho = Fraction(3, 2)
    one = world(rho, 2000)
    found = scan_levels(one.published, one.truth, BELIEF, "GEO")
    law = one.published.noise.law
    assert law is not None
    chance = Together((Adversary(law, 30), Adversary(law, 300)), 0.5).exceeds(0.9)
    alone = Adversary(law, 30).exceeds(0.9)
    assert found.above_alone == pytest.approx(alone * found.cells, abs=4 * math.sqrt(alone * found.cells))
    assert found.above == pytest.approx(
        chance * found.cells, abs=4 * math.sqrt(chance * found.cells) + 0.05 * found.cells
    )
    assert found.above > 1.5 * found.above_alone


def test_sound_noise_resists() -> None:
    one = world(Fraction(1, 500))
    assert scan_levels(one.published, one.truth, BELIEF, "GEO").above == 0


def test_the_same_participants_are_one_observation() -> None:
    """Where every town is a region of its own, the second level tells nothing new; independent noise would."""
    trees = [nested("GEO", 12, 1), flat("AGE", 4)]
    mechanism, known = cell_key(1.0, 3)
    one = made(trees, [["GEO", "AGE"]], random_columns(trees, 300, 1), mechanism, known, 2)
    same = scan_levels(one.published, one.truth, Belief(0.5, 0.7), "GEO")
    assert same.above == same.above_alone
    careless = replace(one.published, noise=replace(known, drawing=Draw.DESCRIPTION))
    assert scan_levels(careless, one.truth, Belief(0.5, 0.7), "GEO").above > same.above


def test_the_finest_level_alone_is_the_plain_scan() -> None:
    one = world(Fraction(1))
    alone = scan_levels(one.published, one.truth, BELIEF, "GEO").above_alone
    plain = sum(
        level.above for level in scan(one.published, one.truth, BELIEF).levels if ("GEO", 2) in level.levels
    )
    assert alone == plain


def test_a_summary_is_json_and_an_unknown_variable_an_error() -> None:
    one = world(Fraction(2))
    told = json.loads(json_text(scan_levels(one.published, one.truth, BELIEF, "GEO", most_named=3)))
    assert told["worst"][0]["observations"] == 2
    assert len(told["named"]) == 3
    with pytest.raises(Mistakes, match="choose from AGE, GEO"):
        scan_levels(one.published, one.truth, BELIEF, "LAU")
