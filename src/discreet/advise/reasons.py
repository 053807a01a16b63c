"""The adviser's text: reasons, conflicts, remedies and caveats as sentences with their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.advise.advise import Advice, Proposal, paper_line, ranges
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
    V, D = proposal.noise["V"], int(proposal.noise["D"])
    one = advice.exposed
    yield (
        f"averaging: {one} can be computed in {one.t:,} ways, which the best weights combine to {one.ratio:.4g} "
        f"times the variance of one count, so V must be at least {advice.least_variance:.4g}; with V = {V:g} "
        f"averaging succeeds with probability {judged.success:.3f} (limit {limits.averaging:g})"
    )
    before = _revealed(advice, float(V), D - 1)
    less = "" if before is None else f"; with D = {D - 1} it would be {before:.3g}"
    yield (
        f"bound: {sum(facts.tuples.values()):,} tuples of parts and total, "
        f"{three_tuples(facts.tuples):,} of them with two "
        f"parts, reveal D = {D} with probability {judged.revealed or 0:.3g} "
        f"(limit {limits.revealed:g}){less}"
    )
    yield (
        f"distortion: a count of {limits.size} is off by more than {limits.change} with probability "
        f"{judged.distorted:.3g} (limit {limits.share:g})"
    )
    yield (f"uniques: a 1 is published as 1 with probability {judged.stays:.3f} (limit {limits.uniques:g})")
    yield f"largest change: {D} (limit {limits.largest_change})"
    if advice.task.js:
        yield (
            f"p-table: counts up to js = {advice.task.js} are never published, which is possible with "
            f"V = {V:g}"
        )


def _few(number: float) -> str:
    return "none" if number < 1e-3 else f"{number:.2g}" if number < 100 else f"{number:,.0f}"


def _revealed(advice: Advice, V: float, D: int) -> float | None:
    found = advice.plane
    columns, rows = (abs(found.V - V) < 1e-9).nonzero()[0], (found.D == D).nonzero()[0]
    return float(found.revealed[rows[0], columns[0]]) if len(columns) and len(rows) else None


def _private_reasons(advice: Advice, proposal: Proposal) -> Iterator[str]:
    name = advice.line.law.name if advice.line else "epsilon"
    total = float(proposal.noise[name])
    yield (
        f"{name} of a count: {proposal.parameter:.4g}, the smallest with usable counts: more noise "
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
            why = (
                f"{facts.by_cell} (variance {facts.by_cell.ratio:.4g} of one count's) is recovered by averaging with "
                f"probability {limits.averaging:.0%}"
            )
        case Constraint.UNIQUES:
            why = f"a 1 is published as 1 with probability {limits.uniques:.0%}"
        case Constraint.DISTORTION:
            why = (
                f"a count of {limits.size} is off by more than {limits.change} with probability "
                f"{limits.share:.1%}"
            )
        case Constraint.AREAS:
            why = (
                f"none of {facts.areas:,} area totals is off by more than {limits.area_change} with "
                f"probability {limits.area_confidence:.0%}"
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
    if not advice.relaxed:
        yield "removing one limit is not enough: relax several, or publish fewer tables"
    others = [obeyed for name, obeyed in found.holds.items() if name is not Constraint.AVERAGING]
    allowed = found.V[np.logical_and.reduce(others).any(axis=0)]
    if len(allowed) and advice.least_variance > allowed[-1]:
        one, ratio = advice.exposed, contour(limits.averaging) / float(allowed[-1])
        yield (
            f"or publish fewer tables that represent {one}: the other limits allow V up to "
            f"{allowed[-1]:g}, for which the best combination of them must have {ratio:.4g} of one count's variance "
            f"instead of {one.ratio:.4g}"
        )


def _relax(advice: Advice, name: Constraint, V: float, D: int) -> str:
    found = advice.plane
    column, row = int(abs(found.V - V).argmin()), int((found.D == D).nonzero()[0][0])
    match name:
        case Constraint.AVERAGING:
            return f"accept that averaging succeeds with probability {found.success[row, column]:.3f}"
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
        yield "the reconstruction theorem does not apply: it needs n log² n counts, more than are published"
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
        "reasons": list(reasons(advice)),
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
