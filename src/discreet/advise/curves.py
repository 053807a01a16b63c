"""Risk-utility curves: tables perturbed repeatedly over a grid of noise parameters (Rinott et al. 2018, 5.6.2).

Only sums over many cells of each trial are stored. The records are counted once. For the cell key method a trial
takes the record keys a r + b modulo 2^32 with a odd, so that the keys of cells follow from those that were summed,
a K + b n; the same participants still have the same noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.advise.advise import Task
from discreet.advise.facts import Facts, seeded_secret
from discreet.audit.case import occupied
from discreet.audit.cells import OwnedTable, once
from discreet.audit.evidence import tables_of
from discreet.audit.utility import two_way
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import success
from discreet.maths.attacks.disclosure import side
from discreet.maths.cells.alignment import aligned
from discreet.maths.cells.counting import counts_of, keys_of
from discreet.maths.feasible import GAUSSIAN, GEOMETRIC
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.maths.utility import Measure, errors, hellinger
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.choose import cell_key_mechanism, mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.private import PrivateMechanism
from discreet.programme.noise import CellKeyNoise, Claim
from discreet.programme.programme import Programme
from discreet.run.run import Run
from discreet.run.tabulating import tabulate
from discreet.tabulate.tables import ConfidentialTable

Floats = NDArray[np.float64]
VARIANCES = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
EPSILONS = (0.1, 0.5, 1.0, 1.5, 2.0, 3.0)  # of a count, as Rinott et al.
RHOS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
MOST_REPEATS = 10_000
MOST_POSSIBLE = 50_000_000  # cells of all tables, which private noise fills
QUARTILES = (0.25, 0.5, 0.75)


class Sum(StrEnum):
    """The sums over the tables of one trial."""

    CELLS = "cells"
    L1 = "l1"
    L2 = "l2"
    L3 = "l3"
    HELLINGER = "hellinger"
    CROSSTABS = "crosstabs"
    ONES = "ones"
    TRUE_ONES = "true_ones"
    SHIFT = "shift"
    TWO_WAY = "two_way"


SUMS = list(Sum)
MEASURES: Mapping[str, tuple[Sum, Sum]] = {
    "l1": (Sum.L1, Sum.CELLS),
    "l2": (Sum.L2, Sum.CELLS),
    "l3": (Sum.L3, Sum.CELLS),
    "hellinger": (Sum.HELLINGER, Sum.CROSSTABS),
    "cramers_v_shift": (Sum.SHIFT, Sum.TWO_WAY),
    "true_ones": (Sum.TRUE_ONES, Sum.ONES),
}


@dataclass(frozen=True)
class Spread:
    """The distribution of a measure over the trials of one point."""

    mean: float
    quartiles: tuple[float, ...]


@dataclass(frozen=True)
class CurvePoint:
    """The measures at one choice of parameters."""

    parameter: float  # V, or the epsilon or rho of a count
    averaging: float  # probability that averaging recovers the most exposed count, by formula
    measures: Mapping[str, Spread | None]  # None where no cell could be measured

    def as_json(self) -> Mapping[str, object]:
        """The JSON document: the parameter and every measure."""
        return {"parameter": self.parameter, "averaging": self.averaging, **self.measures}


@dataclass(frozen=True)
class Curves:
    """A risk-utility curve: all points by their parameter."""

    kind: LawKind
    name: str  # of the parameter
    D: int | None
    repeats: int
    seed: int
    points: tuple[CurvePoint, ...]


def curves(
    programme: Programme,
    facts: Facts,
    task: Task,
    ratio: float,
    D: int,
    repeats: int,
    seed: int = 0,
    also: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Curves:
    """Perturb every table ``repeats`` times at each point of the usual grid and at ``also``.

    ``ratio`` is the variance to which averaging reduces that of the most exposed count.
    """
    if not 2 <= repeats <= MOST_REPEATS:
        raise mistake("", "--repeats", str(repeats), f"give 2 to {MOST_REPEATS} repetitions")
    if task.kind is not LawKind.CELL_KEY:
        _require_few(facts)
    points = _points(task, D, also)
    made = [_mechanism(programme, task, D, point, seed) for point in points]
    trials = _Trials(programme, made, repeats, seed)
    found = trials.run(threads, progress or Quiet())
    variances = [_variance(task.kind, one, point) for one, point in zip(made, points, strict=True)]
    name = {LawKind.CELL_KEY: "V", LawKind.DISCRETE_GAUSSIAN: "rho"}.get(task.kind, "epsilon")
    return Curves(
        task.kind,
        name,
        D if task.kind is LawKind.CELL_KEY else None,
        repeats,
        seed,
        tuple(
            CurvePoint(point, success(variance, ratio), _measured(sums))
            for point, variance, sums in zip(points, variances, found, strict=True)
        ),
    )


def _require_few(facts: Facts) -> None:
    if facts.cells > MOST_POSSIBLE:
        remedy = "use --kind cell-key, or a programme of fewer tables: private noise fills empty cells"
        raise mistake("", "--curves", f"{facts.cells:,} cells", remedy)


def _points(task: Task, D: int, also: float | None) -> list[float]:
    if task.kind is LawKind.CELL_KEY:
        usual = [V for V in VARIANCES if V <= D * (D + 1) / 3]
    else:
        usual = list(RHOS if task.kind is LawKind.DISCRETE_GAUSSIAN else EPSILONS)
    return sorted({*usual, *([] if also is None else [also])})


def _mechanism(programme: Programme, task: Task, D: int, point: float, seed: int) -> Mechanism:
    if task.kind is LawKind.CELL_KEY:
        noise = CellKeyNoise(PTableParameters(D, point, task.js))
        return cell_key_mechanism(noise, seeded_secret(seed, "keys"))
    if task.rule is None or task.parameters is None:
        raise mistake("", "--curves", task.kind.value, "give a programme whose budget can be divided")
    total = Fraction(str(point)) / Fraction(task.parameters[0])
    # nothing of a curve is published: what its guarantee would need is not asked for
    rule = replace(task.rule, budget=replace(task.rule.budget, total=total), claim=Claim.NONE)
    return mechanism(
        replace(programme, noise=rule), seeded_secret(seed, "noise"), seeded_secret(seed, "noise")
    )


def _variance(kind: LawKind, made: Mechanism, point: float) -> float:
    """The variance of a count of persons; other units may have another part of the budget."""
    if isinstance(made, CellKeyMechanism):
        return made.variance
    return (GAUSSIAN if kind is LawKind.DISCRETE_GAUSSIAN else GEOMETRIC).variance(point)


def _measured(sums: Floats) -> dict[str, Spread | None]:
    """[repeat, sum] -> each measure as a mean over cells, cross-tabulations or published ones."""
    found: dict[str, Spread | None] = {}
    for name, (part, whole) in MEASURES.items():
        parts, wholes = sums[:, SUMS.index(part)], sums[:, SUMS.index(whole)]
        values = parts[wholes > 0] / wholes[wholes > 0]
        quartiles = tuple(np.quantile(values, QUARTILES).tolist()) if len(values) else ()
        found[name] = Spread(float(values.mean()), quartiles) if len(values) else None
    return found


@dataclass(frozen=True, eq=False)
class _Trials:
    """Perturbs all tables in all trials."""

    programme: Programme
    made: Sequence[Mechanism]
    repeats: int
    seed: int

    def run(self, threads: int, progress: Progress) -> Floats:
        """[point, repeat, sum]; each table is measured when it is counted, and then released."""
        owned = {one.table.id: one for tables in tables_of(self.programme) for one in once(tables)}
        cubes = [cube for cube in self.programme.cubes if cube.id in owned and owned[cube.id].owned.any()]
        found: dict[str, Floats] = {}
        with ThreadPoolExecutor(threads) as pool:

            def measure(table: ConfidentialTable) -> None:
                found[table.cube.id] = self._table(owned[table.cube.id], table, pool)

            run = Run(
                programme=self.programme,
                secret=seeded_secret(self.seed, "keys"),
                mechanism=self.made[0],
                threads=threads,
                progress=_Told(progress),
            )
            tabulate(run, cubes, measure)
        nothing = np.zeros((len(self.made), self.repeats, len(SUMS)))
        return sum(
            (found[cube.id] for cube in cubes), nothing
        )  # in the order of the cubes, for reproducible sums

    def _table(self, owned: OwnedTable, table: ConfidentialTable, pool: ThreadPoolExecutor) -> Floats:
        true = occupied(table)
        jobs = [(point, repeat) for point in range(len(self.made)) for repeat in range(self.repeats)]

        def trial(job: tuple[int, int]) -> Floats:
            chosen, again = self._again(self.made[job[0]], table, job[1])
            shown = chosen.perturb(again)
            return _sums(owned, (shown.cells, shown.values), true)

        return np.array(list(pool.map(trial, jobs))).reshape(len(self.made), self.repeats, len(SUMS))

    def _again(
        self, chosen: Mechanism, table: ConfidentialTable, repeat: int
    ) -> tuple[Mechanism, ConfidentialTable]:
        """The mechanism and the table of one trial."""
        if isinstance(chosen, PrivateMechanism):
            return replace(chosen, key=seeded_secret(self.seed, f"noise/{repeat}")), table
        return chosen, replace(table, cells=rekeyed(table.cells, seeded_secret(self.seed, f"keys/{repeat}")))


def rekeyed(cells: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """The accumulators of the same records with other keys: a K + b n modulo 2^32, n the count."""
    a, b = (int.from_bytes(key[k : k + 4], "little") for k in (0, 4))
    counts, keys = counts_of(cells).astype(np.uint64), keys_of(cells).astype(np.uint64)
    moved = (np.uint64(a | 1) * keys + np.uint64(b) * counts) & np.uint64(0xFFFFFFFF)
    found: NDArray[np.uint64] = (moved << np.uint64(32)) | counts
    return found


def _sums(owned: OwnedTable, shown: tuple[Any, Any], true: tuple[Any, Any]) -> Floats:
    """All sums of one table in one trial, in the order of ``SUMS``."""
    whole = side(*aligned([shown, true]), owned.grid)
    possible = np.array([owned.size(c) if mine else 0 for c, mine in enumerate(owned.owned)], dtype=np.int64)
    published, counted = whole.values[:, 0], whole.values[:, 1]
    found = errors(counted, published, whole.crosstab, possible, (1,))
    shifts = [one.shift for one in two_way(owned, whole) if one.shift is not None]
    ones = (published == 1) & owned.owned[whole.crosstab]
    losses = found.sums[:, 1].sum(axis=0)
    sums = {
        Sum.CELLS: found.cells[:, 1].sum(),
        Sum.L1: losses[Measure.L1],
        Sum.L2: losses[Measure.L2],
        Sum.L3: losses[Measure.L3],
        Sum.HELLINGER: hellinger(found.overlap)[owned.owned].sum(),
        Sum.CROSSTABS: owned.owned.sum(),
        Sum.ONES: ones.sum(),
        Sum.TRUE_ONES: (ones & (counted == 1)).sum(),
        Sum.SHIFT: sum(shifts),
        Sum.TWO_WAY: len(shifts),
    }
    return np.array([float(sums[name]) for name in SUMS])


@dataclass(frozen=True)
class _Told:
    """Progress that reports perturbing for a trial where counting reports writing."""

    progress: Progress

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage begins."""
        self.progress.stage(name.replace("perturbing and writing", "perturbing repeatedly"), total)

    def step(self, done: int = 1) -> None:
        """``done`` more steps are complete."""
        self.progress.step(done)
