"""The adviser on real programmes: what it knows from data, what it proposes and why, and what it says otherwise."""

from dataclasses import replace
from fractions import Fraction
from html import escape
from pathlib import Path

import numpy as np
import pytest

from discreet.advise.advise import Task, advise, task_of
from discreet.advise.facts import Facts, counted_facts, declared_facts, eu_facts
from discreet.advise.reasons import caveats, conflicts, declared_words, document, reasons
from discreet.audit.audit import NoiseChoice, Region
from discreet.audit.redundancy import Mode, regions_of
from discreet.errors import Mistakes
from discreet.io.progress import Quiet
from discreet.io.serialize import to_json
from discreet.maths.feasible import Constraint, RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.page.charts import Chart
from discreet.programme.programme import Programme, load_programme
from discreet.report.advice import advice_charts
from discreet.report.confidential import region_part
from tests.cli import town


@pytest.fixture(scope="module")
def programme(tmp_path_factory: pytest.TempPathFactory) -> Programme:
    return load_programme(town.build(tmp_path_factory.mktemp("town")) / "programme.toml")


@pytest.fixture(scope="module")
def facts(programme: Programme) -> Facts:
    return counted_facts(programme, Mode.NESTED, 1, Quiet())


def test_data_tell_who_is_there(programme: Programme, facts: Facts) -> None:
    """120 persons in three towns; the tuples are counted by hand from the table of persons and that of homes."""
    assert facts.known_from == "data"
    assert facts.population == 120
    assert (facts.place, facts.areas) == ("GEO", 3)
    assert facts.area_totals is not None
    assert sorted(facts.area_totals.tolist()) == [40, 40, 40]
    assert "area_totals" not in to_json(facts)
    declared = declared_facts(programme, Mode.NESTED, None)
    assert facts.same_noise == declared.same_noise
    assert facts.cells <= declared.cells
    assert sum(facts.tuples.values()) <= sum(declared.tuples.values())
    assert all(1 < positive <= parts for parts, positive in facts.tuples)


def test_tuples_of_a_declared_cube_are_counted_by_hand(programme: Programme) -> None:
    """homes: GEO of 2 regions with 2 and 1 towns, TENURE of 2. Towns of N and regions of the total, each by TENURE
    and all; TENURE by the total, 2 regions and 3 towns."""
    homes = replace(programme, cubes=tuple(cube for cube in programme.cubes if cube.id == "homes"))
    told = declared_facts(homes, Mode.NESTED, None)
    assert told.tuples == {(2, 2): (1 + 1) * (1 + 2) + (1 + 2 + 3)}
    assert told.crosstabs == 6
    assert declared_facts(homes, Mode.NESTED, 2).tuples == {
        (2, 2): 7
    }  # at most one tuple in each cross-tabulation


def test_the_proposal_keeps_every_limit_by_its_own_table(facts: Facts) -> None:
    limits = RiskLimits()
    found = advise(facts, Task(limits=limits))
    assert found.proposal is not None
    judged = found.proposal.judged
    assert judged.success < limits.averaging
    assert judged.revealed is not None
    assert judged.revealed < limits.revealed
    assert judged.stays <= limits.uniques
    assert judged.distorted <= limits.share
    assert float(found.proposal.noise["V"]) >= found.least_variance
    assert judged.areas is not None
    assert judged.areas[0.2] >= judged.areas[0.5] >= judged.areas[1.0]
    said = " ".join(reasons(found))
    assert all(word in said for word in ("averaging:", "bound:", "distortion:", "uniques:", "areas:"))


def test_a_stricter_office_gets_no_less_noise(facts: Facts) -> None:
    variances = []
    for confidence in (0.68, 0.5, 0.4):
        found = advise(facts, Task(limits=RiskLimits(averaging=confidence)))
        assert found.proposal is not None
        variances.append(float(found.proposal.noise["V"]))
    assert variances == sorted(variances)
    assert variances[0] < variances[-1]


def test_an_empty_region_is_told_with_its_conflict(facts: Facts) -> None:
    found = advise(facts, Task(limits=RiskLimits(averaging=0.2, size=10, share=0.01)))
    assert found.proposal is None
    assert not found.plane.feasible.any()
    said = list(conflicts(found))
    assert any("without the limit of averaging" in line for line in said)
    assert any("without the limit of distortion" in line for line in said)
    assert any("fewer tables do not help" in line for line in said)
    assert not list(reasons(found))
    assert document(found)["proposal"] is None


def test_the_declared_choice_is_judged(programme: Programme, facts: Facts) -> None:
    task = task_of(programme, None, RiskLimits())
    assert task.declared == (2.0, 5)
    kept = advise(facts, task)
    assert kept.declared == ()
    assert declared_words(kept) == "declared: V = 2, D = 5 satisfies all limits"
    broken = advise(facts, replace(task, limits=RiskLimits(largest_change=4)))
    assert broken.declared == (Constraint.LARGEST,)


def test_gates_limit_further(programme: Programme) -> None:
    gated = replace(programme, gates=replace(programme.gates, averaging=0.3, bound_revealed=0.1))
    task = task_of(gated, None, RiskLimits())
    assert (task.limits.averaging, task.limits.revealed) == (0.3, 0.1)


@pytest.mark.parametrize("kind", [LawKind.GEOMETRIC, LawKind.DISCRETE_GAUSSIAN])
def test_a_budget_gives_every_count_of_persons_its_parameter(
    programme: Programme, facts: Facts, kind: LawKind
) -> None:
    task = task_of(programme, kind, RiskLimits())
    found = advise(facts, task)
    assert found.proposal is not None
    assert found.line is not None
    assert found.line.least is not None
    assert found.line.most is not None
    assert task.parameters is not None
    total = float(found.proposal.noise[found.line.law.name])
    assert found.line.least.value <= total * task.parameters[0] <= found.line.most.value
    assert found.proposal.judged.distorted <= found.task.limits.share
    assert found.proposal.judged.success < found.task.limits.averaging


def test_a_line_without_room_names_both_ends(programme: Programme, facts: Facts) -> None:
    gated = replace(programme, gates=replace(programme.gates, epsilon=Fraction(1)))
    found = advise(facts, task_of(gated, LawKind.GEOMETRIC, RiskLimits()))
    assert found.proposal is None
    said = list(conflicts(found))
    assert said[0] == "distortion against budget:"
    assert any("--kind cell-key" in line for line in said)


def test_the_eu_census_of_malta_and_germany() -> None:
    """Small countries average better, so well that no V within the usual distortion resists; large ones have more
    tuples."""
    malta, germany = (
        advise(eu_facts(country, regions_of(country), Mode.LITERAL, None), Task()) for country in ("MT", "DE")
    )
    assert malta.proposal is None
    assert malta.least_variance == pytest.approx(7.07, abs=0.01)
    assert malta.relaxed[Constraint.DISTORTION] == (7.25, 8)
    assert germany.proposal is not None
    assert germany.proposal.noise == {"kind": "cell-key", "V": 3.5, "D": 7, "js": 0}
    assert sum(malta.facts.tuples.values()) < sum(germany.facts.tuples.values())
    told = to_json(document(malta))
    assert told["paper"]["epsilon"]["areas"] == pytest.approx(0.268, abs=5e-4)
    assert any("without data" in line for line in caveats(malta))


def test_pictures_say_what_they_show(facts: Facts) -> None:
    found = advise(facts, Task(declared=(2.0, 5)))
    drawn = {chart.name: chart for chart in advice_charts(found)}
    assert set(drawn) == {"region", "tuples", "averaging", "line"}
    for one in drawn.values():
        assert f'<desc id="{one.name}-file-words">{escape(one.description)}</desc>' in one.svg()
    assert found.proposal is not None
    assert str(found.proposal) in drawn["region"].description
    squares, marks, *_ = (layer["data"]["values"] for layer in drawn["region"].spec()["layer"])
    assert {point["name"].split(":")[0] for point in marks} == {"proposed", "declared"}
    area = sum((row["right"] - row["left"]) for row in squares if row["kind"] == "within all limits")
    step = found.plane.V[1] - found.plane.V[0]
    assert area / step == pytest.approx(int(np.count_nonzero(found.plane.feasible)))
    plane = found.plane
    region = Region(
        V=tuple(plane.V.tolist()),
        D=tuple(plane.D.tolist()),
        holds=plane.holds,
        chosen=NoiseChoice(2.0, 5),
        least=None,
        limits=RiskLimits(),
    )
    (audited, *_) = region_part(region).blocks
    assert isinstance(audited, Chart)
    same = next(layer["data"]["values"] for layer in audited.spec()["layer"])
    assert same == squares, "the audit draws the same picture"
    assert audited.legend == drawn["region"].legend


def test_kinds_that_the_adviser_does_not_know_are_refused(programme: Programme) -> None:
    with pytest.raises(Mistakes, match="--kind: hellinger; the adviser supports cell-key, geometric"):
        task_of(programme, LawKind.HELLINGER, RiskLimits())


def test_absent_data_leave_the_declaration(tmp_path: Path) -> None:
    folder = town.build(tmp_path)
    present = declared_facts(load_programme(folder / "programme.toml"), Mode.NESTED, 120)
    assert present.known_from == "declaration"
    assert present.area_totals is None
    assert advise(present, Task()).proposal is not None
