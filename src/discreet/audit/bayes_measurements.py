"""The Bayesian adversary on the noisy measurements of a hierarchical release (Kazan and Reiter 2022, section 3.2).

The adversary knows all records of a cell of a small area but one, and sees the noisy counts of this cell in the area,
in the larger area that contains it, and in the others within that one. Targets are persons who are there. The same
noise with one person less is what the neighbouring release without the target would have published, so that every
target is also decided where it is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.audit.case import Case
from discreet.errors import BrokenRelease
from discreet.formats.dataset import VALUE
from discreet.hierarchy.measure import Kind, node_counts
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.lazy import lazily
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.tree.marginals import positions, size_of
from discreet.release.hierarchy import PublishedHierarchy, measurements_place
from discreet.run.tabulating import tabulate

if TYPE_CHECKING:
    from scipy import sparse, special
else:
    sparse = lazily("scipy.sparse")
    special = lazily("scipy.special")

SEED = 20_220_716  # of the targets that are chosen
PRIORS = (1 / 2, 1 / 5, 1 / 10, 1 / 50)  # and one in the number of cells
LARGER = (*range(1, 11), 20, 50, 100, 1000)  # persons of the larger area, known ones left out, by class
NEAREST = range(-1, 7)  # published counts, less the known records, that are listed
AT_ONCE = 1 << 20

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """Whom the adversary attacks, and what counts as a disclosure."""

    prior: float = 0.5
    above: float = 0.95  # a posterior that discloses
    largest: int = 10  # records of an attacked cell, the target included
    most: int = 20_000  # targets of one level and query


@dataclass(frozen=True)
class LargerCount:
    """Targets by how many such persons the larger area has beside the known ones: right decisions, found and exact."""

    least: int  # 1: only the target
    targets: int
    right: float
    expected: float


@dataclass(frozen=True)
class PriorRisk:
    """The posterior from the area's own count for a prior: its mean, R = mean / prior, and right decisions."""

    prior: float
    mean_posterior: float
    risk: float
    expected_risk: float
    right: float
    expected_right: float


@dataclass(frozen=True)
class CountRisk:
    """Targets whose published count less the known records is ``count``: their share, and the posterior by prior."""

    count: int
    share: float
    expected_share: float
    posteriors: tuple[float, ...]  # of the priors of ``PriorRisk``


@dataclass(frozen=True, kw_only=True)
class AdversaryFinding:
    """The adversary on cells of one query at one level.

    Shares of right decisions: where targets are there and where they are not, found and by the exact formula, with the
    hierarchy and from the area's own count only.
    """

    level: str
    above: str  # the larger areas
    query: str
    targets: int
    left_out: int  # noise too far out for the sums of a double
    prior: float
    gate: float
    mean_posterior: float
    right: float
    expected: float
    absent: float
    absent_expected: float
    own_right: float
    own_expected: float
    mended: float  # share that only the hierarchy decides rightly
    spoiled: float  # share that only the own count decides rightly
    over_gate: float  # share of posteriors above the gate
    larger: tuple[LargerCount, ...]
    priors: tuple[PriorRisk, ...]
    counts: tuple[CountRisk, ...]

    @property
    def balanced(self) -> float:
        """Right decisions if a target is there in half of the cases."""
        return (self.right + self.absent) / 2


def attack_measurements(
    case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy, rule: Targets | None = None
) -> tuple[AdversaryFinding, ...]:
    """Attack the published measurements of all areas with siblings of the same noise."""
    rule = rule or Targets()
    return tuple(_finding(one, rule) for one in measured_targets(case, chosen, found, rule))


def measured_targets(
    case: Case, chosen: HierarchicalMechanism, found: PublishedHierarchy, rule: Targets
) -> Iterator[TargetCounts]:
    """The targets of each level, larger level and query that both ask, with what is published of them."""
    return _Measured(chosen, found, smallest_areas(case, chosen), rule).targets()


def smallest_areas(case: Case, chosen: HierarchicalMechanism) -> sparse.csr_array:
    """The true counts of (smallest area, cell of the histogram), as they were measured."""
    counted = tabulate(case.run, [chosen.leaf], chosen.counts, case.run.places())
    (counts,) = counted.made.values()
    return counts


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetCounts:
    """Targets of one level and query, confidential: true counts and published ones, one entry for each."""

    level: str
    above: str
    query: str
    cells: int  # of the query
    lower: AdditiveLaw  # of the noise in the area
    upper: AdditiveLaw  # and in the larger one
    true: Integers  # in the area, the target included
    larger: Integers  # in the larger area
    groups: Integers  # other areas in it
    x1: Integers
    x2: Integers
    y1: Integers

    def __len__(self) -> int:
        return len(self.true)


class _Measured:
    """True and published counts of one release."""

    def __init__(
        self,
        chosen: HierarchicalMechanism,
        found: PublishedHierarchy,
        counts: sparse.csr_array,
        rule: Targets,
    ) -> None:
        self._chosen, self._found, self._rule = chosen, found, rule
        self._counts = node_counts(chosen.plan.spine, counts, chosen.plan.strategy)
        self._random = np.random.default_rng(SEED)

    def targets(self) -> Iterator[TargetCounts]:
        """Some of each level, larger level and query that both ask."""
        plan = self._chosen.plan
        groups: dict[tuple[int, int, str], list[int]] = {}
        for parent in plan.spine.inner.tolist():
            kinds = np.unique(plan.kind_of[plan.spine.first[parent] : plan.spine.last[parent]])
            if len(kinds) != 1 or plan.spine.last[parent] - plan.spine.first[parent] < 2:
                continue  # siblings of different noise, or no others
            above, own = plan.kinds[plan.kind_of[parent]], plan.kinds[kinds[0]]
            for query in own.queries:
                if query in above.queries:
                    groups.setdefault((int(plan.kind_of[parent]), int(kinds[0]), query), []).append(parent)
        for (above_kind, own_kind, query), parents in groups.items():
            found = self._of(plan.kinds[own_kind], plan.kinds[above_kind], query, parents)
            if len(found):
                yield found

    def _of(self, own: Kind, above: Kind, query: str, parents: list[int]) -> TargetCounts:
        """Cells with few records in some of the parents, with what is published of them."""
        plan, most = self._chosen.plan, self._rule.most
        spine, histogram = plan.spine, plan.strategy.histogram
        place = positions(histogram.basis, histogram.marginal(query))
        width = size_of(histogram.basis, histogram.marginal(query))
        onto = sparse.csr_array(
            (np.ones(len(place), dtype=np.int64), (np.arange(len(place)), place)), shape=(len(place), width)
        )
        some = self._random.permutation(parents)[:most]
        each = -(-most // len(some))
        below = {int(parent): np.arange(spine.first[parent], spine.last[parent]) for parent in some}
        noisy = self._measured(above.bottom, query, width, list(below))
        noisy |= self._measured(own.bottom, query, width, [int(n) for one in below.values() for n in one])
        rows: list[Integers] = []
        for parent, children in below.items():
            true = (self._counts[children] @ onto).toarray()
            row, cell = np.nonzero((true > 0) & (true <= self._rule.largest))
            take = self._random.permutation(len(row))[:each]
            row, cell = row[take], cell[take]
            published = np.stack([noisy[int(node)] for node in children])
            x1 = published[row, cell]
            groups = np.full(len(row), len(children) - 1)
            y1 = published.sum(axis=0)[cell] - x1
            rows.append(
                np.stack([true[row, cell], true.sum(axis=0)[cell], groups, x1, noisy[parent][cell], y1])
            )
        true, larger, others, x1, x2, y1 = np.concatenate(rows, axis=1)
        return TargetCounts(
            level=spine.levels[own.bottom],
            above=spine.levels[above.bottom],
            query=query,
            cells=width,
            lower=_law(own, query),
            upper=_law(above, query),
            true=true,
            larger=larger,
            groups=others,
            x1=x1,
            x2=x2,
            y1=y1,
        )

    def _measured(self, level: int, query: str, width: int, nodes: list[int]) -> dict[int, Integers]:
        """Node -> its noisy counts as published, read in parts; of some nodes."""
        plan, rule = self._chosen.plan, self._chosen.hierarchy
        needed = set(nodes)
        place = {code: at for at, code in enumerate(self._chosen.codes[level])}
        path = self._found.release.folder / measurements_place(plan.spine.levels[level], query)
        found: dict[int, Integers] = {}
        try:
            with pq.ParquetFile(path.absolute()) as file:
                codes: list[str] = []
                rest, offset = np.zeros(0, dtype=np.int64), 0
                for batch in file.iter_batches(AT_ONCE, columns=[rule.geography, VALUE]):
                    codes += batch.column(0)[
                        -offset % width :: width
                    ].to_pylist()  # of each area's first count
                    offset += len(batch)
                    values = np.concatenate([rest, batch.column(1).to_numpy()])
                    areas = len(values) // width
                    for code, row in zip(codes, values[: areas * width].reshape(-1, width), strict=False):
                        node = int(plan.spine.node_of[level][place[code]])
                        if node in needed:
                            found[node] = row.copy()
                    codes, rest = codes[areas:], values[areas * width :]
        except (OSError, ValueError, KeyError):
            raise BrokenRelease(f"{path}: not the counts of this release; fetch it again") from None
        if needed - found.keys():
            raise BrokenRelease(f"{path}: {len(needed - found.keys())} areas are missing; fetch it again")
        return found


def log_odds(
    targets: TargetCounts, prior: float = 0.5, chain: Chain = Chain.EXACT, *, there: bool = True
) -> Floats:
    """The log odds of every target, from all that is published; ``there`` or with one person less in the area.

    By the exact posterior, or by the chain behind the paper's printed numbers. NaN where noise is too far out.
    """
    found = np.empty(len(targets))
    less = targets.true - there  # only differences from the known records matter
    for groups in np.unique(targets.groups).tolist():
        here = targets.groups == groups
        attack = _hierarchy(targets.lower, targets.upper, groups, prior)
        x1, x2 = targets.x1[here] - less[here], targets.x2[here] - less[here]
        found[here] = attack.log_odds_of(x1, x2, targets.y1[here], chain)
    return found


def _finding(targets: TargetCounts, rule: Targets) -> AdversaryFinding:
    """Decide every target, with and without the hierarchy."""
    known = targets.true - 1
    odds, without = (log_odds(targets, rule.prior, there=there) for there in (True, False))
    expected, absent = np.empty(len(targets)), np.empty(len(targets))
    x1, larger = targets.x1 - known, targets.larger - known
    for groups in np.unique(targets.groups).tolist():
        here = targets.groups == groups
        attack = _hierarchy(targets.lower, targets.upper, groups, rule.prior)
        expected[here] = attack.decided(larger[here], 1)
        absent[here] = 1 - attack.decided(larger[here] - 1, 0)
    seen = np.isfinite(odds) & np.isfinite(without)
    right = odds[seen] > 0
    alone = Adversary(targets.lower, 0, rule.prior)
    own = _posteriors(alone, x1[seen]) > 0.5
    priors = tuple(dict.fromkeys((*PRIORS, 1 / max(targets.cells, 2))))
    return AdversaryFinding(
        level=targets.level,
        above=targets.above,
        query=targets.query,
        targets=int(seen.sum()),
        left_out=int((~seen).sum()),
        prior=rule.prior,
        gate=rule.above,
        mean_posterior=_mean(special.expit(odds[seen])),
        right=_mean(right),
        expected=_mean(expected[seen]),
        absent=_mean(without[seen] <= 0),
        absent_expected=_mean(absent[seen]),
        own_right=_mean(own),
        own_expected=alone.correct,
        mended=_mean(right & ~own),
        spoiled=_mean(own & ~right),
        over_gate=_mean(special.expit(odds[seen]) > rule.above),
        larger=tuple(_by_larger(targets.larger[seen] - known[seen], right, expected[seen])),
        priors=tuple(_prior_risk(targets.lower, prior, x1) for prior in priors),
        counts=tuple(_by_count(targets.lower, priors, x1)),
    )


def _by_larger(larger: Integers, right: NDArray[np.bool_], expected: Floats) -> Iterator[LargerCount]:
    for least, beyond in zip(LARGER, (*LARGER[1:], np.inf), strict=True):
        some = (larger >= least) & (larger < beyond)
        if some.any():
            yield LargerCount(least, int(some.sum()), _mean(right[some]), _mean(expected[some]))


def _prior_risk(lower: AdditiveLaw, prior: float, x1: Integers) -> PriorRisk:
    one = Adversary(lower, 0, prior)
    posterior = _posteriors(one, x1)
    mean = _mean(posterior)
    return PriorRisk(prior, mean, mean / prior, one.risk, _mean(posterior > 0.5), one.correct)


def _by_count(lower: AdditiveLaw, priors: tuple[float, ...], x1: Integers) -> Iterator[CountRisk]:
    adversaries = [Adversary(lower, 0, prior) for prior in priors]
    for count in NEAREST:
        yield CountRisk(
            count,
            _mean(x1 == count),
            adversaries[0].with_target.at(count),
            tuple(one.posterior(count) for one in adversaries),
        )


def _posteriors(one: Adversary, x1: Integers) -> Floats:
    counts, at = np.unique(x1, return_inverse=True)
    return np.array([one.posterior(count) for count in counts.tolist()])[at]


def _mean(values: NDArray[np.bool_] | Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _law(kind: Kind, query: str) -> AdditiveLaw:
    return kind.laws[kind.queries.index(query)]


@lru_cache(maxsize=4096)
def _hierarchy(lower: AdditiveLaw, upper: AdditiveLaw, groups: int, prior: float) -> Hierarchy:
    return Hierarchy(lower, upper, groups, 0, prior)
