"""Makes the mechanism of a declared noise rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import Mistakes, Problem, mistake
from discreet.lazy import lazily
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import no_permutation, secret_permutation
from discreet.maths.noise.ptable_solver import solve
from discreet.maths.privacy.accounting import ARITHMETIC, epsilon_of_drawn_rho
from discreet.maths.privacy.composition import Composition
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.reach import neighbour_problems
from discreet.perturb.weights import weighted_sums
from discreet.programme.cube import Cube, Signature, signatures
from discreet.programme.noise import CellKeyNoise, Claim, KeyKind, PrivateNoise
from discreet.programme.programme import Programme
from discreet.programme.split import public_totals, summed_cells
from discreet.programme.statistic import statistics

if TYPE_CHECKING:
    from discreet.io import ptable_files
    from discreet.perturb import budget, private
    from discreet.perturb.budget import NoisePlan
else:
    ptable_files = lazily("discreet.io.ptable_files")
    budget, private = lazily("discreet.perturb.budget"), lazily("discreet.perturb.private")


def mechanism(programme: Programme, secret: bytes, noise_key: bytes) -> Mechanism:
    """Make the mechanism of a programme; ``noise_key`` decides the noise that is not looked up by cell key."""
    noise = programme.noise
    if isinstance(noise, CellKeyNoise):
        made = cell_key_mechanism(noise, secret)
        if any(cube.weight for cube in programme.cubes):
            made = replace(made, weights=weighted_sums(secret, made.variance))
        if programme.release.consistent and made.smallest > 1:
            value = (
                f"never publishes a count below {made.smallest}, which release.consistent = true cannot keep"
            )
            raise mistake(programme.path, "noise.ptable", value, "use a p-table with js = 0, or leave it out")
        return made
    problems = list(_private_problems(programme, noise))
    if problems:
        raise Mistakes(problems)
    codelists = {name: variable.codelist for name, variable in programme.variables.items()}
    found = budget.plan(noise, programme.cubes)
    found = replace(found, distances=private.drawing_distances(found, programme.cubes, codelists))
    _require_delta(noise, found, str(programme.path))
    return private.PrivateMechanism(
        found,
        codelists,
        programme.structural_zeros,
        programme.limits.published,
        noise_key,
        statistics(programme),
        sums=added_up(programme.cubes, found.parameters),
        totals=public_totals(noise.budget),
        sample=programme.population.sample if programme.population else None,
        every_cell=programme.release.consistent,
    )


def added_up(
    cubes: Sequence[Cube], parameters: Mapping[Signature, Fraction]
) -> dict[Signature, tuple[Signature, int]]:
    """What is published as a sum -> the finest cross-tabulation that it adds up, and of how many cells at most.

    Where codes end at different depths it adds up cells of several: that with the widest noise is named.
    """
    found = {}
    for cube in cubes:
        for depths in sorted(cube.shown.summed) if cube.shown else ():
            finest = min((cube.signature(one) for one in cube.interior), key=lambda one: parameters[one])
            found[cube.signature(depths)] = (finest, summed_cells(cube, depths))
    return found


def cell_key_mechanism(noise: CellKeyNoise, secret: bytes) -> CellKeyMechanism:
    """The cell key method; the secret decides the permutation of the cell keys."""
    notes: tuple[str, ...] = ()
    if isinstance(noise.table, Path):
        lookup = ptable_files.read_ptable(noise.table).lookup
    else:
        law = solve(noise.table)
        lookup, notes = build(law, Order.PLAIN), law.notes
    permutation = (
        secret_permutation(secret, lookup.modulus)
        if noise.keys is KeyKind.PERMUTED
        else no_permutation(lookup.modulus)
    )
    return CellKeyMechanism(lookup, permutation, notes)


def _private_problems(programme: Programme, noise: PrivateNoise) -> Iterator[Problem]:
    for cube in programme.cubes:
        if cube.weight and noise.largest_weight is None:
            value = "weights without a largest weight"
            remedy = (
                "state it with noise.largest_weight: a sum of unbounded weights has no bounded sensitivity"
            )
            yield Problem(str(programme.path), f"cube {cube.id}", value, remedy)
    yield from neighbour_problems(signatures(programme.cubes), noise, str(programme.path))


def _require_delta(noise: PrivateNoise, found: NoisePlan, file: str) -> None:
    """Refuse a plan whose certified delta exceeds what was declared."""
    if noise.is_gaussian and noise.delta:
        epsilon_of_drawn_rho(
            noise.budget.total, noise.delta, found.distance()
        )  # refuses a delta below the sampler's
    delta = found.delta()
    if noise.claim is Claim.DP and delta > max(noise.delta, ARITHMETIC):
        spent, declared = float(delta), float(noise.delta)
        cause, wider = f"truncation at {noise.bound} costs", "raise the bound"
        if noise.composition is not Composition.BASIC and noise.bound is None:
            cause, wider = (
                f"the cross-tabulations, by {noise.composition.value} composition, cost",
                "declare more",
            )
        if noise.utility is not None:
            cause, wider = "the ends of the utility's rows cost", "list more published values"
        value = f"{cause} {spent:.3g} over the programme, {declared:.3g} is declared"
        remedy = f"{wider}, raise epsilon, or declare the larger delta"
        raise Mistakes([Problem(file, "noise.delta", value, remedy)])
