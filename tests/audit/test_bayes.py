import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.bayes import Belief, exposed, scan
from discreet.audit.evidence import Published, Truth, values_at
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.programme.noise import KeptZeros
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns
from tests.audit.private import gaussian
from tests.cases import few

TREES = [nested("GEO", 4, 10), flat("SEX", 2), flat("AGE", 12)]
CROSSES = [["GEO", "SEX", "AGE"], ["SEX", "GEO"], ["AGE"]]
CLIPPED = Publishing(Negatives.ZERO)


def dp_world(rho: Fraction, published: Publishing = CLIPPED, persons: int = 3000) -> Made:
    mechanism, known = gaussian(TREES, CROSSES, rho, published)
    return made(TREES, CROSSES, random_columns(TREES, persons, 3), mechanism, known, 4)


def key_world(V: float, D: int) -> Made:
    mechanism, known = cell_key(V, D)
    return made(TREES, CROSSES, random_columns(TREES, 3000, 3), mechanism, known, 5)


def brute_force(world: Made, belief: Belief) -> tuple[int, int, int]:
    """Small cells, those above the gate, and false accusations, of the first table, which shows all."""
    table = world.published.universes[0].tables[0]
    noise, true = world.published.noise, world.truth.counted[table.id]
    assert noise.law is not None
    law = noise.published(noise.law)
    shown = table.load()
    small = above = accused = 0
    for cell in range(table.cube.size):
        count, value = (int(values_at(some, np.array([cell]))[0]) for some in (true, shown))
        if 1 <= count <= belief.largest:
            small += 1
            above += Adversary(law, count - 1, belief.prior).posterior(value) > belief.gate
        if count < belief.largest and (count or value):
            accused += Adversary(law, count, belief.prior).posterior(value) > belief.gate
    return small, above, accused


@pytest.mark.parametrize("belief", few([Belief(0.5, 0.9), Belief(0.2, 0.5, 4)], 1))
@pytest.mark.parametrize(
    "world",
    [
        dp_world(Fraction(1, 2)),
        dp_world(Fraction(1, 3), Publishing(Negatives.KEEP)),
        dp_world(Fraction(1, 2), Publishing(Negatives.ZERO, 1, 2)),
        key_world(1.0, 3),
    ],
    ids=["clipped", "kept", "threshold", "cell-key"],
)
def test_the_scan_is_what_one_finds_cell_by_cell(world: Made, belief: Belief) -> None:
    found = scan(world.published, world.truth, belief)
    accused = sum(level.accused for level in found.levels)
    assert (found.cells, found.above, accused) == brute_force(world, belief)
    assert (sum(found.by_known), sum(found.cells_by_known)) == (found.above, found.cells)
    assert found.above <= found.cells


def test_weak_noise_is_broken_at_the_predicted_rate() -> None:
    """Within 4 standard errors of independent cells."""
    found = scan(*_both(dp_world(Fraction(3))), Belief(0.5, 0.9))
    expected = sum(level.expected for level in found.levels)
    assert found.share > 0.3
    assert abs(found.above - expected) < 4 * math.sqrt(expected)
    assert found.most_records > 100
    assert len(found.named) == 20


def test_sound_noise_resists() -> None:
    found = scan(*_both(dp_world(Fraction(1, 500))), Belief(0.5, 0.9))
    assert found.cells > 500
    assert (found.above, found.named, found.by_known) == (0, (), (0,) * 10)
    assert sum(level.expected for level in found.levels) < 0.01
    assert 0.5 < found.highest < 0.9


def test_fixed_zeros_are_told_apart_from_what_the_noise_gives_away() -> None:
    """With x0 = 0 any count is proof; beside others cell key noise of V = 2, D = 5 hides all but the bound's tail."""
    world = key_world(2.0, 5)
    found = scan(*_both(world), Belief(0.5, 0.95))
    assert found.highest == 1
    assert found.by_known[0] > 0.98 * found.above
    chance = 1 - world.published.noise.law_of(world.published.universes[0].signature(())).row(1).at(0)
    ones = sum(
        int((counts == 1).sum()) for name, (_, counts) in world.truth.counted.items() if name == "GEOxSEXxAGE"
    )
    assert abs(found.by_known[0] - chance * ones) < 4 * math.sqrt(ones * chance * (1 - chance)) + 0.05 * ones
    assert found.share_beside_others < 0.01 < found.share
    assert sum(level.accused for level in found.levels) == 0


def test_empty_cells_that_stay_empty_do_the_same_to_private_noise() -> None:
    mechanism, known = gaussian(TREES, CROSSES, Fraction(1, 20), CLIPPED, KeptZeros.ALL)
    world = made(TREES, CROSSES, random_columns(TREES, 3000, 3), mechanism, known, 4)
    found = scan(*_both(world), Belief(0.5, 0.95))
    assert found.by_known[0] > 50
    assert found.above_beside_others < 5


def test_every_cell_counts_once_however_many_tables_show_it() -> None:
    world = dp_world(Fraction(1))
    universe = world.published.universes[0]
    alone = Published("one", (replace(universe, tables=universe.tables[:1]),), world.published.noise)
    belief = Belief(0.5, 0.9)
    both, one = scan(*_both(world), belief), scan(alone, world.truth, belief)
    assert (both.cells, both.above) == (one.cells, one.above)
    assert (
        exposed(world.published, belief).cells
        == exposed(alone, belief).cells
        == len(universe.tables[0].load()[0])
    )


def test_a_summary_is_json_and_tells_no_true_count_of_a_cell() -> None:
    found = scan(*_both(dp_world(Fraction(2))), Belief(0.5, 0.9))
    told = json.loads(json_text(found))
    assert told["above"] == found.above
    assert set(told["named"][0]) == {"counted", "cell", "published"}
    plain = [len(one["cell"]) for one in told["named"]]
    assert plain == sorted(plain)


def test_the_outsider_s_view_by_enumeration() -> None:
    world = key_world(1.0, 3)
    found = exposed(world.published, Belief(0.5, 0.95, 5))
    values = world.published.universes[0].tables[0].load()[1]
    law = world.published.noise.law_of(world.published.universes[0].signature(()))
    assert found.cells == len(values)
    for known in range(1, 5):
        adversary = Adversary(law, known)
        proofs = [
            j for j in range(1, 12) if adversary.posterior(j) > 0.95 and law.row(known + 1).tail(j) > 1e-6
        ]
        assert found.by_known[known] == int(np.isin(values, proofs).sum())
        assert found.chances[known] == pytest.approx(adversary.exceeds(0.95))
    assert found.alone == int(((values > 0) & (values <= 4)).sum())
    assert found.highest_alone == 1


def test_the_outsider_learns_nothing_from_sound_noise_and_much_from_weak() -> None:
    sound = exposed(dp_world(Fraction(1, 1000)).published, Belief(0.5, 0.9))
    weak = exposed(dp_world(Fraction(3)).published, Belief(0.5, 0.9))
    assert sound.alone == 0
    assert weak.alone > 100
    assert weak.highest_alone > 0.99


def test_a_law_that_is_not_public_is_an_error() -> None:
    world = key_world(1.0, 3)
    hidden = replace(world.published, noise=replace(world.published.noise, law=None))
    with pytest.raises(Mistakes, match="not public"):
        exposed(hidden, Belief())


def test_the_truth_of_another_programme_is_an_error() -> None:
    with pytest.raises(Mistakes, match="GEOxSEXxAGE: is published, but not counted"):
        scan(key_world(1.0, 3).published, Truth({}, {}), Belief())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.0, 0.9), "between 0 and 1"),
        ((0.5, 0.4), "from the prior"),
        ((0.5, 1.0), "from the prior"),
        ((0.5, 0.9, 0), "from 1"),
    ],
)
def test_beliefs_that_are_none(values: tuple[float, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        Belief(*values)  # type: ignore[arg-type]


def _both(world: Made) -> tuple[Published, Truth]:
    return world.published, world.truth
