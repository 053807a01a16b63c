"""How well averaging can recover the counts of a programme whose cells all have noise, by its declaration only.

A refinement S adds up, below a count with the codes c_v, the product over the variables v of the m_v(S, c_v) codes of
its cuts below them; independent noise of variance V in every cell gives the sum the variance V times that product. The
best combination of all refinements has the variance V / sum over S of the product of 1/m_v (``averaging.recovery``).
The total and all counts by one variable are computed, and those counts by several variables that can be more exposed.
Sums of the same cells count once; cells that two different sums share are taken as independent, so that the variance is
at most too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from discreet.audit.evidence import Universe
from discreet.audit.refinements import CodeTree, Floats, Integers, PublishedPieces
from discreet.programme.cube import Signature

TOTAL = "total"
WHOLE = 0  # the cut that does not divide, and the code of the whole


@dataclass(frozen=True)
class ExposedCount:
    """The count of a programme that averaging recovers best."""

    counted: str
    name: str
    t: int  # representations
    ratio: float  # the variance of their best combination; in units of one cell's where no variance is given

    def __str__(self) -> str:
        return f"{self.name} of {self.counted}"


def most_exposed(
    universes: Iterable[Universe], *, same_noise: bool, variance: Callable[[Signature], float] = lambda _: 1.0
) -> ExposedCount:
    """The count with the smallest variance among those that the tables of a programme represent.

    ``same_noise``: the same participants have the same noise wherever they are counted. ``variance`` of a
    cross-tabulation's cells; where codes end at different depths a sum has the smallest of several.
    """
    every = (one for universe in universes for one in _exposed(universe, same_noise, variance))
    return min(every, key=lambda one: one.ratio)


def _exposed(
    universe: Universe, same_noise: bool, variance: Callable[[Signature], float]
) -> Iterator[ExposedCount]:
    """The grand total, the most exposed of the counts by each variable, and more exposed ones by several."""
    pieces = PublishedPieces(universe)
    for table in universe.tables:
        pieces.declare(table.cube)
    axes = [_Axis.of(tree, same_noise) for tree in pieces.trees.values()]
    names = list(pieces.trees)
    cuts = np.array([[dict(one).get(name, WHOLE) for name in names] for one in pieces.refinements])
    if not names:
        yield ExposedCount(universe.counted, TOTAL, 1, variance(universe.signature(())))
        return
    variances = np.array(
        [
            min(variance(universe.signature(levels)) for levels in one.levels)
            for one in pieces.refinements.values()
        ]
    )
    whole = np.stack([axis.shares[cuts[:, k], WHOLE] for k, axis in enumerate(axes)], axis=1)
    below_whole = np.stack([axis.whole[cuts[:, k]] for k, axis in enumerate(axes)], axis=1)
    most = 0.0
    for k, axis in enumerate(axes):
        others = np.delete(whole, k, axis=1).prod(axis=1) / variances  # without the 1/m of this variable
        for codes, first in axis.kinds:
            seen = below_whole.copy()
            seen[:, k] = first[cuts[:, k]]
            _, once = np.unique(_numbers(seen), return_index=True)
            at = seen[once, k]
            information = np.bincount(at, others[once], minlength=len(axis.shares)) @ axis.shares[:, codes]
            times = np.bincount(at, minlength=len(axis.shares)) @ (axis.shares[:, codes] > 0)
            best = int(information.argmax())
            most = max(most, float(information[best]))
            if information[best] > 0:
                name = TOTAL if codes[best] == WHOLE else f"{names[k]}={axis.codes[int(codes[best])]}"
                yield ExposedCount(universe.counted, name, int(times[best]), float(1 / information[best]))
    place = {name: k for k, name in enumerate(names)}
    together = {
        some
        for table in universe.tables
        for size in range(2, len(table.cube.axes) + 1)
        for some in combinations(sorted(place[axis.variable] for axis in table.cube.axes), size)
    }
    for some in sorted(together):
        for cell, often, found in _crossed(axes, cuts, (whole, below_whole, variances), some, most):
            named = [f"{names[k]}={axes[k].codes[code]}" for k, code in zip(some, cell, strict=True)]
            yield ExposedCount(universe.counted, ", ".join(named), often, 1 / found)


def _crossed(
    axes: Sequence[_Axis],
    cuts: Integers,
    known: tuple[Floats, Integers, Floats],
    some: tuple[int, ...],
    most: float,
) -> Iterator[tuple[list[int], int, float]]:
    """Counts by several variables that are more exposed than every count by one, with their information.

    That happens where codes have a single code below them, along several variables.
    """
    whole, below_whole, variances = known
    others = np.delete(whole, some, axis=1).prod(axis=1) / variances
    largest = [axes[k].shares.max(axis=1)[cuts[:, k]] for k in some]
    if others @ np.prod(largest, axis=0) <= most:
        return
    for kinds in product(*(axes[k].kinds for k in some)):
        seen = below_whole.copy()
        for k, (_, first) in zip(some, kinds, strict=True):
            seen[:, k] = first[cuts[:, k]]
        _, once = np.unique(_numbers(seen), return_index=True)
        codes = [axes[k].distinct(kind) for k, (kind, _) in zip(some, kinds, strict=True)]
        parts = [axes[k].shares[seen[once, k]][:, of] for k, of in zip(some, codes, strict=True)]
        letters = "abcdefghijklmnopq"[: len(some)]
        found = np.einsum(f"r,{','.join('r' + one for one in letters)}->{letters}", others[once], *parts)
        best = np.unravel_index(int(found.argmax()), found.shape)
        if found[best] > most:
            times = np.prod([part[:, at] > 0 for part, at in zip(parts, best, strict=True)], axis=0).sum()
            yield [int(of[at]) for of, at in zip(codes, best, strict=True)], int(times), float(found[best])


@dataclass(frozen=True, eq=False)
class _Axis:
    """The cuts of a variable as seen from below each of its codes."""

    codes: tuple[str, ...]
    shares: Floats  # (cut, code): one by the number of codes of the cut below the code
    kinds: Sequence[
        tuple[Integers, Integers]
    ]  # codes for which the same cuts coincide, and cut -> the first alike

    @property
    def whole(self) -> Integers:
        """Cut -> the first that is alike as a division of the whole."""
        return next(first for codes, first in self.kinds if codes[0] == WHOLE)

    def distinct(self, codes: Integers) -> Integers:
        """One of each of the codes that all cuts divide alike."""
        _, first = np.unique(self.shares[:, codes], axis=1, return_index=True)
        found: Integers = codes[first]
        return found

    @classmethod
    def of(cls, tree: CodeTree, same_noise: bool) -> _Axis:
        """The cuts of a tree; two that have the same codes below a code are one there.

        With the same noise for the same participants codes of the same leaves are the same, too.
        """
        firsts, ends = (np.array([getattr(one, end) for one in tree.leaves_of]) for end in ("start", "stop"))
        named = firsts * (ends.max() + 1) + ends if same_noise else np.arange(len(tree.codes))
        marks = np.random.default_rng(0).integers(0, 2**64, int(named.max()) + 1, dtype=np.uint64)[named]
        below = np.zeros((len(tree.cuts), len(tree.codes)), dtype=np.uint64)
        for number, members in enumerate(tree.cuts):
            order = np.flatnonzero(members)[np.argsort(firsts[members], kind="stable")]
            sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(marks[order])])
            below[number] = (
                sums[np.searchsorted(firsts[order], ends)] - sums[np.searchsorted(firsts[order], firsts)]
            )
        first = (below[:, None] == below[None]).argmax(axis=1)  # (cut, code) -> the first cut that is alike
        patterns, of = np.unique(first.T, axis=0, return_inverse=True)
        kinds = [(np.flatnonzero(of.ravel() == k), pattern) for k, pattern in enumerate(patterns)]
        return cls(tree.codes, tree.shares(), kinds)


def _numbers(cuts: Integers) -> Integers:
    """A number for each row that is equal only for equal rows."""
    found = np.zeros(len(cuts), dtype=np.int64)
    for column in cuts.T:
        found = np.unique(found * (int(column.max()) + 1) + column, return_inverse=True)[1].ravel()
    return found
