"""Noise is removed step by step: what is claimed is right as often as stated, and strong noise withstands it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.averaging import average
from discreet.audit.evidence import Published, PublishedTable, Truth, Universe
from discreet.audit.removal import RemovalRule, judge, remove_noise
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.maths.noise.additive import AdditiveLaw, discrete_laplace, uniform
from discreet.programme.cube import Cube
from tests.audit.known import known
from tests.audit.made import Made, axis, cell_key, flat, made, nested, random_columns
from tests.audit.private import gaussian

TREES = [
    nested("GEO", 4, 3),
    flat("SEX", 2),
    flat("AGE", 3),
    flat("CIT", 2),
    flat("EDU", 3),
    flat("FAM", 2),
]
CROSSES = [
    ["GEO", "SEX", "CIT", "AGE", "FAM"],
    ["GEO", "SEX", "AGE", "EDU"],
    ["SEX", "AGE", "CIT", "EDU", "FAM"],
]


def keyed(V: float, D: int, persons: int, seed: int = 2) -> Made:
    mechanism, noise = cell_key(V, D)
    return made(TREES, CROSSES, random_columns(TREES, persons, 1), mechanism, noise, seed)


@pytest.mark.parametrize("seed", [2, 3])
def test_weak_noise_is_removed_from_nearly_every_count_step_by_step(seed: int) -> None:
    weak = keyed(0.3, 1, 60_000, seed)
    found = remove_noise(weak.published)
    summary, judged = found.findings(), judge(found, weak.truth)
    assert summary.by_value == summary.averaged == 0
    assert len(summary.by_round) > 3
    assert summary.is_finished
    assert summary.by_round[0] < 0.6 * summary.cells  # the first round alone is not the attack
    assert judged.recovered > 0.95 * summary.cells
    assert judged.right > 0.96 * judged.recovered
    assert judged.published_right < 0.75 * judged.recovered
    assert judged.changed_right > 0.95 * judged.changed > 500
    assert judged.wrong < 2 * summary.expected_wrong


def test_the_same_tables_withstand_it_with_more_noise() -> None:
    for strong in (keyed(0.6, 2, 60_000), keyed(2.0, 5, 60_000)):
        judged = judge(remove_noise(strong.published), strong.truth)
        assert judged.recovered < 10


def test_claims_are_right_as_often_as_stated_where_counts_are_small() -> None:
    mechanism, noise = gaussian(TREES, CROSSES, Fraction(1))
    sparse = made(TREES, CROSSES, random_columns(TREES, 3000, 1), mechanism, noise, 2)
    found = remove_noise(sparse.published)
    judged = judge(found, sparse.truth)
    assert judged.recovered > 700
    assert judged.changed_right > 300
    assert judged.right > 0.95 * judged.recovered
    wrong = judged.wrong + judged.empty - judged.empty_right
    assert 0.4 * judged.expected_wrong < wrong < 2.5 * judged.expected_wrong


def test_a_higher_confidence_claims_less_and_errs_less() -> None:
    weak = keyed(0.3, 1, 3000)
    shares = []
    for confidence in (0.8, 0.95, 0.999):
        judged = judge(remove_noise(weak.published, rule=RemovalRule(confidence)), weak.truth)
        shares.append((judged.recovered, judged.share_right))
    assert shares[0][0] > shares[1][0] > shares[2][0]
    assert shares[0][1] is not None
    assert shares[1][1] is not None
    assert shares[0][1] < shares[1][1]


def by_hand(shown: list[int], truth: list[int], law: AdditiveLaw) -> Made:
    """A total and its two parts."""
    tree = flat("SEX", 2)
    table = PublishedTable(
        Cube("1", "persons", (axis(tree),)), lambda: (np.arange(3), np.array(shown, dtype=np.int64))
    )
    noise = known(False, False, law.row(0).variance, law.bound, law)
    universe = Universe("persons", "", "", (table,), {"SEX": tree})
    true = np.arange(3), np.array(truth)
    return Made(Published("by hand", (universe,), noise), Truth({"1": true}, {"1": true}), {})


def test_counts_with_hardly_any_noise_are_known_by_themselves() -> None:
    exact = by_hand([50, 20, 30], [50, 20, 30], discrete_laplace("20"))
    found = remove_noise(exact.published)
    assert found.findings().by_value == 3
    assert judge(found, exact.truth).right == 3


def test_one_sum_of_three_counts_proves_nothing_by_itself() -> None:
    found = remove_noise(by_hand([52, 20, 30], [51, 21, 30], uniform(1)).published).findings()
    assert found.recovered == 0
    assert found.is_finished


def test_averages_that_are_nearly_certain_are_where_it_begins() -> None:
    mechanism, noise = gaussian(TREES, CROSSES, Fraction(2))
    dense = made(TREES, CROSSES, random_columns(TREES, 60_000, 1), mechanism, noise, 2)
    averages = average(dense.published)
    with_them, without = (remove_noise(dense.published, start).findings() for start in (averages, None))
    assert with_them.averaged > 0 == without.averaged
    assert judge(remove_noise(dense.published, averages), dense.truth).right > 0.95 * with_them.recovered


def test_an_unknown_law_and_an_impossible_confidence_are_refused() -> None:
    weak = keyed(0.3, 1, 3000)
    secret = replace(weak.published, noise=replace(weak.published.noise, law=None))
    with pytest.raises(Mistakes, match="law is not public"):
        remove_noise(secret)
    with pytest.raises(Mistakes, match="confidence"):
        RemovalRule(1.0)


def test_the_audit_states_no_recovered_count() -> None:
    weak = keyed(0.3, 1, 3000)
    found = remove_noise(weak.published)
    outsiders = found.findings()
    assert any(one.recovered is not None for one in outsiders.named)
    assert all(one.recovered is None for one in outsiders.without_counts().named)
    document = json.loads(json_text(judge(found, weak.truth)))
    assert set(document) >= {"recovered", "right", "wrong", "published_right", "changed_right"}


def test_tables_beyond_the_limit_are_left_out_and_counted() -> None:
    weak = keyed(0.3, 1, 3000)
    some = remove_noise(weak.published, rule=RemovalRule(cells=300)).findings()
    assert 0 < some.cells <= 300
    assert some.crosstabs_left_out > 0
