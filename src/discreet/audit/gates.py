"""Gates judged on a release: which hold, which do not, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from discreet.audit.case import make_case, store_truth, stored_truth
from discreet.audit.corrections import correction_verdict
from discreet.audit.declared_averaging import declared_pieces, most_exposed
from discreet.audit.estimates import declared_estimates
from discreet.audit.measures import Measures
from discreet.audit.verdict import GateVerdict
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.temporary_folder import private_folder
from discreet.maths.attacks.averaging import least_variance, recovery
from discreet.maths.attacks.disclosure import RowKind
from discreet.perturb.private import PrivateMechanism
from discreet.programme.gates import (
    DifferencingGate,
    Gates,
    PosteriorGate,
    ReconstructionGate,
    SparsityGate,
)
from discreet.programme.noise import CellKeyNoise
from discreet.release.reader import Release
from discreet.run.run import Run

_Gate = TypeVar("_Gate")

NAMED = 5  # cells or statistics that a verdict names


def judge_release(run: Run, release: Release) -> list[GateVerdict]:
    """Judge the gates of a programme on a release that a run has just made."""
    if run.engine is None:
        return _judged(run, release, None)
    with private_folder(release.folder.parent) as folder:
        store_truth(run, folder)
        return run.call(_judged, run.sent(), release, folder)


def _judged(run: Run, release: Release, stored: Path | None) -> list[GateVerdict]:
    """Judge the gates; true counts that tasks have stored are not counted again."""
    gates = run.programme.gates
    truth = None if stored is None else stored_truth(run.programme, stored)
    return judge_gates(gates, Measures(make_case(run, release, truth), run.progress, gates.reconstruction))


def judge_gates(gates: Gates, measures: Measures) -> list[GateVerdict]:
    """Measure and judge every gate that is declared."""
    return [verdict for name in gates.declared for verdict in JUDGES[name](gates, measures)]


def _averaging(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    limit = gates.averaging or 0.0
    chosen = measures.case.mechanism
    if isinstance(chosen, HierarchicalMechanism):
        yield _averaging_by_estimates(limit, chosen, measures)
        return
    if isinstance(chosen, PrivateMechanism) and chosen.rule.is_guaranteed:
        yield _averaging_by_law(limit, measures)
        return
    found = measures.recovered
    worst = max((one.success for one in found), default=0.0)
    over = [one for one in found if one.success > limit]
    remedy = "lower epsilon, or publish fewer tables"
    if over and isinstance(measures.case.programme.noise, CellKeyNoise):
        needed = max(least_variance(one.ratio, limit) for one in over)
        remedy = f"raise V to at least {needed:.3g}, or publish fewer tables that repeat each other"
    where = tuple(f"{one.counted}: {_cell(one.cell)}, {one.t} representations" for one in over[:NAMED])
    yield GateVerdict(
        "averaging", limit, worst, "the chance that averaging recovers a true count", where, remedy
    )


def _averaging_by_estimates(limit: float, chosen: HierarchicalMechanism, measures: Measures) -> GateVerdict:
    """The best average of a hierarchical release is its least squares estimate: by the strategy and the areas only."""
    found = declared_estimates(chosen, measures.case.programme.cubes)
    over = sorted((one for one in found.cubes if one.success > limit), key=lambda one: -one.success)
    return GateVerdict(
        "averaging",
        limit,
        found.success,
        "the chance that an estimate recovers a true count",
        tuple(f"{one.cube}: standard error {one.smallest_error:.3g}" for one in over[:NAMED]),
        "lower the budget, or give the level that is known too well a smaller share",
    )


def _averaging_by_law(limit: float, measures: Measures) -> GateVerdict:
    """Averaging where the release has a guarantee: only by the programme and the law, all cells being noisy."""
    seen = measures.case.published
    worst = most_exposed(
        map(declared_pieces, seen.universes), same_noise=False, variance=seen.noise.variance_of
    )
    found = recovery(np.array([worst.ratio])).probability
    return GateVerdict(
        "averaging",
        limit,
        found,
        "the chance that averaging recovers a true count",
        () if found <= limit else (f"{worst}, {worst.t} representations",),
        "lower epsilon, or publish fewer tables",
    )


def _bound_revealed(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    expected = measures.bounds.expected
    found = 0.0 if expected is None else expected.probability
    if measures.bounds_judged.is_bound_shown:
        found = 1.0
    yield GateVerdict(
        "bound_revealed",
        gates.bound_revealed or 0.0,
        found,
        "the chance that the tables show the largest change of the noise",
        remedy="raise D, or lower V so that large changes are rare",
    )


def _pinned_cells(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    attack = measures.bounds
    yield GateVerdict(
        "pinned_cells",
        gates.pinned_cells or 0,
        attack.pinned,
        "the number of true counts that can be deduced from bounds and margins",
        tuple(f"{one.table}: {_cell(one.cell)}" for one in attack.named[:NAMED]),
        "raise D, or leave small breakdowns out",
    )


def _guarantee(name: str) -> Callable[[Gates, Measures], Iterable[GateVerdict]]:
    def judge(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
        guarantee = measures.case.published.noise.guarantee
        if guarantee is not None:
            limit, found = float(getattr(gates, name)), guarantee.figures()[name]
            yield GateVerdict(
                name, limit, found, f"{name} of the release", remedy="lower the budget of [noise]"
            )

    return judge


def _true_uniques(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    found = measures.disclosures
    yield GateVerdict(
        "true_uniques",
        gates.true_uniques or 0.0,
        found.total.ones.share_true or 0.0,
        "the share of published ones that are one person",
        tuple(f"{one.cube}: {_cell(one.cell)}" for one in found.uniques[:NAMED]),
        "raise V, or swap more with [swap]",
    )


def _true_attributes(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    found = measures.disclosures
    rows = [found.total.rows[kind] for kind in (RowKind.INDIVIDUAL, RowKind.GROUP)]
    seen = sum(row.seen for row in rows)
    yield GateVerdict(
        "true_attributes",
        gates.true_attributes or 0.0,
        sum(row.true or 0 for row in rows) / seen if seen else 0.0,
        "the share of apparent attribute disclosures that are true",
        tuple(f"{one.cube}: {_cell(one.cell)}" for one in found.telling[:NAMED]),
        "raise V, swap more with [swap], or coarsen the breakdowns",
    )


def _sparsity(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    gate = _given(gates.sparsity, SparsityGate)
    every = list(measures.sparsity)
    whats = {
        "zeros": "the share of empty cells in a cross-tabulation",
        "ones": "the share of ones among the cells of a cross-tabulation that are not empty",
        "ones_and_twos": "the share of ones and twos among the cells of a cross-tabulation that are not empty",
    }
    for name, what in whats.items():
        limit = getattr(gate, name)
        if limit is not None:
            ordered = sorted(every, key=lambda one: -getattr(one, name))
            over = [one for one in ordered if getattr(one, name) > limit]
            yield GateVerdict(
                f"sparsity.{name}",
                limit,
                getattr(ordered[0], name) if ordered else 0.0,
                what,
                tuple(f"{one.crosstab} of {one.counted}" for one in over[:NAMED]),
                "coarsen its breakdowns, or leave it out",
            )


def _posterior(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    gate = _given(gates.posterior, PosteriorGate)
    scan = measures.posterior(gate)
    yield GateVerdict(
        "posterior",
        gate.share,
        scan.share if gate.alone else scan.share_beside_others,
        f"the share of small cells with a posterior above {gate.above:g}",
        tuple(f"{one.counted}: {_cell(one.cell)}" for one in scan.named[:NAMED]),
        "raise the variance of the noise, coarsen the breakdowns, or set alone = false: zeros that stay zero disclose "
        "cells with one person whatever the noise",
    )


def _differencing(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    gate = _given(gates.differencing, DifferencingGate)
    for found in measures.area_differences(gate):
        names = " and ".join(found.geographies)
        shown = [one for one in found.listed if one.above]
        yield GateVerdict(
            "differencing",
            gate.revealed,
            found.revealed,
            f"the number of revealed differences of {names} below {gate.threshold} records",
            tuple(f"{' + '.join(one.plus)} minus {' + '.join(one.minus)}" for one in shown[:NAMED]),
            "raise the variance, or publish one of the two geographies at a coarser level",
        )
        if not found.complete:
            yield GateVerdict(
                "differencing",
                0,
                1,
                f"the number of unfinished searches in {names}",
                remedy="lower the threshold, so that the search can finish",
            )


def _reconstruction(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    gate, rebuilt = _given(gates.reconstruction, ReconstructionGate), measures.rebuilt
    remedy = "raise the variance, swap, or publish fewer tables of the smallest areas"
    if rebuilt is None:
        what = "the number of places that no table about persons has"
        yield GateVerdict("reconstruction", 0, 1, what, remedy="name a place that the cubes have")
        return
    for name, limit, gain, what in (
        ("reconstructed", gate.reconstructed, rebuilt.judged.gain, "records that were reconstructed"),
        ("reidentified", gate.reidentified, rebuilt.confirmed.gain, "persons who were re-identified"),
    ):
        beyond = f"the share of {what} beyond the best guess"
        yield GateVerdict(f"reconstruction.{name}", limit, max(gain, 0.0), beyond, remedy=remedy)


def _corrections(gates: Gates, measures: Measures) -> Iterable[GateVerdict]:
    """Beside an earlier release only; ``protect`` compares with the one that it replaces."""
    pair = measures.release_difference
    if pair is not None:
        yield correction_verdict(pair.corrections, gates.corrections)


JUDGES: Mapping[str, Callable[[Gates, Measures], Iterable[GateVerdict]]] = {
    "averaging": _averaging,
    "bound_revealed": _bound_revealed,
    "pinned_cells": _pinned_cells,
    "epsilon": _guarantee("epsilon"),
    "delta": _guarantee("delta"),
    "true_uniques": _true_uniques,
    "true_attributes": _true_attributes,
    "sparsity": _sparsity,
    "posterior": _posterior,
    "differencing": _differencing,
    "reconstruction": _reconstruction,
    "corrections": _corrections,
}


def _cell(codes: Mapping[str, str]) -> str:
    return ", ".join(f"{variable}={code}" for variable, code in codes.items()) or "the grand total"


def _given(value: _Gate | None, kind: type[_Gate]) -> _Gate:
    if value is None:
        raise TypeError(f"{kind.__name__} is not declared")
    return value
