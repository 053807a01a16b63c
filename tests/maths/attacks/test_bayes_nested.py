"""Larger and larger groups, priors, invariants and all-but-n adversaries, against full enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_hierarchy import Hierarchy
from discreet.maths.attacks.bayes_nested import (
    LargerPrior,
    Nested,
    NestedLevel,
    Seen,
    WithUnknown,
    poisson,
    unknown_members,
)
from discreet.maths.noise.additive import (
    AdditiveLaw,
    discrete_gaussian,
    discrete_laplace,
    truncated_laplace,
    uniform,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve

Weights = Callable[[int, int], float]  # P(larger | smaller)


def noise_of(law: AdditiveLaw | None, change: int) -> float:
    return float(change == 0) if law is None else law.pmf.at(change)


def sum_of_noise(law: AdditiveLaw | None, groups: int, change: int) -> float:
    """The probability that the noises of some groups add up to a change, one group after the other."""
    if law is None or groups == 0:
        return float(change == 0)
    return sum(law.pmf.at(int(v)) * sum_of_noise(law, groups - 1, change - int(v)) for v in law.pmf.values)


def enumerated(
    laws: list[AdditiveLaw | None],
    groups: list[int],
    priors: list[Weights],
    most: int,
    known: int,
    prior: float,
    unknown: list[float],
    own: int,
    seen: list[Seen],
) -> float:
    """The posterior of the target by adding up every population: who is there, and every larger count."""
    mass = [0.0, 0.0]
    for target, *others in product((0, 1), repeat=1 + len(unknown)):
        members = prior if target else 1 - prior
        for bit, p in zip(others, unknown, strict=True):
            members *= p if bit else 1 - p
        x1 = known + target + sum(others)
        for larger in product(range(most + 1), repeat=len(priors)):
            counts = [x1, *larger]
            p = members * noise_of(laws[0], own - x1)
            for at, weight in enumerate(priors):
                if p == 0:
                    break
                p *= weight(counts[at + 1], counts[at])
                p *= noise_of(laws[at + 1], seen[at].count - counts[at + 1])
                y = seen[at].others
                if y is not None:
                    p *= sum_of_noise(laws[at], groups[at], y - (counts[at + 1] - counts[at]))
            mass[target] += p
    return mass[1] / (mass[0] + mass[1])


def flat(most: int | None) -> Weights:
    def weight(larger: int, smaller: int) -> float:
        if larger < smaller or (most is not None and larger > most):
            return 0.0
        return 1.0 if most is None else 1 / (most - smaller + 1)

    return weight


def shaped(law: dict[int, float], most: int) -> Weights:
    def weight(larger: int, smaller: int) -> float:
        beyond = sum(p for count, p in law.items() if smaller <= count <= most)
        return law.get(larger, 0.0) / beyond if smaller <= larger <= most and beyond else 0.0

    return weight


SHAPE = {0: 0.05, 1: 0.3, 2: 0.2, 3: 0.2, 4: 0.1, 5: 0.1, 6: 0.05}
E1, E2, T1 = uniform(1), uniform(2), truncated_laplace("1", 2)


@pytest.mark.parametrize("unknown", [[], [0.3], [0.2, 0.7, 0.5]])
@pytest.mark.parametrize(
    ("laws", "groups", "largers", "seen", "own"),
    [
        # one larger group, each kind of prior
        ([T1, E2], [2], [(None, None)], [Seen(3, 1)], 1),
        ([T1, E2], [2], [(None, 4)], [Seen(3, 1)], 1),
        ([T1, E2], [2], [(SHAPE, 6)], [Seen(3, 1)], 1),
        ([T1, E2], [0], [(SHAPE, 3)], [Seen(2)], 2),
        # the larger count is an invariant
        ([T1, None], [2], [(None, None)], [Seen(2, 0)], 1),
        ([T1, None], [0], [(SHAPE, 6)], [Seen(2)], 1),
        # three and four levels with unknown others
        ([T1, E1, E2], [2, 1], [(None, 6), (None, 7)], [Seen(2, 1), Seen(4, 2)], 1),
        ([T1, E1, T1], [1, 2], [(SHAPE, 6), (None, None)], [Seen(2, 0), Seen(3, 2)], 0),
        ([T1, E1, None], [0, 1], [(None, 6), (SHAPE, 5)], [Seen(2), Seen(3, 1)], 1),
        ([T1, T1, E1, None], [1, 1, 1], [(None, 5), (SHAPE, 6), (None, 6)], [Seen(1, 1), Seen(2, 1), Seen(3, 1)], 2),
    ],
)  # fmt: skip
def test_the_posterior_is_that_of_all_populations(
    laws: list[AdditiveLaw | None],
    groups: list[int],
    largers: list[tuple[dict[int, float] | None, int | None]],
    seen: list[Seen],
    own: int,
    unknown: list[float],
) -> None:
    priors, levels = [], []
    for law, d, (shape, most) in zip(laws[1:], groups, largers, strict=True):
        pmf = None if shape is None else Pmf(0, np.array([shape[k] for k in range(7)]))
        priors.append(flat(most) if shape is None else shaped(shape, most or 99))
        levels.append(NestedLevel(law, d, LargerPrior(pmf, most)))
    made = Nested(laws[0], tuple(levels), 0, 0.4, unknown_members(unknown))
    by_hand = enumerated(laws, groups, priors, 9, 0, 0.4, unknown, own, seen)
    assert made.posterior(own, seen) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("law", [discrete_gaussian("1/10"), discrete_laplace("1"), discrete_gaussian("2")])
def test_two_levels_and_the_uniform_prior_are_the_paper_s_hierarchy(law: AdditiveLaw) -> None:
    upper = discrete_gaussian("1/4")
    two = Hierarchy(law, upper, 27, known=1, prior=0.2)
    made = Nested(law, (NestedLevel(upper, 27),), known=1, prior=0.2)
    for x1, x2, y1 in product((0, 2), (1, 4), (-1, 3)):
        assert made.posterior(x1, [Seen(x2, y1)]) == pytest.approx(two.posterior(x1, x2, y1), rel=1e-9)


def test_a_wide_bound_hardly_matters_and_a_wrong_informative_prior_does() -> None:
    """Section 3.2: results were "minimally affected" by finite bounds, and can change with poor informative priors."""
    law, upper = discrete_gaussian("0.099"), discrete_gaussian("0.247")

    def posterior(prior: LargerPrior) -> float:
        return Nested(law, (NestedLevel(upper, 27, prior),)).posterior(2, [Seen(1, -1)])

    free = posterior(LargerPrior())
    assert posterior(LargerPrior(None, 500)) == pytest.approx(free, abs=0.002)
    assert posterior(LargerPrior(poisson(0.1))) > free + 0.1
    assert posterior(LargerPrior(None, 0)) == 0.0


def test_an_invariant_of_zero_excludes_the_target_and_one_leaves_room() -> None:
    law = discrete_gaussian("0.1")
    invariant = Nested(law, (NestedLevel(None),))
    assert invariant.posterior(3, [Seen(0)]) == 0.0
    alone = Adversary(law, 0).posterior(3)
    assert invariant.posterior(3, [Seen(1)]) == pytest.approx(alone)
    exact_others = Nested(law, (NestedLevel(None), NestedLevel(None, 3)))
    # the larger group has 4 for certain, and its other groups, invariants too, have 3: the smaller has 1
    assert exact_others.posterior(0, [Seen(1), Seen(4, 3)]) == pytest.approx(Adversary(law, 0).posterior(0))


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("law", [discrete_laplace("1"), PTableLaw(solve(PTableParameters(3, 1.0, 0)))])
def test_all_but_n_is_the_average_over_who_else_is_there(law: AdditiveLaw | PTableLaw, n: int) -> None:
    q, prior, known = 0.3, 0.4, 2
    adversary = Adversary(WithUnknown(law, unknown_members([q] * (n - 1))), known, prior)
    for published in range(6):
        mass = [
            (prior if target else 1 - prior)
            * sum(
                comb(n - 1, b) * q**b * (1 - q) ** (n - 1 - b) * law.row(known + target + b).at(published)
                for b in range(n)
            )
            for target in (0, 1)
        ]
        assert adversary.posterior(published) == pytest.approx(mass[1] / sum(mass), rel=1e-9)


def test_the_fewer_members_are_known_the_less_a_count_tells() -> None:
    law = discrete_laplace("1")
    risks = [Adversary(WithUnknown(law, unknown_members([0.3] * n))).risk for n in (0, 1, 3, 10, 100)]
    assert risks[0] == pytest.approx(Adversary(law).risk, rel=1e-9)
    assert all(a > b for a, b in pairwise(risks))


@pytest.mark.long
def test_posteriors_are_calibrated_over_three_levels() -> None:
    """Populations drawn from the prior itself: among those with about the same posterior, that share has the target."""
    generator = np.random.default_rng(8)
    law, middle, top = discrete_gaussian("1/4"), discrete_gaussian("1/2"), discrete_gaussian("1")
    levels = (NestedLevel(middle, 2, LargerPrior(None, 6)), NestedLevel(top, 2, LargerPrior(None, 9)))
    made = Nested(law, levels, 0, 0.5, unknown_members([0.4, 0.4]))
    pairs = [made.others_law(at) for at in (0, 1)]
    claimed, there = [], []
    for _ in range(3000):
        target = int(generator.random() < 0.5)
        x1 = target + int(generator.binomial(2, 0.4))
        x2 = int(generator.integers(x1, 7))
        x3 = int(generator.integers(x2, 10))
        draw = [
            int(generator.choice(one.values, p=one.p / one.p.sum()))
            for one in (law.pmf, middle.pmf, top.pmf, *pairs)
        ]
        seen = [Seen(x2 + draw[1], x2 - x1 + draw[3]), Seen(x3 + draw[2], x3 - x2 + draw[4])]
        claimed.append(made.posterior(x1 + draw[0], seen))
        there.append(target)
    p, t = np.array(claimed), np.array(there)
    for low, high in ((0, 0.35), (0.35, 0.5), (0.5, 0.65), (0.65, 1)):
        here = (p >= low) & (p < high)
        error = np.sqrt((p[here] * (1 - p[here])).sum()) / here.sum()
        assert abs(t[here].mean() - p[here].mean()) < 4 * error


@pytest.mark.long
def test_the_simulated_decision_is_the_exact_one_of_two_levels() -> None:
    law, upper = discrete_gaussian("1/2"), discrete_gaussian("1/4")
    exact = Hierarchy(law, upper, 3).correct(2)
    share, error = Nested(law, (NestedLevel(upper, 3),)).correct([1, 2], 2000, np.random.default_rng(1))
    assert abs(share - exact) < 4 * error
    with pytest.raises(Mistakes, match="true counts"):
        Nested(law, (NestedLevel(upper, 3),)).correct([2, 1], 10, np.random.default_rng(1))


def test_what_cannot_have_been_published_is_refused() -> None:
    made = Nested(uniform(1), (NestedLevel(uniform(1), 1),))
    with pytest.raises(Mistakes, match="published counts"):
        made.posterior(5, [Seen(1, 1)])
    with pytest.raises(Mistakes, match="give one for each"):
        made.posterior(1, [])
    with pytest.raises(Mistakes, match="unknown members"):
        unknown_members([1.5])
    with pytest.raises(Mistakes, match="mean"):
        poisson(-1.0)
