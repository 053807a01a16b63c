"""Advice on a whole programme: from its declaration or its records, with trials of the proposal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.advise.advise import USUAL_LIMITS, Advice, advise, task_of
from discreet.advise.facts import counted_facts, declared_facts, seeded_secret
from discreet.advise.reasons import caveats, conflicts, reasons
from discreet.audit.redundancy import Mode
from discreet.io.progress import Progress
from discreet.lazy import lazily
from discreet.maths.feasible import RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.programme.programme import Programme

if TYPE_CHECKING:
    from discreet.advise import curves, swap
else:
    curves, swap = lazily("discreet.advise.curves"), lazily("discreet.advise.swap")  # few programmes swap

USUAL_D = 5
USUAL_MARGIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a proposal has to satisfy."""

    kind: LawKind | None = None  # None: as declared
    limits: RiskLimits = USUAL_LIMITS
    mode: Mode = Mode.NESTED  # what counts as a representation
    population: int | None = None  # persons, where the records are not read
    margin: float = USUAL_MARGIN


def advise_programme(
    programme: Programme, wish: Wish, has_data: bool, seed: int, threads: int, progress: Progress
) -> Advice:
    """Advise on a programme: tuples, areas and swap rates come from its records where they are read."""
    task = task_of(programme, wish.kind, wish.limits, wish.margin)
    if not has_data:
        return advise(declared_facts(programme, wish.mode, wish.population), task)
    facts = counted_facts(programme, wish.mode, threads, progress)
    if programme.swap is None:
        return advise(facts, task)
    return advise(facts, task, swap.advise_swap(programme, seeded_secret(seed, "swap"), threads, progress))


def trials(
    programme: Programme, found: Advice, repeats: int, seed: int, threads: int, progress: Progress
) -> curves.Curves:
    """Perturb the records repeatedly: risk against utility, through the proposed parameter."""
    D, also = _chosen(found)
    return curves.curves(
        programme, found.facts, found.task, found.exposed.ratio, D, repeats, seed, also, threads, progress
    )


def advice_lines(found: Advice) -> Iterator[str]:
    """The proposal with its reasons, or what prevents one."""
    if found.proposal is None:
        yield "No parameters keep all limits."
        yield from conflicts(found)
    else:
        yield f"Proposed: {found.proposal}"
        yield from reasons(found)
        yield from found.proposal.notes
    yield from caveats(found)


def _chosen(found: Advice) -> tuple[int, float | None]:
    """The D of the curves, and the proposed parameter, which they pass through."""
    if found.proposal is None:
        return (found.task.declared or (0.0, USUAL_D))[1], None
    noise = found.proposal.noise
    return int(noise.get("D", USUAL_D)), float(noise.get("V", found.proposal.parameter or 0.0))
