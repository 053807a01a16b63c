"""Mixed releases: against exact compositions, against each other, and never below what is true."""

import itertools
import math
import random
import statistics
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, PureEpsilon, advanced, epsilon_of_rho
from discreet.maths.privacy.loss_distribution import (
    DrawnNoise,
    GaussianNoise,
    LaplaceNoise,
    Release,
    composed,
    mixed_delta,
    mixed_epsilon,
)
from tests.cases import few

ADD, SUBSTITUTE = Neighbours.ADD_REMOVE, Neighbours.SUBSTITUTE
MILLIONTH = Fraction(1, 10**6)


def drawn(epsilon: float, m: int, bits: int = 96) -> DrawnNoise:
    """Truncated discrete Laplace noise as integer draws."""
    return DrawnNoise(-m, tuple(round(math.exp(-epsilon * abs(v)) * 2**bits) for v in range(-m, m + 1)))


def exact_delta(noise: DrawnNoise, cells: int, epsilon: float) -> float:
    """delta(epsilon) of so many cells that each go up by one, by convolving all pairs of losses."""
    p = [weight / sum(noise.weights) for weight in noise.weights]
    one = [(p[k], math.log(p[k] / p[k - 1]) if k else math.inf) for k in range(len(p))]
    joint = {0.0: 1.0}
    for _ in range(cells):
        longer: dict[float, float] = {}
        for loss, mass in joint.items():
            for probability, further in one:
                at = round(loss + further, 9)
                longer[at] = longer.get(at, 0.0) + mass * probability
        joint = longer
    return math.fsum(mass * -math.expm1(epsilon - loss) for loss, mass in joint.items() if loss > epsilon)


@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 10**10)])
def test_many_small_releases_are_composed_tightly_and_never_below_the_truth(delta: Fraction) -> None:
    k, each = 100, Fraction(1, 10)
    worst = mixed_epsilon([PureEpsilon(each)] * k, ADD, delta)
    exact = math.fsum(
        math.comb(k, i)
        * math.exp((k - i) / 10)
        / (1 + math.exp(0.1)) ** k
        * -math.expm1(worst - (k - 2 * i) / 10)
        for i in range(k + 1)
        if (k - 2 * i) / 10 > worst
    )
    assert float(delta) * 0.95 < exact <= float(delta) * (1 + 1e-9)
    assert worst < min(
        float(advanced([PureEpsilon(each)] * k, delta).epsilon), epsilon_of_rho(k * each**2 / 2, delta)
    )
    assert mixed_epsilon([LaplaceNoise(each)] * k, ADD, delta) <= worst + 1e-3


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
def test_the_drawn_law_itself_is_accounted(epsilon: float) -> None:
    noise = drawn(0.5, 10)
    for cells in (1, 2, 3):
        claimed = mixed_delta([noise] * cells, ADD, Fraction(epsilon))
        true = exact_delta(noise, cells, epsilon)
        # tight at the losses that can happen but for the grid: the delta of an epsilon lower by the rounding
        assert true - 1e-15 <= claimed <= exact_delta(noise, cells, epsilon - 1e-3) + 1e-9


def every_loss(noise: DrawnNoise, up: bool) -> list[tuple[Fraction, Fraction]]:
    """(p, q) of every value, for a cell that gains the record, or loses it."""
    total = sum(noise.weights)
    here, there = (*noise.weights, 0), (0, *noise.weights)
    pairs = zip(here, there, strict=True) if up else zip(there, here, strict=True)
    return [(Fraction(p, total), Fraction(q, total)) for p, q in pairs if p]


@pytest.mark.parametrize("seed", few(range(8), 0, 1, 2))
def test_no_composition_of_random_laws_costs_more_than_is_claimed(seed: int) -> None:
    """Brute force in exact numbers over all outcomes and all directions in which the cells may change."""
    choose = random.Random(seed)
    laws = [
        DrawnNoise(0, tuple(choose.randint(1, 60) for _ in range(choose.randint(3, 5)))) for _ in range(3)
    ]
    epsilon = Fraction(choose.randint(1, 20), 10)
    claimed = mixed_delta(laws, ADD, epsilon)
    factor = Fraction(math.exp(float(epsilon))) * (1 + Fraction(1, 10**12))
    true = []
    for directions in itertools.product((True, False), repeat=3):
        outcomes = itertools.product(*map(every_loss, laws, directions))
        excess = (math.prod(p for p, _ in one) - factor * math.prod(q for _, q in one) for one in outcomes)
        true.append(sum((part for part in excess if part > 0), Fraction(0)))
    assert max(true) <= claimed <= 1
    spread = statistics.pstdev(float(one) for one in true)
    assert float(claimed) <= float(max(true)) + 4 * spread + 0.2


def test_dp_accounting_finds_the_same_and_never_less_than_the_truth() -> None:
    """Its convolution is pessimistic too, on its own grid and in floats."""
    other = pld.from_discrete_gaussian_mechanism(2.0, value_discretization_interval=1e-4).self_compose(30)
    ours = mixed_epsilon([GaussianNoise(Fraction(1, 8))] * 30, ADD, MILLIONTH)
    assert ours == pytest.approx(other.get_epsilon_for_delta(1e-6), abs=4e-3)


def test_gaussian_noise_composes_to_what_its_sum_says() -> None:
    """A sum of n discrete Gaussian variables is one of n times the variance, to all digits, and their losses add."""
    rho, n = 256 / 10300, 103
    found = mixed_epsilon([GaussianNoise(Fraction(256, 10300))] * n, ADD, Fraction(1, 10**10))
    weights = {total: math.exp(-rho * total * total / n) for total in range(-2000, 2001)}
    whole = math.fsum(weights.values())
    over = {total: rho * (n - 2 * total) for total in weights if rho * (n - 2 * total) > found}
    exact = math.fsum(weights[total] / whole * -math.expm1(found - loss) for total, loss in over.items())
    assert 0.99e-10 < exact <= 1e-10


def test_a_loss_that_is_rounded_down_would_be_noticed() -> None:
    """delta at the largest loss itself is only what has no bound; just below it is not."""
    one = composed([PureEpsilon(Fraction(1, 3))], ADD)
    assert one.delta(Fraction(1, 3) + one.grid) == 0
    known = 1 - math.exp(0.3 - 1 / 3)
    assert known * math.exp(1 / 3) / (1 + math.exp(1 / 3)) <= float(one.delta(Fraction(3, 10))) < known


def test_substitution_is_two_cells_in_opposite_directions() -> None:
    noise = drawn(0.5, 10)
    assert mixed_delta([noise], SUBSTITUTE, Fraction(1)) == mixed_delta([noise] * 2, ADD, Fraction(1))
    lopsided = DrawnNoise(0, (8, 4, 2, 1, 1))
    # a cell that loses the record may show what it could not show before, and so may the one that gains it
    p = [weight / 16 for weight in lopsided.weights]
    moves = {
        "loses": [(p[k], math.log(p[k] / p[k - 1]) if k else math.inf) for k in range(5)],
        "gains": [(p[k], math.log(p[k] / p[k + 1]) if k < 4 else math.inf) for k in range(5)],
    }
    true = math.fsum(
        a * b * -math.expm1(1 - x - y) for a, x in moves["loses"] for b, y in moves["gains"] if x + y > 1
    )
    claimed = mixed_delta([lopsided], SUBSTITUTE, Fraction(1))
    assert true <= claimed  # of each cell the worse direction is charged


def test_gaussian_noise_is_tighter_than_its_rho_and_substitution_halves_it() -> None:
    rho, delta = Fraction(256, 100), Fraction(1, 10**10)
    bound = epsilon_of_rho(rho, delta)
    whole = mixed_epsilon([GaussianNoise(rho / 20)] * 20, ADD, delta)
    halves = mixed_epsilon([GaussianNoise(rho / 40)] * 20, SUBSTITUTE, delta)
    assert 16 < whole < bound
    assert halves == pytest.approx(whole, abs=0.02)


def test_a_mixed_release_costs_at_most_the_sum_of_its_parts() -> None:
    parts: list[Release] = [
        LaplaceNoise(Fraction(1, 2)),
        GaussianNoise(Fraction(1, 50)),
        EpsilonDelta(Fraction(1, 5), Fraction(1, 10**8)),
        PureEpsilon(Fraction(1, 10)),
        drawn(0.5, 40),
    ]
    together = mixed_epsilon(parts, ADD, MILLIONTH)
    alone = [mixed_epsilon([part], ADD, MILLIONTH / 5) for part in parts]
    assert max(alone) < together < sum(alone)
    assert mixed_delta(parts, ADD, Fraction(together)) <= 1e-6 * 1.01


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(Mistakes, match="no epsilon"):
        mixed_epsilon([drawn(0.5, 5)], ADD, MILLIONTH)
    with pytest.raises(Mistakes, match="zCDP"):
        mixed_epsilon([LaplaceNoise(Fraction(1))], ADD, Fraction(1, 10**26))
    with pytest.raises(Mistakes, match="above 0"):
        mixed_epsilon([GaussianNoise(Fraction(0))], ADD, MILLIONTH)
    with pytest.raises(Mistakes, match="not exact"):
        mixed_epsilon([LaplaceNoise(0.5)], ADD, MILLIONTH)  # type: ignore[arg-type]
    for weights in ((0, 0), (1, -1)):
        with pytest.raises(Mistakes, match="no law"):
            DrawnNoise(0, weights)
