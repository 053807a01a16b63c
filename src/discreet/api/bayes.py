"""Adversaries who know everyone in a group but one person, for each situation of ``discreet risk bayes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from discreet.api.arguments import chosen, names_arguments, require
from discreet.api.laws import AnyLaw, NoiseLaw, law_of
from discreet.api.results import Result
from discreet.errors import mistake
from discreet.maths.attacks.bayes import Adversary, LawRows
from discreet.maths.attacks.bayes_findings import (
    CountAttack,
    HierarchyAttack,
    HistogramAttack,
    LevelsAttack,
    NestedAttack,
    count_attack,
    hierarchy_attack,
    histogram_attack,
    levels_attack,
    nested_attack,
)
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.attacks.bayes_nested import (
    LargerPrior,
    Nested,
    NestedLevel,
    Seen,
    WithUnknown,
    poisson,
    unknown_members,
)
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.publishing import UNCHANGED, Negatives, PublishedLaw, Publishing
from discreet.report.bayes import count_lines, hierarchy_lines, histogram_lines, levels_lines, nested_lines

Laws = NoiseLaw | Result[NoiseLaw]
Probability = float | str | Fraction  # a number, or a fraction such as "1/864"
MOST_DRAWS = 1_000_000


@names_arguments
def bayes(
    law: Laws,
    *,
    known: int = 0,
    prior: Probability = 0.5,
    unknown: Sequence[Probability] = (),
    published: Sequence[int] | None = None,
    negatives: str = "keep",
    rounding: int = 1,
    threshold: int = 0,
) -> Result[CountAttack]:
    """An adversary who knows ``known`` others in a cell: what a published count adds to the prior.

    ``unknown`` are other members who are not known, each by the probability to be in the cell; ``published`` are the
    counts to report the posterior of. ``negatives``, ``rounding`` and ``threshold`` are what is done to a noisy count
    before it is published.

    >>> import discreet as ds
    >>> found = ds.risk.bayes(ds.noise("geometric", epsilon=1), known=3, prior=0.1, published=[4])
    >>> round(found.published[0].posterior, 3), round(found.risk, 2)
    (0.232, 1.8)
    """
    made = law_of(law)
    seen = _as_published(made, negatives, rounding, threshold)
    if unknown:
        seen = WithUnknown(seen, unknown_members([_probability("unknown", one) for one in unknown]))
    one = Adversary(seen, _known(known), _prior(prior))
    found = count_attack(one, made.rho, published)
    return Result(found, tuple(count_lines(found)), rows=_rows(found.published))


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The same target again: in a larger group of ``known`` others, or in another release with other noise.

    >>> import discreet as ds
    >>> ds.risk.Observation(known=12, published=15, law=ds.noise("geometric", epsilon=1)).published
    15
    """

    known: int | None = None  # None: the same count in another release
    published: int | None = None
    law: Laws | None = None  # None: the same noise


@names_arguments
def bayes_levels(
    law: Laws,
    others: Sequence[Observation],
    *,
    known: int = 0,
    prior: Probability = 0.5,
    published: Sequence[int] | None = None,
    negatives: str = "keep",
    rounding: int = 1,
    threshold: int = 0,
) -> Result[LevelsAttack]:
    """One count at several levels of a hierarchy, or in several releases: the log odds of all of them add up.

    >>> import discreet as ds
    >>> law, county = ds.noise(rho="1/4"), ds.risk.Observation(known=12, published=14)
    >>> found = ds.risk.bayes_levels(law, [county], known=3, published=[4])
    >>> found.together.observations, found.together.posterior > found.posterior
    (2, True)
    """
    if not others or not all(isinstance(one, Observation) for one in others):
        remedy = "give at least one Observation(known=12, published=15)"
        raise mistake("", "others", "none" if not others else "other objects", remedy)
    made = law_of(law)
    seen = _as_published(made, negatives, rounding, threshold)

    def adversary(one: Observation) -> Adversary:
        own = seen if one.law is None else _as_published(law_of(one.law), negatives, rounding, threshold)
        return Adversary(own, known if one.known is None else _known(one.known))

    first = Adversary(seen, _known(known), _prior(prior))
    found = levels_attack(first, made.rho, published, [(adversary(one), one.published) for one in others])
    return Result(found, tuple(levels_lines(found)), rows=_rows(found.published))


@names_arguments
def bayes_histogram(
    law: Laws,
    known: Sequence[int],
    *,
    prior: Sequence[Probability] | None = None,
    published: Sequence[int] | None = None,
    target: Sequence[int] | None = None,
    negatives: str = "keep",
    rounding: int = 1,
    threshold: int = 0,
) -> Result[HistogramAttack]:
    """A whole histogram: the adversary knows everyone else's category and looks for the target's.

    ``known`` are the others in each category, ``prior`` weights of the categories, ``target`` the categories to report,
    counted from 1.

    >>> import discreet as ds
    >>> found = ds.risk.bayes_histogram(ds.noise("geometric", epsilon=2), [34, 10, 0, 0], published=[34, 11, 0, 1])
    >>> found.decision, found.success > found.baseline
    (2, True)
    """
    require(len(known) > 0 and min(known) >= 0, "known", "no counts, or negative ones", "give [34, 10, 0]")
    weights = (
        [1.0] * len(known) if prior is None else [_probability("prior", one, most=None) for one in prior]
    )
    require(len(weights) == len(known), "prior", f"{len(weights)} weights", f"give {len(known)}")
    require(sum(weights) > 0, "prior", "only zeros", "give at least one above 0")
    wanted = None if target is None else list(target)
    sound = wanted is None or all(1 <= one <= len(known) for one in wanted)
    require(sound, "target", str(wanted), f"give numbers of categories, 1 to {len(known)}")
    right = published is None or len(published) == len(known)
    require(right, "published", "another number of counts", f"give one for each of {len(known)} categories")
    beliefs = tuple(weight / sum(weights) for weight in weights)
    seen = _as_published(law_of(law), negatives, rounding, threshold)
    found = histogram_attack(HistogramAdversary(seen, tuple(known), beliefs), wanted, published)
    return Result(found, tuple(histogram_lines(found)), rows=_rows(found.targets))


@names_arguments
def bayes_hierarchy(
    law: Laws,
    larger: Laws,
    *,
    groups: int,
    counts: Sequence[int] = (),
    published: tuple[int, int, int] | None = None,
    chain: str = "exact",
    known: int = 0,
    prior: Probability = 0.5,
) -> Result[HierarchyAttack]:
    """A count within a larger group whose other members are not known, with the counts of both published.

    ``larger`` is the noise of the larger group, ``groups`` the number of its other groups, ``counts`` are true counts
    of it to report how often the adversary is right, ``published`` the counts of the group, of the larger one and of
    the sum of the others. ``chain="paper"`` is the paper's sampler, which drops X1 <= X2.

    >>> import discreet as ds
    >>> law = ds.noise(rho="1/4")
    >>> found = ds.risk.bayes_hierarchy(law, law, groups=9, counts=[1], published=(2, 1, -1))
    >>> 0 < found.posterior < 1, found.correct[0].count
    (True, 1)
    """
    if not counts and published is None:
        raise mistake("", "counts or published", "missing", "give true counts, published counts, or both")
    require(groups >= 1, "groups", str(groups), "give the number of other groups, at least 1")
    low = [one for one in counts if one <= known]
    require(not low, "counts", ", ".join(map(str, low)), f"give counts of at least {known + 1}")
    three = published is None or len(published) == 3
    require(three, "published", "another number of counts", "give three whole numbers: (2, 1, -1)")
    made = Hierarchy(_additive("law", law), _additive("larger", larger), groups, _known(known), _prior(prior))
    found = hierarchy_attack(made, counts, published, chosen("chain", chain, Chain))
    return Result(found, tuple(hierarchy_lines(found)), rows=_rows(found.correct))


@dataclass(frozen=True, kw_only=True)
class LargerGroup:
    """A larger group around a count: its published count, or its true one where it is published ``exact``.

    ``others`` is the published sum of its other groups and ``groups`` their number; ``law`` is its noise, by default
    that of the count; ``most`` and ``mean`` are the prior of its true count.

    >>> import discreet as ds
    >>> ds.risk.LargerGroup(published=5, others=3, groups=27, most=50).groups
    27
    """

    published: int | None = None
    exact: int | None = None
    others: int | None = None
    groups: int = 0
    law: Laws | None = None
    most: int | None = None
    mean: float | None = None


@names_arguments
def bayes_nested(
    law: Laws,
    within: Sequence[LargerGroup],
    *,
    published: int | None = None,
    counts: Sequence[int] | None = None,
    draws: int = 2000,
    seed: int = 1,
    known: int = 0,
    prior: Probability = 0.5,
    unknown: Sequence[Probability] = (),
) -> Result[NestedAttack]:
    """A count within larger and larger groups whose other members are not known: any levels, priors, invariants.

    ``within`` are the larger groups, from the smallest up; ``counts`` are true counts of the group and each larger one,
    of which ``draws`` releases are simulated.

    >>> import discreet as ds
    >>> block = ds.risk.LargerGroup(published=5, others=3, groups=27, most=50)
    >>> state = ds.risk.LargerGroup(exact=40)
    >>> found = ds.risk.bayes_nested(ds.noise(rho="1/4"), [block, state], published=1)
    >>> found.levels, 0 < found.posterior < 1
    (3, True)
    """
    if published is None and counts is None:
        raise mistake("", "published or counts", "missing", "give a published count, true counts, or both")
    require(1 <= draws <= MOST_DRAWS, "draws", str(draws), f"give 1 to {MOST_DRAWS}")
    if not within or not all(isinstance(one, LargerGroup) for one in within):
        raise mistake("", "within", "no larger groups", "give LargerGroup(published=5), from the smallest up")
    size = len(within) + 1
    full = counts is None or len(counts) == size
    require(full, "counts", "another number of counts", f"give {size}: of the group and each larger one")
    own = _additive("law", law)
    larger = [_level(one, own) for one in within]
    others = unknown_members([_probability("unknown", one) for one in unknown])
    made = Nested(own, tuple(level for level, _ in larger), _known(known), _prior(prior), others)
    found = nested_attack(
        made, published, [one for _, one in larger], counts, draws, np.random.default_rng(seed)
    )
    return Result(found, tuple(nested_lines(found, draws)))


def _level(one: LargerGroup, law: AdditiveLaw) -> tuple[NestedLevel, Seen]:
    count = one.published if one.exact is None else one.exact
    if count is None or (one.published is not None and one.exact is not None):
        raise mistake("", "within", "published and exact: none, or both", "give one of them to each group")
    if one.exact is not None and one.law is not None:
        raise mistake("", "within", "an exact count with a law", "leave the law out: it has no noise")
    if (one.others is None) != (one.groups == 0):
        raise mistake("", "within", "others without groups, or the reverse", "give both, or neither")
    require(one.groups >= 0 and (one.most or 0) >= 0, "within", "a negative number", "give at least 0")
    noise = None if one.exact is not None else law if one.law is None else _additive("within", one.law)
    expected = None if one.mean is None else poisson(float(one.mean))
    return NestedLevel(noise, one.groups, LargerPrior(expected, one.most)), Seen(count, one.others)


def _as_published(law: AnyLaw, negatives: str, rounding: int, threshold: int) -> LawRows:
    """The law of what is published; the noise itself where nothing is done to it."""
    rule = Publishing(chosen("negatives", negatives, Negatives), rounding, threshold)
    return law if rule == UNCHANGED else PublishedLaw(law, rule)


def _additive(key: str, law: Laws) -> AdditiveLaw:
    found = law_of(law)
    if not isinstance(found, AdditiveLaw):
        remedy = 'give noise(rho="1/4") or noise("geometric", epsilon=1): it must not depend on counts'
        raise mistake("", key, "noise that depends on counts", remedy)
    return found


def _known(known: int) -> int:
    require(known >= 0, "known", str(known), "give a whole number of at least 0")
    return known


def _prior(prior: Probability) -> float:
    found = _probability("prior", prior)
    require(0 < found < 1, "prior", str(prior), "give a probability between 0 and 1")
    return found


def _probability(key: str, given: Probability, most: float | None = 1.0) -> float:
    try:
        found = float(fraction(str(given)))
    except ValueError:
        found = -1.0
    sound = found >= 0 and (most is None or found <= most)
    require(sound, key, repr(given), 'give a number of at least 0, or a fraction such as "1/864"')
    return found


def _rows(found: Sequence[object]) -> tuple[dict[str, object], ...]:
    """A row for each part of a finding."""
    return tuple({one.name: getattr(part, one.name) for one in fields(part)} for part in found)  # type: ignore[arg-type]
