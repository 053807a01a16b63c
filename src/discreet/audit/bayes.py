"""The Bayesian adversary on a release: presence in small cells, and along several levels of a hierarchy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.audit.cells import OwnedTable, SplitTable, once
from discreet.audit.evidence import Cells, Integers, Published, Truth, values_at
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.lazy import lazily
from discreet.maths.attacks.bayes import Adversary, BayesFactors, logit
from discreet.maths.cells.alignment import distinct_numbers
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw
from discreet.perturb.noise import Noise
from discreet.programme.cube import CrossTab, Levels, Signature

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

AT_ONCE = 2**17  # cells that are looked up together
PLAUSIBLE = 1e-6  # least probability of a value this large; otherwise so few records are implausible
LARGEST_COUNT = 10_000  # small cells can be no larger than this


@dataclass(frozen=True)
class Belief:
    """The adversary's prior, the posterior above which a cell is disclosed, and which cells are small."""

    prior: float = 0.5
    gate: float = 0.95
    largest: int = 10

    def __post_init__(self) -> None:
        """Reject a gate that nothing or everything would pass."""
        if not 0 < self.prior < 1:
            raise mistake("", "prior", f"{self.prior:g}", "give a number between 0 and 1")
        if not self.prior <= self.gate < 1:
            raise mistake(
                "", "gate", f"{self.gate:g}", f"give a number from the prior, {self.prior:g}, to below 1"
            )
        if not 1 <= self.largest <= LARGEST_COUNT:
            raise mistake("", "largest", str(self.largest), f"give a whole number from 1 to {LARGEST_COUNT}")

    def posteriors(self, log_factors: Floats) -> Floats:
        """The posteriors of log Bayes factors."""
        found: Floats = special.expit(logit(self.prior) + log_factors)
        return found


class FactorsOf:
    """The Bayes factors of the published cells of all cross-tabulations, computed once for each law."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._made: dict[PublishedLaw, BayesFactors] = {}

    def of(self, signature: Signature) -> BayesFactors:
        """The factors of a cross-tabulation's cells; an error where its law is not known."""
        law = self._noise.published_of(signature)
        if law not in self._made:
            self._made[law] = BayesFactors(law)
        return self._made[law]


@dataclass(frozen=True)
class NamedCell:
    """A cell that discloses a person's presence; its true count is not included."""

    counted: str
    cell: dict[str, str]
    published: int


@dataclass(frozen=True)
class LevelFinding:
    """What the small cells of one cross-tabulation disclose; every record is in one of its cells."""

    counted: str
    crosstab: str  # by the names of its levels: GEO.COUNTY x SEX
    levels: Levels
    cells: int  # with 1 to ``largest`` records
    above: int  # of them, with a posterior above the gate
    records: int  # in the cells
    records_above: int
    expected: float  # cells above the gate by the law of the noise
    accused: int  # cells in which an absent person would be believed to be present
    highest: float

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "counted": self.counted,
            "crosstab": self.crosstab,
            "cells": self.cells,
            "above": self.above,
            "records": self.records,
            "records_above": self.records_above,
            "expected_above": self.expected,
            "falsely_accused": self.accused,
            "highest_posterior": self.highest,
        }


@dataclass(frozen=True)
class BayesScan:
    """The small cells of a release, for an adversary who knows all persons in a cell except one."""

    belief: Belief
    levels: tuple[LevelFinding, ...]
    by_known: tuple[int, ...]  # cells above the gate by the number of others in the cell, 0 first
    cells_by_known: tuple[int, ...]  # all of them
    named: tuple[NamedCell, ...]

    @property
    def cells(self) -> int:
        """How many small cells there are."""
        return sum(level.cells for level in self.levels)

    @property
    def above(self) -> int:
        """How many of them have a posterior above the gate."""
        return sum(level.above for level in self.levels)

    @property
    def share(self) -> float:
        """The share of small cells above the gate."""
        return self.above / self.cells if self.cells else 0.0

    @property
    def above_beside_others(self) -> int:
        """The same in cells of two records or more: without what fixed zeros disclose by themselves."""
        return sum(self.by_known[1:])

    @property
    def share_beside_others(self) -> float:
        """The share above the gate of the cells of two records or more."""
        cells = sum(self.cells_by_known[1:])
        return self.above_beside_others / cells if cells else 0.0

    @property
    def most_records(self) -> int:
        """The largest number of records that one cross-tabulation discloses, each counted once."""
        return max((level.records_above for level in self.levels), default=0)

    @property
    def highest(self) -> float:
        """The highest posterior."""
        return max((level.highest for level in self.levels), default=0.0)

    @property
    def worst(self) -> tuple[LevelFinding, ...]:
        """The ten cross-tabulations that disclose most."""
        ranked = sorted(self.levels, key=lambda level: (-level.records_above, -level.highest))
        return tuple(level for level in ranked[:10] if level.above)

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "prior": self.belief.prior,
            "gate": self.belief.gate,
            "largest_count": self.belief.largest,
            "cells": self.cells,
            "above": self.above,
            "share": self.share,
            "expected_above": sum(level.expected for level in self.levels),
            "above_beside_others": self.above_beside_others,
            "share_beside_others": self.share_beside_others,
            "above_by_others_known": self.by_known,
            "cells_by_others_known": self.cells_by_known,
            "falsely_accused": sum(level.accused for level in self.levels),
            "most_records_in_a_crosstab": self.most_records,
            "highest_posterior": self.highest,
            "worst": self.worst,
            "named": self.named,
        }


def scan(
    published: Published,
    truth: Truth,
    belief: Belief,
    most_named: int = 20,
    progress: Progress | None = None,
) -> BayesScan:
    """Compute the posterior of every small cell of every cross-tabulation, once.

    In a cell of x records each is the target in turn: the adversary knows the x - 1 others and sees the published
    count. A person is accused falsely only where all x are known and the count supports one more.
    """
    progress, laws = progress or Quiet(), FactorsOf(published.noise)
    found = _Found(belief)
    progress.stage("posteriors in small cells", sum(len(universe.tables) for universe in published.universes))
    for universe in published.universes:
        for owned in once(universe):
            if owned.new:
                found.add(
                    owned,
                    _tally(owned, owned.true(truth), belief.largest, published.noise.keeps_zeros),
                    laws,
                    most_named,
                )
            progress.step()
    return found.result(most_named)


@dataclass(frozen=True, eq=False)
class _Tally:
    """The different (cross-tabulation, true count, published value) of a table, and the cells they were seen in."""

    crosstab: Integers
    count: Integers
    value: Integers
    times: Integers
    cells: Integers  # every small cell
    which: Integers  # small cell -> place in the arrays above


def _tally(owned: OwnedTable, true: Cells, largest: int, keeps_zeros: bool) -> _Tally:
    """Count what is published for each small true count; published cells without records have the count 0."""
    shown = owned.table.load()
    small = true[1] <= largest
    ghosts = shown[0][:0] if keeps_zeros else shown[0][values_at(true, shown[0]) == 0]
    cells = np.concatenate([true[0][small], ghosts])
    count = np.concatenate([true[1][small], np.zeros(len(ghosts), dtype=np.int64)])
    value, crosstab = np.empty_like(cells), np.empty_like(cells)
    for first in range(0, len(cells), AT_ONCE):  # parts of the arrays that stay in the cache
        here = slice(first, first + AT_ONCE)
        value[here], crosstab[here] = values_at(shown, cells[here]), owned.which(cells[here])
    if not bool((crosstab >= 0).all()):
        new = crosstab >= 0
        cells, count, value, crosstab = cells[new], count[new], value[new], crosstab[new]
    lowest = int(value.min(initial=0))
    sizes = (len(owned.crosstabs), largest + 1, int(value.max(initial=0)) - lowest + 1)
    number = (crosstab * sizes[1] + count) * sizes[2] + (value - lowest)
    numbers, which, times = distinct_numbers(number, int(np.prod(sizes, dtype=np.float64)))
    at, above, below = np.unravel_index(numbers, sizes)
    return _Tally(at, above, below + lowest, times, cells, which)


@dataclass(eq=False)
class _Found:
    """What was found so far."""

    belief: Belief
    levels: list[LevelFinding] = field(default_factory=list)
    named: list[tuple[int, NamedCell]] = field(default_factory=list)
    by_known: Integers = field(init=False)
    cells_by_known: Integers = field(init=False)
    chances: dict[BayesFactors, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_known = np.zeros(self.belief.largest, dtype=np.int64)
        self.cells_by_known = np.zeros(self.belief.largest, dtype=np.int64)

    def add(self, owned: OwnedTable, tally: _Tally, laws: FactorsOf, most_named: int) -> None:
        """Judge the cells of one table."""
        posterior, accusing = np.zeros(len(tally.count)), np.zeros(len(tally.count))
        for at in owned.new:
            law = laws.of(owned.signature(at))
            here = np.flatnonzero(tally.crosstab == at)
            full, room = here[tally.count[here] > 0], here[tally.count[here] < self.belief.largest]
            posterior[full] = self._posteriors(law, tally.count[full] - 1, tally.value[full])
            accusing[room] = self._posteriors(law, tally.count[room], tally.value[room])
            self.levels.append(self._level(owned, at, law, tally, here, posterior, accusing))
        above = posterior > self.belief.gate
        np.add.at(self.by_known, tally.count[above] - 1, tally.times[above])
        occupied = tally.count > 0
        np.add.at(self.cells_by_known, tally.count[occupied] - 1, tally.times[occupied])
        if above.any():
            self._name(owned, tally, above, most_named)

    def _posteriors(self, law: BayesFactors, known: Integers, value: Integers) -> Floats:
        return self.belief.posteriors(law.log_factors(known, value))

    def _level(
        self,
        owned: OwnedTable,
        crosstab: int,
        law: BayesFactors,
        tally: _Tally,
        here: Integers,
        posterior: Floats,
        accusing: Floats,
    ) -> LevelFinding:
        count, times = tally.count[here], tally.times[here]
        occupied, above = count > 0, posterior[here] > self.belief.gate
        return LevelFinding(
            owned.universe.counted,
            owned.crosstab_name(crosstab),
            owned.levels(crosstab),
            int(times[occupied].sum()),
            int(times[above].sum()),
            int((times * count).sum()),
            int((times * count)[above].sum()),
            float(times @ self._chances(law)[count]),
            int(times[accusing[here] > self.belief.gate].sum()),
            float(posterior[here].max(initial=0.0)),
        )

    def _chances(self, law: BayesFactors) -> Floats:
        """The probability that a record of a cell is disclosed, by the cell's count."""
        if law not in self.chances:
            rows = (Adversary(law.law, known, self.belief.prior) for known in range(self.belief.largest))
            self.chances[law] = np.array([0.0, *(one.exceeds(self.belief.gate) for one in rows)])
        return self.chances[law]

    def _name(self, owned: OwnedTable, tally: _Tally, above: NDArray[np.bool_], most: int) -> None:
        """Store the simplest cells of the table: those that cross the fewest variables."""
        axes = np.array([len(crosstab.signature.levels) for crosstab in owned.crosstabs])
        cells = np.flatnonzero(above[tally.which])
        crossed = axes[tally.crosstab[tally.which[cells]]]
        for at in np.argsort(crossed, kind="stable")[:most].tolist():
            cell = int(tally.cells[cells[at]])
            value = int(tally.value[tally.which[cells[at]]])
            one = NamedCell(owned.universe.counted, owned.cube.codes_of(cell), value)
            self.named.append((int(crossed[at]), one))
        self.named = sorted(self.named, key=lambda named: named[0])[:most]

    def result(self, most_named: int) -> BayesScan:
        """All of it."""
        named = tuple(one for _, one in self.named[:most_named])
        by_known, cells = tuple(self.by_known.tolist()), tuple(self.cells_by_known.tolist())
        return BayesScan(self.belief, tuple(self.levels), by_known, cells, named)


@dataclass(frozen=True)
class ExposedValues:
    """The published values that would disclose a target, by the number of others known in the cell."""

    belief: Belief
    cells: int  # published, each once
    by_known: tuple[int, ...]  # others known, 0 first -> cells whose value would disclose one more
    chances: tuple[
        float, ...
    ]  # others known -> the probability that one more is disclosed, the largest over the laws
    highest_alone: float  # the highest posterior where no one else is known there

    @property
    def alone(self) -> int:
        """Cells that disclose a target who is known to be the only possible one."""
        return self.by_known[0]

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "prior": self.belief.prior,
            "gate": self.belief.gate,
            "cells": self.cells,
            "exposed_alone": self.alone,
            "share_alone": self.alone / self.cells if self.cells else 0.0,
            "exposed_by_others_known": self.by_known,
            "chance_by_others_known": self.chances,
            "highest_posterior_alone": self.highest_alone,
        }


def exposed(published: Published, belief: Belief, progress: Progress | None = None) -> ExposedValues:
    """What an outsider who knows x0 = 0, 1, .. others in a cell would conclude from each published value.

    Only listed cells are used, since a zero is evidence against presence, and only values that are plausible for x0 + 1
    records: no one believes that a town is empty except for the target. The law of the noise must be public.
    """
    progress, laws = progress or Quiet(), FactorsOf(published.noise)
    progress.stage("published values", sum(len(universe.tables) for universe in published.universes))
    sums, chances, cells, highest = np.zeros(belief.largest, dtype=np.int64), np.zeros(belief.largest), 0, 0.0
    for law, tally in _values(published, laws, progress).items():
        values, times = (np.array(list(some), dtype=np.int64) for some in (tally, tally.values()))
        cells += int(times.sum())
        for known in range(belief.largest):
            adversary = Adversary(law.law, known, belief.prior)
            chances[known] = max(chances[known], adversary.exceeds(belief.gate))
            here = [adversary.with_target.tail(int(value)) >= PLAUSIBLE for value in values]
            posterior = belief.posteriors(law.log_factors(np.full(sum(here), known), values[here]))
            sums[known] += times[here][posterior > belief.gate].sum()
            highest = max(highest, float(posterior.max(initial=0.0))) if known == 0 else highest
    return ExposedValues(belief, cells, tuple(sums.tolist()), tuple(chances.tolist()), highest)


def _values(published: Published, laws: FactorsOf, progress: Progress) -> dict[BayesFactors, Counter[int]]:
    """The different values under each law, and how many cells show them."""
    found: dict[BayesFactors, Counter[int]] = {}
    for universe in published.universes:
        for owned in once(universe):
            cells, values = owned.table.load()
            which = owned.which(cells)
            own = [laws.of(owned.signature(at)) for at in owned.new]
            order = list(dict.fromkeys(own))
            law_at = np.full(len(owned.crosstabs) + 1, -1)  # the last is for cells of earlier tables
            law_at[list(owned.new)] = [order.index(law) for law in own]
            place = law_at[which]
            for at, law in enumerate(order):
                seen, times = np.unique(values[place == at], return_counts=True)
                sums = found.setdefault(law, Counter())
                sums.update(dict(zip(seen.tolist(), times.tolist(), strict=True)))
            progress.step()
    return found


CHAINS_AT_ONCE = 2**19  # cells whose chains are in memory together
MOST_NAMED = 20  # cells of one cross-tabulation


@dataclass(frozen=True)
class ChainFinding:
    """What the chains that start in the small cells of one cross-tabulation disclose."""

    counted: str
    crosstab: str  # by the names of its levels: GEO.COUNTY x SEX
    levels: Levels
    observations: int  # levels of each chain
    cells: int
    above_alone: int  # by the smallest cell only
    above: int  # by all levels together
    records_above: int
    highest: float

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {
            "counted": self.counted,
            "crosstab": self.crosstab,
            "observations": self.observations,
            "cells": self.cells,
            "above_alone": self.above_alone,
            "above": self.above,
            "records_above": self.records_above,
            "highest_posterior": self.highest,
        }


@dataclass(frozen=True)
class LevelsScan:
    """All chains of a release along one variable."""

    belief: Belief
    along: str
    chains: tuple[ChainFinding, ...]
    named: tuple[NamedCell, ...]

    @property
    def cells(self) -> int:
        """How many small cells start a chain."""
        return sum(chain.cells for chain in self.chains)

    @property
    def above(self) -> int:
        """In how many the posterior of all levels together is above the gate."""
        return sum(chain.above for chain in self.chains)

    @property
    def above_alone(self) -> int:
        """The number above the gate by the smallest cell only."""
        return sum(chain.above_alone for chain in self.chains)

    def as_json(self) -> Mapping[str, object]:
        """The document, with the ten cross-tabulations that disclose most."""
        worst = sorted(self.chains, key=lambda chain: (-chain.records_above, -chain.highest))
        return {
            "prior": self.belief.prior,
            "gate": self.belief.gate,
            "along": self.along,
            "cells": self.cells,
            "above_alone": self.above_alone,
            "above": self.above,
            "highest_posterior": max((chain.highest for chain in self.chains), default=0.0),
            "worst": [chain for chain in worst[:10] if chain.above],
            "named": self.named,
        }


def scan_levels(
    published: Published,
    truth: Truth,
    belief: Belief,
    along: str,
    coarsest: int = 1,
    most_named: int = 20,
    progress: Progress | None = None,
) -> LevelsScan:
    """Compute the posterior of every small cell at the finest level with the cells above it up to ``coarsest``.

    Depth 1 is the level below the total. The adversary knows all others at every level that is used.
    """
    progress, laws = progress or Quiet(), FactorsOf(published.noise)
    progress.stage(f"levels of {along}", sum(len(universe.tables) for universe in published.universes))
    chains: list[ChainFinding] = []
    named: list[NamedCell] = []
    found = False
    for universe in published.universes:
        for owned in once(universe):
            axis = next((k for k, axis in enumerate(owned.cube.axes) if axis.variable == along), None)
            found |= axis is not None
            if axis is not None and owned.new:
                scanner = _Scanner(owned, axis, coarsest, laws, published.noise.same_noise, belief)
                for chain, names in scanner.chains(owned.true(truth)):
                    chains.append(chain)
                    named += names[: most_named - len(named)]
            progress.step()
    if not found:
        raise mistake("", "along", along, f"choose from {', '.join(published.variables)}")
    return LevelsScan(belief, along, tuple(chains), tuple(named))


@dataclass(frozen=True, eq=False)
class _Scanner:
    """The chains of one table along one axis."""

    owned: OwnedTable
    axis: int
    coarsest: int
    laws: FactorsOf
    same_noise: bool
    belief: Belief

    def chains(self, true: Cells) -> Iterator[tuple[ChainFinding, list[NamedCell]]]:
        """The finding of each new cross-tabulation at the axis's finest level, and the cells above the gate."""
        shown = self.owned.table.load()
        cells = true[0][true[1] <= self.belief.largest]
        cells = cells[self.owned.cube.axes[self.axis].finest[self.owned.cube.nodes(cells, self.axis)]]
        split = SplitTable((cells, cells), self.owned.which(cells))
        for at in self.owned.new:
            crosstab, (start, _) = self.owned.crosstabs[at], split.positions(at)
            if crosstab.depths[self.axis] > self.coarsest and len(start):
                yield self._chain(crosstab, start, shown, true)

    def _chain(
        self, crosstab: CrossTab, start: Integers, shown: Cells, true: Cells
    ) -> tuple[ChainFinding, list[NamedCell]]:
        """The finding of one cross-tabulation, blocks of cells at a time."""
        alone = above = records = 0
        highest, named = 0.0, np.zeros(0, dtype=np.int64)
        for first in range(0, len(start), CHAINS_AT_ONCE):
            cells = start[first : first + CHAINS_AT_ONCE]
            steps = list(self._factors(crosstab, cells, shown, true))
            posterior = self.belief.posteriors(_sum(steps))
            over = cells[posterior > self.belief.gate]
            alone += int((self.belief.posteriors(steps[0]) > self.belief.gate).sum())
            above += len(over)
            records += int(values_at(true, over).sum())
            highest = max(highest, float(posterior.max()))
            named = np.concatenate([named, over[: MOST_NAMED - len(named)]])
        counted, depths = self.owned.universe.counted, crosstab.depths[self.axis] - self.coarsest + 1
        levels, named_levels = crosstab.signature.levels, self.owned.cube.level_name(crosstab.depths)
        finding = ChainFinding(
            counted, named_levels, levels, depths, len(start), alone, above, records, highest
        )
        cube, values = self.owned.cube, values_at(shown, named).tolist()
        return finding, [
            NamedCell(counted, cube.codes_of(cell), value)
            for cell, value in zip(named.tolist(), values, strict=True)
        ]

    def _factors(self, crosstab: CrossTab, cells: Integers, shown: Cells, true: Cells) -> Iterator[Floats]:
        """The log Bayes factors of each level, from the smallest cell up; 0 where a level repeats the one below."""
        cube, stride = self.owned.cube, self.owned.cube.strides[self.axis]
        parents, present = cube.axes[self.axis].parents, set(cube.measured)
        below: tuple[BayesFactors, Integers] | None = None
        for depth in range(crosstab.depths[self.axis], self.coarsest - 1, -1):
            if (*crosstab.depths[: self.axis], depth, *crosstab.depths[self.axis + 1 :]) in present:
                law, count = self._law(crosstab, depth), values_at(true, cells)
                factors = law.log_factors(count - 1, values_at(shown, cells))
                if below is not None and self.same_noise and law is below[0]:
                    factors[count == below[1]] = 0.0  # nested cells of equal counts have the same records
                yield factors
                below = (law, count)
            node = cube.nodes(cells, self.axis)
            cells = cells + (parents[node] - node) * stride

    def _law(self, crosstab: CrossTab, depth: int) -> BayesFactors:
        variable = self.owned.cube.axes[self.axis].variable
        levels = tuple((name, depth if name == variable else at) for name, at in crosstab.signature.levels)
        return self.laws.of(self.owned.universe.signature(levels))


def _sum(steps: list[Floats]) -> Floats:
    """The sum of the log factors; a proof on one level is not outweighed by another."""
    proof: NDArray[np.bool_] = np.any([np.isposinf(factors) for factors in steps], axis=0)
    total: Floats = np.sum([np.where(proof, 0.0, factors) for factors in steps], axis=0)
    return np.where(proof, np.inf, total)
