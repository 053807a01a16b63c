"""The mechanism of a hierarchical release: what is drawn where, what it spends, and what the public may know of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from discreet.errors import Mistakes, Problem, mistake
from discreet.lazy import lazily
from discreet.maths.cells.counting import counts_of
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import ARITHMETIC, epsilon_of_drawn_rho, rounded_up
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.choose import mechanism as mechanism_by_cell
from discreet.perturb.mechanism import Certified, Mechanism
from discreet.perturb.noise import Guarantee, Noise, NoiseBudget
from discreet.perturb.reach import fixed_variables, has_fixed_families, neighbour_problems, reach
from discreet.programme.cube import Cube, Signature
from discreet.programme.hierarchical import HierarchyRule, groups_of
from discreet.programme.noise import Claim, KeptZeros, PrivateNoise
from discreet.programme.programme import Programme
from discreet.programme.statistic import Statistics, statistics
from discreet.programme.variables import Variable
from discreet.tabulate.tables import ConfidentialTable, NoisyTable, ProtectedTable

if TYPE_CHECKING:
    from scipy import sparse

    from discreet.hierarchy import measure as measuring
    from discreet.hierarchy import spine as spines
    from discreet.maths.tree import marginals
else:
    sparse = lazily("scipy.sparse")
    measuring, spines = lazily("discreet.hierarchy.measure"), lazily("discreet.hierarchy.spine")
    marginals = lazily("discreet.maths.tree.marginals")

DELTA_DIGITS = 12  # of a certified delta, rounded up


def mechanism(programme: Programme, secret: bytes, noise_key: bytes) -> Mechanism:
    """Make the mechanism of a programme, of any kind of noise."""
    if programme.hierarchy is None:
        return mechanism_by_cell(programme, secret, noise_key)
    return hierarchical_mechanism(programme, noise_key)


def hierarchical_mechanism(programme: Programme, noise_key: bytes = b"") -> HierarchicalMechanism:
    """Plan the measurements of a programme with hierarchical noise; no data are needed."""
    noise, file = programme.noise, str(programme.path)
    if not isinstance(noise, PrivateNoise) or noise.hierarchy is None:
        raise ValueError("the noise is not hierarchical")
    rule = noise.hierarchy
    every = measured_signatures(rule)
    problems = list(neighbour_problems(every, noise, file))
    if problems:
        raise Mistakes(problems)
    reaches = [reach(one, noise) for one in every]
    widest = Reach(*(max(getattr(one, name) for one in reaches) for name in ("l1", "l2_squared", "largest")))
    parents, codes = rule.area_parents(programme.variables[rule.geography].codelist)
    try:
        spine = spines.spine_of(rule.levels, parents, codes, rule.bypass)
        plan = measuring.plan_of(spine, replace(rule.strategy, reach=widest))
        if rule.fit == "own-level":
            measuring.require_own_levels(plan)
    except Mistakes as mistakes:
        raise Mistakes(
            Problem(file, f"noise.strategy, {one.key}", one.value, one.remedy) for one in mistakes.problems
        ) from None
    made = HierarchicalMechanism(
        noise,
        rule,
        plan,
        rule.leaf_cube(programme.variables),
        tuple(codes),
        noise_key,
        statistics(programme),
        _group_codes(rule, programme.variables),
    )
    made.require_delta(file)
    return made


def _group_codes(rule: HierarchyRule, variables: Mapping[str, Variable]) -> dict[str, tuple[str, ...]]:
    """The codes of the groups of every grouping, in their order."""
    found = {}
    fine = {axis.variable: axis for axis in rule.category_axes(variables)}
    for one in rule.strategy.histogram.groupings:
        named = variables[one.variable].breakdowns.values()
        axis = next(axis for axis in named if axis.full_name == one.name)
        nodes = groups_of(fine[one.variable], axis)
        found[one.name] = tuple(axis.codes[node] for node in np.unique(nodes if nodes is not None else []))
    return found


def measured_signatures(rule: HierarchyRule) -> tuple[Signature, ...]:
    """What is measured, as cross-tabulations of a level of the geography by the variables of a query."""
    found: dict[Signature, None] = {}
    for one, depth in zip(rule.strategy.levels, rule.depths, strict=True):
        for query, _ in one.queries:
            names = query_variables(rule, query)
            levels = [(rule.geography, depth)] if depth else []
            levels += [(name, 1) for name in names]
            found[Signature(rule.unit, "", "", tuple(sorted(levels)))] = None
    return tuple(found)


def query_variables(rule: HierarchyRule, query: str) -> tuple[str, ...]:
    """The variables that a query crosses."""
    if query == "total":
        return ()
    if query == "detailed":
        return tuple(variable for variable, _ in rule.axes)
    groupings = {one.name: one.variable for one in rule.strategy.histogram.groupings}
    return tuple(dict.fromkeys(groupings.get(part, part) for part in query.split("*")))


@dataclass(frozen=True, eq=False)
class HierarchicalMechanism:
    """Marginals of every area of a tree; the key decides the noise, and must never meet two different populations."""

    rule: PrivateNoise
    hierarchy: HierarchyRule
    plan: measuring.Plan
    leaf: Cube  # what is counted
    codes: tuple[tuple[str, ...], ...]  # level -> codes of its areas
    key: bytes
    statistics: Statistics
    group_codes: Mapping[str, tuple[str, ...]]  # grouping -> codes of its groups
    notes: tuple[str, ...] = ()

    @property
    def key_modulus(self) -> int:
        """Cell keys do not matter."""
        return 1

    @cached_property
    def identity(self) -> bytes:
        """What is counted, and every law that is drawn: equal ones under one key are equal noise."""
        counted = self.statistics.identity(self.leaf, self.leaf.signature((1,) * len(self.leaf.axes)))
        laws = [
            [
                kind.top,
                kind.bottom,
                [[query, str(law.parameter)] for query, law in zip(kind.queries, kind.laws, strict=True)],
            ]
            for kind in self.plan.kinds
        ]
        rule = self.hierarchy
        groups = [[one.name, one.groups] for one in rule.strategy.histogram.groupings]
        zeros = [zero.categories for zero in rule.strategy.histogram.zeros]
        parts = [counted, rule.depths, rule.axes, rule.bypass, groups, zeros, self.rule.kind.value, laws]
        return json.dumps(parts, sort_keys=True).encode()

    def identities(self, cubes: Iterable[Cube] = ()) -> set[str]:
        """What all noise belongs to, whatever cubes are published: one histogram of one tree."""
        return {hashlib.sha256(self.identity).hexdigest()}

    def drawn(self, counts: sparse.csr_array) -> measuring.Drawn:
        """The measurements of true counts (smallest area, cell in row-major order)."""
        (name,) = self.identities()
        return measuring.measure(
            self.plan.spine, counts, self.plan.strategy, derive(self.key, f"hierarchy/{name}")
        )

    def counts(self, table: ConfidentialTable) -> sparse.csr_array:
        """The counted leaf table as (smallest area, cell in row-major order)."""
        here = np.flatnonzero(counts_of(table.cells))
        cells = here if table.positions is None else table.positions[here]
        nodes = [self.leaf.nodes(cells.astype(np.int64), k) for k in range(len(self.leaf.axes))]
        inner = np.all([one > 0 for one in nodes], axis=0)
        cell = np.zeros(int(inner.sum()), dtype=np.int64)
        for along, size in zip(nodes[1:], self.leaf.shape[1:], strict=True):
            cell = cell * (size - 1) + along[inner] - 1
        found = counts_of(table.cells[here[inner]]).astype(np.int64)
        width = prod(size - 1 for size in self.leaf.shape[1:])
        return sparse.csr_array((found, (nodes[0][inner] - 1, cell)), shape=(self.leaf.shape[0] - 1, width))

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Not one table by itself: all are fitted together."""
        self._refuse(table.cube)

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        """Not by cell: marginals are measured."""
        self._refuse(table.cube)

    def _refuse(self, cube: Cube) -> NoReturn:
        value = "hierarchical noise has no noise of one cell"
        raise mistake("", f"cube {cube.id}", value, "publish the whole programme with `discreet protect`")

    @cached_property
    def distance(self) -> Fraction:
        """The total-variation distance between all that is drawn and the laws as they are written, at most."""
        basis = self.plan.strategy.histogram.basis
        times = np.bincount(self.plan.kind_of, minlength=len(self.plan.kinds)).tolist()
        return sum(
            (
                number * marginals.size_of(basis, marginal) * table.total_variation()
                for number, kind in zip(times, self.plan.kinds, strict=True)
                for marginal, table in zip(kind.marginals, kind.tables, strict=True)
            ),
            Fraction(0),
        )

    @cached_property
    def delta(self) -> Fraction:
        """The certified delta at the nominal epsilon: along the path from the root on which it is largest."""
        if self.rule.is_gaussian:
            return self.rule.delta
        touched = self.reach
        found = []
        for path in self.paths:
            total = Fraction(0)
            for kind in path:
                for law, table in zip(self.plan.kinds[kind].laws, self.plan.kinds[kind].tables, strict=True):
                    total += touched.l1 * table.delta_per_change(
                        law.epsilon_parameter or Fraction(0), touched.largest
                    )
            found.append(total)
        return max(found)

    @property
    def reach(self) -> Reach:
        """How far neighbours differ in any query."""
        found = self.plan.strategy.reach
        if found is None:
            raise ValueError("a mechanism knows how far neighbours differ")
        return found

    @cached_property
    def paths(self) -> dict[tuple[int, ...], int]:
        """The kinds of the nodes from the root to a smallest area -> how many areas have such a path."""
        spine, path_of = self.plan.spine, dict[int, tuple[int, ...]]()
        for node in range(len(spine)):
            above = path_of[int(spine.parent[node])] if node else ()
            path_of[node] = (*above, int(self.plan.kind_of[node]))
        found: dict[tuple[int, ...], int] = {}
        for leaf in spine.leaves.tolist():
            found[path_of[leaf]] = found.get(path_of[leaf], 0) + 1
        return found

    def require_delta(self, file: str) -> None:
        """Refuse a declared delta below what drawing costs, and a path that does not spend the declared budget."""
        if self.rule.is_gaussian and self.rule.delta:
            epsilon_of_drawn_rho(self.rule.budget.total, self.rule.delta, self.distance)
        if self.delta > max(self.rule.delta, ARITHMETIC):
            value = f"drawing costs {float(self.delta):.3g}, {float(self.rule.delta):.3g} is declared"
            raise Mistakes([Problem(file, "noise.delta", value, "declare the larger delta")])
        for path in self.paths:
            laws = (law for kind in path for law in self.plan.kinds[kind].laws)
            spent = sum((self.plan.strategy.part(law) for law in laws), Fraction(0))
            if spent != self.rule.budget.total:
                raise ArithmeticError(f"a path spends {spent} of {self.rule.budget.total}")

    def certified(self) -> Certified:
        """Along the path on which it is largest."""
        return Certified(self.rule, self.delta, self.distance)

    def cube_problems(self, cube: Cube) -> Iterator[Problem]:
        """None: cubes are sums of what is fitted."""
        yield from ()

    def problems(self, records: int) -> Iterator[Problem]:
        """A delta of one in the population or more would allow publishing a person's record outright."""
        rule = self.rule
        if rule.claim is Claim.DP and not rule.large_delta and self.delta * records >= 1:
            value = f"delta = {float(self.delta):.3g} is not below one in the number of records"
            yield Problem("", "noise.delta", value, "lower it, or accept it with large_delta = true")

    def noise(self) -> Noise:
        """Everything except the key is public; there is no law of a published count."""
        rule = self.rule
        every = measured_signatures(self.hierarchy)
        return Noise(
            kind=rule.kind,
            drawing=rule.draw,
            zeros=KeptZeros.STRUCTURAL,
            publishing=rule.published,
            adjusted=True,
            hierarchy=replace(self.hierarchy, strategy=self.plan.strategy),
            budget=NoiseBudget(
                total=rule.budget.total,
                split=rule.budget.split,
                cross_tabulations=len(every),
                neighbours=rule.neighbours,
                unit=rule.protects,
            ),
            guarantee=Guarantee(
                neighbours=rule.neighbours,
                unit=rule.protects,
                largest_household=rule.largest_household,
                fixed=fixed_variables(every, rule),
                fixed_families=has_fixed_families(every, rule),
                epsilon=None if rule.is_gaussian else rule.budget.total,
                rho=rule.budget.total if rule.is_gaussian else None,
                delta=rule.delta if rule.is_gaussian else rounded_up(self.delta, DELTA_DIGITS),
                distance=rounded_up(self.distance, DELTA_DIGITS) if rule.is_gaussian else Fraction(0),
            ),
        )
