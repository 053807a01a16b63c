"""The risk of averaging as audit, gates and adviser judge it: predicted from the rows of the p-table, and realised."""

from collections.abc import Iterator

import numpy as np
import pytest

from discreet.audit.averaging import Averaging, average
from discreet.maths.attacks.averaging import Method, Recovery, few_recovered, recovery, successes
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns
from tests.cases import few

TREES = [nested("GEO", 2, 3), flat("A", 4), flat("B", 4), flat("C", 3)]
CROSSES = [["GEO", "A", "B"], ["GEO", "B", "C"], ["A", "B", "C"], ["GEO", "A", "C"]]
LARGE = 30
D = 5


def worlds(persons: int, V: float, js: int, secrets: int) -> Iterator[Made]:
    """The same persons under one p-table with several secrets."""
    mechanism, known = cell_key(V, D, js)
    columns = random_columns(TREES, persons, 3)
    for secret in range(secrets):
        yield made(TREES, CROSSES, columns, mechanism, known, 100 + secret)


class Tally:
    """For each true count, what was predicted and found with every secret."""

    def __init__(self, persons: int, V: float, js: int, secrets: int) -> None:
        self.targets = np.zeros(LARGE + 1)
        self.predicted = np.zeros(LARGE + 1)
        self.found = np.zeros((secrets, LARGE + 1))
        for number, world in enumerate(worlds(persons, V, js, secrets)):
            for one in average(world.published, truth=world.truth).tables:
                assert one.counts is not None
                counts = np.minimum(one.counts, LARGE)
                hit = np.rint(one.averages.estimates[Method.WEIGHTED]) == one.counts
                self.found[number] += np.bincount(counts, hit, LARGE + 1)
                self.targets += np.bincount(counts, minlength=LARGE + 1)
                self.predicted += np.bincount(counts, one.success[Method.WEIGHTED], LARGE + 1)

    def away(self, count: int, predicted: float | None = None) -> float:
        """The difference of found and predicted in standard errors, which the secrets themselves show."""
        found = self.found[:, count]
        expected = self.predicted[count] if predicted is None else predicted * self.targets[count]
        error = found.std(ddof=1) * np.sqrt(len(found)) + 1e-9
        return float((found.sum() - expected) / error)


@pytest.mark.parametrize("js", few([0, 1], 1))
def test_the_prediction_holds_for_every_small_count_and_for_large_ones(js: int) -> None:
    """Sampling errors only, where most cells hold a few; the row of large counts is rejected for ones."""
    tally = Tally(400, 2.0, js, secrets=40)
    for count in (*range(1, D + 1), LARGE):
        assert tally.targets[count] > 500
        assert abs(tally.away(count)) < 3.5, count
    table = PTableLaw(solve(PTableParameters(D, 2.0, js)))
    unchanged = table.row(1000).at(1000)
    assert abs(tally.away(1, unchanged)) > 5


@pytest.mark.long
def test_a_prediction_for_another_variance_is_rejected() -> None:
    tally, other = Tally(400, 2.0, 0, secrets=120), Tally(400, 1.6, 0, secrets=1)
    for count in (3, LARGE):
        assert abs(tally.away(count, other.predicted[count] / other.targets[count])) > 3.5


def test_the_prediction_does_not_depend_on_the_noise() -> None:
    """So a proposal that passes a gate passes it with every secret."""
    first, second = (average(world.published, truth=world.truth) for world in worlds(300, 2.0, 0, 2))
    assert first.exposed == second.exposed
    for one, other in zip(first.tables, second.tables, strict=True):
        assert np.array_equal(one.success, other.success)
        assert not np.array_equal(one.averages.estimates, other.averages.estimates)


def total(found: Averaging) -> tuple[int, float]:
    one = next(table for table in found.tables if not table.signature.levels)
    return int(one.averages.t[Method.WEIGHTED, 0]), float(one.averages.variances[Method.WEIGHTED, 0])


def test_the_same_records_count_once_where_no_table_connects_them() -> None:
    """Two persons who differ in A and in B: {a}, {b} by A and again by B, with the noise that they have."""
    trees = [flat("A", 2), flat("B", 2)]
    columns = {name: np.array([0, 1], dtype=np.uint32) for name in "AB"}
    mechanism, known = cell_key(2.0, D)
    world = made(trees, [["A"], ["B"]], columns, mechanism, known, 5)
    law = PTableLaw(solve(PTableParameters(D, 2.0)))
    both, alone = law.row(2).variance, law.row(1).variance
    t, variance = total(average(world.published, truth=world.truth))
    assert t == 2
    assert variance == pytest.approx(recovery(np.array([both, 2 * alone])).variance)


def test_best_weights_are_never_worse_than_equal_ones() -> None:
    generator = np.random.default_rng(1)
    for _ in range(100):
        variances = generator.integers(1, 100, generator.integers(1, 20)) / 4
        best = recovery(variances)
        assert best.t == len(variances)
        assert best.variance <= variances.sum() / len(variances) ** 2 + 1e-12
        assert best.variance <= variances.min() + 1e-12
    assert Recovery(1, 0.2528).probability == pytest.approx(0.68, abs=1e-4)


def test_few_groups_are_enumerated_as_a_sum_over_all_changes() -> None:
    """Two groups with coefficients 1/2 and a change of -1, 0 or 1 each; a sum of exactly 1/2 is right half the time."""
    laws = np.array([[0.2, 0.5, 0.3]])
    chance = np.full(2, -1.0)
    number, few = np.array([2, 3]), np.array([[0.5, 0.5], [0.5, 0.5]])
    few_recovered(number, few, np.full((2, 2), 9), laws, 100, chance)
    by_hand = 0.5 * 0.5 + 2 * 0.2 * 0.3 + 0.5 * (2 * 0.5 * 0.2 + 2 * 0.5 * 0.3)
    assert chance[0] == pytest.approx(by_hand)
    assert chance[1] == -1.0, "more groups than are listed"
    few_recovered(number, few, np.full((2, 2), 9), laws, 8, chance[:1])
    assert chance[0] == pytest.approx(by_hand), "too many combinations leave what is there"
    assert successes(np.array([1e9]))[0] < 1e-4
