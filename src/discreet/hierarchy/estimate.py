"""The generalised least squares estimate of every count of a spine, its standard errors, and their forecast.

Covariances depend on the strategy and on how many children areas have, not on data; nodes whose trees below have the
same form share them. See ``maths.tree.least_squares`` for the formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.hierarchy.measure import Measurements, Plan, Siblings, plan_of
from discreet.hierarchy.spine import Spine
from discreet.io.progress import Progress, Quiet
from discreet.maths.tree.least_squares import (
    combined,
    inverse,
    moved_to_total,
    smoothed,
    updated,
    with_known_total,
)
from discreet.maths.tree.marginals import Basis, Blocks, answers, applied, cell_variances, size_of, spread
from discreet.maths.tree.matrices import product
from discreet.programme.strategy import Strategy

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

NODES_AT_ONCE = 256  # histograms that are read together


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals that are published without noise: at these levels, with the value of every node that has one."""

    levels: tuple[str, ...]
    known: NDArray[np.bool_]  # node -> whether its total is declared known
    values: Integers  # node -> its total; 0 where it is not known


def no_totals(spine: Spine) -> Totals:
    """No total is exact."""
    return Totals((), np.zeros(len(spine), dtype=bool), np.zeros(len(spine), dtype=np.int64))


def known_totals(spine: Spine, levels: Sequence[str]) -> NDArray[np.bool_]:
    """Which nodes represent an area of one of these levels."""
    known = np.zeros(len(spine), dtype=bool)
    for level in levels:
        if level not in spine.levels:
            raise mistake("", "totals", f"no level {level!r}", f"choose from {', '.join(spine.levels)}")
        known[spine.node_of[spine.levels.index(level)]] = True
    return known


@dataclass(frozen=True, eq=False)
class Form:
    """The covariances of nodes whose trees below have the same form."""

    kind: int
    plain: Blocks  # of the estimate from all measurements at and below the node
    up: Blocks  # the same, given the total where it is known here
    children: Blocks | None  # of the sum of the children's estimates; None for leaves
    children_inverse: Blocks | None
    fixed: bool  # the total is known, here or below
    direction: Floats | None  # how a missing total is spread, where it is known here


@dataclass(frozen=True, eq=False)
class Covariances:
    """The form of each node."""

    plan: Plan
    forms: tuple[Form, ...]
    form_of: Integers  # node -> form

    def of(self, node: int) -> Form:
        """The form of one node."""
        return self.forms[int(self.form_of[node])]


def covariances(plan: Plan, known: NDArray[np.bool_]) -> Covariances:
    """The pass up of the covariances, once for each form."""
    spine = plan.spine
    forms: list[Form] = []
    numbers: dict[tuple[int, ...], int] = {}
    form_of = np.full(len(spine), -1, dtype=np.int64)
    leaves = np.flatnonzero(spine.first == spine.last)
    pairs = np.stack([plan.kind_of[leaves], known[leaves]], axis=1)
    for which, (kind, exact) in enumerate(np.unique(pairs, axis=0).tolist()):
        numbers[kind, exact] = which
        forms.append(_form(plan, kind, bool(exact), ()))
        form_of[leaves[(pairs == (kind, exact)).all(axis=1)]] = which
    for node in spine.inner[::-1].tolist():
        below = sorted(Counter(form_of[spine.children(node)].tolist()).items())
        key = (int(plan.kind_of[node]), int(known[node]), *(number for pair in below for number in pair))
        if key not in numbers:
            numbers[key] = len(forms)
            counted = [(forms[form], number) for form, number in below]
            forms.append(_form(plan, int(plan.kind_of[node]), bool(known[node]), counted))
        form_of[node] = numbers[key]
    return Covariances(plan, tuple(forms), form_of)


def _form(plan: Plan, kind: int, known: bool, below: Sequence[tuple[Form, int]]) -> Form:
    own = plan.kinds[kind].precision
    if not below:
        plain, children, children_inverse, fixed = inverse(own, total_known=False), None, None, False
    else:
        children = sum((number * one.up for one, number in below), np.zeros_like(own))
        fixed = all(one.fixed for one, _ in below)
        children_inverse = inverse(children, total_known=fixed)
        plain = combined(children, own)
    up, direction = with_known_total(plain) if known else (plain, None)
    return Form(kind, plain, up, children, children_inverse, fixed or known, direction)


@dataclass(frozen=True, eq=False)
class Upward:
    """The pass up: of each node with children its estimate from below (m_up), and the sum of its children's (m)."""

    measurements: Measurements
    totals: Totals
    covariances: Covariances
    row: Integers  # node -> row below, -1 for leaves
    up: Floats  # (inner node, d, width)
    children: Floats  # (inner node, d, width)

    @property
    def basis(self) -> Basis:
        """The shape of the histogram."""
        return self.measurements.plan.strategy.histogram.basis

    def estimates(self, siblings: Siblings) -> Floats:
        """m_up of siblings of one kind, (node, d, width)."""
        found = np.empty((len(siblings.nodes), self.basis.d, self.basis.width))
        leaf = self.row[siblings.nodes] < 0
        found[~leaf] = self.up[self.row[siblings.nodes[~leaf]]]
        if leaf.any():
            information = _information(self.measurements.plan, siblings, leaf)
            nodes = siblings.nodes[leaf]
            forms = self.covariances.form_of[nodes]
            block = np.empty_like(information)
            for form in np.unique(forms).tolist():
                block[forms == form] = self._leaf(form, information[forms == form], nodes[forms == form])
            found[leaf] = block
        return found

    def _leaf(self, number: int, information: Floats, nodes: Integers) -> Floats:
        form = self.covariances.forms[number]
        found = applied(self.basis, form.plain, information)
        if form.direction is not None:
            found = moved_to_total(
                self.basis, found, self.totals.values[nodes].astype(np.float64), form.direction
            )
        return found


def _information(plan: Plan, siblings: Siblings, chosen: NDArray[np.bool_]) -> Floats:
    """H = sum_q Q' y_q / s_q^2 of the chosen ones among siblings."""
    basis, kind = plan.strategy.histogram.basis, plan.kinds[siblings.kind]
    found = np.zeros((int(chosen.sum()), basis.d, basis.width))
    for marginal, variance, values in zip(kind.marginals, kind.variances, siblings.values, strict=True):
        found += spread(basis, marginal, values[chosen] / variance)
    return found


def upward(
    measurements: Measurements, totals: Totals | None = None, progress: Progress | None = None
) -> Upward:
    """The pass up over all nodes, the children of one parent at a time."""
    seen = progress or Quiet()
    plan = measurements.plan
    spine, basis = plan.spine, plan.strategy.histogram.basis
    exact = totals or no_totals(spine)
    found = covariances(plan, exact.known)
    inner = spine.inner
    row = np.full(len(spine), -1, dtype=np.int64)
    row[inner] = np.arange(len(inner))
    m_up = np.zeros((len(inner), basis.d, basis.width))
    m = np.zeros_like(m_up)
    fit = Upward(measurements, exact, found, row, m_up, m)
    # the pass goes from the last parent to the first, and a node's own information belongs to its parent's siblings
    for parent in (*inner[::-1].tolist(), -1):
        for siblings in measurements.noisy(parent):
            _own_measurements(fit, siblings)
            if parent >= 0:
                _add_to_parent(fit, siblings, int(row[parent]))
            seen.step(len(siblings.nodes))
    return fit


def _own_measurements(fit: Upward, siblings: Siblings) -> None:
    """m_up of those siblings that have children: their sums are complete, since children come before parents."""
    inner = fit.row[siblings.nodes] >= 0
    if not inner.any():
        return
    information = _information(fit.measurements.plan, siblings, inner)
    for node, h in zip(siblings.nodes[inner].tolist(), information, strict=True):
        form, at = fit.covariances.of(node), fit.row[node]
        own = fit.measurements.plan.kinds[siblings.kind].precision
        value = updated(fit.basis, fit.children[at], h, own, form.plain)
        if form.direction is not None:
            value = moved_to_total(fit.basis, value, float(fit.totals.values[node]), form.direction)
        fit.up[at] = value


def _present(blocks: Blocks | None) -> Blocks:
    if blocks is None:
        raise ValueError("a leaf has no children")
    return blocks


def _add_to_parent(fit: Upward, siblings: Siblings, row: int) -> None:
    """Add m_up of siblings to their parent's m; leaves of one form are summed before they are solved."""
    leaf = fit.row[siblings.nodes] < 0
    if not leaf.all():
        fit.children[row] += fit.up[fit.row[siblings.nodes[~leaf]]].sum(axis=0)
    if not leaf.any():
        return
    plan = fit.measurements.plan
    basis, kind = fit.basis, plan.kinds[siblings.kind]
    nodes, forms = siblings.nodes[leaf], fit.covariances.form_of[siblings.nodes[leaf]]
    for number in np.unique(forms).tolist():
        these = np.flatnonzero(leaf)[forms == number]
        h = np.zeros((basis.d, basis.width))
        for marginal, variance, values in zip(kind.marginals, kind.variances, siblings.values, strict=True):
            h += spread(basis, marginal, values[these].sum(axis=0, dtype=np.int64) / variance)
        form = fit.covariances.forms[number]
        value = applied(basis, form.plain, h)
        if form.direction is not None:
            total = float(fit.totals.values[nodes[forms == number]].sum())
            value = moved_to_total(basis, value, total, form.direction)
        fit.children[row] += value


@dataclass(frozen=True, eq=False)
class Estimated:
    """The estimates of one query at one level, and the variance of each."""

    level: str
    query: str
    values: Floats  # (area, cell of the query)
    variances: Floats  # (area, cell of the query)


class Estimates:
    """The estimates of all counts; those of leaves are computed parent by parent when they are read."""

    def __init__(self, fit: Upward) -> None:
        self._fit = fit
        spine = fit.measurements.plan.spine
        self._final = fit.up.copy()
        for node in spine.inner.tolist():
            gap = _pulled(fit, node, self._final[fit.row[node]])
            for child in range(int(spine.first[node]), int(spine.last[node])):
                if fit.row[child] >= 0:
                    move = applied(fit.basis, fit.covariances.of(child).up, gap)
                    self._final[fit.row[child]] = fit.up[fit.row[child]] + move

    def at(self, level: str, query: str) -> Estimated:
        """The estimates of a query in every area of a level, bypassed areas included."""
        plan = self._fit.measurements.plan
        spine, basis = plan.spine, self._fit.basis
        if level not in spine.levels:
            raise mistake("", "level", f"no level {level!r}", f"choose from {', '.join(spine.levels)}")
        marginal = plan.strategy.histogram.marginal(query)
        nodes = spine.node_of[spine.levels.index(level)]
        variances = node_variances(self._fit.covariances, nodes)
        found = np.empty((len(nodes), size_of(basis, marginal)))
        area_of = np.zeros(len(spine), dtype=np.int64)
        area_of[nodes] = np.arange(len(nodes))
        for some, values in self.histograms(nodes):
            found[area_of[some]] = answers(basis, marginal, values)
        rows = np.stack([cell_variances(basis, one, marginal) for one in variances.blocks])[variances.which]
        width = int(basis.widths[marginal.kept])
        return Estimated(level, query, found, np.repeat(rows, width, axis=1))

    @property
    def covariances(self) -> Covariances:
        """The covariances of all estimates, which no data have changed."""
        return self._fit.covariances

    def histograms(self, nodes: Integers) -> Iterator[tuple[Integers, Floats]]:
        """The estimated histograms (node, d, width) of some nodes: those with children, then leaves by parent."""
        fit = self._fit
        spine = fit.measurements.plan.spine
        inner = nodes[fit.row[nodes] >= 0]
        for first in range(0, len(inner), NODES_AT_ONCE):
            some = inner[first : first + NODES_AT_ONCE]
            yield some, self._final[fit.row[some]]
        leaves = np.unique(nodes[fit.row[nodes] < 0])
        for parent in np.unique(spine.parent[leaves]).tolist():
            gap = None if parent < 0 else _pulled(fit, parent, self._final[fit.row[parent]])
            for siblings in fit.measurements.noisy(parent):
                asked = np.isin(siblings.nodes, leaves)
                if asked.any():
                    chosen = siblings.chosen(asked)
                    values = fit.estimates(chosen)
                    if gap is not None:
                        values += self._moves(chosen.nodes, gap)
                    yield chosen.nodes, values

    def _moves(self, nodes: Integers, gap: Floats) -> Floats:
        """What siblings move by to meet their parent's estimate; the same for those of one form."""
        fit = self._fit
        different, which = np.unique(fit.covariances.form_of[nodes], return_inverse=True)
        moves = [applied(fit.basis, fit.covariances.forms[one].up, gap) for one in different.tolist()]
        return np.stack(moves)[which.reshape(-1)]


def _pulled(fit: Upward, node: int, final: Floats) -> Floats:
    """C^-1 (x - m) of a node with children."""
    inverse_ = _present(fit.covariances.of(node).children_inverse)
    return applied(fit.basis, inverse_, final - fit.children[fit.row[node]])


def estimate(measurements: Measurements, totals: Totals | None = None) -> Estimates:
    """Fit all measurements: unbiased, and of the smallest variance among linear estimates."""
    return Estimates(upward(measurements, totals))


@dataclass(frozen=True, eq=False)
class NodeVariances:
    """The covariance of some nodes' estimates, equal ones once."""

    blocks: list[Blocks]
    which: Integers  # node asked for -> block


def node_variances(found: Covariances, nodes: Integers) -> NodeVariances:
    """V of the nodes, by the pass down; siblings of the same form have the same.

    V of the parent, its children's sum and the own form decide; equal parents have equal forms.
    """
    spine = found.plan.spine
    wanted = np.zeros(len(spine), dtype=bool)
    here = np.unique(nodes)
    while len(here):
        wanted[here] = True
        here = np.unique(spine.parent[here])
        here = here[here >= 0]
    blocks: list[Blocks] = [found.forms[int(found.form_of[0])].up]
    block_of = np.full(len(spine), -1, dtype=np.int64)
    block_of[0] = 0
    first_node, last_node = 1, int(spine.last[0])  # nodes of one depth follow each other
    while first_node < last_node:
        some = first_node + np.flatnonzero(wanted[first_node:last_node])
        first_node, last_node = last_node, int(spine.last[last_node - 1])
        above = spine.parent[some]
        pairs = np.stack([block_of[above], found.form_of[some]], axis=1)
        _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        block_of[some] = len(blocks) + which.reshape(-1)
        for start in range(0, len(first), NODES_AT_ONCE):
            these = first[start : start + NODES_AT_ONCE]
            blocks += _variances_below(found, some[these], [blocks[at] for at in block_of[above[these]]])
    return NodeVariances(blocks, block_of[nodes])


def _variances_below(found: Covariances, nodes: Integers, parents: Sequence[Blocks]) -> list[Blocks]:
    """V of some nodes, from V of their parents."""
    above = [found.of(int(one)) for one in found.plan.spine.parent[nodes]]
    up = np.stack([found.of(int(node)).up for node in nodes])
    gain = product(up, np.stack([_present(one.children_inverse) for one in above]))
    return list(smoothed(up, gain, np.stack(parents), np.stack([_present(one.children) for one in above])))


@dataclass(frozen=True)
class Forecast:
    """The variance of a query's estimates at one level, before any noise is drawn."""

    level: str
    query: str
    mean: float  # over areas and cells
    smallest: float
    largest: float


def forecast(
    spine: Spine, strategy: Strategy, queries: Sequence[str], totals: Sequence[str] = ()
) -> list[Forecast]:
    """The variances of the estimates of these queries at every level; no data are needed, and no budget is spent."""
    plan = plan_of(spine, strategy)
    found = covariances(plan, known_totals(spine, totals))
    basis = strategy.histogram.basis
    marginals = [(query, strategy.histogram.marginal(query)) for query in queries]
    result = []
    for level, nodes in zip(spine.levels, spine.node_of, strict=True):
        variances = node_variances(found, nodes)
        for query, marginal in marginals:
            rows = np.stack([cell_variances(basis, one, marginal) for one in variances.blocks])
            here = rows[np.unique(variances.which)]
            mean = float(rows.mean(axis=1)[variances.which].mean())
            result.append(Forecast(level, query, mean, float(here.min()), float(here.max())))
    return result
