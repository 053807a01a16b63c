"""What ``[release] consistent = true`` excludes: noise, cubes and gates that tables which add up cannot have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.programme.cube import Cube
from discreet.programme.gates import Gates
from discreet.programme.noise import NO_NEGATIVES, CellKeyNoise, NoiseRule
from discreet.programme.release import ReleaseRule
from discreet.programme.section import Findings

WITH = "with release.consistent = true"


def check_consistent(
    release: ReleaseRule, noise: NoiseRule | None, cubes: Sequence[Cube], gates: Gates, findings: Findings
) -> None:
    """Refuse what cannot be fitted, and what would no longer hold of adjusted counts."""
    if not release.consistent:
        return
    for key, value, remedy in _noise_problems(noise):
        findings.add(key, f"{value} {WITH}", remedy)
    for cube in cubes:
        if cube.weight:
            remedy = "publish counts, or leave out consistent"
            findings.add(f"cube {cube.id}", f"weighted values {WITH}", remedy)
    if any(cube.shown is not None for cube in cubes):
        remedy = "measure every margin, or publish the others as sums with split.sums and without it"
        findings.add("noise.split", f"margins that are not measured {WITH}", remedy)
    if gates.declared:
        remedy = "judge them on the same programme without it: adjusting uses only such counts"
        findings.add("gates", f"are declared {WITH}: no attack knows the law of an adjusted count", remedy)


def _noise_problems(noise: NoiseRule | None) -> Iterator[tuple[str, str, str]]:
    if noise is None:
        return
    if isinstance(noise, CellKeyNoise):
        if isinstance(noise.table, PTableParameters) and noise.table.js:
            remedy = "set js = 0: a sum of adjusted counts may be any small number"
            yield "noise.js", f"counts up to {noise.table.js} that are never published", remedy
        return
    if noise.kind in (LawKind.HELLINGER, LawKind.EXPONENTIAL):
        yield (
            "noise.kind",
            "noise whose law may depend on the count",
            "use geometric noise, or leave out consistent",
        )
    if noise.published != NO_NEGATIVES:
        value = "negatives, rounding or threshold"
        yield (
            "noise",
            value,
            "leave them out: adjusted counts are whole numbers of at least 0 and have no threshold",
        )
