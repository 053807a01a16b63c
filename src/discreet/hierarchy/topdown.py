"""Own-level fits in the order of the TopDown algorithm (Abowd et al. 2022): totals before everything else.

In 2020 the totals of states, counties, tracts and block groups were fitted first and then fixed while the other queries
were fitted; the nation and the blocks were fitted in one pass. Which totals are settled depends on noisy totals only:
from the root down, the children's are the nearest ones in weighted squares, not below their bounds, that sum to the
parent's. They replace the noisy totals of the inner levels with a variance that is almost 0, so that one further pass
over all queries (``integers`` with the fit ``own-level``) does not move them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.hierarchy.integers import Limits
from discreet.hierarchy.measure import Kind, Measurements, Plan, Siblings
from discreet.maths.tree.marginals import precision, size_of

TOTAL = "total"
SETTLED = 0.01  # variance of a total that is fixed: it moves by less than a thousandth of a person

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TotalsFirst:
    """Measurements whose totals of inner levels are settled."""

    plan: Plan
    measurements: Measurements
    totals: Floats  # node -> its settled total

    def noisy(self, parent: int) -> list[Siblings]:
        """The noisy counts of one parent's children, settled totals in place of noisy ones."""
        return [self._settled(one) for one in self.measurements.noisy(parent)]

    def _settled(self, one: Siblings) -> Siblings:
        kind = self.plan.kinds[one.kind]
        if not _is_fixed(self.plan, kind):
            return one
        at = kind.queries.index(TOTAL)
        whole = np.rint(self.totals[one.nodes]).astype(np.int32)[:, None]
        return replace(one, values=(*one.values[:at], whole, *one.values[at + 1 :]))


def totals_first(measurements: Measurements, limits: Limits) -> TotalsFirst:
    """Settle the totals of all inner levels that measure one, from the root down."""
    plan = measurements.plan
    spine = plan.spine
    totals = np.zeros(len(spine))
    least = limits.lower.sum(axis=1).astype(np.float64)
    for parent in [-1, *spine.inner.tolist()]:
        groups = measurements.noisy(parent)
        nodes = np.concatenate([one.nodes for one in groups])
        found = [_own_totals(plan, one) for one in groups]
        values = np.concatenate([one[0] for one in found])
        variances = np.concatenate([one[1] for one in found])
        known = limits.totals.known[nodes]
        values[known] = limits.totals.values[nodes[known]]
        if parent < 0:
            totals[nodes] = np.maximum(values, least[nodes])
            continue
        free = ~known
        rest = totals[parent] - values[known].sum()
        values[free] = shared_out(values[free], variances[free], least[nodes[free]], float(rest))
        totals[nodes] = values
    kinds = tuple(_fixed(plan, kind) for kind in plan.kinds)
    return TotalsFirst(replace(plan, kinds=kinds), measurements, totals)


def shared_out(values: Floats, variances: Floats, least: Floats, total: float) -> Floats:
    """Minimise sum (t - value)^2 / variance with t >= least and the given sum: t = max(least, value + m variance)."""
    if not len(values):
        return values
    if total <= least.sum():  # nothing can be shared: every one at its bound
        return least.copy()
    turns = np.sort((least - values) / variances)  # m at which a value leaves its bound
    low, high = -1, len(turns) - 1
    while low < high:  # the last turn at which the sum is not above the total
        middle = (low + high + 1) // 2
        if np.maximum(least, values + turns[middle] * variances).sum() <= total:
            low = middle
        else:
            high = middle - 1
    free = values + turns[low] * variances >= least - 1e-9 * (1 + np.abs(least))
    m = (total - least[~free].sum() - values[free].sum()) / variances[free].sum()
    return np.asarray(np.where(free, values + m * variances, least))


def _own_totals(plan: Plan, one: Siblings) -> tuple[Floats, Floats]:
    """The totals of siblings and their variance: from the query total, else from the sums of all others."""
    kind, basis = plan.kinds[one.kind], plan.strategy.histogram.basis
    used = [kind.queries.index(TOTAL)] if TOTAL in kind.queries else list(range(len(kind.queries)))
    if not used:
        return np.zeros(len(one.nodes)), np.full(len(one.nodes), np.inf)
    weights = np.array([1 / (size_of(basis, kind.marginals[at]) * kind.variances[at]) for at in used])
    sums = np.stack([one.values[at].sum(axis=1, dtype=np.int64) for at in used]).astype(np.float64)
    return weights @ sums / weights.sum(), np.full(len(one.nodes), 1 / weights.sum())


def _is_fixed(plan: Plan, kind: Kind) -> bool:
    """Whether totals of such nodes are fixed: they are measured, and the level is neither the first nor the last."""
    return TOTAL in kind.queries and 0 < kind.bottom < len(plan.spine.levels) - 1


def _fixed(plan: Plan, kind: Kind) -> Kind:
    if not _is_fixed(plan, kind):
        return kind
    at = kind.queries.index(TOTAL)
    variances = (*kind.variances[:at], SETTLED, *kind.variances[at + 1 :])
    weights = precision(plan.strategy.histogram.basis, kind.marginals, [1 / one for one in variances])
    return replace(kind, variances=variances, precision=weights)
