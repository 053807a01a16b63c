"""How well a linear adversary can recover the counts of a programme whose cells all have noise, by its declaration.

A refinement S adds up, below a count with the codes c_v, the product over the variables v of the m_v(S, c_v) codes of
its cuts below them; independent noise of variance V in every cell gives the sum the variance V times that product. The
best combination of all refinements has the variance V / sum over S of the product of 1/m_v (``averaging.recovery``).
Sums of the same cells count once; cells that two different sums share are taken as independent, so that the variance is
at most too small. So are those counts by several variables judged that can be more exposed than all others.

The total and all counts by one variable are judged by the strongest linear adversary, who also subtracts. With the
cells j of all tables as rows a_j of the finest records and the target as t, the least variance of an unbiased
combination is max_u (u't)^2 / sum_j (a_j'u)^2 / V_j, so that every u gives a variance that no such adversary is below.
Here u is constant on the target, and on what its path from the whole divides off at each level, spread evenly over the
codes at each branching; over all such u the maximum is 1 / (M^-1)_00 of a matrix with one row per level. It is exact
where siblings are alike: products of balanced trees with all margins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import prod

import numpy as np

from discreet.audit.evidence import Universe
from discreet.audit.refinements import CodeTree, Floats, Integers, Mask, PublishedPieces
from discreet.programme.cube import Signature

TOTAL = "total"
MOST_CROSSED = 4  # variables of a count that the strongest linear adversary is asked for ..
MOST_CLASSES = 256  # .. and rows of its matrix
ROUNDING = 1e-9  # relative: what is more than another by less is equal to it
CLEARLY = 1e-6  # relative: what is more than another by more is not the first of equal ones
RIDGE, LEAST = 1e-12, 1e-300  # keep a matrix that does not determine a count from being singular
WHOLE = 0  # the cut that does not divide, and the code of the whole


@dataclass(frozen=True)
class ExposedCount:
    """The count of a programme that averaging recovers best."""

    counted: str
    name: str
    t: int  # representations
    ratio: float  # the variance of their best combination; in units of one cell's where no variance is given
    at_least: bool = (
        False  # only part of the tables was attacked: this count or another is at least so exposed
    )

    def __str__(self) -> str:
        return f"{self.name} of {self.counted}"


def declared_pieces(universe: Universe) -> PublishedPieces:
    """What the tables of a universe publish, without their cells."""
    pieces = PublishedPieces(universe)
    for table in universe.tables:
        pieces.declare(table.cube)
    return pieces


def most_exposed(
    programme: Iterable[PublishedPieces],
    *,
    same_noise: bool,
    variance: Callable[[Signature], float] = lambda _: 1.0,
) -> ExposedCount:
    """The count with the smallest variance among those that the tables of a programme represent.

    ``same_noise``: the same participants have the same noise wherever they are counted. ``variance`` of a
    cross-tabulation's cells; where codes end at different depths a sum has the smallest of several.
    """
    every = (one for pieces in programme for one in _exposed(pieces, same_noise, variance))
    return min(every, key=lambda one: float(f"{one.ratio:.9g}"))  # the first of equal ones


def _exposed(
    pieces: PublishedPieces, same_noise: bool, variance: Callable[[Signature], float]
) -> Iterator[ExposedCount]:
    """The grand total, the most exposed of the counts by each variable, and more exposed ones by several.

    Of the latter only those that can be the most exposed of all.
    """
    universe = pieces.universe
    if not pieces.trees:
        yield ExposedCount(universe.counted, TOTAL, 1, variance(universe.signature(())))
        return
    names, sums = list(pieces.trees), RefiningSums.of(pieces, same_noise, variance)
    axes, cuts = sums.axes, sums.cuts
    most, known = 0.0, np.inf  # the largest information, and the smallest variance that was found
    design = Design(pieces, same_noise, variance)
    least = [design.one(k) for k in range(len(names))]
    every = np.arange(len(cuts))
    for k, axis in enumerate(axes):
        others = sums.others((k,), every)
        for codes, first in axis.kinds:
            seen = sums.below_whole.copy()
            seen[:, k] = first[cuts[:, k]]
            _, once = np.unique(_numbers(seen), return_index=True)
            at = seen[once, k]
            information = np.bincount(at, others[once], minlength=len(axis.shares)) @ axis.shares[:, codes]
            times = np.bincount(at, minlength=len(axis.shares)) @ (axis.shares[:, codes] > 0)
            most = max(most, float(information.max()))
            lowest = np.where(information > 0, least[k][codes], np.inf)
            best = int(np.flatnonzero(lowest <= lowest.min() * (1 + ROUNDING))[0])
            if information[best] > 0:
                name = TOTAL if codes[best] == WHOLE else f"{names[k]}={axis.codes[int(codes[best])]}"
                yield ExposedCount(universe.counted, name, int(times[best]), float(lowest[best]))
                most, known = max(most, 1 / float(lowest[best])), min(known, float(lowest[best]))
    place = {name: k for k, name in enumerate(names)}
    together = {
        some
        for table in universe.tables
        for size in range(2, len(table.cube.axes) + 1)
        for some in combinations(sorted(place[axis.variable] for axis in table.cube.axes), size)
    }
    strongest = _strongest(design, least, sorted(together), known)
    enough = max((1 / found for _, found in strongest.values()), default=0.0) * (1 - CLEARLY)
    for some in sorted(together):
        if some in strongest:
            of, found = strongest[some]
            named = [f"{names[k]}={axes[k].codes[code]}" for k, code in zip(some, of, strict=True)]
            yield ExposedCount(universe.counted, ", ".join(named), design.cross_tabulations, found)
            most = max(most, 1 / found)  # a count that is less exposed than another need not be found
        for cell, often, found in sums.crossed(some, max(most, enough)):
            named = [f"{names[k]}={axes[k].codes[code]}" for k, code in zip(some, cell, strict=True)]
            yield ExposedCount(universe.counted, ", ".join(named), often, 1 / found)
            most = max(most, found)


@dataclass(frozen=True, eq=False)
class Products:
    """A factor of each row and variable, and a factor of the row."""

    factors: Floats  # (row, variable)
    rows: Floats

    @cached_property
    def _all(self) -> tuple[Floats, Sequence[Floats], Mask, Integers]:
        """The products without zeros, each variable's factors without them, where they are, and how many there are."""
        is_zero = self.factors == 0
        factors = np.where(is_zero, 1.0, self.factors)
        columns = list(np.ascontiguousarray(factors.T))
        return factors.prod(axis=1) * self.rows, columns, is_zero, is_zero.sum(axis=1)

    def replaced(self, some: Sequence[int], by: Sequence[Floats]) -> float:
        """The sum over the rows of the products, other factors of some variables in place of theirs, to rounding."""
        every, columns, is_zero, zeros = self._all
        found = every.copy()
        for k, other in zip(some, by, strict=True):
            found *= other / columns[k]
        if zeros.any():
            found[is_zero[:, list(some)].sum(axis=1) < zeros] = 0.0
        return float(found.sum())


@dataclass(frozen=True, eq=False)
class RefiningSums:
    """The refinements that a universe publishes: each adds up the cells of one cut of every variable."""

    axes: Sequence[CutAxis]
    cuts: Integers  # (refinement, variable) -> cut
    whole: Floats  # (refinement, variable) -> one by the number of codes of its cut
    below_whole: Integers  # (refinement, variable) -> the first cut that divides the whole alike
    variances: Floats  # refinement -> that of its cells

    @classmethod
    def of(
        cls, pieces: PublishedPieces, same_noise: bool, variance: Callable[[Signature], float]
    ) -> RefiningSums:
        """All refinements of the tables that were declared."""
        axes = [CutAxis.of(tree, same_noise) for tree in pieces.trees.values()]
        place = {name: k for k, name in enumerate(pieces.trees)}
        cuts = np.full((len(pieces.refinements), len(place)), WHOLE)
        for row, one in enumerate(pieces.refinements):
            for name, cut in one:
                cuts[row, place[name]] = cut
        signature = pieces.universe.signature
        return cls(
            axes,
            cuts,
            np.stack([axis.shares[cuts[:, k], WHOLE] for k, axis in enumerate(axes)], axis=1),
            np.stack([axis.whole[cuts[:, k]] for k, axis in enumerate(axes)], axis=1),
            np.array(
                [
                    min(variance(signature(levels)) for levels in one.levels)
                    for one in pieces.refinements.values()
                ]
            ),
        )

    def others(self, some: tuple[int, ...], rows: Integers) -> Floats:
        """Refinement -> the information of its sums, without the 1/m of some variables."""
        found: Floats = np.delete(self.whole[rows], some, axis=1).prod(axis=1) / self.variances[rows]
        return found

    @cached_property
    def _products(self) -> Products:
        return Products(self.whole, 1 / self.variances)

    @cached_property
    def _largest(self) -> list[Floats]:
        """Variable -> refinement -> the largest share of a code below the whole, zero where nothing is divided."""
        return [
            np.where(self.cuts[:, k] == WHOLE, 0.0, axis.largest_part[self.cuts[:, k]])
            for k, axis in enumerate(self.axes)
        ]

    def crossed(self, some: tuple[int, ...], most: float) -> Iterator[tuple[list[int], int, float]]:
        """Counts by several variables that are more exposed than every count by one, with their information.

        That happens where codes have a single code below them, along several variables.
        """
        if self._products.replaced(some, [self._largest[k] for k in some]) <= most:
            return
        most *= 1 + ROUNDING  # the same sums add up to the same information in any order
        axes, dividing = self.axes, np.flatnonzero((self.cuts[:, some] != WHOLE).all(axis=1))
        cuts, others = self.cuts[dividing], self.others(some, dividing)
        largest = [axes[k].largest_part[cuts[:, k]] for k in some]
        if others @ np.prod(largest, axis=0) <= most:
            return
        rows = _numbers(np.delete(self.below_whole[dividing], some, axis=1))
        for kinds in _possible_kinds(axes, cuts, others, some, largest, most):
            seen = np.stack(
                [axes[k].parts[kind][1][cuts[:, k]] for k, kind in zip(some, kinds, strict=True)], axis=1
            )
            _, once = np.unique(_numbers(np.column_stack([rows, seen])), return_index=True)
            shares = [axes[k].largest[kind][cuts[once, k]] for k, kind in zip(some, kinds, strict=True)]
            if others[once] @ np.prod(shares, axis=0) <= most:
                continue
            codes = [axes[k].distinct[kind] for k, kind in zip(some, kinds, strict=True)]
            _, first, of = np.unique(_numbers(seen[once]), return_index=True, return_inverse=True)
            here = seen[once][first]  # the cuts along these variables: all refinements that share them add up
            parts = [
                axes[k].shares[here[:, at]][:, of_kind]
                for at, (k, of_kind) in enumerate(zip(some, codes, strict=True))
            ]
            letters = "abcdefghijklmnopq"[: len(some)]
            information = np.bincount(of, others[once])
            found = np.einsum(f"r,{','.join('r' + one for one in letters)}->{letters}", information, *parts)
            best = np.unravel_index(int(found.argmax()), found.shape)
            if found[best] > most:
                shown = np.prod([part[:, at] > 0 for part, at in zip(parts, best, strict=True)], axis=0)
                times = int(np.bincount(of) @ shown)
                yield (
                    [int(of_kind[at]) for of_kind, at in zip(codes, best, strict=True)],
                    times,
                    float(found[best]),
                )


@dataclass(frozen=True, eq=False)
class _Ray:
    """What a u for one code of a variable shows: cross-tabulation -> u'Gu and the trace of G; and u'u."""

    shown: Floats
    trace: Floats
    square: float


class Design:
    """Which cells a programme publishes of a population, as the strongest linear adversary sees them."""

    def __init__(
        self, pieces: PublishedPieces, same_noise: bool, variance: Callable[[Signature], float]
    ) -> None:
        self.names = list(pieces.trees)
        trees = list(pieces.trees.values())
        once = same_noise and all(table.cube.shown is None for table in pieces.universe.tables)
        self.spreads = [Spread(tree, once) for tree in trees]
        place = {name: k for k, name in enumerate(self.names)}
        self._sets: list[list[Mask]] = [[tree.cuts[WHOLE]] for tree in trees]  # variable -> sets of codes
        numbers: list[dict[int, int]] = [{} for _ in trees]  # number of a set -> its place among them
        self._chosen = np.zeros(
            (len(trees), len(pieces.measured)), dtype=np.int64
        )  # (variable, cross-tabulation)
        for column, key in enumerate(pieces.measured):
            for name, number in key:
                k = place[name]
                if number not in numbers[k]:
                    numbers[k][number] = len(self._sets[k])
                    self._sets[k].append(pieces.members[number])
                self._chosen[k, column] = numbers[k][number]
        self._squares = [
            [spread.squares(members) for members in every]
            for spread, every in zip(self.spreads, self._sets, strict=True)
        ]
        self._precision = np.array(
            [1 / variance(pieces.universe.signature(levels)) for levels in pieces.measured.values()]
        )
        self._whole = [
            np.array([squares[WHOLE] for squares in every])[chosen]
            for every, chosen in zip(self._squares, self._chosen, strict=True)
        ]
        self.cross_tabulations = len(pieces.measured)
        self._gram = cache(self._make_gram)
        self._ray = cache(self._make_ray)

    def one(self, k: int) -> Floats:
        """Code of a variable -> a variance that no linear unbiased estimate of its count is below."""
        (chosen,), weights = self._weights((k,))
        every = zip(chosen.tolist(), weights.tolist(), strict=True)
        sets = [(self._squares[k][n], self._sets[k][n], weight) for n, weight in every]
        return self.spreads[k].variances(sets)

    def several(self, some: tuple[int, ...], codes: Sequence[int]) -> float:
        """The same of the count with these codes of some variables; infinite where that is too large to compute."""
        spreads = [self.spreads[k] for k in some]
        if (
            np.prod([spread.classes(code) for spread, code in zip(spreads, codes, strict=True)])
            > MOST_CLASSES
        ):
            return np.inf
        sets, weights = self._weights(some)
        products = weights[:, None, None]  # of the sets' matrices, Kronecker products over the variables
        for k, code, chosen in zip(some, codes, sets, strict=True):
            grams = np.stack([self._gram(k, code, n) for n in range(len(self._sets[k]))])[chosen]
            size = products.shape[1] * grams.shape[1]
            products = np.einsum("sij,skl->sikjl", products, grams).reshape(len(weights), size, size)
        return float(_first_of_inverse(products.sum(axis=0)[None])[0])

    def floor(self, some: tuple[int, ...], codes: Sequence[int]) -> float:
        """What ``several`` is at least, at a small part of its cost.

        Every u gives such a variance: here the product of those that are best for each code by itself. With the u_k, of
        which the first element is one, u'Mu is the sum over the cross-tabulations of the products of u_k'G_k u_k.
        """
        rays = [self._ray(k, code) for k, code in zip(some, codes, strict=True)]
        shown = self._products.replaced(some, [ray.shown for ray in rays])
        ridge = RIDGE * self._products.replaced(some, [ray.trace for ray in rays]) + LEAST
        return 1 / (shown + ridge * prod(ray.square for ray in rays))

    @cached_property
    def _products(self) -> Products:
        return Products(np.stack(self._whole, axis=1), self._precision)

    def _make_ray(self, k: int, code: int) -> _Ray:
        (chosen,), weights = self._weights((k,))
        grams = np.stack([self._gram(k, code, n) for n in range(len(self._sets[k]))])
        matrix = (grams[chosen] * weights[:, None, None]).sum(axis=0)
        size = len(matrix)
        u = np.linalg.solve(matrix + (RIDGE * np.trace(matrix) + LEAST) * np.eye(size), np.eye(size)[0])
        u = u / u[0]
        shown, trace = ((grams @ u) * u).sum(axis=1), np.trace(grams, axis1=1, axis2=2)
        return _Ray(shown[self._chosen[k]], trace[self._chosen[k]], float((u * u).sum()))

    def _make_gram(self, k: int, code: int, number: int) -> Floats:
        return self.spreads[k].gram(code, self._squares[k][number], self._sets[k][number])

    def _weights(self, some: tuple[int, ...]) -> tuple[tuple[Integers, ...], Floats]:
        """The sets of codes of some variables that are crossed, and the sum of what the others leave of each."""
        rest = self._precision.copy()
        for k, whole in enumerate(self._whole):
            if k not in some:
                rest *= whole
        sizes = tuple(len(self._sets[k]) for k in some)
        numbers = np.ravel_multi_index(tuple(self._chosen[k] for k in some), sizes)
        sums, times = (np.bincount(numbers, of, minlength=prod(sizes)) for of in (rest, None))
        crossed = np.flatnonzero(times)
        return np.unravel_index(crossed, sizes), sums[crossed].astype(np.float64)


def _first_of_inverse(matrices: Floats) -> Floats:
    """(M^-1)_00 of each matrix; very large where M does not determine it."""
    size = matrices.shape[1]
    scale = np.trace(matrices, axis1=1, axis2=2)[:, None, None]
    first = np.broadcast_to(np.eye(size)[:, :1], (len(matrices), size, 1))
    found: Floats = np.linalg.solve(matrices + (RIDGE * scale + LEAST) * np.eye(size), first)[:, 0, 0]
    return found


class Spread:
    """A tree whose leaves have the weights of an even division at each branching."""

    def __init__(self, tree: CodeTree, same_noise: bool) -> None:
        self._tree = tree
        children = np.bincount(tree.parents[1:], minlength=len(tree.codes))
        self._share = np.ones(len(tree.codes))
        for codes in tree.by_depth[1:]:
            above = tree.parents[codes]
            self._share[codes] = self._share[above] / children[above]
        only = np.r_[False, children[tree.parents[1:]] == 1]
        self._counted = ~(only & same_noise)  # a code that is all of its parent is the same group

    def squares(self, members: Mask) -> Floats:
        """Code -> the sum of squared shares of some codes at or below it."""
        found = np.where(members & self._counted, self._share**2, 0.0)
        for codes in self._tree.by_depth[:0:-1]:
            last_first = codes[::-1]
            np.add.at(found, self._tree.parents[last_first], found[last_first])
        return found

    def variances(self, sets: Sequence[tuple[Floats, Mask, float]]) -> Floats:
        """Code -> 1 / information of the best u; each set of codes with its sums of squares and its weight."""
        found = np.full(len(self._tree.codes), np.inf)
        for depth in np.unique(self._tree.depths).tolist():
            codes = np.flatnonzero(self._tree.depths == depth)
            path = self._path(codes)
            matrix = np.zeros((len(codes), depth + 1, depth + 1))
            for squares, members, weight in sets:
                self._add(matrix, path, squares, members & self._counted, weight)
            for level in range(1, depth + 1):  # where nothing is beside the code, nothing is asked of it
                matrix[self._share[path[level - 1]] <= self._share[path[level]], level, level] += 1.0
            found[codes] = _first_of_inverse(matrix)
        return found

    def gram(self, code: int, squares: Floats, members: Mask) -> Floats:
        """What one set of codes shows of a code and of what its path divides off, level by level."""
        path = self._path(np.array([code]))
        matrix = np.zeros((1, len(path), len(path)))
        self._add(matrix, path, squares, members & self._counted, 1.0)
        share = self._share[path[:, 0]]
        kept = np.r_[0, 1 + np.flatnonzero(share[:-1] > share[1:])]
        found: Floats = matrix[0][np.ix_(kept, kept)]
        return found

    def classes(self, code: int) -> int:
        """How many rows that has."""
        share = self._share[self._path(np.array([code]))[:, 0]]
        return 1 + int((share[:-1] > share[1:]).sum())

    def _path(self, codes: Integers) -> Integers:
        """The codes from the whole down to each of some codes of one depth."""
        path = [codes]
        while self._tree.depths[path[0][0]] > 0:
            path.insert(0, self._tree.parents[path[0]].astype(np.int64))
        return np.stack(path)

    def _add(self, matrix: Floats, path: Integers, squares: Floats, members: Mask, weight: float) -> None:
        depth = len(path) - 1
        share = self._share
        for level in range(depth + 1):
            inside = np.zeros((len(matrix), depth + 1))  # the classes that the code of this level contains
            inside[:, 0] = 1.0
            for lower in range(level + 1, depth + 1):
                inside[:, lower] = share[path[lower - 1]] > share[path[lower]]
            at = members[path[level]]
            if level < depth:
                matrix += weight * at[:, None, None] * inside[:, :, None] * inside[:, None, :]
        matrix[:, 0, 0] += weight * squares[path[depth]] / share[path[depth]] ** 2
        for level in range(1, depth + 1):
            mass = share[path[level - 1]] - share[path[level]]
            own = np.where(members[path[level - 1]], share[path[level - 1]] ** 2, 0.0)
            beside = squares[path[level - 1]] - own - squares[path[level]]
            matrix[:, level, level] += weight * np.divide(
                beside, mass**2, out=np.zeros_like(mass), where=mass > 0
            )


def _strongest(
    design: Design, least: Sequence[Floats], together: Iterable[tuple[int, ...]], known: float
) -> dict[tuple[int, ...], tuple[list[int], float]]:
    """The counts by several variables whose codes are each the most exposed of their variable, and their variances.

    In a table with all margins the variance is the product over its variables, so that no other is more exposed. Those
    whose variance is clearly above the smallest, or above a ``known`` one, are left out: most are never computed.
    """
    codes = [1 + int(one[1:].argmin()) if len(one) > 1 else WHOLE for one in least]
    floors = {}
    for some in together:
        if len(some) <= MOST_CROSSED and all(codes[k] != WHOLE for k in some):
            floors[some] = design.floor(some, [codes[k] for k in some])
    found: dict[tuple[int, ...], tuple[list[int], float]] = {}
    for some in sorted(floors, key=lambda some: floors[some]):
        if floors[some] > known * (1 + CLEARLY):
            break
        of = [codes[k] for k in some]
        variance = design.several(some, of)
        if np.isfinite(variance):
            found[some] = of, variance
            known = min(known, variance)
    return found


def _possible_kinds(
    axes: Sequence[CutAxis],
    cuts: Integers,
    others: Floats,
    some: tuple[int, ...],
    largest: Sequence[Floats],
    most: float,
) -> Iterator[tuple[int, ...]]:
    """The kinds of codes along some variables whose counts can be more exposed than ``most``.

    Equal rows count several times and each row by its largest share, so that the sum is at least the information.
    """
    if not some:
        yield ()
        return
    rest = np.prod(largest[1:], axis=0)
    for kind, largest_of in enumerate(axes[some[0]].largest):
        here = others * largest_of[cuts[:, some[0]]]
        if (here * rest).sum() > most:
            for further in _possible_kinds(axes, cuts, here, some[1:], largest[1:], most):
                yield (kind, *further)


@dataclass(frozen=True, eq=False)
class CutAxis:
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

    @cached_property
    def largest_part(self) -> Floats:
        """Cut -> the largest share of a code below the whole."""
        found: Floats = self.shares[:, WHOLE + 1 :].max(axis=1, initial=0.0)
        return found

    @cached_property
    def parts(self) -> Sequence[tuple[Integers, Integers]]:
        """The kinds of codes below the whole: a count by all codes of a variable is one without the variable."""
        below = ((codes[codes != WHOLE], first) for codes, first in self.kinds)
        return [(codes, first) for codes, first in below if len(codes)]

    @cached_property
    def distinct(self) -> Sequence[Integers]:
        """One of each of the codes that all cuts divide alike, of each kind."""
        return [
            codes[np.unique(self.shares[:, codes], axis=1, return_index=True)[1]] for codes, _ in self.parts
        ]

    @cached_property
    def largest(self) -> Sequence[Floats]:
        """Cut -> the largest share of a code of each kind."""
        return [self.shares[:, codes].max(axis=1) for codes, _ in self.parts]

    @classmethod
    def of(cls, tree: CodeTree, same_noise: bool) -> CutAxis:
        """The cuts of a tree; two that have the same codes below a code are one there.

        With the same noise for the same participants codes of the same leaves are the same, too.
        """
        firsts, ends = tree.spans
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
    found, sizes = np.zeros(len(cuts), dtype=np.int64), 1
    for column in cuts.T:
        size = int(column.max()) + 1
        if sizes * size >= 2**62:  # number what was seen so far from 0 on, in the same order
            found = np.unique(found, return_inverse=True)[1].ravel()
            sizes = len(cuts)
        found, sizes = found * size + column, sizes * size
    return found
