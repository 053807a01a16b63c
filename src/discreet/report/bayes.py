"""The adversaries of ``discreet risk bayes`` in lines."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.maths.attacks.bayes_findings import (
    CountAttack,
    HierarchyAttack,
    HistogramAttack,
    LevelsAttack,
    NestedAttack,
)


def count_lines(found: CountAttack) -> Iterator[str]:
    """One count: on average, and for each published one."""
    yield f"prior {found.prior:.6g}: posterior {found.posterior:.4f} on average, risk {found.risk:.4f}"
    yield (
        f"decides for a target who is there with probability {found.correct:.4g}, for one who is not with "
        f"{found.mistaken:.4g}"
    )
    for one in found.published:
        yield (
            f"published {one.count} (probability {one.probability:.4f}): posterior {one.posterior:.4f}, "
            f"risk {one.risk:.4f}"
        )


def levels_lines(found: LevelsAttack) -> Iterator[str]:
    """The same by itself and together with other counts."""
    yield from count_lines(found)
    together = found.together
    yield (
        f"{together.observations} observations: posterior {together.posterior:.4f} on average, right with "
        f"probability {together.correct:.4g}, mistaken with {together.mistaken:.4g}"
    )
    for one in together.published:
        yield f"published {', '.join(map(str, one.counts))} together: posterior {one.posterior:.4f}"


def histogram_lines(found: HistogramAttack) -> Iterator[str]:
    """A whole histogram."""
    yield (
        f"histogram of {found.categories} categories: right with probability {found.success:.4g}, by the "
        f"prior only {found.baseline:.4g}"
    )
    for one in found.targets:
        yield f"target in category {one.category}: posterior {one.posterior:.4g}, right {one.correct:.4g}"
    if found.posteriors is not None and found.decision is not None:
        best = found.posteriors[found.decision - 1]
        yield f"published histogram: category {found.decision}, posterior {best:.4f}"


def hierarchy_lines(found: HierarchyAttack) -> Iterator[str]:
    """A count within a larger group."""
    for one in found.correct:
        yield f"larger group with {one.count}: right with probability {one.correct:.4f}"
    if found.posterior is not None:
        yield f"with the larger group's counts: posterior {found.posterior:.4f} ({found.chain.value})"


def nested_lines(found: NestedAttack, draws: int) -> Iterator[str]:
    """A count within any number of larger groups."""
    if found.posterior is not None:
        yield f"with the counts of {found.levels - 1} larger groups: posterior {found.posterior:.4f}"
    if found.above_half is not None:
        yield (
            f"decides for the target with probability {found.above_half:.4f} (+- {found.standard_error:.4f}, "
            f"{draws:,} simulated releases)"
        )
