"""Noise with a guarantee for worlds that are made in memory, and what an outsider knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.publishing import Publishing
from discreet.perturb.budget import law_of, plan
from discreet.perturb.noise import Noise
from discreet.perturb.private import PrivateMechanism
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Cube
from discreet.programme.noise import NO_NEGATIVES, BudgetRule, Draw, KeptZeros, PrivateNoise
from discreet.programme.statistic import Statistics
from tests.attributes import own
from tests.audit.known import known as known_noise
from tests.audit.made import axis


def gaussian(
    trees: Sequence[Codelist],
    crosses: Sequence[Sequence[str]],
    rho: Fraction,
    published: Publishing = NO_NEGATIVES,
    keep_zeros: KeptZeros = KeptZeros.STRUCTURAL,
) -> tuple[PrivateMechanism, Noise]:
    """Discrete Gaussian noise of this rho in every cell, its law public."""
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(names), "persons", tuple(axes[name] for name in names)) for names in crosses]
    many = len(plan(_rule(trees, Fraction(1), published, keep_zeros), cubes).parameters)
    found = plan(_rule(trees, rho * many, published, keep_zeros), cubes)
    laws = {str(signature): law_of(found.rule, p) for signature, p in found.parameters.items()}
    law = next(iter(laws.values()))
    keeps = keep_zeros is KeptZeros.ALL
    known = known_noise(False, keeps, law.row(0).variance, None, law, laws, published)
    trees_by_name = {tree.name: tree for tree in trees}
    return PrivateMechanism(found, trees_by_name, (), 10**7, b"k" * 32, Statistics(trees_by_name)), known


def _rule(
    trees: Sequence[Codelist], total: Fraction, published: Publishing, keep_zeros: KeptZeros
) -> PrivateNoise:
    return PrivateNoise(
        LawKind.DISCRETE_GAUSSIAN,
        BudgetRule(total),
        draw=Draw.DESCRIPTION,
        keep_zeros=keep_zeros,
        published=published,
        attributes=own(*(tree.name for tree in trees)),
    )
