"""The strategy that estimates the queries that matter best, for a given rho."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.spine import Spine
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.shares import exact_shares, mean_variance, optimal_shares
from discreet.programme.strategy import Histogram, LevelShare, Strategy

PARTS = 4096  # of the budget: shares are whole numbers of them


@dataclass(frozen=True)
class Wanted:
    """A query that matters, where, and how much: the weight of the mean variance of its estimates."""

    level: str
    query: str
    weight: float = 1.0


def optimise(
    spine: Spine,
    histogram: Histogram,
    wanted: Sequence[Wanted],
    rho: Fraction,
    queries: Sequence[str] = (),
    neighbours: Neighbours = Neighbours.SUBSTITUTE,
) -> Strategy:
    """Choose the shares of rho that make the weighted variance of the estimates smallest (``maths.tree.shares``).

    ``queries`` may be measured at every level; those in ``wanted`` and ``detailed`` always may. The tree is taken as
    regular, with the mean number of children of each level, bypassed areas counted as they are.
    """
    _checked(spine, wanted)
    basis = histogram.basis
    names = tuple(dict.fromkeys([*queries, *(one.query for one in wanted), "detailed"]))
    marginals = [histogram.marginal(name) for name in names]
    sizes = [len(nodes) for nodes in spine.node_of]
    # levels whose areas all are their parents' equals have nothing to measure
    shown = [at for at in range(len(sizes)) if at == len(sizes) - 1 or sizes[at] < sizes[at + 1]]
    branching = [sizes[b] / sizes[a] for a, b in pairwise(shown)]
    targets = [np.zeros((basis.subsets, basis.d, basis.d)) for _ in shown]
    for one in wanted:
        level = next(at for at, number in enumerate(shown) if number >= spine.levels.index(one.level))
        targets[level] += one.weight * mean_variance(basis, histogram.marginal(one.query))
    needed = np.zeros((len(shown), len(names)), dtype=bool)
    needed[-1, names.index("detailed")] = True
    found = optimal_shares(basis, marginals, branching, targets, needed / PARTS)
    shares = exact_shares(found.shares, PARTS, needed)
    levels = []
    for number, name in enumerate(spine.levels):
        row = shares[shown.index(number)] if number in shown else []
        total = sum(row, Fraction(0))
        asked = tuple((query, part / total) for query, part in zip(names, row, strict=False) if part)
        levels.append(LevelShare(name, total, asked))
    return Strategy(histogram, rho, tuple(levels), LawKind.DISCRETE_GAUSSIAN, neighbours)


def _checked(spine: Spine, wanted: Sequence[Wanted]) -> None:
    if not wanted:
        raise mistake("", "queries", "no query is named", "name at least one level and query")
    problems = [
        Problem("", "queries", f"no level {one.level!r}", f"choose from {', '.join(spine.levels)}")
        for one in wanted
        if one.level not in spine.levels
    ]
    problems += [
        Problem("", f"query {one.query} at {one.level}", f"weight {one.weight:g}", "give a weight above zero")
        for one in wanted
        if not one.weight > 0
    ]
    if problems:
        raise Mistakes(problems)
