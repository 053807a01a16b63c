"""The adviser's text: reasons, conflicts, remedies and caveats as sentences with their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.advise.advise import Advice, Proposal, paper_line, ranges
from discreet.advise.alternatives import Alternative, Choice, alternatives
from discreet.maths.attacks.averaging import contour
from discreet.maths.feasible import Constraint, Line, LineLimit, RiskLimits, can_reconstruct, three_tuples
from discreet.maths.noise.additive import LawKind

TOO_LARGE = 20  # above this epsilon of the whole programme the guarantee is meaningless


def reasons(advice: Advice) -> Iterator[str]:
    """The reasons for the proposed parameters; none without a proposal."""
    if advice.proposal is None:
        return
    if advice.task.kind is LawKind.CELL_KEY:
        yield from _cell_key_reasons(advice, advice.proposal)
    else:
        yield from _private_reasons(advice, advice.proposal)
    if advice.proposal.judged.areas is not None:
        expected = ", ".join(
            f"{_few(number)} by {limit:.0%}" for limit, number in advice.proposal.judged.areas.items()
        )
        yield (
            f"areas: expected number of the {advice.facts.areas:,} totals of {advice.facts.place} that are off: "
            f"{expected} or more"
        )


def _cell_key_reasons(advice: Advice, proposal: Proposal) -> Iterator[str]:
    facts, limits, judged = advice.facts, advice.task.limits, proposal.judged
    D, one = int(proposal.noise["D"]), advice.exposed
    yield (
        f"averaging: {one} can be computed in {one.t:,} ways from the tables. Combining them as well as possible gives "
        f"the true count in {_cases(judged.success)} ({_limit(limits.averaging)}). Less noise makes it easier: a "
        f"variance below {advice.least_variance:.3g} breaks the limit"
    )
    before = _revealed(advice, float(proposal.noise["V"]), D - 1)
    less = "" if before is None else f"; with a largest change of {D - 1} in {_cases(before)}"
    yield (
        f"bound: the tables have {sum(facts.tuples.values()):,} totals with their parts, "
        f"{three_tuples(facts.tuples):,} of them with two parts. They show how far counts are changed at most (by {D}) "
        f"in {_cases(judged.revealed or 0)} ({_limit(limits.revealed)}){less}"
    )
    yield (
        f"distortion: a count of {limits.size} is published with an error above {limits.change} in "
        f"{_cases(judged.distorted)} ({_limit(limits.share)})"
    )
    yield f"uniques: one person is published as 1 in {_cases(judged.stays)} ({_limit(limits.uniques)})"
    yield f"largest-change: no count is changed by more than {D} (limit {limits.largest_change})"
    if advice.task.js:
        yield f"p-table: counts up to {advice.task.js} are never published, which this noise allows"


def _cases(probability: float) -> str:
    """A probability for people."""
    if probability < 0.001:
        return "fewer than 1 of 1,000 cases"
    return f"{100 * probability:.3g} of 100 cases"


def _limit(probability: float) -> str:
    return f"limit {100 * probability:.3g}"


MEANINGS = {
    Constraint.AVERAGING: (
        "an attacker who combines all tables that contain the same count must not find the true count too often"
    ),
    Constraint.BOUND: (
        "totals and their parts must not show how far counts are changed at most, because that narrows every count"
    ),
    Constraint.UNIQUES: "a published 1 must often enough not be one real person",
    Constraint.DISTORTION: "small counts must stay useful",
    Constraint.LARGEST: "no single count may be changed by more than users accept",
    Constraint.PTABLE: "noise with these properties must exist",
    Constraint.AREAS: "the total of no area may be far from the true one",
    Constraint.RECONSTRUCTION: "the records must not follow from the tables",
    Constraint.BUDGET: "the whole release must not cost more privacy than its gate allows",
}


def meanings(advice: Advice) -> Iterator[tuple[Constraint, str]]:
    """Each limit that was applied and what it is for, in one sentence."""
    if advice.task.kind is LawKind.CELL_KEY:
        used: list[Constraint] = [name for name in advice.plane.holds if name is not Constraint.PTABLE]
    else:
        used = [one.constraint for one in advice.line.limits] if advice.line else []
    for constraint in used:
        yield constraint, MEANINGS[constraint]


def noise_text(advice: Advice) -> str:
    """What the proposed parameters mean."""
    proposal = advice.proposal
    if proposal is None:
        return ""
    error = math.sqrt(proposal.judged.variance)
    if advice.task.kind is LawKind.CELL_KEY:
        return (
            f"V is the strength of the noise: a count is typically off by {error:.1f}, the root of V. D is the largest "
            "change of any count."
        )
    name = advice.line.law.name if advice.line else "epsilon"
    return (
        f"{name.capitalize()} is what the whole release costs in privacy: smaller is safer. A count of persons is "
        f"typically off by {error:.1f}."
    )


def margin_text(advice: Advice) -> str:
    """How far the proposal is inside the limits."""
    margin = advice.task.margin
    if not margin:
        return "The proposal is at the edge of the limits: no margin was requested (--margin)."
    return (
        f"The proposal stays {margin:.0%} inside every limit (--margin {margin:g}), so that small changes of the data "
        "or of the tables do not break one."
    )


def alternatives_text(advice: Advice, rows: Sequence[Alternative]) -> Iterator[str]:
    """A table of the choices within 80 columns, and what each gains and loses beside the proposal."""
    if not rows:
        return
    limits, names = advice.task.limits, list(rows[0].noise)
    head = "".join(f"{name:>9}" for name in names)
    bounded = rows[0].revealed is not None
    revealed = f"{'D':>10}" if bounded else ""
    unit = f"{'shown':>10}" if bounded else ""
    yield f"{'':10}{head}{'averaging':>11}{revealed}{'1 stays':>9}{'typical':>9}{f'{limits.size} off':>9}"
    yield f"{'':10}{'':{9 * len(names)}}{'succeeds':>11}{unit}{'1':>9}{'error':>9}{f'by >{limits.change}':>9}"
    for row in rows:
        noise = "".join(f"{value:>9.4g}" for value in row.noise.values())
        shown = f"{row.revealed:>10.1%}" if bounded and row.revealed is not None else ""
        yield (
            f"{row.choice.value:10}{noise}{row.success:>11.1%}{shown}{row.stays:>9.1%}{row.error:>9.2f}"
            f"{row.distorted:>9.1%}"
        )
    for row in rows[1:]:
        yield f"{row.choice.value}: {_gains(rows[0], row)}; {_kept(row)}"


def _gains(proposed: Alternative, row: Alternative) -> str:
    """What one gains and loses by a choice instead of the proposal."""
    risk = f"averaging succeeds in {_cases(row.success)} instead of {100 * proposed.success:.3g}"
    error = f"the typical error of a count is {row.error:.2f} instead of {proposed.error:.2f}"
    if math.isclose(row.error, proposed.error, rel_tol=0.005):
        return f"about the same: {error}"
    if row.error > proposed.error and row.success >= proposed.success:
        return f"loses accuracy: {error}; gains no safety: {risk}"
    if row.error > proposed.error:
        return f"gains safety: {risk}; loses accuracy: {error}"
    return f"gains accuracy: {error}; loses safety: {risk}"


def _kept(row: Alternative) -> str:
    if row.breaks:
        return f"breaks the limits of {', '.join(name.value for name in row.breaks)}"
    return "keeps every limit" + (", at its edge" if row.choice in (Choice.FINER, Choice.COARSER) else "")


def _few(number: float) -> str:
    return "none" if number < 1e-3 else f"{number:.2g}" if number < 100 else f"{number:,.0f}"


def _revealed(advice: Advice, V: float, D: int) -> float | None:
    found = advice.plane
    columns, rows = (abs(found.V - V) < 1e-9).nonzero()[0], (found.D == D).nonzero()[0]
    return float(found.revealed[rows[0], columns[0]]) if len(columns) and len(rows) else None


def _private_reasons(advice: Advice, proposal: Proposal) -> Iterator[str]:
    name = advice.line.law.name if advice.line else "epsilon"
    total = float(proposal.noise[name])
    inside = " with the margin" if advice.task.margin else ""
    yield (
        f"{name} of a count: {proposal.parameter:.4g}, the smallest with usable counts{inside}: more noise "
        "protects more"
    )
    for one in advice.line.limits if advice.line else ():
        yield limit_text(advice, one)
    yield (
        f"the whole programme then costs {name} {total:.6g}, divided over its "
        f"{advice.facts.crosstabs:,} different cross-tabulations"
    )


def limit_text(advice: Advice, one: LineLimit) -> str:
    """The sentence of one limit on the parameter."""
    facts, limits = advice.facts, advice.task.limits
    name = advice.line.law.name if advice.line else "epsilon"
    match one.constraint:
        case Constraint.AVERAGING:
            why = f"averaging recovers {facts.by_cell} in {_cases(limits.averaging)}"
        case Constraint.UNIQUES:
            why = f"one person is published as 1 in {_cases(limits.uniques)}"
        case Constraint.DISTORTION:
            why = f"a count of {limits.size} is off by more than {limits.change} in {_cases(limits.share)}"
        case Constraint.AREAS:
            why = (
                f"none of {facts.areas:,} area totals is off by more than {limits.area_change} in "
                f"{_cases(limits.area_confidence)}"
            )
        case Constraint.RECONSTRUCTION:
            why = f"{facts.population:,} records can be reconstructed from {facts.cells:,} counts"
        case _:
            why = "the whole programme costs what its gate allows"
    return (
        f"{one.constraint.value}: {'at least' if one.is_least else 'at most'} {one.value:.4g}, where "
        f"{why} ({name} of a count)"
    )


def conflicts(advice: Advice) -> Iterator[str]:
    """Why nothing is feasible, and the remedies."""
    if advice.proposal is not None:
        return
    yield from advice.failures
    if advice.edge is not None:
        yield (
            f"{advice.edge} keeps every limit, but not {advice.task.margin:.0%} inside each: accept less with --margin "
            "0, relax a limit, or publish fewer tables"
        )
        return
    if advice.task.kind is LawKind.CELL_KEY:
        yield from _plane_conflicts(advice)
    elif advice.line is not None and advice.line.least is not None and advice.line.most is not None:
        least, most = advice.line.least, advice.line.most
        yield f"{least.constraint.value} against {most.constraint.value}:"
        yield f"  {limit_text(advice, least)}"
        yield f"  {limit_text(advice, most)}"
        yield from _line_remedies(advice, least, most)


def _plane_conflicts(advice: Advice) -> Iterator[str]:
    limits, found = advice.task.limits, advice.plane
    for name, obeyed in found.holds.items():
        if not obeyed.any():
            yield f"{name.value}: no V up to {found.V[-1]:g} and D up to {found.D[-1]} satisfies it"
    for name, (V, D) in advice.relaxed.items():
        yield (
            f"without the limit of {name.value} V = {V:g} and D = {D} are possible: {_relax(advice, name, V, D)}"
        )
    if advice.exposed.at_least:
        yield (
            "without another limit averaging needs a V of more than "
            f"{advice.least_variance:.3g}: how much more is not computed, because part of the tables is enough to "
            "show that no V keeps these limits"
        )
    elif not advice.relaxed:
        yield "removing one limit is not enough: relax several, or publish fewer tables"
    others = [obeyed for name, obeyed in found.holds.items() if name is not Constraint.AVERAGING]
    allowed = found.V[np.logical_and.reduce(others).any(axis=0)]
    if not len(allowed) or advice.least_variance <= allowed[-1]:
        return
    one, ratio = advice.exposed, contour(limits.averaging) / float(allowed[-1])
    if ratio >= 1:
        yield (
            f"fewer tables do not help: the other limits allow V up to {allowed[-1]:g}, at which even a count that is "
            "published once is the true one too often"
        )
        return
    yield (
        f"or publish fewer tables that contain {one}: the other limits allow V up to {allowed[-1]:g}, at which "
        f"combining them must leave at least {ratio:.1%} of the variance of one count's noise; now it leaves "
        f"{'at most ' if one.at_least else ''}{one.ratio:.1%}"
    )


def _relax(advice: Advice, name: Constraint, V: float, D: int) -> str:
    found = advice.plane
    column, row = int(abs(found.V - V).argmin()), int((found.D == D).nonzero()[0][0])
    match name:
        case Constraint.AVERAGING:
            least = "at least " if advice.exposed.at_least else ""
            return f"accept that averaging succeeds with probability {least}{found.success[row, column]:.3f}"
        case Constraint.UNIQUES:
            return f"accept that a 1 is published as 1 with probability {found.stays[row, column]:.3f}"
        case Constraint.BOUND:
            return f"accept that the bound is revealed with probability {found.revealed[row, column]:.3g}"
        case Constraint.LARGEST:
            return f"accept changes up to {D}"
        case Constraint.DISTORTION:
            limits = advice.task.limits
            return (
                f"accept that a count of {limits.size} is off by more than {limits.change} with "
                f"probability {found.distorted[row, column]:.1%}"
            )
    return f"publish small counts again (js = {advice.task.js} now)"


def _line_remedies(advice: Advice, least: LineLimit, most: LineLimit) -> Iterator[str]:
    limits: RiskLimits = advice.task.limits
    if least.constraint is Constraint.DISTORTION:
        yield (
            f"use a larger --share, --relative or --size than {limits.share:g}, "
            f"{limits.relative:g} and {limits.size}"
        )
    if least.constraint is Constraint.AREAS:
        yield (f"use a larger --area-change than {limits.area_change}, or by publishing fewer, larger areas")
    if most.constraint is Constraint.AVERAGING:
        yield f"or publish fewer tables that represent {advice.facts.by_cell}"
    if most.constraint is Constraint.BUDGET:
        yield "or publish fewer cross-tabulations, over which the budget is divided, or raise the gate"
    yield "or use the cell key method, whose noise is bounded: --kind cell-key"


def caveats(advice: Advice) -> Iterator[str]:
    """The limitations of the numbers."""
    facts = advice.facts
    if facts.known_from != "data" and advice.task.kind is LawKind.CELL_KEY:
        yield (
            "without data averaging is computed as if every possible cell had the noise of large counts; small "
            "counts have less and empty cells none, so averaging succeeds more often in sparse tables: advise with "
            "the data, or declare gates.averaging"
        )
    if facts.known_from == "data" and advice.task.kind is LawKind.CELL_KEY and advice.swap is not None:
        yield "averaging is judged on the counts before swapping; declare gates.averaging to judge the release itself"
    if advice.exposed.at_least:
        yield (
            "averaging was judged on the tables of part of the records, which is enough to show that no noise keeps "
            f"the limits: {advice.exposed} is at least so exposed, and another count may be more exposed"
        )
    for population in advice.left_out:
        yield (
            f"the tables of {population} are too large for least squares: averaging is judged without differences "
            "of counts, which recover more; declare fewer tables to know"
        )
    if facts.known_from != "data":
        capped = (
            "" if facts.population is None else f", at most {facts.population // 2:,} in a cross-tabulation"
        )
        yield (
            f"without data every possible cell counts as occupied{capped}; with data there are fewer "
            "tuples and D may be smaller"
        )
    if facts.known_from == "regulation":
        yield (
            "cross-tabulations are those of named breakdowns; a declared programme also publishes "
            "sub-totals without a name"
        )
    if facts.population and not can_reconstruct(facts.population, facts.cells):
        yield "the theorem on reconstruction does not apply: it needs far more counts than are published"
    if advice.task.kind is not LawKind.CELL_KEY and advice.proposal is not None:
        total = float(advice.proposal.noise[advice.line.law.name]) if advice.line else 0.0
        if total > TOO_LARGE:
            yield (
                f"a budget of {total:.6g} for the whole programme gives no meaningful guarantee; the "
                "protection is that of the noise, not of the proof"
            )


def declared_words(advice: Advice) -> str | None:
    """Which limits the declared parameters of the cell key method break, if any."""
    if advice.declared is None or advice.task.declared is None:
        return None
    V, D = advice.task.declared
    broken = ", ".join(name.value for name in advice.declared)
    return f"declared: V = {V:g}, D = {D} " + (
        f"breaks the limits of {broken}" if broken else "satisfies all limits"
    )


def swap_words(advice: Advice) -> Iterator[str]:
    """The results of the trials of swap rates."""
    swap = advice.swap
    if swap is None:
        return
    yield (
        f"swap: {swap.at_risk:.1%} of the households have a member at risk in {swap.level} (fewer than "
        f"{swap.k} alike)"
    )
    for trial in swap.trials:
        true = (
            "no apparent uniques"
            if trial.true_uniques is None
            else f"{trial.true_uniques:.1%} of apparent uniques true"
        )
        yield (
            f"  rate {trial.rate:g}: {trial.swapped:.1%} swapped, {trial.at_risk_left:.1%} left at risk, "
            f"{true}"
        )
    if swap.rate is None:
        yield (
            f"  at none of these rates are at most {swap.limit:.0%} of apparent uniques true: use "
            "finer profiles, a larger k or a higher rate"
        )
    else:
        yield (
            f"  rate = {swap.rate:g} is the smallest tried at which at most {swap.limit:.0%} of apparent "
            "uniques are true"
        )


def document(advice: Advice) -> dict[str, object]:
    """The JSON document of an advice."""
    paper, proposal = paper_line(advice.facts, advice.task.limits), advice.proposal
    return {
        "programme": advice.facts.programme,
        "kind": advice.task.kind,
        "limits": advice.task.limits,
        **advice.facts.as_json(),
        "exposed": advice.exposed,
        "contour": contour(advice.task.limits.averaging),
        "least_variance": advice.least_variance,
        "feasible": proposal is not None,
        "proposal": None if proposal is None else {"noise": proposal.noise, "parameter": proposal.parameter},
        "judged": None if proposal is None else proposal.judged,
        "notes": () if proposal is None else proposal.notes,
        "margin": advice.task.margin,
        "edge": None
        if advice.edge is None
        else {"noise": advice.edge.noise, "parameter": advice.edge.parameter},
        "meanings": dict(meanings(advice)),
        "reasons": list(reasons(advice)),
        "alternatives": alternatives(advice),
        "conflicts": list(conflicts(advice)),
        "relaxed": {name: {"V": V, "D": D} for name, (V, D) in advice.relaxed.items()},
        "declared": None if advice.declared is None else {"breaks": advice.declared},
        "plane": {
            "ranges": list(ranges(advice.plane)),
            "V": _ends(advice.plane.V),
            "D": _ends(advice.plane.D),
        },
        "line": None if advice.line is None else _line(advice.line),
        "paper": {
            "epsilon": {name: value for name, value in vars(paper).items() if name != "confidences"},
            "confidences": paper.confidences,
        },
        "swap": advice.swap,
        "caveats": list(caveats(advice)),
    }


def _ends(values: NDArray[np.float64] | NDArray[np.int64]) -> list[float]:
    return [round(float(values[0]), 6), round(float(values[-1]), 6)]


def _line(line: Line) -> dict[str, object]:
    return {
        "parameter": line.law.name,
        "feasible": line.is_feasible,
        "least": {one.constraint: one.value for one in line.limits if one.is_least},
        "most": {one.constraint: one.value for one in line.limits if not one.is_least},
    }
