"""Corrections: whom an earlier release and its corrected successor expose together.

With the cell key method and the same secret only the cells of changed persons change
(``maths.attacks.corrections``). An outsider begins with a changed cell of the finest cross-tabulation of a table and
adds one attribute after another, each where the changed cells of all tables leave one code. A person is exposed if
someone who knows at most ``KNOWN`` of the attributes learns another from them. Other noise reveals other things: two
independent noises of the same count are averaged, and losses of noise with a guarantee add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.audit.differencing import ChangedCells, changed_cells
from discreet.audit.evidence import Cells, Integers, Published, Truth
from discreet.audit.verdict import GateVerdict
from discreet.errors import Mistakes
from discreet.io.progress import Progress
from discreet.maths.attacks.averaging import success
from discreet.maths.attacks.corrections import (
    UNKNOWN_HIDDEN,
    evidence,
    hidden_by_law,
    hidden_by_variance,
    posterior,
)
from discreet.maths.noise.additive import LawKind
from discreet.perturb.noise import LARGE, Guarantee, Noise
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Levels, codes_at

KNOWN = 2  # attributes of a newcomer that an attacker knows before
SURE = 0.95  # posterior of a code that is taken as known
CERTAIN = 0.999  # of several that are taken together
MOST_SEEDS = 300  # changed cells that are all followed; of more a sample is
SAMPLED = 100
MOST_CROSSTABS = 64  # that a code is judged by, those with fewest changed cells first
MOST_OTHERS = 20_000  # changed cells that a profile is told apart from

Node = tuple[int, int]  # depth, and place among the codes of that depth
Profile = Mapping[str, Node]  # variable -> what is known of it
_Item = TypeVar("_Item")


class Relation(StrEnum):
    """How the noises of two releases are related."""

    SAME_NOISE = "same people, same noise"
    ADJUSTED = "same people, same noise, then adjusted to each other"
    RELATED = "one secret, another p-table"
    INDEPENDENT = "independent noise"
    GUARANTEED = "noise with a guarantee"


@dataclass(frozen=True, kw_only=True)
class ExposedPerson:
    """A person who came, left or was corrected, as an outsider sees them."""

    unit: str
    attributes: Mapping[str, str]  # variable -> code
    known: tuple[str, ...]  # the attributes from which the others follow
    cells: int  # changed cells that fit


@dataclass(frozen=True, kw_only=True)
class SummedLoss:
    """The guarantee of both releases together, where both protect the same."""

    epsilon: float | None
    rho: float | None
    delta: float


@dataclass(frozen=True)
class Averaged:
    """The chance that a large count is right: from one release, and from the best average of both; None if unknown."""

    by_one: float | None = None
    by_both: float | None = None


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """What two releases of the same tables reveal together, from their public files only."""

    release: str  # the earlier one
    relation: Relation
    compared: int
    changed: int
    tables: int  # with a changed cell
    exposed: int  # persons, households, ..; an estimate where ``examined`` is less than ``seeds``
    attributes: int  # that follow for the person of whom most do
    seeds: int  # changed cells to begin with
    examined: int
    people: tuple[ExposedPerson, ...]
    averaged: Averaged  # where noises are independent
    loss: SummedLoss | None  # where both have a guarantee

    @property
    def reveals(self) -> bool:
        """Whether anything is revealed: a release that reproduces the earlier one adds nothing."""
        return self.changed > 0 or (self.relation is Relation.GUARANTEED and not self.compared)

    def sentences(self) -> Iterator[str]:
        """What the pair reveals, in one or two sentences."""
        match self.relation:
            case Relation.GUARANTEED:
                yield _accounting(self)
            case Relation.ADJUSTED:
                yield (
                    f"{self.changed:,} of {self.compared:,} cells changed; counts were adjusted to add up, so that it "
                    "cannot be estimated whom that exposes"
                )
            case Relation.RELATED:
                yield (
                    "both releases have one secret and different p-tables or keys: their noises may be related, and "
                    "then reveal more than independent ones"
                )
            case Relation.INDEPENDENT:
                yield (
                    "both releases have independent noise: averaging the two values of a count recovers it exactly "
                    f"with probability {self.averaged.by_both:.3f}, one of them with {self.averaged.by_one:.3f}"
                    if self.averaged.by_one is not None
                    else "both releases have independent noise: averaging the two values of a count halves its variance"
                )
            case Relation.SAME_NOISE:
                yield (
                    f"{self.changed:,} of {self.compared:,} cells in {self.tables:,} "
                    f"{'table' if self.tables == 1 else 'tables'} changed, and with the same secret a cell changes "
                    "only if the people counted in it do"
                )
                about = "about " if self.examined < self.seeds else ""
                yield (
                    f"{about}{self.exposed:,} {'person' if self.exposed == 1 else 'persons'} exposed: who knows up to "
                    f"{KNOWN} attributes of one learns up to {self.attributes} more"
                    if self.exposed
                    else "no person is exposed: the changed cells do not single anyone out"
                )


@dataclass(frozen=True)
class CorrectionsJudgement:
    """How many of the exposed are real, for the office."""

    changed: int  # cells whose people changed
    seen: int  # of these, published with another value
    listed: int  # exposed persons that were found, without those estimated
    right: int  # of these, in changed cells of every cross-tabulation, or of every one with a corrected attribute


def _accounting(found: Corrections) -> str:
    loss = found.loss
    if loss is None:
        return "both releases have a guarantee of their own; they protect different things, so that no sum is stated"
    amount = f"rho = {loss.rho:g}" if loss.rho is not None else f"epsilon = {loss.epsilon:g}"
    delta = f" and delta = {loss.delta:g}" if loss.delta else ""
    return f"the guarantees add up: both releases together have at most {amount}{delta}, whether the data differ or not"


def corrections(
    first: Published,
    second: Published,
    *,
    same_secret: bool,
    same_ptable: bool = True,
    progress: Progress | None = None,
) -> Corrections:
    """What the second release reveals beside the first."""
    relation = _relation(first.noise, second.noise, same_secret, same_ptable)
    try:
        changed = changed_cells(first, second, progress)
    except Mistakes:  # nothing in common: losses of guarantees add up all the same
        if relation is not Relation.GUARANTEED:
            raise
        changed = []
    found, averaged, loss = [], Averaged(), None
    match relation:
        case Relation.SAME_NOISE:
            found = list(_followed(changed, second.noise))
        case Relation.INDEPENDENT:
            averaged = _averaged(first.noise, second.noise)
        case Relation.GUARANTEED:
            loss = _loss(first.noise.guarantee, second.noise.guarantee)
    people = [person for one in found for person in one.people]
    return Corrections(
        release=first.name,
        relation=relation,
        compared=sum(one.compared for one in changed),
        changed=sum(len(one.numbers) for one in changed),
        tables=len({table for one in changed if len(one.numbers) for table in one.tables}),
        exposed=sum(one.exposed for one in found),
        attributes=max((len(one.attributes) - len(one.known) for one in people), default=0),
        seeds=sum(one.seeds for one in found),
        examined=sum(one.examined for one in found),
        people=tuple(sorted(people, key=lambda one: (-len(one.attributes), -one.cells))),
        averaged=averaged,
        loss=loss,
    )


def _followed(changed: Sequence[ChangedCells], noise: Noise) -> Iterator[_Found]:
    for unit in dict.fromkeys(one.universe.unit for one in changed):
        yield _Unit(unit, [one for one in changed if one.universe.unit == unit], hidden(noise)).found()


def _relation(first: Noise, second: Noise, same_secret: bool, same_ptable: bool) -> Relation:
    """Only cell keys repeat noise when data change: other noise is new, or bound to its data."""
    if first.guarantee is not None and second.guarantee is not None:
        return Relation.GUARANTEED
    if not same_secret or {first.kind, second.kind} != {LawKind.CELL_KEY}:
        return Relation.INDEPENDENT
    if not same_ptable:
        return Relation.RELATED
    return Relation.ADJUSTED if first.adjusted or second.adjusted else Relation.SAME_NOISE


def _averaged(first: Noise, second: Noise) -> Averaged:
    """The mean is weighted by 1 / variance."""
    variances = [_variance(noise) for noise in (first, second)]
    known = [one for one in variances if one]
    if len(known) < len(variances):
        return Averaged()
    both = 1 / sum(1 / one for one in known)
    return Averaged(success(min(known), 1), success(both, 1))


def _variance(noise: Noise) -> float | None:
    return noise.law.row(LARGE).variance if noise.law is not None else noise.variance


def _loss(first: Guarantee | None, second: Guarantee | None) -> SummedLoss | None:
    """Basic composition; None where neighbours, units or measures differ."""
    if first is None or second is None:
        return None
    ways = [(one.neighbours, one.unit, one.rho is None, one.each is None) for one in (first, second)]
    if ways[0] != ways[1]:
        return None
    delta = float(first.delta + second.delta)
    if first.rho is not None and second.rho is not None:
        return SummedLoss(epsilon=None, rho=float(first.rho + second.rho), delta=0.0)
    return SummedLoss(epsilon=float((first.epsilon or 0) + (second.epsilon or 0)), rho=None, delta=delta)


def hidden(noise: Noise) -> float:
    """The chance that the cell of a changed person is published with its old value."""
    if noise.law is not None:
        return hidden_by_law(noise.law.row(LARGE).shifted(-LARGE))
    return UNKNOWN_HIDDEN if noise.variance is None else hidden_by_variance(noise.variance)


class _Tree:
    """The codes of a variable: of every finest one its place at each depth."""

    def __init__(self, tree: Codelist) -> None:
        self.codes = {depth: codes_at(tree, depth) for depth in range(1, tree.depth + 1)}
        place = {code: at for codes in self.codes.values() for at, code in enumerate(codes)}
        self.above = {depth: np.full(len(tree.leaves), -1, dtype=np.int64) for depth in self.codes}
        for row, leaf in enumerate(tree.leaves):
            for index in tree.ancestors(leaf):
                self.above[tree.depths[index]][row] = place[tree.codes[index]]
        self._up = {
            (deep, shallow): self._places(deep, shallow)
            for deep in self.codes
            for shallow in range(1, deep + 1)
        }

    def _places(self, deep: int, shallow: int) -> Integers:
        """Place at a depth -> place at a smaller one."""
        found = np.full(len(self.codes[deep]), -1, dtype=np.int64)
        rows = self.above[deep] >= 0
        found[self.above[deep][rows]] = self.above[shallow][rows]
        return found

    def below(self, node: Node | None) -> Integers:
        """The finest codes of a node; all of them where nothing is known."""
        if node is None:
            return np.arange(len(self.above[1]))
        return np.flatnonzero(self.above[node[0]] == node[1])

    def at(self, node: Node, depth: int) -> int:
        """The place of a node at the same or a smaller depth; -1 where it is not that deep."""
        return -1 if node[0] < depth else int(self._up[node[0], depth][node[1]])

    def agree(self, node: Node, nodes: Sequence[Node | None]) -> NDArray[np.bool_]:
        """Which of some nodes may be this one: above it, below it, the same, or not known."""
        found = np.ones(len(nodes), dtype=bool)
        depths = np.array([0 if one is None else one[0] for one in nodes])
        places = np.array([0 if one is None else one[1] for one in nodes])
        for depth in self.codes:
            theirs, shared = depths == depth, min(depth, node[0])
            found[theirs] = self._up[depth, shared][places[theirs]] == self.at(node, shared)
        return found

    def code(self, node: Node) -> str:
        """Its code."""
        return self.codes[node[0]][node[1]]


class _Crosstab:
    """A cross-tabulation with changed cells, and the evidence of each cell."""

    def __init__(self, changed: ChangedCells, hidden_chance: float) -> None:
        self.changed, self.levels, sizes = changed, changed.levels, changed.sizes
        self.strides = [int(np.prod(sizes[k + 1 :], dtype=np.int64)) for k in range(len(sizes))]
        self.sizes, self.names = sizes, frozenset(name for name, _ in changed.levels)
        self.hit, self.miss = evidence(hidden_chance, len(changed.numbers) / max(changed.compared, 1))

    def has(self, numbers: Integers) -> NDArray[np.bool_]:
        """Which of some cells changed."""
        known = self.changed.numbers
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        found: NDArray[np.bool_] = known[at] == numbers
        return found

    def profile(self, number: int) -> dict[str, Node]:
        """What a cell shows about the people in it."""
        return {
            name: (depth, number // stride % size)
            for (name, depth), stride, size in zip(self.levels, self.strides, self.sizes, strict=True)
        }


@dataclass(frozen=True)
class _Found:
    """The exposed of one unit."""

    exposed: int
    seeds: int
    examined: int
    people: tuple[ExposedPerson, ...]


class _Unit:
    """All cross-tabulations of a unit: a newcomer among persons is in one cell of each whose base has them."""

    def __init__(self, unit: str, changed: Sequence[ChangedCells], hidden_chance: float) -> None:
        self._unit = unit
        crosstabs = (_Crosstab(one, hidden_chance) for one in changed if len(one.numbers))
        self._crosstabs = sorted(crosstabs, key=lambda one: one.hit, reverse=True)
        self._of: dict[str, list[_Crosstab]] = {}
        for one in self._crosstabs:
            for name, _ in one.levels:
                self._of.setdefault(name, []).append(one)
        trees = {name: tree for one in changed for name, tree in one.universe.codelists.items()}
        self._trees = {name: _Tree(trees[name]) for name in self._of}

    def found(self) -> _Found:
        """Follow the changed cells, and compare the profiles."""
        seeds = self._seeds()
        every = [(one, number) for one in seeds for number in one.changed.numbers.tolist()]
        chosen, scale = every, 1.0
        if len(every) > MOST_SEEDS:  # of one cross-tabulation, in which every person is once
            whole = [one for one in seeds if not one.changed.universe.base and not one.changed.universe.count]
            widest = max(whole or seeds, key=lambda one: len(one.changed.numbers))
            numbers = _evenly(widest.changed.numbers.tolist(), SAMPLED)
            chosen, scale = (
                [(widest, number) for number in numbers],
                len(widest.changed.numbers) / len(numbers),
            )
        profiles: list[Profile] = []
        for crosstab, number in chosen:
            begun = crosstab.profile(number)
            if not any(self._same(begun, one) for one in profiles):
                profiles.append(self._followed(begun))
        others = [one.profile(number) for one, number in _evenly(every, MOST_OTHERS)]
        people = list(self._exposed(profiles, others, {frozenset(dict(one.levels)) for one in seeds}))
        return _Found(round(scale * len(people)), len(every), len(chosen), tuple(people))

    def _seeds(self) -> list[_Crosstab]:
        """The finest cross-tabulation of each table that has changed cells, those with most variables first."""
        finest: dict[str, _Crosstab] = {}
        for one in self._crosstabs:
            table = one.changed.tables[0]
            if table not in finest or _fineness(one.levels) > _fineness(finest[table].levels):
                finest[table] = one
        return sorted(finest.values(), key=lambda one: _fineness(one.levels), reverse=True)

    def _followed(self, begun: dict[str, Node]) -> Profile:
        """Add attributes as long as one follows: all that are certain, or else the surest."""
        known = dict(begun)
        while True:
            added = [found for name in self._trees if (found := self._next(name, known)) is not None]
            if not added:
                return known
            certain = [one for one in added if one[0] >= CERTAIN]
            chosen = certain or [max(added, key=lambda one: one[0])]
            known |= {name: node for _, name, node in chosen}

    def _next(self, name: str, known: Profile) -> tuple[float, str, Node] | None:
        """The code of a variable, or a finer one, that the changed cells leave; None where they leave several."""
        tree, before = self._trees[name], known.get(name)
        if before is not None and before[0] == max(tree.codes):
            return None
        leaves = tree.below(before)
        scores, hits = np.zeros(len(leaves)), np.zeros(len(leaves), dtype=bool)
        names, judged = {name, *known}, 0
        for crosstab in self._of[name]:
            seen = self._seen(crosstab, name, leaves, known) if crosstab.names <= names else None
            if seen is not None:
                scores += np.where(seen, crosstab.hit, crosstab.miss)
                hits |= seen
                judged += 1
            if judged == MOST_CROSSTABS:
                break
        if not hits.any():
            return None
        chances = posterior(scores)
        for depth in sorted(tree.codes, reverse=True):
            if before is not None and depth <= before[0]:
                break
            places = tree.above[depth][leaves]
            if (places < 0).all():
                continue
            sums = np.bincount(places[places >= 0], weights=chances[places >= 0])
            best = int(sums.argmax())
            if sums[best] >= SURE and hits[places == best].any():
                return float(sums[best]), name, (depth, best)
        return None

    def _seen(
        self, crosstab: _Crosstab, name: str, leaves: Integers, known: Profile
    ) -> NDArray[np.bool_] | None:
        """For each finest code whether its cell changed; None where another code of the cell is not known as deep."""
        numbers = np.zeros(len(leaves), dtype=np.int64)
        there = np.ones(len(leaves), dtype=bool)
        for (variable, depth), stride in zip(crosstab.levels, crosstab.strides, strict=True):
            if variable == name:
                places = self._trees[name].above[depth][leaves]
                there = places >= 0
                numbers += stride * np.where(there, places, 0)
                continue
            place = self._trees[variable].at(known[variable], depth)
            if place < 0:
                return None
            numbers += stride * place
        seen: NDArray[np.bool_] = crosstab.has(numbers) & there
        return seen

    def _same(self, one: Profile, other: Profile) -> bool:
        """Whether all that is known of the one is known, and the same, of the other."""
        return all(
            name in other and self._trees[name].at(other[name], depth) == place
            for name, (depth, place) in one.items()
        )

    def _exposed(
        self, profiles: Sequence[Profile], others: Sequence[Profile], crossed: Collection[frozenset[str]]
    ) -> Iterator[ExposedPerson]:
        """The profiles of which a few known attributes, crossed in some table, leave one only.

        A profile that lacks a known attribute may be that person; a changed cell counts where it has all of them.
        """
        every = [*profiles, *others]
        nodes = {name: [one.get(name) for one in every] for name in self._trees}
        lacks = {name: np.array([one is None for one in nodes[name]]) for name in self._trees}
        cells = np.arange(len(every)) >= len(profiles)
        before: list[int] = []
        for at, profile in enumerate(profiles):
            if (
                len(profile) < 2
            ):  # nothing to learn from a known attribute; of a changed total not even one is known
                continue
            agree = {name: self._trees[name].agree(node, nodes[name]) for name, node in profile.items()}
            same = np.logical_and.reduce(list(agree.values()))
            if same[before].any():  # one person, met twice
                continue
            for known in _few(profile, crossed):
                alike = np.logical_and.reduce([agree[name] & ~(cells & lacks[name]) for name in known])
                if not (alike & ~same).any():
                    before.append(at)
                    yield self._person(profile, known)
                    break

    def _person(self, profile: Profile, known: tuple[str, ...]) -> ExposedPerson:
        return ExposedPerson(
            unit=self._unit,
            attributes={name: self._trees[name].code(profile[name]) for name in sorted(profile)},
            known=known,
            cells=sum(self._fits(one, profile) for one in self._crosstabs),
        )

    def _fits(self, crosstab: _Crosstab, profile: Profile) -> bool:
        if not crosstab.names <= profile.keys():
            return False
        number = 0
        for (name, depth), stride in zip(crosstab.levels, crosstab.strides, strict=True):
            place = self._trees[name].at(profile[name], depth)
            if place < 0:
                return False
            number += stride * place
        return bool(crosstab.has(np.array([number], dtype=np.int64))[0])


def _few(profile: Profile, crossed: Collection[frozenset[str]]) -> Iterator[tuple[str, ...]]:
    """The sets of known attributes that leave at least one to learn, the smallest first."""
    for many in range(1, min(KNOWN, len(profile) - 1) + 1):
        for known in combinations(sorted(profile), many):
            if any(names.issuperset(known) for names in crossed):
                yield known


def _fineness(levels: Levels) -> tuple[int, int]:
    return len(levels), sum(depth for _, depth in levels)


def _evenly(some: Sequence[_Item], most: int) -> Sequence[_Item]:
    if len(some) <= most:
        return some
    return [some[k] for k in np.linspace(0, len(some) - 1, most).astype(int).tolist()]


def judge_corrections(
    found: Corrections, first: Published, second: Published, truths: tuple[Truth, Truth]
) -> CorrectionsJudgement | None:
    """Compare the exposed with the cells whose people really changed; None where these are not known."""
    if not all(truth.records for truth in truths) or found.relation is not Relation.SAME_NOISE:
        return None
    old, new = (_people_of(truth) for truth in truths)
    true = changed_cells(first, second, instead=(old, new))
    shown = changed_cells(first, second)
    seen = sum(len(np.intersect1d(a.numbers, b.numbers)) for a, b in zip(true, shown, strict=True))
    whole = [one for one in true if not one.universe.base and not one.universe.count]
    right = sum(_is_right(person, whole) for person in found.people)
    return CorrectionsJudgement(sum(len(one.numbers) for one in true), seen, len(found.people), right)


def _people_of(truth: Truth) -> dict[str, Cells]:
    """For each cell a number that is equal where the same records are counted."""
    return {cube: (cells, truth.records[cube].view(np.int64)) for cube, (cells, _) in truth.counted.items()}


def _is_right(person: ExposedPerson, true: Sequence[ChangedCells]) -> bool:
    """Whether the cells of a profile changed in every cross-tabulation, or in every one with one of its attributes."""
    changed: dict[frozenset[str], list[bool]] = {}
    for one in true:
        number = _number(person.attributes, one) if one.universe.unit == person.unit else None
        if number is not None:
            names = frozenset(name for name, _ in one.levels)
            changed.setdefault(names, []).append(bool(np.isin(number, one.numbers)))
    came = all(all(found) for found in changed.values())
    return came or any(
        all(all(found) if name in names else not any(found) for names, found in changed.items())
        for name in person.attributes
    )


def _number(attributes: Mapping[str, str], one: ChangedCells) -> int | None:
    """The number of a profile's cell in a cross-tabulation; None where too little is known."""
    number = 0
    for (name, depth), size in zip(one.levels, one.sizes, strict=True):
        tree, code = one.universe.codelists[name], attributes.get(name)
        chain = () if code is None else tree.ancestors(tree.position[code])
        at = [tree.codes[index] for index in chain if tree.depths[index] == depth]
        if not at:
            return None
        number = number * size + codes_at(tree, depth).index(at[0])
    return number


def correction_verdict(found: Corrections, limit: int | None) -> GateVerdict:
    """Whether a pair of releases exposes more persons than is allowed; where nothing is declared, none may be."""
    if found.relation is Relation.RELATED:
        what = f"the number of comparisons with {found.release} under one secret and another p-table or other keys"
        remedy = "make a new secret, or declare the p-table and the keys of the earlier release"
        return GateVerdict("corrections", 0, int(found.changed > 0), what, remedy=remedy)
    if found.relation is Relation.ADJUSTED:
        what = f"the number of comparisons with {found.release} in which exposed persons cannot be estimated"
        remedy = "give the release another secret, or judge both without consistent = true"
        return GateVerdict("corrections", 0, int(found.changed > 0), what, remedy=remedy)
    return GateVerdict(
        "corrections",
        limit or 0,
        found.exposed,
        f"the number of persons whom this release and {found.release} expose together",
        remedy="give the release another secret, or collect corrections until many cells of every area change",
    )
