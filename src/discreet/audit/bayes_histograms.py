"""The attack on whole histograms of small areas: all persons of the area are known, except for one person's category.

The posterior of one histogram and its exact chances are in ``maths.attacks.bayes_histogram``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bayes import FactorsOf
from discreet.audit.cells import OwnedTable, once
from discreet.audit.evidence import Cells, Integers, Published, Truth, values_at
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.lazy import lazily
from discreet.maths.attacks.bayes import BayesFactors
from discreet.maths.noise.law import Floats
from discreet.programme.cube import CrossTab, Levels

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

MOST_CATEGORIES = 4096
AT_ONCE = 2**21  # cells of histograms in memory together
TIE = 1e-9
LOWEST = -1e6  # represents a weight of zero


class HistogramPrior(StrEnum):
    """The prior of the target's category: uniform, or as published for all areas."""

    UNIFORM = "uniform"
    SHARES = "shares"


@dataclass(frozen=True)
class AreaAttack:
    """Which areas are attacked: small ones at the finest level of a variable, and with which prior."""

    area: str
    least: int = 2  # records of an area
    most: int = 50
    prior: HistogramPrior = HistogramPrior.SHARES
    gate: float = 0.95

    def __post_init__(self) -> None:
        """Reject sizes and gates that select nothing."""
        if not 1 <= self.least <= self.most:
            raise mistake(
                "", "least and most", f"{self.least} and {self.most}", "give 1 or more, the least first"
            )
        if not 0 < self.gate < 1:
            raise mistake("", "gate", f"{self.gate:g}", "give a number between 0 and 1")


@dataclass(frozen=True)
class HistogramFinding:
    """How often the most probable category is the target's, over all records of the small areas."""

    counted: str
    crosstab: str  # by the names of its levels: GEO.COUNTY x SEX
    levels: Levels
    categories: int
    areas: int
    records: int  # each was the target once
    success: float  # share of right decisions, ties by lot
    baseline: float  # the same by the prior only
    mean_posterior: float  # of the target's own category
    above: int  # records whose own category has a posterior above the gate
    contradicted: int  # records for which the published counts fit no category: swapped, or another law
    standard_error: float  # of the success rate, areas taken as independent

    @property
    def gain(self) -> float:
        """What the release adds to the prior."""
        return self.success - self.baseline

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "counted": self.counted,
            "crosstab": self.crosstab,
            "categories": self.categories,
            "areas": self.areas,
            "records": self.records,
            "success": self.success,
            "standard_error": self.standard_error,
            "baseline": self.baseline,
            "gain": self.gain,
            "mean_posterior": self.mean_posterior,
            "above": self.above,
            "contradicted": self.contradicted,
        }


@dataclass(frozen=True)
class HistogramScan:
    """The attack on every histogram of small areas that a release has."""

    attack: AreaAttack
    found: tuple[HistogramFinding, ...]
    too_wide: int  # histograms with more categories than the limit

    @property
    def worst(self) -> HistogramFinding | None:
        """The histogram whose attack gains most."""
        return max(self.found, key=lambda one: one.gain, default=None)

    @property
    def largest_gain(self) -> float:
        """What the worst histogram adds to the prior; 0 if none was attacked."""
        return 0.0 if self.worst is None else self.worst.gain

    def as_json(self) -> Mapping[str, object]:
        """The document, with the ten histograms with the largest gain."""
        worst = sorted(self.found, key=lambda one: -one.gain)
        return {
            "area": self.attack.area,
            "records_per_area": [self.attack.least, self.attack.most],
            "prior": self.attack.prior,
            "gate": self.attack.gate,
            "histograms": len(self.found),
            "left_out": self.too_wide,
            "largest_gain": self.largest_gain,
            "worst": worst[:10],
        }


def attack_histograms(
    published: Published, truth: Truth, attack: AreaAttack, progress: Progress | None = None
) -> HistogramScan:
    """Attack the histogram of every cross-tabulation with the areas, at all levels of the other variables.

    Every record of an area is the target in turn; all others' categories are known, so is the target's presence.
    """
    progress, laws = progress or Quiet(), FactorsOf(published.noise)
    progress.stage(
        f"histograms of {attack.area}", sum(len(universe.tables) for universe in published.universes)
    )
    found: list[HistogramFinding] = []
    too_wide, known_area = 0, False
    for universe in published.universes:
        for owned in once(universe):
            axis = next((k for k, axis in enumerate(owned.cube.axes) if axis.variable == attack.area), None)
            known_area |= axis is not None
            if axis is not None and owned.new:
                cutters = [
                    _Cutter(owned, axis, one, laws.of(universe.signature(one.signature.levels)))
                    for one in _histograms(owned, axis)
                ]
                narrow = [cutter for cutter in cutters if cutter.categories <= MOST_CATEGORIES]
                too_wide += len(cutters) - len(narrow)
                shown = owned.table.load()
                for cutter in narrow:
                    found += cutter.finding(shown, owned.true(truth), attack)
            progress.step()
    if not known_area:
        raise mistake("", "area", attack.area, f"choose from {', '.join(published.variables)}")
    return HistogramScan(attack, tuple(found), too_wide)


def _histograms(owned: OwnedTable, axis: int) -> Iterator[CrossTab]:
    """The new cross-tabulations of the finest areas by at least one other variable."""
    finest = int(owned.cube.axes[axis].depths.max())
    for crosstab in (owned.crosstabs[at] for at in owned.new):
        if crosstab.depths[axis] == finest and finest and sum(crosstab.depths) > finest:
            yield crosstab


@dataclass(frozen=True, eq=False)
class _Cutter:
    """Cuts the histograms of one cross-tabulation out of a table."""

    owned: OwnedTable
    axis: int
    crosstab: CrossTab
    law: BayesFactors

    @property
    def categories(self) -> int:
        """How many cells one area's histogram has."""
        return math.prod(len(level.nodes) for k, level in enumerate(self.crosstab.levels) if k != self.axis)

    def offsets(self) -> Integers:
        """The position of each category relative to the total of an area."""
        offsets = np.zeros(1, dtype=np.int64)
        for k, level in enumerate(self.crosstab.levels):
            if k != self.axis:
                offsets = np.add.outer(offsets, level.nodes * self.owned.cube.strides[k]).ravel()
        return offsets

    def finding(self, shown: Cells, true: Cells, attack: AreaAttack) -> list[HistogramFinding]:
        """The outcome over all small areas, blocks of areas at a time; empty where there is only one category."""
        offsets = self.offsets()
        starts = self.crosstab.levels[self.axis].nodes * self.owned.cube.strides[self.axis]
        sizes = values_at(true, starts)
        starts = starts[(sizes >= attack.least) & (sizes <= attack.most)]
        if not len(starts) or len(offsets) < 2:
            return []
        prior = _prior(attack.prior, values_at(shown, offsets))
        outcome, step = _Outcome(), max(1, AT_ONCE // len(offsets))
        for first in range(0, len(starts), step):
            cells = np.add.outer(starts[first : first + step], offsets)
            counts, values = (values_at(some, cells.ravel()).reshape(cells.shape) for some in (true, shown))
            outcome.add(self.law, prior, counts, values, attack.gate)
        return [outcome.finding(self, len(starts))]


class _Outcome:
    """Sums over the records of the areas attacked so far."""

    def __init__(self) -> None:
        self.records = self.above = self.contradicted = 0
        self.base = self.posterior = 0.0
        self.by_area: list[tuple[Floats, Floats]] = []  # records and right decisions of each area

    def add(self, law: BayesFactors, prior: Floats, counts: Integers, values: Integers, gate: float) -> None:
        """Attack every record of some areas: (area, category) -> count and published value.

        The weights of a category are log p_c + log factor, with x_c others where the target is elsewhere and with
        x_c - 1 where it is the target's own.
        """
        logs = np.log(prior)
        away = logs + law.log_factors(counts.ravel(), values.ravel()).reshape(counts.shape)
        area, own = np.nonzero(counts)
        here = logs[own] + law.log_factors(counts[area, own] - 1, values[area, own])
        rivals, times, proof = _Rivals.of(away, area, own), counts[area, own], np.isposinf(here)
        possible = ~rivals.proven & ((rivals.best > LOWEST) | ~np.isneginf(here))
        right = np.where(np.abs(here - rivals.best) <= TIE, 1 / (1 + rivals.ties), here > rivals.best)
        posterior = np.where(proof, 1.0, special.expit(np.where(proof, 0.0, here) - rivals.sum))
        self.records += int(times.sum())
        self.contradicted += int(times[~possible].sum())
        won = np.where(possible, times * right, 0.0)
        sums = np.bincount(area, won, len(counts)).astype(np.float64)
        self.by_area.append((counts.sum(axis=1).astype(np.float64), sums))
        self.base += float(times @ _by_prior(prior)[own])
        self.posterior += float(times[possible] @ posterior[possible])
        self.above += int(times[(posterior > gate) & possible].sum())

    def finding(self, cutter: _Cutter, areas: int) -> HistogramFinding:
        """The rates."""
        some = max(self.records, 1)
        records, right = (np.concatenate([one[k] for one in self.by_area]) for k in (0, 1))
        success = float(right.sum()) / some
        return HistogramFinding(
            cutter.owned.universe.counted,
            cutter.owned.cube.level_name(cutter.crosstab.depths),
            cutter.crosstab.signature.levels,
            cutter.categories,
            areas,
            self.records,
            success,
            self.base / some,
            self.posterior / some,
            self.above,
            self.contradicted,
            float(np.sqrt(((right - success * records) ** 2).sum())) / some,
        )


@dataclass(frozen=True, eq=False)
class _Rivals:
    """For each target, the weights of the categories that are not its own."""

    best: Floats
    ties: Integers  # how many have the best weight
    sum: Floats  # log of the sum of all
    proven: NDArray[np.bool_]  # another category is proven: what is known or the law is wrong

    @classmethod
    def of(cls, away: Floats, area: Integers, own: Integers) -> _Rivals:
        """The best and the sum of (area, category) weights without a target's own, by the two best of each area."""
        proofs = np.isposinf(away)
        away = np.where(proofs, LOWEST, np.maximum(away, LOWEST))
        first = away.argmax(axis=1)
        rest = away.copy()
        rest[np.arange(len(away)), first] = LOWEST
        is_first = own == first[area]
        best = np.where(is_first, rest.max(axis=1)[area], away.max(axis=1)[area])
        close = (away > away.max(axis=1, keepdims=True) - TIE).sum(axis=1)
        close_rest = (rest > rest.max(axis=1, keepdims=True) - TIE).sum(axis=1)
        ties = np.where(is_first, close_rest[area], close[area] - (away[area, own] > best - TIE))
        top = away.max(axis=1)[area]
        whole = np.exp(special.logsumexp(away, axis=1)[area] - top) - np.exp(away[area, own] - top)
        sums = np.where(is_first, special.logsumexp(rest, axis=1)[area], top + np.log(np.maximum(whole, 1.0)))
        proven = proofs.sum(axis=1)[area] - proofs[area, own] > 0
        return cls(best, np.maximum(ties, 1), sums, proven)


def _prior(kind: HistogramPrior, totals: Integers) -> Floats:
    """The prior of the categories; half a record is added to each published share."""
    weights = np.ones(len(totals)) if kind is HistogramPrior.UNIFORM else np.maximum(totals, 0) + 0.5
    found: Floats = weights / weights.sum()
    return found


def _by_prior(prior: Floats) -> Floats:
    """The probability that each category is chosen by the prior only."""
    best = (prior > prior.max() * (1 - TIE)).astype(np.float64)
    found: Floats = best / best.sum()
    return found
