"""Several workers that start at once make their books once, charge nothing twice and lose nothing when killed."""

import random
import time
from collections.abc import Sequence
from fractions import Fraction

from sqlalchemy import func, select

from discreet.maths.privacy.accounting import PureEpsilon
from discreet.perturb.ledger import Ledger
from discreet.programme.cube import signatures
from discreet.programme.programme import Programme
from discreet.serve.budget import _charged, account_of
from tests.cases import BOTH_DATABASES
from tests.forked import Forked
from tests.serve.working import USER, main, now

PLENTY = 100_000


def start(where: str, programme: Programme, name: int, budget: int, times: int) -> Forked:
    return Forked(main, where, str(programme.path), str(name), str(budget), str(times))


def go(processes: Sequence[Forked]) -> None:
    """Let them begin once all are ready."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.go()


def told(processes: Sequence[Forked]) -> list[list[str]]:
    ended = [process.ended() for process in processes]
    assert [code for code, _ in ended] == [0] * len(processes)
    return [said.splitlines() for _, said in ended]


def spent(where: str) -> Fraction:
    """What was spent, which is what was paid for; the chain of charges is whole."""
    ledger = Ledger.open(where, now)
    assert ledger.verify() == ()
    found = ledger.spent(account_of(USER))
    assert isinstance(found, PureEpsilon)
    with ledger.database.reading() as connection:
        paid = connection.execute(select(func.count()).select_from(_charged)).scalar_one()
    assert found.epsilon == paid
    return found.epsilon


@BOTH_DATABASES
def test_workers_that_start_at_once_charge_each_cross_tabulation_once(
    where: str, programme: Programme
) -> None:
    workers = [start(where, programme, number, PLENTY, 2) for number in range(2)]
    go(workers)
    said = told(workers)
    assert len({lines[0] for lines in said}) == 1, "one key for all"
    assert all(line.startswith("charged") for lines in said for line in lines[1:])
    assert spent(where) == len(set(signatures(programme.cubes)))


@BOTH_DATABASES
def test_workers_never_overspend_together(where: str, programme: Programme) -> None:
    every = len(set(signatures(programme.cubes)))
    budget = every // 2
    workers = [start(where, programme, number, budget, 1) for number in range(2)]
    go(workers)
    said = {line for lines in told(workers) for line in lines[1:]}
    paid = [cube for cube in programme.cubes if f"charged {cube.id}" in said]
    assert any(line.startswith("refused") for line in said)
    assert len(set(signatures(paid))) == spent(where) <= budget


@BOTH_DATABASES
def test_a_worker_that_is_killed_leaves_both_books_in_step(where: str, programme: Programme) -> None:
    moments = random.Random(3)
    for name in range(2):
        worker = start(where, programme, name, PLENTY, 1)
        go([worker])
        said = [worker.stdout.readline(), worker.stdout.readline()]
        time.sleep(moments.uniform(0, 0.05))
        worker.kill()
        said += worker.ended()[1].splitlines()
        answered = {line.split()[1] for line in said[1:] if len(line.split()) == 2}
        cubes = [cube for cube in programme.cubes if cube.id in answered]
        assert cubes
        assert spent(where) >= len(set(signatures(cubes))), "charged before it is told"
