"""Another p-table under one secret: large counts guessed from two releases, with and without knowing the p-tables."""

from dataclasses import replace
from functools import cache

import pytest

from discreet.audit.attack import ATTACKS, Outsider, OutsiderDifferences, attack
from discreet.audit.evidence import Published, Truth
from discreet.audit.ptable_change import Knowledge, judge, ptable_change
from discreet.errors import Mistakes
from discreet.io.progress import Quiet
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import no_permutation, secret_permutation
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from tests.audit.known import known
from tests.audit.made import Made, made, random_columns
from tests.audit.test_key_gaps import halves
from tests.cases import few

SECRET = bytes(range(32))


@cache
def release(D: int, V: float, kind: str = "permuted", is_open: bool = False) -> Made:
    """The same people with the same record keys, under another p-table."""
    trees = [halves("A", 6), halves("B", 5), halves("C", 1)]
    table = solve(PTableParameters(D, V))
    order = Order.SHUFFLED if kind == "shuffled" else Order.PLAIN
    lookup = build(table, order, SECRET if kind == "shuffled" else None)
    permutation = secret_permutation(SECRET) if kind == "permuted" else no_permutation()
    noise = known(True, True, None, None, PTableLaw(table) if is_open else None)
    columns = random_columns(trees, 200_000, 5)
    return made(trees, [("A", "B", "C")], columns, CellKeyMechanism(lookup, permutation), noise, 9)


def guessed(first: Made, second: Made) -> tuple[float, float, float | None]:
    """Shares published unchanged and guessed right, and the chance that the attack expects."""
    found = ptable_change(first.published, second.published)
    judged = judge(found, first.truth)
    assert judged.cells == found.findings.cells > 10_000
    return judged.published_right / judged.cells, judged.right / judged.cells, found.findings.together


def test_shuffled_intervals_and_plain_sums_are_broken_without_knowing_anything() -> None:
    before, after, expected = guessed(release(5, 2.0, "shuffled"), release(6, 2.0, "shuffled"))
    assert before == pytest.approx(0.282, abs=0.02)
    assert after > 0.55
    assert after == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("second", "together"), few([((6, 2.0), 0.282), ((5, 1.0), 0.446), ((5, 3.0), 0.333)], 0)
)
@pytest.mark.parametrize("is_open", [False, True])
def test_permuted_keys_give_what_the_laws_predict(
    second: tuple[int, float], together: float, is_open: bool
) -> None:
    before, after, expected = guessed(release(5, 2.0, is_open=is_open), release(*second, is_open=is_open))
    assert before == pytest.approx(0.282, abs=0.02)
    assert after == pytest.approx(together, abs=0.03)
    assert expected == pytest.approx(together, abs=0.05)


def test_known_tables_are_used_with_the_relation_of_keys_that_fits() -> None:
    first, second = release(5, 2.0, is_open=True), release(5, 3.0, is_open=True)
    assert ptable_change(first.published, second.published).findings.knowledge is Knowledge.SAME_KEY
    other = release(5, 3.0, "plain", is_open=True)
    assert ptable_change(first.published, other.published).findings.knowledge is Knowledge.UNRELATED


def test_releases_without_a_common_table_are_refused() -> None:
    one, two = release(5, 2.0), release(5, 1.0)
    empty = Published("x", (replace(one.published.universes[0], tables=()),), one.published.noise)
    with pytest.raises(Mistakes, match="no cross-tabulation in common"):
        ptable_change(empty, two.published)


def outsider(first: Made, second: Made, same_secret: bool, same_ptable: bool) -> OutsiderDifferences:
    every = Outsider(
        second.published, first.published, same_secret, None, None, None, 1, 1.0, 1, Quiet(), same_ptable
    )
    found = attack(every, without=[name for name in ATTACKS if name != "differencing"]).differencing
    assert isinstance(found, OutsiderDifferences)
    return found


def test_an_outsider_does_not_take_another_ptable_for_people_who_moved() -> None:
    first, second = release(5, 2.0), release(5, 1.0)
    found = outsider(first, second, same_secret=True, same_ptable=False)
    assert found.earlier_release is not None
    assert found.earlier_release.changed > 1000
    assert found.earlier_release.participants is None
    assert found.ptable_change is not None
    assert found.ptable_change.changed > 1000
    again = outsider(first, first, same_secret=True, same_ptable=True)
    assert again.ptable_change is None
    assert again.earlier_release is not None
    assert again.earlier_release.participants == 0
    assert outsider(first, second, same_secret=False, same_ptable=False).ptable_change is None


def test_a_judgement_has_numbers_only() -> None:
    first, second = release(5, 2.0), release(5, 1.0)
    found = ptable_change(first.published, second.published)
    assert isinstance(first.truth, Truth)
    assert set(judge(found, first.truth).as_json()) == {"cells", "published_right", "right", "share_right"}
