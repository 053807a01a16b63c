"""The findings of an audit and of an attack in plain lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from discreet.audit.attack import Finding, NotPossible, OutsiderDifferences, OutsiderFindings
from discreet.audit.audit import (
    Audit,
    AveragingAudit,
    BayesAudit,
    BoundsAudit,
    DifferencingAudit,
    KeyGapAudit,
    LeastSquaresAudit,
    Protection,
    ReconstructionAudit,
    RedundancyAudit,
    Region,
    RemovalAudit,
    WeightsAudit,
)
from discreet.audit.averaging import AveragingFindings
from discreet.audit.bayes import ExposedValues
from discreet.audit.bounds import BoundFindings
from discreet.audit.corrections import Corrections
from discreet.audit.differencing import UpdateJudgement
from discreet.audit.differencing_areas import MapJudgement
from discreet.audit.disclosure import Disclosures, Tally
from discreet.audit.estimates import EstimateFindings
from discreet.audit.evidence import Published
from discreet.audit.hierarchy import Accuracy, HierarchyAudit
from discreet.audit.key_gaps import KeyGapFindings
from discreet.audit.least_squares import LeastSquaresFindings
from discreet.audit.measures import Privacy, ReleaseDifference
from discreet.audit.ptable_change import PTableChange
from discreet.audit.reconstruction import ReconstructionFindings
from discreet.audit.removal import RemovalFindings
from discreet.audit.session import SessionFindings
from discreet.audit.utility import Utility
from discreet.audit.weights import WeightFindings
from discreet.maths.attacks.averaging import Method
from discreet.maths.attacks.disclosure import RowKind
from discreet.maths.attacks.reconstruction import Status
from discreet.maths.utility import Measure

NAMED = 3
SOLVED = (Status.OPTIMAL, Status.FEASIBLE)


def audit_lines(found: Audit) -> Iterator[str]:
    """An audit as readable lines: the gates first, then one or two lines for each measure."""
    for verdict in found.verdicts:
        yield f"{'Passed' if verdict.passed else 'BROKEN'}: {verdict}"
    if not found.verdicts:
        yield "No gates are declared: everything is measured, no limit is checked."
    yield from _about_tables(found)
    yield from _about_people(found)
    yield from _about_noise(found)
    if found.hierarchy is not None:
        yield from _hierarchy(found.hierarchy)


def _hierarchy(found: HierarchyAudit) -> Iterator[str]:
    """Errors by level, the adversary on the measurements, and what does not apply."""
    shown: dict[tuple[str, str], list[Accuracy]] = {}
    for row in found.accuracy:
        shown.setdefault((row.cube, row.level), []).append(row)
    for row in (row for rows in shown.values() for row in dict.fromkeys((rows[0], rows[-1]))):
        yield (
            f"Accuracy of {row.cube}, {row.crosstab} ({row.level}): {row.cells:,} cells, mean error {row.counts:.3g}, "
            f"of estimates {row.estimates:.3g}; {row.coverage:.1%} of the 95% intervals contain the true count."
        )
    if found.fits is not None:
        yield "Mean absolute errors of three fits of the published measurements:"
        yield from found.fits.table()
    for one in found.adversary:
        yield (
            f"Bayesian adversary, {one.query} of {one.level} in {one.above}: {one.targets} targets, mean posterior "
            f"{one.mean_posterior:.3f} (prior {one.prior:g}); {one.right:.1%} are found ({one.expected:.1%} by the "
            f"formula, {one.own_right:.1%} by the own count only), {one.absent:.1%} are cleared where they are not "
            f"there ({one.absent_expected:.1%}); {one.over_gate:.1%} above {one.gate:g}."
        )
    for name, reason in found.not_possible.items():
        yield f"Not applicable: {name}, {reason}."


def _about_tables(found: Audit) -> Iterator[str]:
    """What the tables disclose by themselves."""
    if found.redundancy is not None:
        yield from _redundancy(found.redundancy)
    if found.averaging is not None:
        yield from _averaging_judged(found.averaging)
    if found.least_squares is not None:
        yield from _least_squares_judged(found.least_squares)
    if found.removal is not None:
        yield from _removal_judged(found.removal)
    if found.key_gaps is not None:
        yield from _key_gaps_judged(found.key_gaps)
    if found.bounds is not None:
        yield from _bounds_judged(found.bounds)
    if isinstance(found.weights, WeightsAudit):
        yield from _weights_judged(found.weights)


def _about_people(found: Audit) -> Iterator[str]:
    """What can be learnt about persons."""
    if found.privacy is not None:
        yield from _privacy(found.privacy)
    if found.bayes is not None:
        yield from _bayes(found.bayes)
    if found.differencing is not None:
        yield from _differencing_judged(found.differencing)
    if found.reconstruction is not None:
        yield from _reconstruction_judged(found.reconstruction)
    if found.disclosure is not None:
        yield from _disclosure(found.disclosure)


def _about_noise(found: Audit) -> Iterator[str]:
    """What the noise costs, which noise would be enough, and which was applied."""
    if found.utility is not None:
        yield from _utility(found.utility)
    if isinstance(found.region, Region):
        yield _region(found.region)
    if found.protection is not None:
        yield _protection(found.protection)


def attack_lines(seen: Published, found: OutsiderFindings) -> Iterator[str]:
    """An attack as readable lines."""
    known = "its whole law" if seen.noise.law else "its variance" if seen.noise.variance else "nothing"
    if seen.hierarchy is not None:
        known = "the law of every measurement"
    yield f"{seen.name}: {sum(len(one.tables) for one in seen.universes)} tables; public about the noise: {known}."
    for name, one in found.items():
        if isinstance(one, NotPossible):
            yield f"{name}: not possible: {one.reason}"
        else:
            yield from _attack(one)
    if seen.hierarchy is not None and found.reconstruction is not None:
        yield (
            "Reconstruction took the fitted counts as exact, which they are not: `discreet audit` shows how many of "
            "these records are true."
        )


def session_lines(address: str, found: SessionFindings) -> Iterator[str]:
    """A session against a table builder as readable lines."""
    refused = ", ".join(f"{number:,} by {rule}" for rule, number in sorted(found.refused.items())) or "none"
    yield (
        f"{address}: {found.answered:,} of {found.requests:,} requests answered; refused: {refused}. "
        f"{' x '.join(found.axes)} under opposite filters of {found.filtered}: {found.pairs:,} pairs."
    )
    if not found.pairs:
        yield "Filters: no pair was answered whole; there is nothing to average."
        return
    if found.standard_error is None or found.success is None:
        yield "Filters: the variance of the noise is not known; give it with --variance."
        return
    declared = "" if found.declared is None else f"; the server declares at most {found.declared:.0%}"
    yield (
        f"Filters: {found.cells:,} counts known with a standard error of {found.standard_error:.2f}, "
        f"{found.success:.0%} of them exactly{declared}."
    )


def _attack(found: Finding) -> Iterator[str]:
    match found:
        case ReconstructionFindings():
            yield (
                f"Reconstruction: {found.areas} areas of {found.geography}, {found.records:,} records, "
                f"{found.certain:,} of them for certain ({found.r_certain:.1%}; the best guess has "
                f"{found.r_guessed:.1%} of the records){_unsolved(found)}"
            )
        case Disclosures():
            yield from _disclosure(found)
        case OutsiderDifferences():
            yield from _differencing(found)
        case ExposedValues():
            yield _exposed(found)
        case EstimateFindings():
            yield (
                f"Estimates: {found.counts:,} counts with noise, {found.expected:,.0f} expected to be recovered "
                f"exactly; any one of them with a probability of at most {found.success:.1%}."
            )
        case _:
            yield from _noise_attack(found)


def _noise_attack(
    found: AveragingFindings
    | LeastSquaresFindings
    | RemovalFindings
    | KeyGapFindings
    | BoundFindings
    | WeightFindings,
) -> Iterator[str]:
    match found:
        case AveragingFindings():
            yield from _averaging(found)
        case LeastSquaresFindings():
            yield from _least_squares(found)
        case RemovalFindings():
            yield from _removal(found)
        case KeyGapFindings():
            yield from _key_gaps(found)
        case BoundFindings():
            yield from _bounds(found)
        case WeightFindings():
            yield from _weights(found)


def _redundancy(found: RedundancyAudit) -> Iterator[str]:
    for universe in found.universes:
        for one in universe.exposed[:1]:
            yield (
                f"Redundancy, {universe.counted}: {one.statistic} can be computed in {one.t} ways from "
                f"{universe.tables} {'table' if universe.tables == 1 else 'tables'}, k/t2 {one.k_over_t2:.4g}"
            )


def _averaging(found: AveragingFindings) -> Iterator[str]:
    best = found.methods[Method.WEIGHTED]
    yield (
        f"Averaging attack: {found.targets:,} cells, {best.expected:,.0f} expected to be recovered exactly "
        f"({found.baseline:,.0f} are published unchanged)"
    )
    for one in found.exposed[:NAMED]:
        yield f"  {one.counted}: {_cell(one.cell)}: {one.t} representations, probability {one.success:.3f}"


def _averaging_judged(found: AveragingAudit) -> Iterator[str]:
    yield from _averaging(found.attack)
    yield f"  realised: {found.realised.hit[Method.WEIGHTED]:,} recovered exactly"


def _least_squares(found: LeastSquaresFindings) -> Iterator[str]:
    yield (
        f"Least squares: {found.targets:,} cells in {found.equations:,} sums, {found.linear.expected:,.0f} expected to "
        f"be recovered exactly, {found.within_bounds.expected:,.0f} with bounds ({found.baseline:,.0f} are published "
        "unchanged)"
    )
    for one in found.exposed[:NAMED]:
        yield (
            f"  {one.counted}: {_cell(one.cell)}: {one.ratio:.3g} of one count's variance, "
            f"probability {one.success:.3f}"
        )


def _least_squares_judged(found: LeastSquaresAudit) -> Iterator[str]:
    yield from _least_squares(found.attack)
    yield f"  realised: {found.realised.linear:,} recovered exactly, {found.realised.within_bounds:,} with bounds"


def _removal(found: RemovalFindings) -> Iterator[str]:
    rounds = len(found.by_round)
    yield (
        f"Removal of noise: {found.recovered:,} of {found.cells:,} counts taken as known in {rounds} "
        f"{'round' if rounds == 1 else 'rounds'} at a confidence of {found.confidence:g}, "
        f"{found.changed:,} of them other than published, {found.small:,} of 1 to 3"
    )


def _removal_judged(found: RemovalAudit | NotPossible) -> Iterator[str]:
    if isinstance(found, NotPossible):
        yield f"Removal of noise: not possible: {found.reason}"
        return
    yield from _removal(found.attack)
    judged = found.realised
    if judged.recovered:
        yield (
            f"  {judged.right:,} of these are correct, {judged.wrong:,} wrong; {judged.published_right:,} are "
            "published unchanged"
        )


def _key_gaps(found: KeyGapFindings) -> Iterator[str]:
    yield (
        f"Key gaps: from {found.tuples:,} gaps of totals a total's noise is guessed right with probability "
        f"{found.chance:.3f}; {found.independent:.3f} if it is independent of the parts, "
        f"{found.unaided:.3f} without a gap"
    )
    if found.shows_sums is not None:
        yield f"  the gaps show that keys {'are' if found.shows_sums else 'are not'} plain sums"


def _key_gaps_judged(found: KeyGapAudit | NotPossible) -> Iterator[str]:
    if isinstance(found, NotPossible):
        yield f"Key gaps: not possible: {found.reason}"
        return
    yield from _key_gaps(found.attack)
    judged = found.realised
    expected = "" if judged.expected_share is None else f", expected {judged.expected_share:.3f}"
    yield f"  realised with {judged.keys} keys: {judged.share:.3f} of {judged.tuples:,} guessed right{expected}"


def _bounds(found: BoundFindings) -> Iterator[str]:
    assumed = "without an assumed bound" if found.bound is None else f"assuming {found.bound}"
    yield (
        f"Noise bound: {found.tuples:,} sums prove at least {found.least_bound}; {assumed}, "
        f"{found.pinned:,} true counts can be deduced, {found.pinned_small:,} of them 1 to 3"
    )
    if found.contradicted:
        yield f"  {found.contradicted:,} cells contradict it: the bound is too small, or a table is of another release"


def _bounds_judged(found: BoundsAudit) -> Iterator[str]:
    yield from _bounds(found.attack)
    if found.realised.pinned:
        yield f"  {found.realised.right:,} of these are correct"


def _weights(found: WeightFindings) -> Iterator[str]:
    sums = (
        "sums show the exact mean weight"
        if found.reach is None
        else "sums have noise scaled by their weights"
    )
    yield (
        f"Weighted tables: {sums}; with whole weights {found.certain:,} of {found.cells:,} small counts follow for "
        f"certain ({found.certain_without:,} without weights), {found.left:.1f} counts stay possible on average"
    )
    if found.alone:
        yield f"  {found.alone:,} weighted cells have no published count: a constant weight makes noisy counts of them"


def _weights_judged(found: WeightsAudit) -> Iterator[str]:
    yield from _weights(found.attack)
    if found.realised.certain:
        yield f"  {found.realised.right:,} of these are correct"


def _privacy(found: Privacy) -> Iterator[str]:
    if found.guarantee is not None:
        yield f"Privacy: {found.guarantee.loss()} for the whole release"
    elif found.cell is not None:
        yield (
            f"Privacy: no guarantee; unperturbed zeros give delta {found.cell.fixed_zeros_delta:.3g}, the same noise "
            f"for the same people delta {found.cell.same_participants_delta:.3g} at any epsilon"
        )


def _bayes(found: BayesAudit) -> Iterator[str]:
    cells = found.cells
    yield (
        f"Bayesian adversary: in {cells.above:,} of {cells.cells:,} small cells the posterior exceeds "
        f"{cells.belief.gate:g} from a prior of {cells.belief.prior:g}; "
        f"{cells.above_beside_others:,} where the cell has other persons"
    )
    for levels in found.levels:
        yield f"  with all levels of {levels.along}: {levels.above:,} of {levels.cells:,}"
    for scan in found.histograms:
        yield f"  histograms of {scan.attack.area}: largest gain over the prior {scan.largest_gain:.3f}"


def _exposed(found: ExposedValues) -> str:
    return (
        f"Bayesian adversary: {found.alone:,} of {found.cells:,} published counts would disclose a person "
        f"known to be the only candidate in the cell; with one other person in it "
        f"{found.by_known[1] if len(found.by_known) > 1 else 0:,}"
    )


def _differencing(found: OutsiderDifferences) -> Iterator[str]:
    for one in found.bases:
        yield f"Differencing: {one.outer} minus {one.inner}: {one.small:,} small differences are published"
    update, maps = found.earlier_release, found.maps
    if update is not None:
        yield f"Earlier release: {update.changed:,} of {update.compared:,} cells changed"
    if found.corrections is not None:
        yield from _corrections(found.corrections)
    if found.ptable_change is not None:
        yield from _ptable_change(found.ptable_change)
    if maps is not None:
        yield (
            f"Differencing: {' and '.join(maps.geographies)}: {maps.small:,} small differences among "
            f"{maps.compared:,} that the map suggests"
        )
    if not found.bases and update is None and maps is None:
        yield NOTHING_TO_SUBTRACT


def _differencing_judged(found: DifferencingAudit) -> Iterator[str]:
    for one in found.bases:
        yield (
            f"Differencing: {one.outer} minus {one.inner}: {one.exact:,} small differences, "
            f"{one.revealed:,} published with their true size"
        )
    for pair in found.geographies:
        yield (
            f"Differencing: {' and '.join(pair.geographies)}: {pair.found:,} differences below "
            f"{pair.threshold} records, {pair.revealed:,} revealed"
        )
    yield from _releases_judged(found.earlier_release)
    if found.ptable_change is not None:
        yield from _ptable_change(found.ptable_change.seen)
        judged = found.ptable_change.judged
        if judged is not None:
            yield (
                f"  {judged.right:,} of {judged.cells:,} are guessed right from both, {judged.published_right:,} are "
                "published unchanged in the earlier one"
            )
    if found.maps is not None:
        seen = found.maps.seen
        yield (
            f"Differencing: {' and '.join(seen.geographies)}: {seen.small:,} small differences among "
            f"{seen.compared:,} that the map suggests"
        )
        yield f"  {_right(found.maps.judged, 'small differences')}"
    if not (found.bases or found.geographies or found.earlier_release or found.maps):
        yield NOTHING_TO_SUBTRACT


def _releases_judged(update: ReleaseDifference | None) -> Iterator[str]:
    if update is None:
        return
    yield f"Earlier release: {update.seen.changed:,} of {update.seen.compared:,} cells changed"
    yield from _corrections(update.corrections)
    if update.corrections_judged is not None and update.corrections_judged.listed:
        yield f"  {update.corrections_judged.right:,} of {update.corrections_judged.listed:,} exposed persons are real"
    judged = update.judged
    if judged is None:
        yield "  not compared with true counts: give --earlier-programme for those of the earlier release"
        return
    yield (
        f"  {_right(judged, 'published small changes')}; {judged.revealed:,} of "
        f"{judged.moved:,} true small changes are published with their true size"
    )


def _corrections(found: Corrections) -> Iterator[str]:
    if found.reveals:
        yield from (f"  {sentence}" for sentence in found.sentences())
    for one in found.people[:NAMED]:
        rest = {name: code for name, code in one.attributes.items() if name not in one.known}
        known = {name: one.attributes[name] for name in one.known}
        yield f"  {one.unit}, known {_cell(known)}: {_cell(rest)} ({one.cells} changed cells)"


def _ptable_change(found: PTableChange) -> Iterator[str]:
    yield (
        f"Another p-table under the same secret: {found.changed:,} of {found.cells:,} large counts differ, not because "
        "people moved"
    )
    if found.together is not None and found.alone is not None:
        yield (
            f"  from both releases a large count is guessed right with probability {found.together:.3f}, from one "
            f"{found.alone:.3f} (by {found.knowledge.value})"
        )


def _right(judged: UpdateJudgement | MapJudgement, what: str) -> str:
    share = "" if judged.apparent_share is None else f" ({judged.apparent_share:.1%})"
    return f"{judged.apparent_right:,} of {judged.apparent:,} {what} are correct{share}"


NOTHING_TO_SUBTRACT = (
    "Differencing: no population base lies inside another, no pair of geographies is declared"
)


def _reconstruction_judged(found: ReconstructionAudit | NotPossible) -> Iterator[str]:
    if isinstance(found, NotPossible):
        yield f"Reconstruction: not possible: {found.reason}"
        return
    for one in (found.released, *found.under_other_protections):
        yield (
            f"Reconstruction, {one.protection}: {one.judged.r_recon:.1%} of the records of {one.judged.areas} areas "
            f"(guessing {one.judged.baseline:.1%}), {one.confirmed.r_reid:.1%} re-identified "
            f"({one.confirmed.gain:.1%} beyond guessing){_unsolved(one.made)}"
        )
    for name, why in found.left_out.items():
        yield f"Reconstruction, {name}: not possible: {why}"


def _unsolved(found: ReconstructionFindings) -> str:
    """Areas that were not solved within the time limit; that does not mean they are safe."""
    left = {status: many for status, many in found.status.items() if status not in SOLVED}
    return f"; {', '.join(f'{many} {status}' for status, many in left.items())}" if left else ""


def _disclosure(found: Disclosures) -> Iterator[str]:
    ones, rows = found.total.ones, found.total.rows
    yield f"Small counts: {ones.seen:,} published ones{_true(ones)}"
    for kind, name in ((RowKind.INDIVIDUAL, "persons"), (RowKind.GROUP, "groups")):
        yield f"Attribute disclosure: {rows[kind].seen:,} {name} shown{_true(rows[kind])}"


def _protection(found: Protection) -> str:
    named = ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in found.parameters.items()
    )
    swapped = "" if found.swap is None else ", after swapping households at risk"
    return f"Protection: {found.method} ({named}){swapped}"


def _utility(found: Utility) -> Iterator[str]:
    cells = found.total.total.occupied
    if cells.cells:
        yield (
            f"Utility: the mean absolute error of a count is {cells.mean(Measure.L1):.3g}, "
            f"{cells.mean(Measure.UNCHANGED):.1%} are unchanged"
        )


def _region(found: Region) -> str:
    if found.least is None:
        return "Feasible region: no choice of V and D keeps all limits"
    return f"Feasible region: the least noise that keeps all limits is V = {found.least.V:g}, D = {found.least.D}"


def _true(tally: Tally) -> str:
    return "" if tally.share_true is None else f", {tally.share_true:.1%} correct"


def _cell(codes: Mapping[str, str]) -> str:
    return ", ".join(f"{variable}={code}" for variable, code in codes.items()) or "the grand total"
