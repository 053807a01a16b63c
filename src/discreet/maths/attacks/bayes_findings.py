"""What the adversaries of ``bayes``, ``bayes_histogram``, ``bayes_hierarchy`` and ``bayes_nested`` learn, as numbers.

Each finding has what ``discreet risk bayes`` reports of one published situation; the formulas are those of the
adversaries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.maths.attacks.bayes import Adversary, Together
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.attacks.bayes_nested import Nested, Seen

SHOWN = 5  # published counts above the known one that are reported by default
FIRST = 5  # categories of a histogram that are reported by default
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class PublishedCount:
    """What one published count shows."""

    count: int
    probability: float  # of this count, with the target
    probability_without: float
    posterior: float
    risk: float  # posterior / prior


@dataclass(frozen=True)
class CountAttack:
    """An adversary who knows all others in a cell: on average, and for some published counts."""

    prior: float
    known: int
    posterior: float  # its mean, with the target
    risk: float
    largest_risk: float  # of any count, by the guarantee of the noise
    correct: float  # probability to decide for a target who is there
    mistaken: float  # .. and for one who is not
    published: tuple[PublishedCount, ...]


def count_attack(one: Adversary, rho: float | None, counts: Sequence[int] | None = None) -> CountAttack:
    """The attack on one count; ``rho`` is that of the noise, where it has one."""
    shown = range(one.known + 1, one.known + 1 + SHOWN) if counts is None else counts
    bound = math.inf if rho is None or 2 * rho > _LARGEST_EXPONENT else math.exp(2 * rho)
    return CountAttack(
        prior=one.prior,
        known=one.known,
        posterior=one.mean_posterior,
        risk=one.risk,
        largest_risk=min(1 / one.prior, bound),
        correct=one.correct,
        mistaken=one.mistaken,
        published=tuple(
            PublishedCount(
                count,
                one.with_target.at(count),
                one.without.at(count),
                one.posterior(count),
                one.ratio(count),
            )
            for count in shown
        ),
    )


@dataclass(frozen=True)
class PublishedTogether:
    """What some published counts of the same target show together."""

    counts: tuple[int, ...]
    posterior: float


@dataclass(frozen=True)
class TogetherAttack:
    """What several counts of the same target show together."""

    observations: int
    posterior: float
    risk: float
    correct: float
    mistaken: float
    published: tuple[PublishedTogether, ...]  # empty unless every count is given


@dataclass(frozen=True)
class LevelsAttack(CountAttack):
    """One count at several levels or in several releases: by itself, and together."""

    together: TogetherAttack


def levels_attack(
    one: Adversary,
    rho: float | None,
    counts: Sequence[int] | None,
    others: Sequence[tuple[Adversary, int | None]],  # each with its published count, where it is given
) -> LevelsAttack:
    """The attack on the count of the same target at several levels; the log odds of all of them add up."""
    alone = count_attack(one, rho, counts)
    made = Together((one, *(other for other, _ in others)), one.prior)
    shown = tuple(count for _, count in others if count is not None)
    first = [each.count for each in alone.published] if len(shown) == len(others) else []
    together = TogetherAttack(
        observations=len(made.parts),
        posterior=made.mean_posterior,
        risk=made.risk,
        correct=made.correct,
        mistaken=made.mistaken,
        published=tuple(
            PublishedTogether((count, *shown), made.posterior([count, *shown])) for count in first
        ),
    )
    return LevelsAttack(**vars(alone), together=together)


@dataclass(frozen=True)
class CategoryAttack:
    """A target who is in one category, counted from 1."""

    category: int
    prior: float
    posterior: float
    correct: float


@dataclass(frozen=True)
class HistogramAttack:
    """An adversary who knows everyone else's category and looks for the target's."""

    categories: int
    baseline: float  # probability to be right by the prior only
    success: float
    targets: tuple[CategoryAttack, ...]
    posteriors: tuple[float, ...] | None  # of each category, where a histogram is published
    decision: int | None  # the most probable category, counted from 1


def histogram_attack(
    one: HistogramAdversary, targets: Sequence[int] | None = None, published: Sequence[int] | None = None
) -> HistogramAttack:
    """The attack on a whole histogram; targets are counted from 1, by default the first few categories."""
    wanted = range(1, min(len(one.known), FIRST) + 1) if targets is None else targets
    shown = None if published is None else one.posterior(published)
    return HistogramAttack(
        categories=len(one.known),
        baseline=one.baseline,
        success=one.success,
        targets=tuple(
            CategoryAttack(at, one.prior[at - 1], one.mean_posterior(at - 1), one.correct(at - 1))
            for at in wanted
        ),
        posteriors=None if shown is None else tuple(shown.tolist()),
        decision=None if shown is None else int(shown.argmax()) + 1,
    )


@dataclass(frozen=True)
class CorrectAt:
    """How often the adversary is right where the larger group has a true count."""

    count: int
    correct: float


@dataclass(frozen=True)
class HierarchyAttack:
    """A count within a larger group whose other members are not known."""

    prior: float
    known: int
    groups: int
    correct: tuple[CorrectAt, ...]
    chain: Chain
    posterior: float | None


def hierarchy_attack(
    one: Hierarchy,
    counts: Sequence[int] = (),
    published: tuple[int, int, int] | None = None,
    chain: Chain = Chain.EXACT,
) -> HierarchyAttack:
    """The attack on a group and a larger one, for true counts of the larger one and for published ones."""
    return HierarchyAttack(
        prior=one.prior,
        known=one.known,
        groups=one.groups,
        correct=tuple(CorrectAt(count, one.correct(count)) for count in counts),
        chain=chain,
        posterior=None if published is None else one.posterior(*published, chain),
    )


@dataclass(frozen=True)
class NestedAttack:
    """A count within larger and larger groups."""

    prior: float
    known: int
    unknown: int  # members who may have the characteristics
    levels: int
    posterior: float | None
    above_half: float | None  # share of simulated releases in which the adversary is right
    standard_error: float | None


def nested_attack(
    one: Nested,
    published: int | None = None,
    larger: Sequence[Seen] = (),
    counts: Sequence[int] | None = None,
    draws: int = 2000,
    generator: np.random.Generator | None = None,
) -> NestedAttack:
    """The attack on nested groups: the posterior of published counts, and simulations of true ones."""
    share = error = None
    if counts is not None and generator is not None:
        share, error = one.correct(counts, draws, generator)
    return NestedAttack(
        prior=one.prior,
        known=one.known,
        unknown=one.unknown.last,
        levels=len(one.levels) + 1,
        posterior=None if published is None else one.posterior(published, larger),
        above_half=share,
        standard_error=error,
    )
