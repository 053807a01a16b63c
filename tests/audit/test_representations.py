"""The representations that kernels add up, against plain loops over all cells of all refinements."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from discreet.audit.averaging import read_pieces
from discreet.audit.evidence import NoisyCells, Published, Truth
from discreet.audit.refinements import Levels, Piece, PublishedPieces, Refinement
from discreet.audit.representations import Groups, NoiseOfCells, Representations
from discreet.io.progress import Quiet
from discreet.maths.attacks.averaging import Averages, Method
from discreet.maths.noise.additive import discrete_laplace
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.cube import Cube
from tests.audit.known import known as known_noise
from tests.audit.made import axis, cell_key, flat, made, nested, random_columns
from tests.cases import few

Cell = tuple[int, ...]  # the code of each axis of a target, as a place in its tree


def ragged(name: str) -> Codelist:
    """Branches that end at depths one, two and three: cuts have codes of several depths, and cells in common."""
    parents = {
        "1": "",
        "2": "",
        "3": "",
        "1.1": "1",
        "1.2": "1",
        "2.1": "2",
        "2.2": "2",
        "1.1.1": "1.1",
        "1.1.2": "1.1",
    }
    return codelist(name, [Code(code, parent, "") for code, parent in parents.items()])


TREES = [ragged("R"), nested("N", 2, 3), flat("F", 3)]
CROSSES = [["F", "R"], ["N", "R"], ["R", "N", "F"], ["N"]]


@dataclass
class Added:
    """One target: its representations in turn, and the cells of each group in them."""

    sums: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    uses: defaultdict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    seen: list[Counter[int]] = field(default_factory=list)
    known: bool = False

    def shared(self, first: int, weights: list[float]) -> float:
        """What common groups add to the variance of the weighted sum of the first few representations."""
        return sum(
            2 * weights[one] * weights[other] * variance
            for uses in self.uses.values()
            for (one, _), (other, variance) in combinations(uses, 2)
            if max(one, other) < first
        )

    def mean(self, first: int) -> tuple[float, float]:
        """Estimate and variance of the mean of the first few."""
        variance = sum(self.variances[:first]) + self.shared(first, [1.0] * first)
        return sum(self.sums[:first]) / first, variance / first**2

    def weighted(self) -> tuple[float, float]:
        """Estimate and variance with the weights 1/q."""
        weights = [1 / variance for variance in self.variances]
        total, many = sum(weights), len(weights)
        estimate = sum(w * s for w, s in zip(weights, self.sums, strict=True)) / total
        return estimate, (total + self.shared(many, weights)) / total**2


class Reference:
    """The sums of a universe, added up cell by cell."""

    def __init__(self, pieces: PublishedPieces, noise: Noise, informed: bool) -> None:
        self.pieces, self.noise, self.informed = pieces, noise, informed
        self.of = NoiseOfCells(pieces, noise, informed)
        self.refinements = sorted(pieces.refinements.values(), key=self.size)

    def size(self, one: Refinement) -> int:
        if self.noise.keeps_zeros:
            return sum(len(self.pieces.pieces[key].values) for key in one.pieces)
        return prod(int(self.pieces.trees[variable].cuts[cut].sum()) for variable, cut in one.cuts)

    def add_up(self, target: Levels, cell: Cell) -> Added:
        """All representations of one cell."""
        found = Added()
        for one in self.refinements:
            if self.divides(one, target, cell):
                self.take(found, one, target, cell)
        return found

    def divides(self, one: Refinement, target: Levels, cell: Cell) -> bool:
        codes = {variable: code for (variable, _), code in zip(target, cell, strict=True)}
        return codes.keys() <= dict(one.cuts).keys() and all(
            self.pieces.trees[variable].divides(cut)[codes.get(variable, 0)] for variable, cut in one.cuts
        )

    def is_below(self, codes: Cell, one: Refinement, target: Levels, cell: Cell) -> bool:
        """Whether a cell of a refinement's variables is in its cuts and below a target."""
        wanted = {variable: (depth, code) for (variable, depth), code in zip(target, cell, strict=True)}
        for (variable, cut), code in zip(one.cuts, codes, strict=True):
            tree = self.pieces.trees[variable]
            depth, above = wanted.get(variable, (0, 0))
            if not tree.cuts[cut][code] or tree.above(depth)[code] != above:
                return False
        return True

    def take(self, found: Added, one: Refinement, target: Levels, cell: Cell) -> None:
        """Add a representation, unless it is none or the same groups are known."""
        here, at = self.listed(one, target, cell), len(found.sums)
        s, k, q = sum(value for _, value, _ in here), len(here), sum(variance for _, _, variance in here)
        if not self.noise.keeps_zeros:
            k, q = self.possible(one, target, cell)
            if self.noise.publishing.hides_negatives and len(here) != k != 1:
                return
        elif not self.informed and not here:
            k, q = 1, self.of.variance(target)
        if q > 0:
            found.known |= self.informed or not self.noise.keeps_zeros or s != 0
            groups = Counter(group for group, _, _ in here)
            if groups not in found.seen:
                found.seen.append(groups)
                hides_another = self.noise.same_noise and self.noise.keeps_zeros and not self.informed
                many = 2 if hides_another and at > 0 and k == 1 else 1
                found.sums.append(s)
                found.cells.append(many * k)
                found.variances.append(many * q)
                for group, _, variance in here:
                    found.uses[group].append((at, variance))

    def listed(self, one: Refinement, target: Levels, cell: Cell) -> list[tuple[int, int, float]]:
        """Group, value and variance of each listed cell of a refinement below a target."""
        found = []
        for piece in (self.pieces.pieces[key] for key in one.pieces):
            rows = self.of.rows(piece.levels)
            for row in range(len(piece.values)):
                if self.is_below(tuple(piece.codes[row]), one, target, cell):
                    variance = rows[min(piece.counts[row], len(rows) - 1)] if self.informed else rows[-1]
                    group = int(self.of.groups[piece.first + row])
                    found.append((group, int(piece.values[row]), float(variance)))
        return found

    def possible(self, one: Refinement, target: Levels, cell: Cell) -> tuple[int, float]:
        """How many cells there are below a target, listed or not, and their variance."""
        k, q = 0, 0.0
        for key in one.pieces:
            levels = self.pieces.pieces[key].levels
            codes = [
                np.flatnonzero(self.pieces.trees[name].depths == depth).tolist() for name, depth in levels
            ]
            many = sum(self.is_below(some, one, target, cell) for some in product(*codes))
            k, q = k + many, q + many * self.of.variance(levels)
        return k, q


def check(found: Averages, at: int, expected: Added) -> None:
    """The three averages of one cell are those of its representations."""
    many = len(expected.sums)
    prefixes = [expected.mean(first) for first in range(1, many + 1)]
    least = min(variance for _, variance in prefixes)
    best = expected.weighted()
    assert found.t[Method.MEAN, at] == many
    assert found.k[Method.MEAN, at] == sum(expected.cells)
    assert found.estimates[Method.MEAN, at] == pytest.approx(prefixes[-1][0])
    assert found.variances[Method.MEAN, at] == pytest.approx(prefixes[-1][1])
    assert found.variances[Method.RISKIEST, at] == pytest.approx(least)
    assert found.variances[Method.WEIGHTED, at] == pytest.approx(min(best[1], least))
    if best[1] < least * (1 - 1e-9):
        assert found.estimates[Method.WEIGHTED, at] == pytest.approx(best[0])


def check_groups(found: Groups, number: int, expected: Added) -> None:
    """The groups of one cell, and the weights of the first few of them."""
    weights = [sum(1 / expected.variances[at] for at, _ in uses) for uses in expected.uses.values()]
    few = found.weights.shape[1]
    assert found.number[number] == len(weights)
    listed = found.weights[number][: len(weights)]
    assert len(weights) > few or sorted(listed) == pytest.approx(sorted(weights))


def compare(pieces: PublishedPieces, noise: Noise, informed: bool) -> list[int]:
    """Compare all targets; returns how many representations each cell has."""
    represented, reference = Representations(pieces, noise, informed), Reference(pieces, noise, informed)
    compared = []
    for target in [*represented.targets, *represented.targets[:3]]:  # again: nothing is left of other targets
        found = represented.add_up(target)
        levels = [np.flatnonzero(pieces.trees[name].depths == depth) for name, depth in target]
        for number, cell in enumerate(product(*(codes.tolist() for codes in levels))):
            expected = reference.add_up(target, cell)
            assert found.known[number] == expected.known
            if expected.known:
                check(found.running.averages(np.array([number])), 0, expected)
                compared.append(len(expected.sums))
                if found.groups is not None:
                    check_groups(found.groups, number, expected)
    assert set(represented.targets) == set(pieces.crosstabs)
    return compared


@pytest.mark.parametrize(("seed", "persons"), few([(1, 12), (2, 60)], 0))
@pytest.mark.parametrize("informed", [False, True])
def test_noise_that_follows_the_records(seed: int, persons: int, informed: bool) -> None:
    """Many cells have the same records; an outsider sees some of it."""
    mechanism, known = cell_key(1.5, 3)
    world = made(TREES, CROSSES, random_columns(TREES, persons, seed), mechanism, known, seed)
    truth: Truth | None = world.truth if informed else None
    pieces = read_pieces(world.published.universes[0], known, truth, Quiet())
    compared = compare(pieces, known, informed)
    assert len(compared) > 100
    assert max(compared) > 5


def test_fresh_noise_of_listed_cells() -> None:
    """Cells are their own groups, and still in several refinements."""
    mechanism, known = cell_key(1.5, 3)
    world = made(TREES, CROSSES, random_columns(TREES, 40, 5), mechanism, known, 5)
    fresh = known_noise(False, True, 1.5)
    compared = compare(read_pieces(world.published.universes[0], fresh, None, Quiet()), fresh, False)
    assert max(compared) > 5


@pytest.mark.parametrize("negatives", few([Negatives.KEEP, Negatives.ZERO], 1))
def test_noise_of_all_cells(negatives: Negatives) -> None:
    """Unlisted cells have noise too; each cross-tabulation has a law of its own."""
    laws = {"persons///total": discrete_laplace("1/2"), "persons///F:1": discrete_laplace("5/2")}
    noise = known_noise(False, False, None, None, discrete_laplace(1), laws, Publishing(negatives))
    trees = {tree.name: tree for tree in TREES}
    cubes = [
        Cube("x".join(names), "persons", tuple(axis(trees[name]) for name in names)) for names in CROSSES
    ]
    mechanism, known = cell_key(1.5, 3)
    made_of = made(TREES, CROSSES, random_columns(TREES, 30, 6), mechanism, known, 6)
    universe: Published = made_of.published
    pieces, generator = PublishedPieces(universe.universes[0]), np.random.default_rng(7)
    for cube in cubes:
        shown = generator.integers(-1 if negatives is Negatives.KEEP else 0, 4, cube.size)
        cells = np.flatnonzero(shown)
        pieces.add(cube, partial(NoisyCells, cells, shown[cells], shown[cells]))
    compared = compare(pieces, noise, False)
    assert max(compared) > 5


def test_a_cell_is_found_in_the_pieces_above_it() -> None:
    """Codes are compared variable by variable, whatever the order of the axes in a cube."""
    mechanism, known = cell_key(1.5, 3)
    world = made(TREES, CROSSES, random_columns(TREES, 60, 8), mechanism, known, 8)
    pieces = read_pieces(world.published.universes[0], known, None, Quiet())
    compared = 0
    for piece, above, row in pieces.families():
        assert row.tolist() == [row_above(pieces, piece, above, tuple(codes)) for codes in piece.codes]
        compared += int((row >= 0).sum())
    assert compared > 300


def row_above(pieces: PublishedPieces, piece: Piece, above: Piece, codes: Cell) -> int:
    """The row of the coarser piece with the codes above these."""
    depths = dict(above.levels)
    wanted = {
        variable: int(pieces.trees[variable].above(depths[variable])[code])
        for (variable, _), code in zip(piece.levels, codes, strict=True)
        if variable in depths
    }
    for row, there in enumerate(above.codes.tolist()):
        if {variable: code for (variable, _), code in zip(above.levels, there, strict=True)} == wanted:
            return row
    return -1
