"""The gap attack on releases: plain sums are guessed at the predicted rate, permuted keys as independent noise."""

from functools import cache

import numpy as np
import pytest

from discreet.audit.key_gaps import KeyGaps, judge, key_gaps
from discreet.errors import Mistakes
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import no_permutation, secret_permutation
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.programme.codelist import Code, Codelist, codelist
from tests.audit.known import known as known_noise
from tests.audit.made import Made, made, random_columns

SECRET = bytes(range(32))
TABLE = solve(PTableParameters(6, 3.0))
LOOKUPS = {
    "plain": build(TABLE, Order.PLAIN),
    "shuffled": build(TABLE, Order.SHUFFLED, SECRET),
    "permuted": build(TABLE, Order.PLAIN),
}


def halves(name: str, depth: int) -> Codelist:
    """A tree in which every code has two parts."""
    rows = [
        Code(f"{name}{level}.{k}", f"{name}{level - 1}.{k // 2}" if level > 1 else "", "")
        for level in range(1, depth + 1)
        for k in range(2**level)
    ]
    return codelist(name, rows)


@cache
def release(kind: str) -> Made:
    trees = [halves("A", 6), halves("B", 6), halves("C", 1)]
    columns = random_columns(trees, 400_000, 5)
    permutation = secret_permutation(SECRET) if kind == "permuted" else no_permutation()
    known = known_noise(True, True, 3.0, 6, PTableLaw(TABLE))
    return made(trees, [("A", "B", "C")], columns, CellKeyMechanism(LOOKUPS[kind], permutation), known, 9)


def attacked(kind: str) -> KeyGaps:
    return key_gaps(release(kind).published, LOOKUPS[kind])


def off(right: int, tuples: int, chance: float) -> float:
    return float((right - tuples * chance) / np.sqrt(tuples * chance * (1 - chance)))


@pytest.mark.parametrize("kind", ["plain", "shuffled"])
def test_plain_sums_are_guessed_at_the_predicted_rate_and_seen_in_the_gaps(kind: str) -> None:
    found = attacked(kind)
    seen, judged = found.findings(), judge(found, release(kind).truth, "plain")
    assert seen.tuples == judged.tuples > 5000
    assert seen.shows_sums
    assert seen.plain_sums is not None
    assert judged.plain_sums is not None
    assert seen.chance == seen.plain_sums
    assert judged.expected == pytest.approx(seen.plain_sums * seen.tuples)
    # tuples share cells, so that their guesses are not quite independent
    assert abs(off(judged.plain_sums, judged.tuples, seen.plain_sums)) < 6
    assert off(judged.plain_sums, judged.tuples, seen.independent) > 3
    assert abs(off(judged.unaided, judged.tuples, seen.unaided)) < 6


def test_permuted_keys_reach_the_baseline_only() -> None:
    found = attacked("permuted")
    seen, judged = found.findings(), judge(found, release("permuted").truth, "permuted")
    assert seen.shows_sums is False
    assert seen.chance == seen.independent
    assert judged.expected == pytest.approx(seen.independent * seen.tuples)
    assert judged.plain_sums is not None
    assert abs(off(judged.independent, judged.tuples, seen.independent)) < 6
    assert off(judged.plain_sums, judged.tuples, seen.independent) < 3
    assert judged.share < seen.plain_sums if seen.plain_sums else False


def test_without_the_p_table_or_without_cell_keys_it_cannot_run() -> None:
    seen = release("permuted").published
    with pytest.raises(Mistakes, match="not public"):
        key_gaps(type(seen)(seen.name, seen.universes, known_noise(True, True, 3.0, 6, None)))
    with pytest.raises(Mistakes, match="without cell keys"):
        key_gaps(type(seen)(seen.name, seen.universes, known_noise(False, False, 3.0, 6, PTableLaw(TABLE))))


def test_small_counts_leave_nothing_to_attack() -> None:
    trees = [halves("A", 5)]
    known = known_noise(True, True, 3.0, 6, PTableLaw(TABLE))
    noise = CellKeyMechanism(LOOKUPS["plain"], no_permutation())
    few = made(trees, [("A",)], random_columns(trees, 15, 1), noise, known, 1)
    with pytest.raises(Mistakes, match="no total has parts"):
        key_gaps(few.published)
