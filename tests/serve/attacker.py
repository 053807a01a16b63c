"""An attacker who collects tables and solves all their equations at once, and what a session of theirs finds exactly.

They are given more than an outsider has: which combinations of codes occur at all. How often is a random start, so
that what the answers do not determine is not found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.serve.answer import Refusal
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import resolve

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
AXES = ("GEO.H", "SEX")
STEPS = 400  # of the projected gradient


@dataclass(frozen=True, eq=False)
class Result:
    """How many requests were answered, and the shares of the true counts that rounded estimates are."""

    asked: int
    answered: int
    pairs: float  # of GEO.H x SEX
    triples: float  # of GEO.H x SEX x AGE.L, five records or more


def session(builder: TableBuilder, requests: Sequence[Query]) -> Result:
    """Ask, and then solve."""
    rows: dict[tuple[str, str, str], tuple[csr_matrix, Floats]] = {}
    answered = 0
    for one in requests:
        if isinstance(builder.ask(one, "attacker"), Refusal):
            continue
        answered += 1
        rows |= _equations(builder, resolve(one, builder.catalogue).cube, rows.keys())
    records = _records(builder)
    atoms, atom_of, counts = np.unique(
        np.stack(list(records.values())), axis=1, return_inverse=True, return_counts=True
    )
    gather = csr_matrix(
        (1 / counts[atom_of], (np.arange(len(atom_of)), atom_of)), shape=(len(atom_of), atoms.shape[1])
    )
    start = np.random.default_rng(1).exponential(counts.mean(), len(counts))
    if rows:
        A = vstack([matrix @ gather for matrix, _ in rows.values()]).tocsr()
        found = solved(A, np.concatenate([values for _, values in rows.values()]), start)
    else:
        found = start
    shares = [_exact(builder, axes, gather, found) for axes in (AXES, (*AXES, "AGE.L"))]
    return Result(len(requests), answered, *shares)


def solved(A: csr_matrix, y: Floats, x: Floats) -> Floats:
    """min |A x - y| over x >= 0, by an accelerated projected gradient (Beck & Teboulle 2009)."""
    power = np.ones(A.shape[1])
    for _ in range(20):
        power = A.T @ (A @ power)
        power /= np.linalg.norm(power)
    step = 1 / (1.05 * float(np.linalg.norm(A @ power)) ** 2)
    ahead, momentum = x, 1.0
    for _ in range(STEPS):
        following = np.maximum(0, ahead - step * (A.T @ (A @ ahead - y)))
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, x, momentum = following + (momentum - 1) / later * (following - x), following, later
    return x


def _records(builder: TableBuilder) -> dict[str, Integers]:
    """The leaves of all persons after swapping: the truth, and which combinations occur."""
    unit = builder._source._units["persons"]  # type: ignore[attr-defined]
    names = sorted(unit._parts[0].codes)
    return {
        name: np.concatenate([part.codes[name] for part in unit._parts]).astype(np.int64) for name in names
    }


def _nodes(axis: Breakdown, depth: int, leaves: Integers) -> Integers:
    """Record -> node of this depth, -1 where the axis has none above it."""
    found = axis.node_of_leaf[leaves].astype(np.int64)
    for _ in range(int(axis.depths.max())):
        found = np.where(axis.depths[found] > depth, axis.parents[found], found)
    return np.where(axis.depths[found] == depth, found, -1)


def _places(cube: Cube, depths: Sequence[int], records: dict[str, Integers]) -> Integers:
    """Record -> cell of one cross-tabulation, -1 where it is in none."""
    inside = np.ones(len(next(iter(records.values()))), dtype=bool)
    if cube.base is not None:
        inside &= cube.base.mask({name: codes.astype(np.uint32) for name, codes in records.items()})
    place = np.zeros(len(inside), dtype=np.int64)
    for axis, depth, stride in zip(cube.axes, depths, cube.strides, strict=True):
        nodes = _nodes(axis, depth, records[axis.root])
        inside &= nodes >= 0
        place += nodes * stride
    return np.where(inside, place, -1)


def _equations(
    builder: TableBuilder, cube: Cube, known: object
) -> dict[tuple[str, str, str], tuple[csr_matrix, Floats]]:
    """Each new cross-tabulation: which records each of its cells counts, and the published values."""
    table, records = builder._source.table(cube), _records(builder)
    values = dict(zip(table.cells.tolist(), table.values.tolist(), strict=True))
    found = {}
    for depths in cube.depths:
        signature = cube.signature(depths)
        name = (signature.base, str(signature.levels), signature.unit)
        if name in known:  # type: ignore[operator]
            continue
        place = _places(cube, depths, records)
        shown = np.flatnonzero(place >= 0)
        cells, row = np.unique(place[shown], return_inverse=True)
        matrix = csr_matrix((np.ones(len(shown)), (row, shown)), shape=(len(cells), len(place)))
        found[name] = matrix, np.array([values.get(cell, 0) for cell in cells.tolist()], dtype=np.float64)
    return found


def _exact(builder: TableBuilder, axes: Sequence[str], gather: csr_matrix, found: Floats) -> float:
    """The share of the counts of a table, of five records or more, whose rounded estimate is the true count."""
    cube = resolve(Query("persons", tuple(map(Axis, axes))), builder.catalogue).cube
    place = _places(cube, [int(axis.depths.max()) for axis in cube.axes], _records(builder))
    cells, row = np.unique(place, return_inverse=True)
    matrix = csr_matrix((np.ones(len(place)), (row, np.arange(len(place)))), shape=(len(cells), len(place)))
    truth = np.asarray(matrix.sum(axis=1)).ravel()
    large = truth >= 5
    estimates = np.rint((matrix @ gather) @ found)
    return float((estimates == truth)[large].mean())


def some(rng: np.random.Generator, codes: Sequence[str]) -> tuple[str, ...]:
    """A random half of some codes, neither none nor all."""
    chosen = rng.permutation(len(codes))[: max(1, len(codes) // 2)]
    return tuple(codes[place] for place in sorted(chosen.tolist()))


def listed(codes: Sequence[str]) -> str:
    return f"({', '.join(map(repr, codes))},)"


def filters(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """Random filters: ages in a random S, and ages that are not."""
    ages = builder.catalogue.variables["AGE"].codelist.leaf_codes
    while True:
        chosen = listed(some(rng, ages))
        for word in ("in", "not in"):
            yield Query("persons", tuple(map(Axis, AXES)), f"AGE {word} {chosen}")


def groups(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """Three random groups that divide all ages."""
    ages = builder.catalogue.variables["AGE"].codelist.leaf_codes
    while True:
        which = rng.integers(0, 3, len(ages))
        parts = [tuple(age for age, part in zip(ages, which, strict=True) if part == k) for k in range(3)]
        made = tuple(Group(f"g{k}", part) for k, part in enumerate(parts) if part)
        yield Query("persons", (*map(Axis, AXES), Axis("AGE", (), made)))


def nested(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """Growing sets of ages, each inside the next, and the complement of each."""
    ages = builder.catalogue.variables["AGE"].codelist.leaf_codes
    while True:
        order = rng.permutation(len(ages)).tolist()
        for size in range(10, 100, 10):
            chosen = listed([ages[place] for place in sorted(order[:size])])
            for word in ("in", "not in"):
                yield Query("persons", tuple(map(Axis, AXES)), f"AGE {word} {chosen}")


def crossed(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """Tables by area, sex and a random third breakdown, and those with two conditions."""
    others = (
        "AGE.L",
        "AGE.M",
        "EDU",
        "CAS.H",
        "LMS.H",
        "HAR",
        "OCC",
        "IND.L",
        "SIE",
        "HST.M",
        "FST.M",
        "LOC",
    )
    trees = {
        name: builder.catalogue.variables[name].codelist.leaf_codes for name in ("AGE", "EDU", "OCC", "IND")
    }
    while True:
        yield Query("persons", (*map(Axis, AXES), Axis(str(rng.choice(others)))))
        one, two = rng.choice(list(trees), 2, replace=False)
        chosen = {name: listed(some(rng, trees[name])) for name in (one, two)}
        for first, second in product(("in", "not in"), repeat=2):
            where = f"{one} {first} {chosen[one]} and {two} {second} {chosen[two]}"
            yield Query("persons", tuple(map(Axis, AXES)), where)


def either(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """Filters that are no conjunction, and their opposites."""
    ages, levels = (builder.catalogue.variables[name].codelist.leaf_codes for name in ("AGE", "EDU"))
    while True:
        where = f"AGE in {listed(some(rng, ages))} or EDU in {listed(some(rng, levels))}"
        yield Query("persons", tuple(map(Axis, AXES)), where)
        yield Query("persons", tuple(map(Axis, AXES)), f"not ({where})")


def mixed(builder: TableBuilder, rng: np.random.Generator) -> Iterator[Query]:
    """All of these, in turn."""
    kinds = [kind(builder, rng) for kind in (filters, groups, nested, crossed, either)]
    while True:
        yield next(kinds[int(rng.integers(len(kinds)))])


Kind = Callable[[TableBuilder, np.random.Generator], Iterator[Query]]
KINDS: tuple[Kind, ...] = (filters, groups, nested, crossed, either, mixed)
