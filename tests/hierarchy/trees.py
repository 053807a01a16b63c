"""Small variables, cubes over them, and noisy tables of a random population."""

import numpy as np
from numpy.typing import NDArray

from discreet.maths.consistent import lattice
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.tables import NoisyTable

GEO = codelist(
    "GEO",
    [Code(f"{r}", "", "") for r in "ABC"]
    + [Code(f"{r}{p}", r, "") for r in "AB" for p in "12"]
    + [Code(f"A1{q}", "A1", "") for q in "xyz"],
)  # C has no parts, A1 has parts of its own
AGE = codelist(
    "AGE", [Code(f"{a}", "", "") for a in "123"] + [Code(f"{a}.{b}", a, "") for a in "123" for b in "12"]
)
TREES: dict[str, Codelist] = {
    "GEO": GEO,
    "AGE": AGE,
    **{
        name: codelist(name, [Code(c, "", "") for c in codes])
        for name, codes in (("SEX", "12"), ("WORK", "123"), ("EDU", "1234"))
    },
}
AXES: dict[str, Breakdown] = {
    "GEO.L": breakdown("GEO", "L", GEO, GEO.level(1)),
    "GEO.M": breakdown("GEO", "M", GEO, GEO.level(2)),
    "GEO.H": breakdown("GEO", "H", GEO, GEO.level(3)),
    "AGE.L": breakdown("AGE", "L", AGE, AGE.level(1)),
    "AGE.H": breakdown("AGE", "H", AGE, AGE.level(2)),
    "AGE.X": breakdown("AGE", "X", AGE, [AGE.position[c] for c in ("1.1", "1.2", "2", "3")]),
    "AGE.Y": breakdown("AGE", "Y", AGE, [AGE.position[c] for c in ("1", "2.1", "2.2", "3")]),
    **{name: breakdown(name, name, TREES[name], TREES[name].leaves) for name in ("SEX", "WORK", "EDU")},
}


def cube(name: str, *axes: str, unit: str = "persons") -> Cube:
    return Cube(name, unit, tuple(AXES[axis] for axis in axes))


def population(seed: int, people: int = 300) -> dict[str, NDArray[np.int64]]:
    """Each variable's leaf of everybody; most people are in few cells. Nobody in age 1 works (WORK 1 or 2)."""
    rng = np.random.default_rng(seed)
    leaves = {
        name: np.minimum(rng.geometric(0.4, people) - 1, len(tree.leaves) - 1) for name, tree in TREES.items()
    }
    young = np.array([TREES["AGE"].leaf_codes[leaf].startswith("1") for leaf in leaves["AGE"]])
    leaves["WORK"] = np.where(young, 2, leaves["WORK"])
    return leaves


def is_impossible(one: Cube, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Cells of the young who work."""
    names = [axis.variable for axis in one.axes]
    if not {"AGE", "WORK"} <= set(names):
        return np.zeros(len(cells), dtype=bool)
    age, work = one.axes[names.index("AGE")], one.axes[names.index("WORK")]
    young = np.array([code.startswith("1") for code in age.codes])[one.nodes(cells, names.index("AGE"))]
    works = np.array([code in ("1", "2") for code in work.codes])[one.nodes(cells, names.index("WORK"))]
    found: NDArray[np.bool_] = young & works
    return found


def true_cells(one: Cube, people: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """The whole grid of true counts."""
    grid = np.zeros(one.size, dtype=np.int64)
    position = np.zeros(len(people["SEX"]), dtype=np.int64)
    for axis, stride in zip(one.axes, one.strides, strict=True):
        position += axis.node_of_leaf[people[axis.variable]] * stride
    finest, counts = np.unique(position, return_counts=True)
    cells = lattice([axis.parents for axis in one.axes], finest)
    grid[cells.positions] = np.rint(cells.sums(counts.astype(np.float64))).astype(np.int64)
    return grid


def noisy(one: Cube, people: dict[str, NDArray[np.int64]], seed: int, keep_zeros: bool) -> NoisyTable:
    """Noise that is the same for the same cell in every cube; depends on the description of the cell."""
    grid, every = true_cells(one, people), np.arange(one.size)
    noise = np.array([described(one, int(cell), seed) for cell in every])
    value = grid + noise
    if keep_zeros:
        value = np.where(grid == 0, 0, np.maximum(value, 0))
        kept = value > 0
    else:
        kept = ~is_impossible(one, every)
    depths = [int(axis.depths.max()) + 1 for axis in one.axes]
    return NoisyTable(one, every[kept], value[kept], np.full(depths, 4.0))


def described(one: Cube, cell: int, seed: int) -> int:
    name = repr(sorted(one.codes_of(cell).items())).encode()
    rng = np.random.default_rng([seed, *name])
    return int(np.rint(rng.normal(0, 2)))
