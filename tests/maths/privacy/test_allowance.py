"""Budgets that are charged step by step: never exceeded by an adaptive adversary, exact, and read back as written."""

import math
from fractions import Fraction
from functools import cache

import pytest

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import EpsilonDelta, PureEpsilon, Rho
from discreet.maths.privacy.allowance import AdvancedSum, Allowance, Spent, read_allowance
from discreet.maths.privacy.composition import Composition

THOUSANDTH = Fraction(1, 1000)


def allowance(epsilon: Fraction, delta: Fraction = THOUSANDTH) -> Allowance:
    return Allowance(EpsilonDelta(epsilon, delta), Composition.ADVANCED)


def charged(kept: Allowance, *epsilons: Fraction) -> Spent:
    spent = kept.nothing()
    for epsilon in epsilons:
        spent = kept.plus(spent, PureEpsilon(epsilon))
    return spent


def test_many_small_charges_cost_less_than_their_sum_and_one_charge_what_it_is() -> None:
    kept = allowance(Fraction(2))
    hundred = kept.stated(charged(kept, *[Fraction(1, 20)] * 100))
    assert isinstance(hundred, EpsilonDelta)
    s = 100 / 400
    assert float(hundred.epsilon) == pytest.approx(s / 2 + math.sqrt(2 * s * math.log(2000)), rel=1e-9)
    assert float(hundred.epsilon) >= s / 2 + math.sqrt(2 * s * math.log(2000)) - 1e-12
    assert hundred.delta == THOUSANDTH / 2
    assert kept.stated(charged(kept, Fraction(1))) == EpsilonDelta(Fraction(1), THOUSANDTH / 2)
    assert kept.stated(kept.nothing()) == EpsilonDelta(Fraction(0), Fraction(0))


def test_what_is_left_is_the_largest_charge_that_is_allowed() -> None:
    kept = allowance(Fraction(2))
    for spent in (kept.nothing(), charged(kept, *[Fraction(1, 20)] * 90), charged(kept, Fraction(3, 2))):
        left = kept.left(spent)
        assert isinstance(left, EpsilonDelta)
        assert kept.allows(kept.plus(spent, PureEpsilon(left.epsilon)))
        assert not kept.allows(kept.plus(spent, PureEpsilon(left.epsilon + Fraction(2, 10**6))))
        assert left.delta == THOUSANDTH / 2
    plain = Allowance(PureEpsilon(Fraction(2)))
    assert plain.left(plain.plus(plain.nothing(), PureEpsilon(Fraction(1, 2)))) == PureEpsilon(Fraction(3, 2))


def test_deltas_of_charges_are_limited_by_their_half() -> None:
    kept = allowance(Fraction(2))
    some = kept.plus(kept.nothing(), EpsilonDelta(Fraction(1, 10), THOUSANDTH / 2))
    assert kept.allows(some)
    assert not kept.allows(kept.plus(some, EpsilonDelta(Fraction(1, 10), Fraction(1, 10**9))))
    assert not kept.allows(kept.plus(some, EpsilonDelta(Fraction(1, 10), Fraction(999, 1000))))


@pytest.mark.parametrize("delta", [Fraction(1, 5), Fraction(1, 20)])
def test_no_adaptive_choice_of_charges_exceeds_the_budget(delta: Fraction) -> None:
    """Brute force over all strategies: each step's epsilon is chosen in view of all outcomes so far.

    The most revealing e-DP step has a loss of e with probability e^e/(1 + e^e), else of -e. The largest delta at the
    budget's epsilon over all strategies is found by dynamic programming over (loss so far, sums so far).
    """
    kept = allowance(Fraction(3, 2), delta)
    sizes = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))
    budget = 1.5
    allowed = cache(kept.allows)

    @cache
    def worst(steps: int, loss: Fraction, spent: AdvancedSum) -> float:
        stop = max(0.0, -math.expm1(budget - float(loss)))
        if not steps:
            return stop
        best = stop
        for size in sizes:
            further = spent.plus(EpsilonDelta(size, Fraction(0)))
            if allowed(further):
                p = 1 / (1 + math.exp(-float(size)))
                gain = p * worst(steps - 1, loss + size, further)
                best = max(best, gain + (1 - p) * worst(steps - 1, loss - size, further))
        return best

    reached = worst(16, Fraction(0), AdvancedSum())
    assert reached <= float(delta) / 2
    assert reached > 0  # the strategies do exceed epsilon: without its delta the claim would be false


def test_they_are_read_back_as_written() -> None:
    for kept in (allowance(Fraction(1)), Allowance(Rho(Fraction(1, 3))), Allowance(PureEpsilon(Fraction(1)))):
        assert read_allowance(str(kept)) == kept
    assert str(Allowance(PureEpsilon(Fraction(1)))) == "epsilon=1/1"  # as before there was a choice
    kept = allowance(Fraction(1))
    spent = charged(kept, Fraction(1, 3), Fraction(1, 7))
    assert kept.read(str(spent)) == spent
    for text in ("epsilon=1/1", "epsilons=1/1 squares=x deltas=0/1", "epsilons=-1/1 squares=1/1 deltas=0/1"):
        with pytest.raises(Mistakes):
            kept.read(text)
    with pytest.raises(Mistakes, match="cannot be read"):
        read_allowance("epsilon=1/1 delta=1/9 composition=other")


def test_what_is_not_sound_is_refused() -> None:
    with pytest.raises(Mistakes, match="no rule for stopping is valid"):
        Allowance(EpsilonDelta(Fraction(1), THOUSANDTH), Composition.PLD)
    for budget in (PureEpsilon(Fraction(1)), Rho(Fraction(1)), EpsilonDelta(Fraction(1), Fraction(0))):
        with pytest.raises(Mistakes, match="delta above 0"):
            Allowance(budget, Composition.ADVANCED)
    with pytest.raises(Mistakes, match="does not add up"):
        allowance(Fraction(1)).plus(AdvancedSum(), Rho(Fraction(1)))
