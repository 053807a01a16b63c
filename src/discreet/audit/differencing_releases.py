"""Differencing of two releases of the same tables: which cells changed, and what that says of the people in them.

It owns the comparison; whether both were made with the same keys is told by their manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.audit.crosstab_cells import Held, Reader, described, held
from discreet.audit.difference_noise import MeanRate, OutsiderNoise
from discreet.audit.differencing import SHOWN, THRESHOLD, Apparent, counts_of_pairs
from discreet.audit.published import Cells, Integers, Published, Universe
from discreet.audit.truth import Truth, values_at
from discreet.engine.progress import Progress, Quiet
from discreet.errors import mistake
from discreet.schema.crosstab import Levels, codes_at


@dataclass(frozen=True)
class Update:
    """What two releases give away together."""

    crosstabs: int
    compared: int  # cells that are not zero in both
    changed: int
    small: int  # changed by less than the threshold
    participants: int | None  # cells whose people surely changed; None unless the noise follows the people
    skipped: tuple[str, ...]  # cross-tabulations whose codes are not the same in both
    examples: tuple[Apparent, ...]

    def summary(self) -> dict[str, Any]:
        """JSON-ready; every number in it is public."""
        return asdict(self)


@dataclass(frozen=True)
class UpdateJudgement:
    """How much of that is true, for the office: numbers of cells, never their sizes."""

    moved: int  # cells whose true count changed, by less than the threshold
    seen: int  # of these, published with a change
    revealed: int  # of these, published with the true change
    expected: (
        float | None
    )  # the same by the law of the noise, if the people of a cell decide it or chance does
    still: int  # cells whose true count is the same
    unfounded: int  # of these, published with a change

    def summary(self) -> dict[str, Any]:
        """JSON-ready, with the share of changes that is revealed."""
        return {**asdict(self), "revealed_rate": self.revealed / self.moved if self.moved else None}


@dataclass(frozen=True, eq=False)
class _Both:
    """A cross-tabulation that both releases hold, and where."""

    universe: Universe
    levels: Levels
    first: Held
    second: Held


def difference_releases(
    first: Published,
    second: Published,
    same_keys: bool,
    threshold: int = THRESHOLD,
    progress: Progress | None = None,
) -> Update:
    """Subtract the first release from the second; with the same keys, the same people have the same noise."""
    both, skipped = _both(first, second)
    told, compared, changed, small = progress or Quiet(), 0, 0, 0
    told.stage("subtracting releases", len(both))
    examples: list[Apparent] = []
    for one, old, new in _cells(both, Reader(), Reader()):
        numbers, change = _change(one, old, new)
        moved = np.flatnonzero((change != 0) & (np.abs(change) < threshold))
        compared, changed, small = (
            compared + len(numbers),
            changed + int((change != 0).sum()),
            small + len(moved),
        )
        for at in moved[: SHOWN - len(examples)]:
            cell = described(one.levels, one.universe.codelists, int(numbers[at]))
            examples.append(Apparent(cell, int(change[at])))
        told.step()
    follows = same_keys and first.noise.same_noise and second.noise.same_noise
    certain = changed if follows else None
    return Update(len(both), compared, changed, small, certain, skipped, tuple(examples))


def judge_releases(
    first: Published,
    second: Published,
    truths: tuple[Truth, Truth],
    threshold: int = THRESHOLD,
    progress: Progress | None = None,
) -> UpdateJudgement:
    """Say how many of the changes between two releases are true."""
    both, _ = _both(first, second)
    told, noises, rate = progress or Quiet(), OutsiderNoise(first.noise), MeanRate()
    told.stage("judging changes between releases", len(both))
    moved, seen, revealed, still, unfounded = 0, 0, 0, 0, 0
    shown = _cells(both, Reader(), Reader())
    true = _cells(both, Reader(truths[0].counted), Reader(truths[1].counted))
    for (one, *public), (_, *secret) in zip(shown, true, strict=True):
        numbers, change = _change(one, *secret)
        said = values_at(public[1], numbers) - values_at(public[0], numbers)
        small, same = (change != 0) & (np.abs(change) < threshold), change == 0
        moved, still = moved + int(small.sum()), still + int(same.sum())
        seen, revealed = seen + int((said[small] != 0).sum()), revealed + int((said == change)[small].sum())
        unfounded += int((said[same] != 0).sum())
        signature = one.universe.signature(one.levels)
        counts = counts_of_pairs((secret[1], secret[0]), numbers[small])
        rate.add(noises.of(signature, signature), int(small.sum()), counts)
        told.step()
    return UpdateJudgement(moved, seen, revealed, rate.expected, still, unfounded)


def _change(one: _Both, old: Cells, new: Cells) -> tuple[Integers, Integers]:
    """The cells that are not zero in one of the two, and by how much they grew."""
    numbers = np.union1d(old[0], new[0])
    numbers = numbers[one.first.has(numbers) & one.second.has(numbers)]
    return numbers, values_at(new, numbers) - values_at(old, numbers)


def _both(first: Published, second: Published) -> tuple[list[_Both], tuple[str, ...]]:
    """What both releases hold, table by table, and what they hold with other codes."""
    others = {(one.unit, one.base, one.count): one for one in second.universes}
    found: list[_Both] = []
    skipped: list[str] = []
    for universe in first.universes:
        other = others.get((universe.unit, universe.base, universe.count))
        if other is None:
            continue
        ours, theirs = held(universe), held(other)
        for levels in (levels for levels in ours if levels in theirs):
            if all(_alike(universe, other, *level) for level in levels):
                found.append(_Both(universe, levels, ours[levels], theirs[levels]))
            else:
                skipped.append(str(universe.signature(levels)))
    if not found:
        remedy = "give two releases of the same tables"
        raise mistake("", "releases", "they have no cross-tabulation in common", remedy)
    return sorted(found, key=lambda one: (one.first.table, one.second.table)), tuple(skipped)


def _alike(one: Universe, other: Universe, variable: str, depth: int) -> bool:
    return codes_at(one.codelists[variable], depth) == codes_at(other.codelists[variable], depth)


def _cells(both: list[_Both], first: Reader, second: Reader) -> Iterator[tuple[_Both, Cells, Cells]]:
    for one in both:
        yield one, first.cells(one.first), second.cells(one.second)
