"""Two releases of the same people under one secret with two p-tables: counts guessed from both published values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import log

import numpy as np

from discreet.audit.bound_propagation import cut
from discreet.audit.differencing import common_values
from discreet.audit.evidence import Integers, Published, PublishedTable, Truth
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.ptable_change import (
    Intervals,
    NoiseAndDifference,
    estimated_joint,
    known_joint,
    pairs_of_tuples,
    same_key,
    unrelated_keys,
    widest_noise,
)
from discreet.maths.noise.hellinger import PTableLaw
from discreet.perturb.noise import LARGE, Noise

LEAST = 20  # counts published from this on in both releases are attacked: they have the noise of large counts
SPAN = 15  # larger differences are taken as people who came or went
BLOCK = 1 << 24  # cells that are worked on at once
MOST_TUPLES = 2_000_000  # that an estimate is made from
FEWEST_TUPLES = 200


class Knowledge(StrEnum):
    """By which joint law of the two noises counts are guessed."""

    SAME_KEY = "both p-tables, one key"
    UNRELATED = "both p-tables, unrelated keys"
    ESTIMATED = "what sums show, nothing being known"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class PTableChange:
    """What two p-tables under one secret reveal, without a true count."""

    release: str  # the earlier one
    cells: int  # large counts in both releases
    changed: int  # of these, published differently
    differences: Mapping[int, int]
    tuples: int  # of two large parts, that the law was estimated from
    knowledge: Knowledge
    alone: float | None  # chance to guess a large count right from one release
    together: float | None  # from both


@dataclass(frozen=True, kw_only=True)
class PTableChangeJudgement:
    """How many large counts are guessed right: only numbers."""

    cells: int
    published_right: int  # published unchanged in the earlier release
    right: int  # guessed right from both

    def as_json(self) -> Mapping[str, object]:
        """The document, with the share."""
        return {**vars(self), "share_right": self.right / self.cells if self.cells else None}


@dataclass(frozen=True, eq=False)
class FoundPTableChange:
    """The attack, and its rule to guess by."""

    earlier: Published
    later: Published
    findings: PTableChange
    joint: NoiseAndDifference | None


def ptable_change(
    earlier: Published, later: Published, progress: Progress | None = None
) -> FoundPTableChange:
    """Guess large counts from both published values, by the known p-tables or by what sums show of the noises."""
    progress = progress or Quiet()
    progress.stage("two p-tables under one secret")
    differences = np.zeros(2 * SPAN + 1, dtype=np.int64)
    for old, new, _ in common_values(earlier, later):
        large = (old >= LEAST) & (new >= LEAST) & (np.abs(new - old) <= SPAN)
        differences += np.bincount((new - old)[large] + SPAN, minlength=2 * SPAN + 1)
    tuples = 0
    knowledge, joint = _by_ptables(earlier.noise, later.noise, differences)
    if joint is None:
        seen = _tuples(earlier, later)
        tuples = int(seen[:, 4].sum())
        if tuples >= FEWEST_TUPLES:
            knowledge, joint = Knowledge.ESTIMATED, estimated_joint(seen, differences, widest_noise(seen))
    cells = int(differences.sum())
    found = PTableChange(
        release=earlier.name,
        cells=cells,
        changed=cells - int(differences[SPAN]),
        differences={at - SPAN: int(many) for at, many in enumerate(differences) if many},
        tuples=tuples,
        knowledge=knowledge,
        alone=None if joint is None else joint.alone,
        together=None if joint is None else joint.together,
    )
    return FoundPTableChange(earlier, later, found, joint)


def judge(found: FoundPTableChange, truth: Truth) -> PTableChangeJudgement:
    """Compare the guesses with the true counts of the earlier release."""
    cells, published_right, right = 0, 0, 0
    for old, new, true in common_values(found.earlier, found.later, truth):
        large = (old >= LEAST) & (new >= LEAST) & (np.abs(new - old) <= SPAN)
        old, new, true = old[large], new[large], true[large]
        noise = (
            np.zeros(len(old), dtype=np.int64)
            if found.joint is None
            else found.joint.guesses[new - old + SPAN]
        )
        cells += len(old)
        published_right += int((old == true).sum())
        right += int((old - noise == true).sum())
    return PTableChangeJudgement(cells=cells, published_right=published_right, right=right)


def _by_ptables(
    first: Noise, second: Noise, differences: Integers
) -> tuple[Knowledge, NoiseAndDifference | None]:
    """By known p-tables, with the relation of the keys that fits the differences better."""
    rows = [_row(noise) for noise in (first, second)]
    if rows[0] is None or rows[1] is None:
        return Knowledge.NONE, None
    ways = {
        Knowledge.SAME_KEY: known_joint(same_key(rows[0], rows[1]), SPAN),
        Knowledge.UNRELATED: known_joint(unrelated_keys(rows[0], rows[1]), SPAN),
    }
    best = max(ways, key=lambda way: _likelihood(ways[way], differences))
    return best, ways[best]


def _row(noise: Noise) -> Intervals | None:
    """The changes of large counts, in plain order, by a millionth of a million of the keys."""
    if not isinstance(noise.law, PTableLaw):
        return None
    law = noise.law.row(LARGE).shifted(-LARGE)
    return [(law.first + at, round(p * 10**12)) for at, p in enumerate(law.p.tolist())]


def _likelihood(joint: NoiseAndDifference, differences: Integers) -> float:
    shares = joint.p.sum(axis=0)
    return float(sum(many * log(max(p, 1e-9)) for p, many in zip(shares, differences, strict=True)))


def _tuples(earlier: Published, later: Published) -> Integers:
    """The tuples of two large parts of tables that both releases have: their kinds, and how many of each."""
    others = {(one.unit, one.base, one.count): one for one in later.universes}
    out, number = np.empty((MOST_TUPLES, 4), dtype=np.int64), 0
    for universe in earlier.universes:
        other = others.get((universe.unit, universe.base, universe.count))
        tables = {table.id: table for table in other.tables} if other else {}
        for one in cut(universe, BLOCK):
            match = tables.get(one.table.id)
            if match is None or not _alike(one.table, match):
                continue
            first, second = one.table.load(), match.load()
            for block in one.blocks:
                shown, after = block.dense(first), block.dense(second)
                for tuples in one.tuples(block):
                    grids = shown.reshape(tuples.shape), after.reshape(tuples.shape)
                    number = pairs_of_tuples(*grids, *tuples.arrays, LEAST, SPAN, out, number)
    out[:number, :2].sort(axis=1)  # which of the parts is the first does not matter
    kinds, many = np.unique(out[:number], axis=0, return_counts=True)
    return np.column_stack([kinds, many]).astype(np.int64)


def _alike(one: PublishedTable, other: PublishedTable) -> bool:
    return [axis.codes for axis in one.cube.axes] == [axis.codes for axis in other.cube.axes]
