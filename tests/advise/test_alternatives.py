"""Proposals inside the limits by a margin, and what an office could choose instead."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.advise.advise import Task, advise, task_of
from discreet.advise.alternatives import Choice, alternatives
from discreet.advise.facts import Attacked, Facts, counted_facts
from discreet.advise.reasons import alternatives_text, conflicts, document, margin_text, meanings, reasons
from discreet.audit.averaging import ExposedCell
from discreet.audit.redundancy import Mode
from discreet.io.progress import Quiet
from discreet.io.serialize import to_json
from discreet.maths.attacks.averaging import success
from discreet.maths.feasible import Constraint, RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.programme.programme import Programme, load_programme
from discreet.report.advice import region_chart
from tests.cli import town

LIMITS = RiskLimits()
MARGINS = (0.0, 0.1, 0.2)


@pytest.fixture(scope="module")
def programme(tmp_path_factory: pytest.TempPathFactory) -> Programme:
    return load_programme(town.build(tmp_path_factory.mktemp("town")) / "programme.toml")


@pytest.fixture(scope="module")
def facts(programme: Programme) -> Facts:
    return counted_facts(programme, Mode.NESTED, 1, Quiet())


@pytest.mark.parametrize("margin", MARGINS)
def test_a_proposal_is_inside_every_limit_by_the_margin(facts: Facts, margin: float) -> None:
    found = advise(facts, Task(limits=LIMITS, margin=margin))
    assert found.proposal is not None
    judged, left = found.proposal.judged, 1 - margin
    assert judged.success < left * LIMITS.averaging
    assert judged.revealed is not None
    assert judged.revealed < left * LIMITS.revealed
    assert judged.stays <= left * LIMITS.uniques
    assert judged.distorted <= left * LIMITS.share
    assert found.proposal.noise["D"] <= left * LIMITS.largest_change  # type: ignore[operator]
    assert found.task.limits == LIMITS, "what is reported is the office's own limit"
    assert ("20%" in margin_text(found)) == (margin == 0.2)


def test_a_larger_margin_means_no_less_noise(facts: Facts) -> None:
    proposals = [advise(facts, Task(limits=LIMITS, margin=margin)).proposal for margin in MARGINS]
    variances = [float(one.noise["V"]) for one in proposals if one is not None]
    assert len(variances) == 3
    assert variances == sorted(variances)
    assert variances[0] < variances[-1]


def test_a_private_proposal_is_inside_its_limits(programme: Programme, facts: Facts) -> None:
    loose = replace(LIMITS, averaging=0.9, uniques=0.9)
    for kind in (LawKind.GEOMETRIC, LawKind.DISCRETE_GAUSSIAN):
        found = advise(facts, task_of(programme, kind, loose, 0.1))
        assert found.proposal is not None
        assert found.proposal.judged.distorted <= 0.9 * loose.share
        assert found.proposal.judged.success < 0.9 * loose.averaging
        assert found.proposal.judged.stays <= 0.9 * loose.uniques


def test_limits_are_tightened_by_a_share_of_themselves() -> None:
    strict = LIMITS.inside(0.1)
    assert strict.averaging == pytest.approx(0.612)
    assert (strict.largest_change, strict.area_change, strict.size) == (9, 18, 20)
    assert 1 - strict.area_confidence == pytest.approx(0.9 * (1 - LIMITS.area_confidence))
    assert LIMITS.inside(0.0) == replace(LIMITS, area_confidence=LIMITS.inside(0.0).area_confidence)


def test_what_keeps_the_limits_only_at_their_edge_is_named(facts: Facts) -> None:
    """The largest change that the tables need is the largest that is allowed: no margin is left."""
    free = advise(facts, Task(limits=LIMITS))
    assert free.proposal is not None
    tight = replace(LIMITS, largest_change=int(free.proposal.noise["D"]))
    found = advise(facts, Task(limits=tight, margin=0.1))
    assert found.proposal is None
    assert found.edge is not None
    assert found.edge.noise == free.proposal.noise
    (line,) = conflicts(found)
    assert "keeps every limit, but not 10% inside each: accept less with --margin 0" in line
    assert alternatives(found)[0].choice is Choice.EDGE


def test_plane_and_alternatives_are_judged_by_the_count_that_judged_the_edge(facts: Facts) -> None:
    """An attack that succeeds in 65 of 100 cases under any noise keeps the limit of 68, and no margin of a tenth."""

    def attack(parameters: PTableParameters) -> Attacked:
        table = solve(parameters)
        found = max(0.65, success(table.variance(table.last_row), 0.1))
        return Attacked((ExposedCell("persons", {"SEX": "1"}, 10, 10, 0.1, found),))

    found = advise(replace(facts, attack=attack), Task(limits=LIMITS, margin=0.1))
    assert found.proposal is None
    assert found.edge is not None
    V, D = float(found.edge.noise["V"]), int(found.edge.noise["D"])
    row, column = np.flatnonzero(found.plane.D == D)[0], np.flatnonzero(np.isclose(found.plane.V, V))[0]
    assert found.plane.feasible[row, column]
    assert f"edge: V {V:g}, D {D}" in str(region_chart(found).draw(900).to_dict())
    assert "is within all of them" in region_chart(found).description
    first, *others = alternatives(found)
    for one in others:
        text = next(
            line
            for line in alternatives_text(found, [first, one])
            if line.startswith(f"{one.choice.value}: ")
        )
        assert ("gains safety" in text) == (one.success < first.success and one.error > 1.005 * first.error)


def test_alternatives_of_the_cell_key_method(facts: Facts) -> None:
    found = advise(facts, Task(limits=LIMITS, declared=(2.0, 5), margin=0.1))
    rows = {row.choice: row for row in alternatives(found)}
    assert {Choice.PROPOSED, Choice.SAFER, Choice.FINER, Choice.COARSER, Choice.DECLARED} == set(rows)
    proposed, safer, finer, coarser = (
        rows[one] for one in (Choice.PROPOSED, Choice.SAFER, Choice.FINER, Choice.COARSER)
    )
    assert found.proposal is not None
    assert proposed.noise == {"V": found.proposal.noise["V"], "D": found.proposal.noise["D"]}
    assert proposed.success == found.proposal.judged.success
    assert finer.error < proposed.error < safer.error
    assert finer.error < coarser.error
    assert finer.success > safer.success
    assert safer.revealed is not None
    assert proposed.revealed is not None
    assert safer.revealed <= proposed.revealed
    assert not finer.breaks
    assert not coarser.breaks
    assert rows[Choice.DECLARED].noise == {"V": 2.0, "D": 5}


def test_alternatives_of_a_law_with_a_budget(programme: Programme, facts: Facts) -> None:
    loose = replace(LIMITS, averaging=0.9, uniques=0.9)
    found = advise(facts, task_of(programme, LawKind.GEOMETRIC, loose, 0.1))
    rows = {row.choice: row for row in alternatives(found)}
    assert set(rows) == {Choice.PROPOSED, Choice.SAFER, Choice.FINER, Choice.COARSER}
    assert rows[Choice.FINER].noise["epsilon"] > rows[Choice.PROPOSED].noise["epsilon"]
    assert rows[Choice.SAFER].noise["epsilon"] < rows[Choice.PROPOSED].noise["epsilon"]
    assert rows[Choice.FINER].error < rows[Choice.COARSER].error
    assert not rows[Choice.FINER].breaks
    assert not rows[Choice.COARSER].breaks
    assert all(row.revealed is None for row in rows.values())


def test_a_choice_that_breaks_a_limit_states_it(facts: Facts) -> None:
    found = advise(facts, Task(limits=replace(LIMITS, share=0.001), margin=0.1))
    safer = next(row for row in alternatives(found) if row.choice is Choice.SAFER)
    kept = Constraint.DISTORTION not in safer.breaks
    assert kept == (safer.distorted <= 0.001)


def test_the_document_has_numbers_and_the_text_no_formulas(facts: Facts, tmp_path: Path) -> None:
    found = advise(facts, Task(limits=LIMITS, margin=0.1))
    told = to_json(document(found))
    assert told["margin"] == 0.1
    assert told["edge"] is None
    assert len(told["alternatives"]) >= 4
    assert all(isinstance(row["success"], float) for row in told["alternatives"])
    text = " ".join([*reasons(found), *(meaning for _, meaning in meanings(found))])
    for symbol in ("k/t", "²", "^", "√", "ratio", "lambda", "erf", "="):
        assert symbol not in text.replace("AGE=", "").replace("GEO=", "").replace("SEX=", ""), symbol
    assert {name for name, _ in meanings(found)} == set(found.plane.holds) - {Constraint.PTABLE}
