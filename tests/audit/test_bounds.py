from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.bound_propagation import Deductions, PropagationLimits
from discreet.audit.bounds import bound_attack, judge
from discreet.audit.evidence import Published, PublishedTable, Truth, Universe
from discreet.io.serialize import json_text
from discreet.maths.cells.permutation import no_permutation
from discreet.maths.noise.additive import truncated_laplace
from discreet.perturb.noise import Noise
from discreet.programme.cube import Cube
from tests.audit.known import known as known_noise
from tests.audit.made import Made, axis, cell_key, flat, made, nested, random_columns

TREES = [nested("GEO", 10, 20), flat("SEX", 2), flat("AGE", 6)]
CROSSES = [["GEO", "SEX"], ["GEO", "SEX", "AGE"]]


def world(V: float, D: int, persons: int, permuted: bool = True, seed: int = 2) -> Made:
    mechanism, known = cell_key(V, D)
    columns = random_columns(TREES, persons, 1)
    plain = replace(mechanism, permutation=no_permutation())
    return made(TREES, CROSSES, columns, mechanism if permuted else plain, known, seed)


def by_hand(shown: list[int], noise: Noise, truth: list[int] | None = None) -> Made:
    """A table of two sexes: total, first, second."""
    tree = flat("SEX", 2)
    cells = np.flatnonzero(shown), np.array(shown)[np.flatnonzero(shown)]
    true = np.arange(3), np.array(truth or shown)
    table = PublishedTable(Cube("1", "persons", (axis(tree),)), lambda: cells)
    published = Published("by hand", (Universe("persons", "", "", (table,), {"SEX": tree}),), noise)
    return Made(published, Truth({"1": true}, {"1": true}), {})


@pytest.mark.parametrize(("V", "D"), [(0.6, 1), (1.9, 2)])
def test_a_small_bound_is_shown_and_gives_counts_away_at_the_predicted_rate(V: float, D: int) -> None:
    weak = world(V, D, 60_000)
    found = bound_attack(weak.published)
    judged = judge(found, weak.published, weak.truth, weak.published.noise)
    assert judged.is_bound_shown
    assert judged.pinned > 20
    assert judged.right == judged.pinned
    assert judged.right_empty == judged.empty
    assert found.pairs is not None
    assert judged.expected_pairs is not None
    assert abs(found.pairs - judged.expected_pairs) < 4 * np.sqrt(judged.expected_pairs) + 1
    assert found.expected is not None
    assert found.extreme is not None
    assert judged.revealing is not None


def test_gaps_of_large_counts_show_the_bound_as_often_as_predicted() -> None:
    weak = world(1.9, 2, 2_000_000)
    found = bound_attack(weak.published)
    judged = judge(found, weak.published, weak.truth, weak.published.noise)
    assert judged.expected is not None
    assert judged.revealing is not None
    assert judged.extreme is not None
    assert judged.revealing == pytest.approx(
        judged.expected.revealing, abs=4 * judged.expected.revealing**0.5
    )
    assert judged.extreme == pytest.approx(judged.expected.extreme, abs=4 * judged.expected.extreme**0.5)
    assert judged.expected.probability > 0.99


def test_sums_of_keys_in_plain_order_make_extreme_tuples_rare() -> None:
    """Parts with the lowest keys add up to a total with a low key: the three noises are not independent."""
    mechanism, known = cell_key(1.9, 2)
    plain = world(1.9, 2, 2_000_000, permuted=False)
    judged = judge(bound_attack(plain.published), plain.published, plain.truth, known, mechanism.lookup)
    assert judged.expected is not None
    assert judged.expected_by_keys is not None
    assert judged.revealing is not None
    assert judged.extreme is not None
    by_keys = judged.expected_by_keys.revealing
    assert judged.revealing == pytest.approx(by_keys, abs=4 * by_keys**0.5 + 1)
    assert judged.revealing < judged.expected.revealing / 4
    assert judged.extreme <= judged.expected.extreme / 4


def test_a_sound_bound_is_neither_shown_nor_of_use() -> None:
    sound = world(2.0, 5, 60_000)
    found = bound_attack(sound.published)
    judged = judge(found, sound.published, sound.truth, sound.published.noise)
    assert found.least_bound < 5
    assert not judged.is_bound_shown
    assert found.expected is not None
    assert found.expected.probability < 0.01
    assert found.pinned <= 2
    assert judged.right == judged.pinned
    assert found.contradicted == 0


def test_a_bound_supposed_too_small_contradicts_itself_and_is_often_wrong() -> None:
    sound = world(2.0, 5, 60_000)
    found = bound_attack(sound.published, bound=2)
    judged = judge(found, sound.published, sound.truth, sound.published.noise)
    assert found.contradicted > 0
    assert len(found.named_contradictions) == 20
    assert judged.share_right is not None
    assert judged.share_right < 1


def test_the_shown_bound_of_a_weak_noise_serves_who_was_told_nothing() -> None:
    weak = world(1.9, 2, 60_000)
    blind = replace(weak.published, noise=known_noise(True, True))
    first = bound_attack(blind)
    assert (first.bound, first.pinned, first.pairs, first.extreme) == (None, 0, None, None)
    second = bound_attack(blind, bound=first.least_bound)
    judged = judge(second, blind, weak.truth, weak.published.noise)
    assert judged.right == judged.pinned > 0


def test_a_rounded_bound_is_of_little_use() -> None:
    weak = world(1.9, 2, 60_000)
    told = replace(weak.published, noise=known_noise(True, True, 1.9, 10))
    assert bound_attack(told).pinned < bound_attack(weak.published).pinned / 10


def test_the_pattern_of_the_paper_is_named() -> None:
    found = bound_attack(by_hand([11, 3, 2], known_noise(False, True, bound=2)).published)
    assert (found.extreme, found.pairs, found.pinned, found.small) == (1, 1, 3, 0)
    assert [(dict(one.cell), one.published, one.deduced) for one in found.named] == [
        ({}, 11, 9),
        ({"SEX": "SEX0"}, 3, 5),
        ({"SEX": "SEX1"}, 2, 4),
    ]
    assert json.loads(json_text(found.findings()))["pinned"] == 3


def test_noise_that_touches_empty_cells_can_leave_nobody_in_a_published_count() -> None:
    noise = known_noise(False, False, bound=2, law=truncated_laplace(1, 2))
    made_up = by_hand([0, 2, 4], noise, [2, 0, 2])
    found = bound_attack(made_up.published)
    assert [(dict(one.cell), one.deduced) for one in found.named] == [
        ({}, 2),
        ({"SEX": "SEX1"}, 2),
        ({"SEX": "SEX0"}, 0),
    ]
    assert judge(found, made_up.published, made_up.truth, noise).right == found.pinned == 3


def test_tables_tell_each_other_what_they_know() -> None:
    """The second table pins the total, which alone lets the first pin its parts."""
    sex, age = flat("SEX", 2), flat("AGE", 2)
    noise = known_noise(False, True, bound=2)
    tables = [
        PublishedTable(Cube("1", "persons", (axis(sex),)), lambda: (np.arange(3), np.array([11, 7, 6]))),
        PublishedTable(Cube("2", "persons", (axis(age),)), lambda: (np.arange(3), np.array([11, 3, 2]))),
    ]
    both = Universe("persons", "", "", tuple(tables), {"SEX": sex, "AGE": age})
    alone = Universe("persons", "", "", tuple(tables[:1]), {"SEX": sex})
    first = bound_attack(Published("one", (alone,), noise))
    found = bound_attack(Published("both", (both,), noise))
    assert first.pinned == 0
    assert {tuple(one.cell.values()): one.deduced for one in found.named} == {
        (): 9,
        ("AGE0",): 5,
        ("AGE1",): 4,
        ("SEX0",): 5,
        ("SEX1",): 4,
    }
    apart = bound_attack(Published("both", (both,), noise), limits=PropagationLimits(exchanged=0))
    assert (apart.unexchanged, apart.pinned) == (1, 3)


def test_a_cell_that_several_tables_show_is_deduced_once() -> None:
    weak = world(0.6, 1, 60_000)
    found = bound_attack(weak.published)
    cells = _described(found.deductions)
    assert len(cells) == len(set(cells)) == found.pinned + found.empty


def _described(deductions: Iterable[Deductions]) -> list[frozenset[tuple[str, str]]]:
    cells = []
    for one in deductions:
        nodes = [one.cube.nodes(one.cells, k) for k in range(len(one.cube.axes))]
        cells += [
            frozenset((a.variable, a.codes[node]) for a, node in zip(one.cube.axes, at, strict=True) if node)
            for at in zip(*nodes, strict=True)
        ]
    return cells


def test_blocks_of_little_memory_deduce_less_and_nothing_wrong() -> None:
    weak = world(0.6, 1, 60_000)
    whole, small = (
        bound_attack(weak.published),
        bound_attack(weak.published, limits=PropagationLimits(block=600)),
    )
    judged = judge(small, weak.published, weak.truth, weak.published.noise)
    assert small.cut == ("GEOxSEX", "GEOxSEXxAGE")
    assert 0 < small.pinned <= whole.pinned
    assert judged.right == judged.pinned
    assert bound_attack(weak.published, limits=PropagationLimits(block=10)).left_out == ("GEOxSEXxAGE",)


@pytest.mark.parametrize(("assumed", "block"), [(None, 1 << 24), (None, 200), (1, 1 << 24)])
def test_the_last_round_finds_the_same_from_where_the_first_ended(assumed: int | None, block: int) -> None:
    """Also where a bound that is too small contradicts itself, and where tables are cut."""
    weak = world(1.9, 2, 3_000)
    whole = PropagationLimits(block=block)
    found = bound_attack(weak.published, assumed, whole)
    again = bound_attack(weak.published, assumed, replace(whole, stored=0))
    assert json_text(found.findings()) == json_text(again.findings())
    assert found.pinned > 20
    assert (found.contradicted > 0) == (assumed is not None)
    for one, other in zip(found.deductions, again.deductions, strict=True):
        assert one.cells.tolist() == other.cells.tolist()
        assert one.deduced.tolist() == other.deduced.tolist()


def test_progress_counts_every_cell_of_both_rounds() -> None:
    class Told:
        total, done = 0, 0

        def stage(self, name: str, total: int | None = None) -> None:
            self.total = total or 0

        def step(self, done: int = 1) -> None:
            self.done += done

    told = Told()
    bound_attack(world(2.0, 5, 1000).published, progress=told)
    assert told.done == told.total > 0
