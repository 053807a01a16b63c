"""The attack on weighted tables: true counts that follow from a weighted sum beside the published count.

The attacker knows that weights are whole numbers of some step, and the bound or the law of the noise. A release whose
weighted sums show the exact mean weight (as version 0.1) gives many small counts away: ``maths.attacks.weights``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Published, PublishedTable, Truth, WeightedTable, values_at
from discreet.errors import mistake
from discreet.formats.dataset import DECIMALS
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.weights import possible_counts
from discreet.perturb.noise import Noise

Integers = NDArray[np.int64]

SMALL = 10  # published counts up to this are attacked
ASSUMED_BOUND = 10  # where none is public
_AT_ONCE = 1 << 18  # cells


@dataclass(frozen=True, kw_only=True)
class WeightFindings:
    """What the weighted tables disclose beside the counts; numbers only."""

    tables: int
    columns: int  # of weights
    step: float  # weights are taken to be multiples of this
    bound: int
    reach: float | None  # of the noise on weighted sums, in largest weights; None: the mean weight is exact
    cells: int  # small published counts with a weighted sum beside them
    certain: int  # of these, the true count is the only one that is possible
    certain_without: int  # by the published count alone
    left: float  # counts that stay possible, on average
    alone: int  # weighted cells without a published count: second tables of these records
    left_out: tuple[str, ...]  # weighted tables without any published count beside them


@dataclass(frozen=True)
class WeightJudgement:
    """How many of the counts that follow are the true ones."""

    certain: int
    right: int


@dataclass(frozen=True, eq=False)
class _Compared:
    """The small cells of a weighted table: published count, weighted sum, and the count that follows or zero."""

    table: WeightedTable
    cells: Integers
    deduced: Integers


@dataclass(frozen=True, eq=False)
class WeightAttack:
    """The findings, and the counts that follow."""

    found: WeightFindings
    compared: tuple[_Compared, ...]

    def findings(self) -> WeightFindings:
        """The numbers."""
        return self.found


def attack_weights(
    seen: Published, *, step: float = 1.0, bound: int | None = None, progress: Progress | None = None
) -> WeightAttack:
    """Deduce true counts from weighted sums beside counts."""
    if not seen.weighted:
        raise mistake("", "weights", "no table is weighted", "attack a release with weighted tables")
    noise, progress = seen.noise, progress or Quiet()
    if noise.weights is not None:
        value = "sums of weights have noise of a known law, whatever the weights are"
        raise mistake("", "weights", value, "attack their law: discreet risk")
    reach = None if noise.weighted is None else noise.weighted.reach
    if noise.weighted is not None and reach is None:
        raise mistake("", "weights", "the reach of their noise is not public", "give the p-table")
    limit = noise.bound if noise.bound is not None else bound if bound is not None else ASSUMED_BOUND
    limit = max(1, limit)
    progress.stage("attacking weighted tables", len(seen.weighted))
    compared, cells, alone, possible, without, left_out = [], 0, 0, 0, 0, []
    for table in seen.weighted:
        at, sums = table.load()
        counts = published_counts(seen, table, at)
        alone += int((counts == 0).sum())
        small = (counts > 0) & (counts <= SMALL)
        if not (counts > 0).any():
            left_out.append(table.id)
        deduced = np.zeros(int(small.sum()), dtype=np.int64)
        picked = np.flatnonzero(small)
        for start in range(0, len(picked), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            c, w = counts[picked[part]], sums[picked[part]] / step
            changes = _changes(noise, c, limit)
            rounding = 0.5 * 10.0**-DECIMALS / step
            left = possible_counts(c, w, changes, limit, reach=reach or 0.0, rounding=rounding)
            number = left.sum(axis=1)
            deduced[part] = np.where(number == 1, c + limit - left.argmax(axis=1), 0)
            possible += int(number.sum())
            without += int((changes.sum(axis=1) == 1).sum())
        cells += len(picked)
        compared.append(_Compared(table, at[picked], deduced))
        progress.step()
    found = WeightFindings(
        tables=len(seen.weighted),
        columns=len({table.cube.weight for table in seen.weighted}),
        step=step,
        bound=limit,
        reach=reach,
        cells=cells,
        certain=sum(int(np.count_nonzero(one.deduced)) for one in compared),
        certain_without=without,
        left=possible / cells if cells else 0.0,
        alone=alone,
        left_out=tuple(left_out),
    )
    return WeightAttack(found, tuple(compared))


def judge(attack: WeightAttack, truth: Truth) -> WeightJudgement:
    """Compare the counts that follow with the true ones."""
    certain = right = 0
    for one in attack.compared:
        known = one.deduced > 0
        true = values_at(truth.counted[one.table.id], one.cells[known])
        certain += int(known.sum())
        right += int((true == one.deduced[known]).sum())
    return WeightJudgement(certain, right)


def published_counts(seen: Published, table: WeightedTable, cells: Integers) -> Integers:
    """The published counts of the cells of a weighted table in any table that counts the same records; 0 for none."""
    counts = np.zeros(len(cells), dtype=np.int64)
    for shown in _beside(seen, table):
        names = [axis.full_name for axis in shown.cube.axes]
        open_ = counts == 0
        where = np.zeros(len(cells), dtype=np.int64)
        for k, axis in enumerate(table.cube.axes):
            nodes = table.cube.nodes(cells, k)
            if axis.full_name in names:
                where += nodes * shown.cube.strides[names.index(axis.full_name)]
            else:
                open_ &= nodes == 0
        counts[open_] = values_at(shown.load(), where[open_])
    return counts


def _beside(seen: Published, table: WeightedTable) -> Iterator[PublishedTable]:
    for universe in seen.universes:
        if (universe.unit, universe.base, universe.count) == (table.unit, table.base, table.count):
            yield from universe.tables


def _changes(noise: Noise, counts: Integers, bound: int) -> NDArray[np.bool_]:
    """[cell, k]: whether the noise can change count + bound - k into the count; by the law where it is public."""
    true = counts[:, None] + bound - np.arange(2 * bound + 1)[None, :]
    able = true >= 1
    if noise.law is None:
        return able
    for n in np.unique(true[able]).tolist():
        row = noise.law.row(n)
        reached = row.values[row.p > 0]
        able &= (true != n) | np.isin(counts, reached)[:, None]
    return able
