"""Advice on many tables: what part of them excludes is not attacked as a whole, and everything else is as before."""

from dataclasses import replace

import pytest

from discreet.advise import facts as known
from discreet.advise.advise import Advice, Task, advise
from discreet.advise.facts import Attacked, Facts, counted_facts
from discreet.advise.reasons import caveats, conflicts, document
from discreet.audit import subpopulation
from discreet.audit.redundancy import Mode
from discreet.io.progress import Quiet
from discreet.maths.feasible import Constraint, RiskLimits
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.programme.programme import load_programme
from tests.cli import town

FEW = 60  # cells that are fitted as a whole
STRICT = RiskLimits(averaging=0.3)  # more noise than the other limits allow
DECLARED = (2.0, 5)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """All tables of a town are attacked, and parts of them too."""
    programme = load_programme(town.build(tmp_path_factory.mktemp("town")) / "programme.toml")
    with pytest.MonkeyPatch.context() as patch:
        for module in (known, subpopulation):
            patch.setattr(module, "MOST_CELLS", FEW)
        found = counted_facts(programme, Mode.NESTED, 1, Quiet())
        assert found.attack_on_parts is not None
        assert found.attack_on_parts(PTableParameters(5, 2.0)).exposed
    return found


def never(_: PTableParameters) -> Attacked:
    raise AssertionError("all tables were attacked")


@pytest.fixture(scope="module")
def excluded(facts: Facts) -> Advice:
    return advise(replace(facts, attack=never), Task(limits=STRICT, declared=DECLARED, margin=0.1))


def test_few_tables_are_attacked_as_a_whole_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    programme = load_programme(town.build(tmp_path_factory.mktemp("few")) / "programme.toml")
    assert counted_facts(programme, Mode.NESTED, 1, Quiet()).attack_on_parts is None


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_the_proposal_is_that_of_the_attack_on_all_tables(facts: Facts, margin: float) -> None:
    task = Task(declared=DECLARED, margin=margin)
    whole = advise(replace(facts, attack_on_parts=None), task)
    found = advise(facts, task)
    assert found.proposal is not None
    assert found.proposal == whole.proposal
    assert found.exposed == whole.exposed
    assert found.declared == whole.declared
    assert document(found) == document(whole)


def test_what_part_of_the_tables_excludes_all_of_them_exclude(facts: Facts, excluded: Advice) -> None:
    whole = advise(replace(facts, attack_on_parts=None), Task(limits=STRICT, declared=DECLARED, margin=0.1))
    assert whole.proposal is None
    assert whole.edge is None
    assert not whole.exposed.at_least
    assert excluded.proposal is None
    assert excluded.edge is None
    assert excluded.exposed.at_least
    assert excluded.exposed.ratio >= whole.exposed.ratio, "another count may be more exposed"
    assert excluded.declared == whole.declared


def test_advice_names_what_was_not_attacked(excluded: Advice) -> None:
    """Without another limit a proposal would need the attack on all tables: only averaging can be relaxed."""
    assert set(excluded.relaxed) <= {Constraint.AVERAGING}
    text = "\n".join(conflicts(excluded))
    assert "succeeds with probability at least" in text
    assert f"needs a V of more than {excluded.least_variance:.3g}" in text
    assert any("tables of part of the records" in line for line in caveats(excluded))
    assert document(excluded)["exposed"].at_least is True  # type: ignore[attr-defined]
    assert excluded.left_out == ()


def test_a_population_that_is_only_averaged_is_named(facts: Facts) -> None:
    def attack(parameters: PTableParameters) -> Attacked:
        return replace(facts.attack(parameters), left_out=("persons",))  # type: ignore[misc]

    found = advise(replace(facts, attack=attack), Task())
    assert any("the tables of persons are too large for least squares" in line for line in caveats(found))
