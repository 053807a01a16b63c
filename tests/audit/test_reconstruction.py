"""A town of twenty areas whose tables are attacked: exact, swapped, with weak and sound noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.audit.evidence import Published
from discreet.audit.gates import JUDGES
from discreet.audit.linkage import Auxiliary, Confirmed, auxiliary, confirm, link, made_auxiliary
from discreet.audit.measures import Rebuilt
from discreet.audit.reconstruction import (
    JudgedReconstruction,
    Reconstruction,
    SolverLimits,
    TrueRecords,
    judge,
    reconstruct,
)
from discreet.errors import Mistakes, Problem
from discreet.io.serialize import to_json
from discreet.maths.attacks.reconstruction import Status
from discreet.maths.cells.counting import counts_of
from discreet.maths.noise.additive import LawKind
from discreet.perturb.budget import law_of, plan
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from discreet.perturb.private import PrivateMechanism
from discreet.programme.cube import Cube
from discreet.programme.gates import Gates, ReconstructionGate
from discreet.programme.noise import BudgetRule, PrivateNoise
from discreet.programme.statistic import Statistics
from discreet.report.published import sentences
from discreet.tabulate.tables import ConfidentialTable, NoisyTable, ProtectedTable
from tests.attributes import own
from tests.audit.known import known as known_noise
from tests.audit.made import Columns, axis, cell_key, flat, made, nested, random_columns

PERSONS = 800
TREES = [flat("GEO", 20), flat("SEX", 2), flat("AGE", 9), flat("OCC", 4)]
CODELISTS = {tree.name: tree for tree in TREES}
WHOLE = [["GEO", "SEX", "AGE", "OCC"]]
PAIRS = [["GEO", "SEX", "AGE"], ["GEO", "SEX", "OCC"], ["GEO", "AGE", "OCC"]]
QUICK = SolverLimits(work=5, workers=2)
GATE = ReconstructionGate(
    place="GEO", variables=(), quasi=(), errors={}, areas=20, seconds=5.0, reconstructed=0.1, reidentified=0.1
)


@dataclass(frozen=True)
class Bare:
    """No protection at all."""

    notes: tuple[str, ...] = ()
    key_modulus: int = 1
    identity: bytes = b""

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        counts = counts_of(table.cells)
        here = np.flatnonzero(counts)
        return ProtectedTable(table.cube, here, counts[here])

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        made = self.perturb(table)
        return NoisyTable(made.cube, made.cells, made.values, np.ones([len(axis) for axis in made.cube.axes]))

    def noise(self) -> Noise:
        raise NotImplementedError

    def problems(self, records: int) -> Iterator[Problem]:
        yield from ()

    def certified(self) -> None:
        pass

    def cube_problems(self, cube: Cube) -> Iterator[Problem]:
        yield from ()


NO_NOISE = known_noise(True, True, 0.0, 0)


def private(epsilon: int) -> tuple[Mechanism, Noise]:
    """Geometric noise in every cell, the law of each cross-tabulation known."""
    cube = Cube("", "persons", tuple(axis(tree) for tree in TREES))
    rule = PrivateNoise(LawKind.GEOMETRIC, BudgetRule(Fraction(epsilon)), attributes=own(*CODELISTS))
    noise = plan(rule, [cube])
    laws = {str(signature): law_of(rule, parameter) for signature, parameter in noise.parameters.items()}
    mechanism = PrivateMechanism(noise, CODELISTS, (), 10**7, b"k" * 32, Statistics(CODELISTS))
    widest = next(iter(laws.values()))
    return mechanism, known_noise(False, False, None, None, widest, laws, rule.published)


@cache
def town() -> Columns:
    """Areas of 20 to 60 persons; the occupation depends on age."""
    generator = np.random.default_rng(3)
    columns = dict(random_columns(TREES, PERSONS, 3))
    sizes = generator.dirichlet(np.full(20, 20.0))
    columns["GEO"] = generator.choice(20, size=PERSONS, p=sizes).astype(np.uint32)
    shares = generator.dirichlet(np.ones(4), size=9)
    columns["OCC"] = np.array([generator.choice(4, p=shares[age]) for age in columns["AGE"]], dtype=np.uint32)
    return columns


TRUTH = TrueRecords(town(), CODELISTS)


def attacked(
    noise: tuple[Mechanism, Noise],
    crosses: Sequence[Sequence[str]],
    columns: Columns | None = None,
    most_areas: int = 20,
) -> tuple[Reconstruction, JudgedReconstruction]:
    release = made(TREES, crosses, columns or town(), *noise, seed=1)
    found = reconstruct(release.published, limits=replace(QUICK, most_areas=most_areas))
    return found, judge(found, TRUTH)


def named(found: Reconstruction, judged: JudgedReconstruction, errors: float) -> Confirmed:
    file = made_auxiliary(found, TRUTH, ["SEX", "AGE"], {"AGE": errors})
    return confirm(link(found, file), TRUTH, judged)


def test_exact_tables_of_all_variables_are_the_records() -> None:
    found, judged = attacked((Bare(), NO_NOISE), WHOLE)
    assert judged.r_recon == 1
    assert judged.baseline < 0.6
    assert judged.as_json()["r_recon_uniques"] == 1
    assert to_json(found.findings()) == {
        "counted": "persons",
        "geography": "GEO",
        "variables": ["SEX", "OCC", "AGE"],
        "joint_cells": 72,
        "areas": 20,
        "status": {"optimal": 20},
        "records": PERSONS,
        "certain": PERSONS,
        "r_certain": 1.0,
        "r_guessed": found.findings().r_guessed,
        "unique_areas": 20,
        "confidence": 1.0,
        "seconds": found.findings().seconds,
    }
    everybody = named(found, judged, errors=0.0)
    assert everybody.precision == 1
    assert everybody.r_reid == everybody.r_match > 0.05


def test_exact_tables_of_pairs_give_most_records_and_promise_no_more_than_is_right() -> None:
    found, judged = attacked((Bare(), NO_NOISE), PAIRS)
    assert judged.r_recon > judged.baseline + 0.2
    assert judged.r_recon >= found.findings().r_certain > 0.5
    assert judged.broken_promises == 0


def test_weak_noise_gives_way_and_stronger_noise_less() -> None:
    weak, weakly = attacked(cell_key(0.5, 2), WHOLE, most_areas=10)
    sound, soundly = attacked(cell_key(2.0, 5), PAIRS, most_areas=10)
    assert weakly.r_recon > 0.85
    assert weak.findings().r_certain > 0.5
    assert soundly.r_recon < weakly.r_recon - 0.15
    assert sound.findings().r_certain < 0.25
    assert weakly.broken_promises == soundly.broken_promises == 0
    assert named(sound, soundly, 0.05).precision < named(weak, weakly, 0.05).precision - 0.2


def test_a_small_privacy_budget_resists() -> None:
    found, judged = attacked(private(1), WHOLE, most_areas=10)
    assert judged.r_recon < judged.baseline  # worse than the statistics of the other areas
    assert found.findings().certain == 0
    assert found.confidence == 0.999
    assert judged.broken_promises == 0
    assert named(found, judged, 0.05).r_reid < 0.03


def test_swapping_alone_leaves_the_tables_exact_but_wrong_about_the_swapped() -> None:
    swapped = dict(town())
    movers = np.random.default_rng(5).permutation(PERSONS)[:200]
    swapped["GEO"] = swapped["GEO"].copy()
    swapped["GEO"][movers] = np.roll(town()["GEO"][movers], 1)
    found, judged = attacked((Bare(), NO_NOISE), WHOLE, swapped)
    moved = np.mean(swapped["GEO"] != town()["GEO"])
    assert found.findings().r_certain == 1  # certain of the swapped records, which are not all true
    assert 1 - moved - 1e-12 <= judged.r_recon < 1
    assert judged.broken_promises > 0


@pytest.mark.long
def test_what_is_known_of_the_noise_decides_how_well_it_goes() -> None:
    mechanism, known = cell_key(2.0, 5)
    release = made(TREES, WHOLE, town(), mechanism, known, seed=1).published
    areas = ["GEO0", "GEO3"]
    by_law = reconstruct(release, areas=areas, limits=QUICK)
    told = replace(release, noise=replace(known, law=None, bound=10))
    by_bound = reconstruct(told, areas=areas, limits=QUICK)
    variance = replace(release, noise=replace(known, law=None, bound=None))
    by_variance = reconstruct(variance, areas=areas, limits=QUICK)
    assert by_law.findings().certain > by_bound.findings().certain
    assert all(area.status in (Status.OPTIMAL, Status.FEASIBLE) for area in by_variance.areas)
    assert (by_bound.confidence, by_variance.confidence) == (1.0, 0.999)
    as_exact = reconstruct(release, areas=areas, bound=0, limits=QUICK)
    assert {area.status for area in as_exact.areas} == {Status.INFEASIBLE}
    nothing = replace(release, noise=known_noise(False, False))
    with pytest.raises(Mistakes, match="give a bound to try with"):
        reconstruct(nothing, areas=areas, limits=QUICK)
    assert reconstruct(nothing, areas=areas, bound=5, limits=QUICK).findings().records > 0


def test_sub_totals_and_tables_with_other_variables_are_used() -> None:
    trees = [nested("GEO", 2, 3), nested("AGE", 3, 2), flat("SEX", 2), flat("X", 50)]
    columns = random_columns(trees, 120, 8)
    release = made(trees, [["GEO", "AGE"], ["SEX", "GEO", "X"]], columns, Bare(), NO_NOISE, 1).published
    found = reconstruct(release, variables=["AGE", "SEX"], limits=QUICK)
    assert [area.area for area in found.areas] == [f"GEO{k}.{town}" for k in range(2) for town in range(3)]
    assert {area.sums for area in found.areas} == {1 + 3 + 6 + 2}
    assert found.findings().records == 120
    region = reconstruct(release, areas=["GEO1"], variables=["AGE", "SEX"], limits=QUICK)
    residents = int((columns["GEO"] >= 3).sum())
    assert region.findings().records == residents
    truth = TrueRecords(columns, {tree.name: tree for tree in trees})
    assert judge(region, truth).records == residents
    record, count = next(found.records(found.areas[0]))
    assert set(record) == {"AGE", "SEX"}
    assert record["AGE"].count(".") == 1
    assert count > 0


def release() -> Published:
    return made(TREES, WHOLE, town(), Bare(), NO_NOISE, 1).published


def test_limits_hold() -> None:
    none = reconstruct(release(), limits=replace(QUICK, all_seconds=0))
    assert none.findings().status == {"not begun": 20}
    assert judge(none, TRUTH).r_recon == 0
    few = reconstruct(release(), limits=replace(QUICK, most_areas=3))
    assert [area.area for area in few.areas] == ["GEO0", "GEO9", "GEO19"]
    small = reconstruct(release(), limits=replace(QUICK, most_areas=1, most_cells=10))
    assert small.space.variables == ("SEX", "OCC")
    large = reconstruct(release(), limits=replace(QUICK, most_areas=2, most_terms=3))
    assert large.findings().status == {"too large": 2}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"variable": "LAU"}, "variable: LAU; no table has it"),
        ({"areas": ["GEO1", "GEO77"]}, "areas: GEO77; name areas of GEO"),
        ({"areas": []}, "areas: none"),
        (
            {"variables": ["AGE", "INC"]},
            "variables: INC; no table has it with GEO; name some of AGE, OCC, SEX",
        ),
        ({"counted": "dwellings"}, "counted: dwellings; choose from: persons"),
        ({"variables": ["AGE"], "limits": SolverLimits(most_cells=5)}, "their cross has 9 cells"),
    ],
)
def test_wrong_wishes_are_told(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(Mistakes, match=told):
        reconstruct(release(), **wrong)  # type: ignore[arg-type]


def test_errors_of_the_auxiliary_file_cost_matches() -> None:
    found, judged = attacked((Bare(), NO_NOISE), WHOLE)
    right, wrong = (made_auxiliary(found, TRUTH, ["SEX", "AGE"], {"AGE": share}) for share in (0.0, 0.3))
    altered = np.mean(right.known["AGE"] != wrong.known["AGE"])
    assert altered == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / PERSONS))
    assert confirm(link(found, right), TRUTH, judged).precision == 1
    assert confirm(link(found, wrong), TRUTH, judged).precision < 0.9
    moved = made_auxiliary(found, TRUTH, ["SEX", "AGE"], {"GEO": 1.0})
    assert (moved.area != right.area).all()
    assert confirm(link(found, moved), TRUTH, judged).confirmed == 0


def test_a_file_of_the_office_and_a_share_of_the_residents_can_be_linked() -> None:
    found, judged = attacked((Bare(), NO_NOISE), WHOLE)
    rows = np.arange(0, PERSONS, 7)
    file = TrueRecords({name: column[rows] for name, column in town().items()}, CODELISTS)
    linked = link(found, auxiliary(found, file, rows, ["AGE", "OCC"]))
    assert linked.as_json()["r_any_match"] == 1
    assert confirm(linked, TRUTH, judged).precision == 1
    half = made_auxiliary(found, TRUTH, ["AGE"], share=0.5)
    assert len(half.person) == pytest.approx(PERSONS / 2, abs=4 * np.sqrt(PERSONS / 4))
    unknown = Auxiliary(np.arange(1), np.array([0]), {"AGE": np.array([-1])})
    assert link(found, unknown).matched == 0


def test_wrong_linkages_are_told() -> None:
    found, _ = attacked((Bare(), NO_NOISE), WHOLE)
    with pytest.raises(Mistakes, match="choose from SEX, OCC, AGE"):
        made_auxiliary(found, TRUTH, ["INC"])
    with pytest.raises(Mistakes, match=r"OCC = 0\.1"):
        made_auxiliary(found, TRUTH, ["SEX"], {"OCC": 0.1})


def test_where_nearly_all_are_alike_certain_records_are_no_attack() -> None:
    """Exact tables give every record for certain, and a guess of the most frequent categories nearly all as well."""
    generator = np.random.default_rng(7)
    alike = {name: np.zeros(PERSONS, dtype=np.uint32) for name in ("SEX", "AGE", "OCC")}
    odd = generator.permutation(PERSONS)[:18]
    alike["AGE"][odd] = generator.integers(1, 9, len(odd))
    columns = {"GEO": town()["GEO"], **alike}
    release = made(TREES, WHOLE, columns, Bare(), NO_NOISE, seed=1)
    found = reconstruct(release.published, limits=QUICK)
    judged, findings = judge(found, TrueRecords(columns, CODELISTS)), found.findings()
    assert judged.r_recon == findings.r_certain == 1
    assert judged.by_commonest == PERSONS - len(odd)
    assert judged.baseline == findings.r_guessed >= 1 - len(odd) / PERSONS
    assert judged.gain <= len(odd) / PERSONS
    file = made_auxiliary(found, TrueRecords(columns, CODELISTS), ["AGE"])
    confirmed = confirm(link(found, file), TrueRecords(columns, CODELISTS), judged)
    rebuilt = Rebuilt("as released", findings, judged, confirmed)
    gates = Gates(reconstruction=GATE)
    verdicts = {one.gate: one for one in JUDGES["reconstruction"](gates, SimpleNamespace(rebuilt=rebuilt))}  # type: ignore[arg-type]
    reconstructed = verdicts["reconstruction.reconstructed"]
    assert reconstructed.found == pytest.approx(judged.gain)
    assert reconstructed.passed  # the limit is on what the attack adds
    assert "beyond the best guess" in str(reconstructed)
    assert verdicts["reconstruction.reidentified"].found == max(confirmed.gain, 0)
    told = " ".join(sentences(findings))
    assert f"{PERSONS} of them (100%) are certain" in told
    assert "the solver adds" in told


def test_a_gate_on_reconstruction_still_refuses_an_attack() -> None:
    found, judged = attacked((Bare(), NO_NOISE), WHOLE)
    rebuilt = Rebuilt("as released", found.findings(), judged, named(found, judged, errors=0.0))
    (first, _) = JUDGES["reconstruction"](Gates(reconstruction=GATE), SimpleNamespace(rebuilt=rebuilt))  # type: ignore[arg-type]
    assert not first.passed
    assert first.found == judged.r_recon - judged.baseline > 0.3
