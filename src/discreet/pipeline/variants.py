"""The same tables under other protections: none, swapping alone, noise alone, a privacy guarantee.

It owns how they are made from one case, for comparison; none of them is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from discreet.audit.published import Cells, KnownNoise, Published, PublishedTable
from discreet.errors import BrokenRelease, Mistakes
from discreet.maths.keys import derive
from discreet.maths.laws import LawKind
from discreet.perturb.choose import mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.table import ProtectedTable
from discreet.pipeline.case import Case, as_published, law_of
from discreet.pipeline.progress import Progress
from discreet.pipeline.tabulating import Tabulator
from discreet.schema.cube import Cube
from discreet.schema.noise import BudgetRule, PrivateNoise
from discreet.tabulate.table import ConfidentialTable

EXACT = KnownNoise("no noise", True, True, 0.0, 0)
COMPARED_EPSILON = Fraction(1)  # of all compared tables, for releases that have no guarantee of their own


def variants(
    case: Case, place: str, progress: Progress, left_out: dict[str, str]
) -> Iterator[tuple[str, Published]]:
    """The tables about places, by protection; those that equal the release itself are left out.

    A protection that cannot be had for so many tables is put into ``left_out`` with the reason.
    """
    cubes = [cube for cube in case.programme.cubes if _is_about(cube, place) and not cube.weight]
    yield "none", _exact(case, cubes, case.truth.original)
    if case.truth.is_swapped:
        yield "swapping alone", _exact(case, cubes, case.truth.counted)
        yield "noise alone", _noisy(case, cubes, case.mechanism, progress)
    name = f"epsilon {COMPARED_EPSILON} for these tables"
    try:
        private = _private(case, cubes)
        noisy = _noisy(case, cubes, private, progress) if private else None
    except (Mistakes, BrokenRelease) as impossible:
        left_out[name] = str(impossible)
    else:
        if noisy:
            yield name, noisy


def _is_about(cube: Cube, place: str) -> bool:
    return any(axis.variable == place for axis in cube.axes)


def _exact(case: Case, cubes: list[Cube], truth: Mapping[str, Cells]) -> Published:
    tables = {cube.id: _table(cube, truth[cube.id]) for cube in cubes}
    return as_published(case, tables, EXACT)


def _private(case: Case, cubes: list[Cube]) -> Mechanism | None:
    """Geometric noise with a budget of one for these tables; None where the release has a law of its own already."""
    if isinstance(case.programme.noise, PrivateNoise):
        return None
    rule = PrivateNoise(LawKind.GEOMETRIC, BudgetRule(COMPARED_EPSILON))
    programme = replace(case.programme, cubes=tuple(cubes), noise=rule, swap=None)
    return mechanism(programme, case.secret, derive(case.secret, "compared-protection"))


def _noisy(case: Case, cubes: list[Cube], chosen: Mechanism, progress: Progress) -> Published:
    """Count the records as they are and perturb them."""
    found: dict[str, PublishedTable] = {}

    def perturb(table: ConfidentialTable) -> None:
        found[table.cube.id] = _shown(chosen.perturb(table))

    Tabulator(case.programme, case.secret, chosen, case.threads, progress).run(cubes, perturb)
    return as_published(case, found, law_of(chosen))


def _shown(protected: ProtectedTable) -> PublishedTable:
    return _table(protected.cube, (protected.cells, protected.values))


def _table(cube: Cube, cells: Cells) -> PublishedTable:
    return PublishedTable(cube, lambda: cells)
