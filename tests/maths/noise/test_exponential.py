"""The exponential mechanism with any utility table: its law, its certificate, and its guarantee by brute force."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import AdditiveLaw, exponential_mechanism, truncated_laplace
from discreet.maths.noise.certificates import certificate, utility_delta
from discreet.maths.noise.draws import BitSource, draw
from discreet.maths.noise.exponential import UtilityLaw, UtilityRow, UtilityTable, utility_law
from discreet.maths.noise.thresholds import UNIT, row_table
from tests.cases import few
from tests.maths.noise.test_exact_draws import p_value


def table(*rows: tuple[int, Sequence[int | Fraction]]) -> UtilityTable:
    return UtilityTable(tuple(UtilityRow(first, tuple(map(Fraction, values))) for first, values in rows))


def roots(last: int, most: int) -> UtilityTable:
    """-abs(sqrt a - sqrt b) to four digits, b = 0..most for every count."""
    rows = []
    for a in range(last + 1):
        values = [Fraction(round(-1e4 * abs(math.sqrt(a) - math.sqrt(b))), 10**4) for b in range(most + 1)]
        rows.append((0, values))
    return table(*rows)


def random_table(seed: int) -> UtilityTable:
    """Rows of random utilities whose published values overlap."""
    random = np.random.default_rng(seed)
    rows = []
    for count in range(int(random.integers(2, 6))):
        first = count - int(random.integers(2, 4))
        width = int(random.integers(5, 9))
        rows.append((first, [Fraction(int(u), 7) for u in random.integers(-30, 1, width)]))
    return table(*rows)


@pytest.mark.parametrize("seed", few(range(12), 0, 1, 2, 3))
def test_the_guarantee_holds_for_every_event_of_every_pair_of_neighbours(seed: int) -> None:
    """Brute force over all sets of published values: P(S | a) <= e^epsilon P(S | a') + delta, in exact integers."""
    chosen = random_table(seed)
    law = UtilityLaw(chosen, Fraction(seed % 5 + 1, 2))
    found = certificate(law)
    assert found.certified
    worst = Fraction(0)
    for count in range(chosen.last + 4):  # beyond the last row, too
        p, q = row_table(law, count), row_table(law, count + 1)
        values = range(min(p.first, q.first), max(p.last, q.last) + 1)
        for one, other in ((p, q), (q, p)):
            factor = Fraction(math.exp(float(law.epsilon_parameter)) * (1 + 1e-12))
            least = Fraction(math.exp(float(law.epsilon_parameter)) * (1 - 1e-12))
            for chosen_set in range(2 ** len(values)) if len(values) <= 10 else ():
                inside = [v for k, v in enumerate(values) if chosen_set >> k & 1]
                here = Fraction(sum(one.number(v) for v in inside), UNIT)
                there = Fraction(sum(other.number(v) for v in inside), UNIT)
                assert here <= factor * there + found.delta
            over = (Fraction(one.number(v), UNIT) - least * Fraction(other.number(v), UNIT) for v in values)
            worst = max(worst, sum((part for part in over if part > 0), Fraction(0)))
    assert float(found.delta) == pytest.approx(float(worst), rel=1e-6)
    assert utility_delta(law) == found.delta
    assert law.delta(float(law.epsilon_parameter)) == pytest.approx(float(found.delta), rel=1e-9)


def test_without_the_delta_the_claim_would_be_false() -> None:
    """A value that only one of two neighbours can have tells them apart: no epsilon covers it."""
    law = UtilityLaw(table((0, [0, -1]), (0, [-1, 0, -1])), Fraction(1))
    p, q = row_table(law, 0), row_table(law, 1)
    assert p.number(2) == 0 < q.number(2)
    assert certificate(law).delta >= Fraction(q.number(2), UNIT)
    assert law.epsilon(0.0) == math.inf


def test_the_law_is_the_formula() -> None:
    law = UtilityLaw(roots(6, 40), Fraction(3))
    assert law.table.sensitivity == 1  # sqrt 1 - sqrt 0, as Rinott et al. find for u_3
    for count in range(7):
        weights = [math.exp(1.5 * float(u)) for u in law.table.rows[count].values]
        assert law.row(count).p == pytest.approx(np.array(weights) / math.fsum(weights), rel=1e-12)
    beyond = law.row(9)
    assert beyond.first == 3
    assert beyond.p == pytest.approx(law.row(6).p)


def test_rows_with_the_same_values_are_private_as_theorem_4_1_says() -> None:
    law = UtilityLaw(roots(6, 40), Fraction(3))
    rows = [law.row(count) for count in range(7)]
    largest = max(float(np.abs(np.log(p.p) - np.log(q.p)).max()) for p, q in pairwise(rows))
    assert 0 < largest <= 3


def test_a_single_row_is_noise_that_is_added_with_the_whole_epsilon() -> None:
    """Theorem 4.2: the sums of neighbours cancel, so that epsilon is not halved."""
    one = table((-3, [-3, -2, -1, 0, -1, -2, -3]))
    law = utility_law(Fraction(1, 2), one)
    assert isinstance(law, AdditiveLaw)
    assert law == exponential_mechanism(Fraction(1, 2), one.rows[0].values, -3)
    assert law.pmf.p == pytest.approx(truncated_laplace(Fraction(1, 2), 3).pmf.p)


def test_draws_fit_every_row_and_not_those_of_another_epsilon() -> None:
    law, other = UtilityLaw(roots(3, 12), Fraction(4)), UtilityLaw(roots(3, 12), Fraction(44, 10))
    for count in (0, 2, 3):
        values = draw(row_table(law, count), 200_000, BitSource(bytes([count] * 32)))
        assert p_value(values, law.row(count)) > 1e-4
        assert p_value(values, other.row(count)) < 1e-9


def test_tables_are_compared_by_content() -> None:
    assert roots(2, 5) == roots(2, 5)
    assert hash(roots(2, 5)) == hash(roots(2, 5))
    assert roots(2, 5) != roots(2, 6)
    assert roots(2, 5).digest != roots(3, 5).digest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "at least two published values"),
        ([(0, [1])], "at least two published values"),
        ([(0, [0, 0]), (5, [0, 0])], "no published value in common"),
        ([(0, [0] * 60_000)], "at most 50000"),
    ],
)
def test_tables_that_cannot_protect_are_refused(rows: list[tuple[int, list[int]]], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        table(*rows)


def test_values_that_are_never_drawn_do_no_harm() -> None:
    """Tails far below any precision: the last threshold is one unit below the whole."""
    law = UtilityLaw(table(*((-40, [-abs(a - b) for b in range(-40, 41)]) for a in range(3))), Fraction(50))
    drawn = row_table(law, 0)
    assert sum(drawn.numbers) == UNIT
    assert drawn.numbers[-1] == 1
    assert certificate(law).delta < Fraction(1, 2**100)
