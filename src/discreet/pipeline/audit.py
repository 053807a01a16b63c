"""The audit of a release: every measure of risk and every gate, as one confidential report."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from discreet.advise.advise import USUAL_LIMITS, grid, task_of
from discreet.audit import averaging, least_squares, removal, weights
from discreet.audit.attack import OF_CELL_NOISE, NotPossible
from discreet.audit.audit import (
    MEASURES,
    Audit,
    AveragingAudit,
    BayesAudit,
    BoundsAudit,
    DifferencingAudit,
    KeyGapAudit,
    LeastSquaresAudit,
    NoiseChoice,
    Protection,
    ReconstructionAudit,
    RedundancyAudit,
    Region,
    RemovalAudit,
    SwapProtection,
    WeightsAudit,
)
from discreet.audit.case import (
    Case,
    Earlier,
    informed,
    make_case,
    recognise,
    store_truth,
    stored_truth,
    true_counts,
)
from discreet.audit.differencing import require_common
from discreet.audit.differencing_areas import Crossing
from discreet.audit.disclosure import Disclosures
from discreet.audit.evidence import published, refuse_adjusted, same_ptable, same_secret
from discreet.audit.gates import judge_gates
from discreet.audit.hierarchy import HierarchyAudit, audit_hierarchy
from discreet.audit.measures import USUAL_POSTERIOR, Measures, Privacy
from discreet.audit.utility import Utility
from discreet.errors import Mistakes, mistake
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.atomic_folder import AtomicFolder
from discreet.io.progress import Progress, Quiet
from discreet.io.serialize import json_text
from discreet.io.temporary_folder import private_folder
from discreet.maths.feasible import ProgrammeExposure, plane
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme
from discreet.release.reader import Release, open_release
from discreet.report.confidential import confidential_page, write_pages
from discreet.report.public import public_page, public_view
from discreet.run.run import Run

REPORT = "audit.json"

_Found = TypeVar("_Found")


def audit(
    case: Case,
    without: Collection[str] = (),
    progress: Progress | None = None,
    earlier: Earlier | None = None,
    lookup: Crossing | None = None,
) -> Audit:
    """Compute all measures except those left out, and judge the gates of the programme."""
    require_known(without)
    gates = case.programme.gates
    measures = Measures(case, progress or Quiet(), gates.reconstruction, earlier, lookup)

    hierarchical = case.programme.hierarchy is not None

    def measured(name: str, measure: Callable[[Measures], _Found]) -> _Found | None:
        left_out = name in without or (hierarchical and name in OF_CELL_NOISE)
        return None if left_out else measure(measures)

    return Audit(
        release=case.published.name,
        redundancy=measured("redundancy", _redundancy),
        averaging=measured("averaging", _averaging),
        least_squares=measured("least_squares", _least_squares),
        removal=measured("removal", _removal),
        key_gaps=measured("key_gaps", _key_gaps),
        bounds=measured("bounds", _bounds),
        weights=measured("weights", _weights),
        privacy=measured("privacy", _privacy),
        bayes=measured("bayes", _bayes),
        differencing=measured("differencing", _differencing),
        reconstruction=measured("reconstruction", _reconstruction),
        disclosure=measured("disclosure", _disclosure),
        utility=measured("utility", _utility),
        region=measured("region", _region),
        protection=measured("protection", _protection),
        hierarchy=measured("hierarchy", _hierarchy) if hierarchical else None,
        verdicts=tuple(judge_gates(gates, measures)),
    )


@dataclass(frozen=True)
class Before:
    """An earlier release to be subtracted, with the programme that made it where its true counts are known."""

    release: Path
    programme: Programme | None
    secret: bytes = field(repr=False)


def audit_release(
    run: Run,
    release: Release,
    without: Collection[str],
    earlier: Before | None,
    lookup: Crossing | None,
    work: Path,
) -> Audit:
    """Count the records of a release again and audit it.

    On an engine tasks store the true counts in a private folder inside ``work``, and one task measures everything.
    """
    if run.engine is None:
        return _audited(run, release, without, earlier, lookup, None)
    with private_folder(work) as folder:
        store_truth(run, folder)
        return run.call(_audited, run.sent(), release, without, earlier, lookup, folder)


def _audited(
    run: Run,
    release: Release,
    without: Collection[str],
    earlier: Before | None,
    lookup: Crossing | None,
    stored: Path | None,
) -> Audit:
    before = None
    if earlier is not None:
        opened = open_release(earlier.release)
        before = open_earlier(opened, release, earlier.programme, earlier.secret, run.threads, run.progress)
    truth = None if stored is None else stored_truth(run.programme, stored)
    return audit(make_case(run, release, truth), without, run.progress, before, lookup)


def _hierarchy(measures: Measures) -> HierarchyAudit | None:
    case = measures.case
    found = case.published.hierarchy
    if found is None or not isinstance(case.mechanism, HierarchicalMechanism):
        return None
    return audit_hierarchy(case, case.mechanism, found, OF_CELL_NOISE)


def open_earlier(
    release: Release,
    present: Release,
    programme: Programme | None,
    secret: bytes,
    threads: int = 1,
    progress: Progress | None = None,
) -> Earlier:
    """An earlier release of the same tables, with its true counts where the programme that made it is given."""
    refuse_adjusted(release)
    seen = published(release)
    require_common(seen, published(present))
    same = (same_secret(release, present), same_ptable(release, present))
    if programme is None:
        return Earlier(seen, None, *same)
    run = recognise(programme, secret, release, threads, progress)
    return Earlier(informed(seen, run.mechanism), true_counts(run, programme.cubes), *same)


def write_audit(
    found: Audit, out: Path, release: Path, threads: int = 1, progress: Progress | None = None
) -> None:
    """Write the report atomically into a folder that only its owner can read.

    The public page is made from the public files only: attacks whose measure was left out are left out there too.
    """
    require_outside(out, release)
    progress = progress or Quiet()
    view = public_view(open_release(release), found.left_out, threads, progress)
    with AtomicFolder(out, "--out") as folder:
        with folder.file(REPORT) as file:
            file.write(json_text(found, indent=1).encode())
        write_pages(folder, confidential_page(found, view), public_page(view), progress)
        folder.publish()


def require_outside(out: Path, release: Path) -> None:
    """Refuse to write a confidential report into a release."""
    if out.resolve().is_relative_to(release.resolve()):
        raise mistake(
            out, "--out", "is inside the release", "the report is confidential: choose another folder"
        )


def require_known(without: Collection[str]) -> None:
    """Refuse unknown measures to leave out, before any work is done."""
    for name in without:
        if name not in MEASURES:
            raise mistake("", "--without", name, f"choose from {', '.join(MEASURES)}")


def _redundancy(measures: Measures) -> RedundancyAudit:
    return RedundancyAudit(measures.redundancy)


def _averaging(measures: Measures) -> AveragingAudit:
    found = measures.averaging
    return AveragingAudit(found.findings(), averaging.judge(found, measures.case.truth))


def _least_squares(measures: Measures) -> LeastSquaresAudit:
    found = measures.least_squares
    return LeastSquaresAudit(found.findings(), least_squares.judge(found, measures.case.truth))


def _removal(measures: Measures) -> RemovalAudit | NotPossible:
    try:
        found = measures.removal
    except Mistakes as missing:  # a law that no posterior can be computed of
        return NotPossible.because(missing)
    return RemovalAudit(found.findings().without_counts(), removal.judge(found, measures.case.truth))


def _key_gaps(measures: Measures) -> KeyGapAudit | NotPossible:
    try:
        found = measures.key_gaps
    except Mistakes as missing:  # noise that has no cell keys, or a release without large counts
        return NotPossible.because(missing)
    return KeyGapAudit(found.findings(), measures.key_gaps_judged)


def _bounds(measures: Measures) -> BoundsAudit:
    return BoundsAudit(measures.bounds.findings().without_counts(), measures.bounds_judged)


def _weights(measures: Measures) -> WeightsAudit | NotPossible:
    case = measures.case
    try:
        found = weights.attack_weights(case.published)
    except Mistakes as missing:  # no weighted table, or noise of a law of its own
        return NotPossible.because(missing)
    return WeightsAudit(found.findings(), weights.judge(found, case.truth))


def _privacy(measures: Measures) -> Privacy:
    return measures.privacy


def _bayes(measures: Measures) -> BayesAudit:
    gate = measures.case.programme.gates.posterior or USUAL_POSTERIOR
    return BayesAudit(
        measures.posterior(gate), tuple(measures.levels(gate)), tuple(measures.histograms(gate))
    )


def _differencing(measures: Measures) -> DifferencingAudit:
    gate = measures.case.programme.gates.differencing
    return DifferencingAudit(
        measures.base_differences,
        tuple(measures.area_differences(gate)) if gate else (),
        measures.release_difference,
        measures.ptable_change(),
        measures.map_difference(),
    )


def _reconstruction(measures: Measures) -> ReconstructionAudit | NotPossible:
    rebuilt = measures.rebuilt
    if rebuilt is None:
        return NotPossible("no table about all persons has a place")
    others, left_out = measures.rebuilt_otherwise()
    return ReconstructionAudit(rebuilt, tuple(others), left_out)


def _disclosure(measures: Measures) -> Disclosures:
    return measures.disclosures


def _utility(measures: Measures) -> Utility:
    return measures.utility


def _protection(measures: Measures) -> Protection:
    noise, swap = measures.case.published.noise, measures.case.programme.swap
    return Protection(
        method=noise.method,
        parameters=dict(noise.parameters()),
        variance=noise.variance,
        bound=noise.bound,
        law=tuple(noise.listed()),
        guarantee=noise.guarantee.sentence() if noise.guarantee else None,
        swap=None
        if swap is None
        else SwapProtection(
            k=swap.k,
            risk=" x ".join(axis.full_name for axis in swap.risk) or "supplied by the office",
            rate=float(swap.rate),
            cap=None if swap.cap is None else float(swap.cap),
        ),
    )


def _region(measures: Measures) -> Region | NotPossible:
    """The V x D plane of the cell key method under the usual limits, or stricter gates if declared."""
    programme = measures.case.programme
    if not isinstance(programme.noise, CellKeyNoise):
        return NotPossible("only the cell key method has a plane of variance and largest change")
    task = task_of(programme, None, USUAL_LIMITS)
    ratio = min((one.ratio for one in measures.recovered[:1]), default=1.0)
    exposed = ProgrammeExposure(ratio, measures.bounds.groups)
    found = plane(*grid(exposed, task.limits), exposed, task.limits, task.js)
    return Region(
        V=tuple(round(float(v), 6) for v in found.V),
        D=tuple(found.D.tolist()),
        holds=found.holds,
        chosen=None if task.declared is None else NoiseChoice(*task.declared),
        least=None if found.smallest is None else NoiseChoice(*found.smallest),
        limits=task.limits,
    )
