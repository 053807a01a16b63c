"""Losses, their composition and conversion: published figures, exact references, and that every bound errs upward."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import (
    EpsilonDelta,
    Neighbours,
    PrivacyLoss,
    PureEpsilon,
    Rho,
    advanced,
    basic,
    delta_of_rho,
    epsilon_delta_of_rho,
    epsilon_of_rho,
    epsilon_of_rho_as_published,
    exp_above,
    exp_below,
    float_above,
    log_above,
    log_below,
    read_loss,
    rounded_up,
    sqrt_above,
    stated_as,
    within,
)

fractions = st.fractions(min_value=0, max_value=20, max_denominator=10**6)
positive = st.fractions(min_value=Fraction(1, 10**4), max_value=20, max_denominator=10**4)
deltas = st.integers(2, 14).map(lambda digits: Fraction(1, 10**digits))
losses = st.one_of(
    st.builds(PureEpsilon, fractions),
    st.builds(EpsilonDelta, fractions, st.fractions(min_value=0, max_value=Fraction(1, 2))),
    st.builds(Rho, fractions),
)


@given(fractions)
def test_bounds_enclose_what_they_bound(x: Fraction) -> None:
    assert exp_below(x) < exp_above(x)
    assert float(exp_below(x)) == pytest.approx(math.exp(x), rel=1e-14)
    assert exp_below(-x) * exp_above(x) <= 1 + Fraction(1, 10**45)
    assert sqrt_above(x) ** 2 >= x
    assert exp_below(log_below(1 + x)) <= 1 + x <= exp_above(log_above(1 + x))
    assert Fraction(float_above(x)) >= x > Fraction(math.nextafter(float_above(x), -math.inf))
    assert x <= rounded_up(x, 5) <= x * (1 + Fraction(1, 10**4))


def test_quoted_conversions_of_rho() -> None:
    rho, delta = Fraction(256, 100), Fraction(1, 10**10)
    assert epsilon_of_rho_as_published(rho, delta) == pytest.approx(17.9153, abs=5e-5)
    assert epsilon_of_rho(rho, delta) == pytest.approx(17.158, abs=5e-4)
    assert epsilon_delta_of_rho(Rho(rho), delta).delta == delta
    assert epsilon_of_rho(Fraction(0), delta) == delta_of_rho(Fraction(0), Fraction(1)) == 0


@given(positive, deltas)
def test_the_tighter_conversion_is_tighter_and_is_the_least_over_orders(
    rho: Fraction, delta: Fraction
) -> None:
    tight = epsilon_of_rho(rho, delta)
    assert tight <= epsilon_of_rho_as_published(rho, delta)
    for log_order in range(-12, 13):
        x = math.exp(log_order) * math.sqrt(-math.log(delta) / rho)
        other = (1 + x) * rho + (-math.log(delta) - math.log1p(x)) / x - math.log1p(1 / x)
        assert tight <= max(other, 0) + 1e-6
    assert delta_of_rho(rho, Fraction(tight)) <= delta * (1 + 1e-6)


@given(positive, deltas)
def test_a_conversion_never_claims_less_than_gaussian_noise_needs(rho: Fraction, delta: Fraction) -> None:
    # the continuous Gaussian of the same rho is rho-zCDP, so a bound for all rho-zCDP must cover its exact delta
    epsilon = epsilon_of_rho(rho, delta)
    shift = math.sqrt(2 * rho)
    exact = _phi(shift / 2 - epsilon / shift) - math.exp(epsilon) * _phi(-shift / 2 - epsilon / shift)
    assert exact <= delta * (1 + 1e-9)


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def test_basic_composition_adds_exactly() -> None:
    thirds = [PureEpsilon(Fraction(1, 3))] * 3
    assert basic(thirds, PureEpsilon) == PureEpsilon(Fraction(1))
    assert basic(thirds, Rho) == Rho(Fraction(1, 6))
    mixed: list[PrivacyLoss] = [PureEpsilon(Fraction(1)), EpsilonDelta(Fraction(1, 2), Fraction(1, 10**6))]
    assert basic(mixed, EpsilonDelta) == EpsilonDelta(Fraction(3, 2), Fraction(1, 10**6))
    assert basic([], Rho) == Rho(Fraction(0))
    assert PureEpsilon(Fraction(1)).times(2) == PureEpsilon(Fraction(2))
    assert EpsilonDelta(Fraction(1), Fraction(1, 8)).times(2) == EpsilonDelta(Fraction(2), Fraction(1, 4))
    assert Rho(Fraction(1)).times(2) == Rho(Fraction(2))


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (Rho(Fraction(1)), PureEpsilon),
        (Rho(Fraction(1)), EpsilonDelta),
        (EpsilonDelta(Fraction(1), Fraction(1, 10)), Rho),
        (EpsilonDelta(Fraction(1), Fraction(1, 10)), PureEpsilon),
    ],
)
def test_a_loss_that_does_not_imply_another_kind_is_refused(
    loss: PrivacyLoss, kind: type[PureEpsilon]
) -> None:
    with pytest.raises(Mistakes, match="does not add up"):
        stated_as(loss, kind)
    with pytest.raises(Mistakes, match="does not add up"):
        within(loss, kind(*([Fraction(1, 2)] * len(kind.__dataclass_fields__))))


def test_within_looks_at_every_amount() -> None:
    budget = EpsilonDelta(Fraction(1), Fraction(1, 10))
    assert within(budget, budget)
    assert not within(EpsilonDelta(Fraction(1, 2), Fraction(1, 9)), budget)
    assert not within(EpsilonDelta(Fraction(11, 10), Fraction(0)), budget)


def test_groups_cost_by_their_size() -> None:
    assert PureEpsilon(Fraction(1, 2)).grouped(6) == PureEpsilon(Fraction(3))
    assert Rho(Fraction(1, 2)).grouped(6) == Rho(Fraction(18))
    group = EpsilonDelta(Fraction(1), Fraction(1, 10**6)).grouped(6)
    assert group.epsilon == 6
    assert float(group.delta) == pytest.approx(1e-6 * (math.exp(6) - 1) / (math.e - 1), rel=1e-12)
    assert group.delta * 10**6 > sum(exp_below(Fraction(step)) for step in range(1, 6)) + 1
    for loss in (PureEpsilon(Fraction(1)), EpsilonDelta(Fraction(1), Fraction(1, 9)), Rho(Fraction(1))):
        assert loss.grouped(1) == loss
        with pytest.raises(Mistakes, match="largest household"):
            loss.grouped(0)
    with pytest.raises(Mistakes, match="promises nothing"):
        EpsilonDelta(Fraction(1), Fraction(1, 100)).grouped(10)


def test_a_group_guarantee_holds_for_noise_moved_by_the_size() -> None:
    # truncated discrete Laplace noise, bound 10, epsilon 1: delta = p(10) for one record
    weights = [math.exp(-abs(v)) for v in range(-10, 11)]
    p = [weight / sum(weights) for weight in weights]
    one = EpsilonDelta(Fraction(1), Fraction(p[0]).limit_denominator(10**12))
    for size in range(1, 5):
        group = one.grouped(size)
        padded = [0.0] * size + p + [0.0] * size
        moved = sum(
            max(padded[k] - math.exp(group.epsilon) * padded[k - size], 0.0) for k in range(size, len(padded))
        )
        assert moved <= float(group.delta) * (1 + 1e-6)


def _exact_delta(k: int, each: Fraction, epsilon: float) -> float:
    """The delta of k randomised responses, the worst that k epsilon-private releases can do (KOV theorem 3.3)."""
    e = float(each)
    terms = (
        math.comb(k, i)
        * math.exp((k - i) * e)
        / (1 + math.exp(e)) ** k
        * -math.expm1(epsilon - (k - 2 * i) * e)
        for i in range(k + 1)
        if (k - 2 * i) * e > epsilon
    )
    return math.fsum(terms)


@given(
    st.integers(1, 150),
    st.sampled_from([Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(3)]),
    deltas,
)
def test_advanced_composition_covers_the_worst_case(k: int, each: Fraction, slack: Fraction) -> None:
    composed = advanced([PureEpsilon(each)] * k, slack)
    assert composed.epsilon <= k * each
    assert composed.delta == slack
    assert _exact_delta(k, each, float(composed.epsilon)) <= float(slack) * (1 + 1e-9)


def test_advanced_composition_of_different_losses_by_hand() -> None:
    parts = [EpsilonDelta(Fraction(1, 10), Fraction(1, 10**7))] * 50 + [PureEpsilon(Fraction(1, 50))] * 50
    composed = advanced(parts, Fraction(1, 10**6))
    squares = 50 * (0.01 + 0.0004)
    drift = 50 * (0.1 * math.tanh(0.05) + 0.02 * math.tanh(0.01))
    log = min(math.log(1e6), math.log(math.e + math.sqrt(squares) * 1e6))
    assert float(composed.epsilon) == pytest.approx(drift + math.sqrt(2 * squares * log), rel=1e-12)
    assert composed.delta == 1 - (1 - Fraction(1, 10**6)) * (1 - Fraction(1, 10**7)) ** 50
    assert composed.epsilon < 6
    with pytest.raises(Mistakes, match="slack"):
        advanced(parts, Fraction(0))


@given(losses)
def test_a_loss_is_read_as_it_was_written(loss: PrivacyLoss) -> None:
    assert read_loss(str(loss)) == loss


@pytest.mark.parametrize(
    "text",
    ["", "epsilon", "rho=1/0", "rho=x", "delta=1/2", "epsilon=1/2 rho=1/2", "rho=1/2 rho=1/2 delta=1/3"],
)
def test_what_is_no_loss_is_refused(text: str) -> None:
    with pytest.raises(Mistakes, match="cannot be read"):
        read_loss(text)


@pytest.mark.parametrize("amount", [0.1, True, "1/2", Fraction(-1, 2)])
def test_amounts_are_exact_and_not_negative(amount: Fraction) -> None:
    for kind in (PureEpsilon, Rho):
        with pytest.raises(Mistakes, match=r"not exact|negative"):
            kind(amount)
    with pytest.raises(Mistakes, match=r"not exact|negative"):
        EpsilonDelta(Fraction(1), amount)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1)])
def test_rho_implies_no_epsilon_without_a_delta(delta: Fraction) -> None:
    for convert in (epsilon_of_rho, epsilon_of_rho_as_published):
        with pytest.raises(Mistakes, match="delta"):
            convert(Fraction(1), delta)


def test_substitution_changes_two_cells() -> None:
    assert [neighbours.cells for neighbours in Neighbours] == [1, 2]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3, 2)])
def test_the_delta_of_a_group_is_a_geometric_sum(epsilon: Fraction) -> None:
    group = EpsilonDelta(epsilon, Fraction(1, 10**6)).grouped(4)
    assert group.epsilon == 4 * epsilon
    assert float(group.delta) == pytest.approx(
        1e-6 * math.expm1(4 * epsilon) / math.expm1(epsilon), rel=1e-12
    )


@pytest.mark.parametrize("slack", [Fraction(0), Fraction(1), Fraction(3, 2), Fraction(-1, 2)])
def test_advanced_composition_needs_a_slack_below_one(slack: Fraction) -> None:
    with pytest.raises(Mistakes, match="slack"):
        advanced([PureEpsilon(Fraction(1))], slack)


def test_a_delta_of_one_promises_nothing() -> None:
    for delta in (Fraction(1), Fraction(3, 2)):
        with pytest.raises(Mistakes, match="promises nothing"):
            EpsilonDelta(Fraction(1), delta)
    assert EpsilonDelta(Fraction(1), Fraction(999, 1000)).delta < 1


def test_the_root_of_zero_is_zero() -> None:
    assert sqrt_above(Fraction(0)) == 0
