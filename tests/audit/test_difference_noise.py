from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.differencing import ExactNoise, MeanRate, NormalNoise, OutsiderNoise
from discreet.maths.noise.additive import discrete_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from discreet.programme.cube import Signature
from discreet.programme.noise import NO_NEGATIVES
from tests.audit.known import known as known_noise

ONE = Signature("persons", "", "", (("SEX", 1),))
TWO = Signature("persons", "", "", (("AGE", 1),))


def exact(change: PublishedLaw) -> ExactNoise:
    return ExactNoise(change, change)


@pytest.mark.parametrize(
    ("law", "published"),
    [
        (PTableLaw(solve(PTableParameters(5, 2.0, 1))), NO_NEGATIVES),
        (discrete_laplace("0.7"), Publishing(Negatives.KEEP)),
        (discrete_laplace("0.7"), Publishing(Negatives.ZERO, 1, 3)),
        (uniform(4), Publishing(Negatives.ZERO, 5, 0)),
        (hellinger(3), NO_NEGATIVES),
    ],
)
def test_counts_in_one_class_have_one_law_of_change(law: PTableLaw, published: Publishing) -> None:
    one = PublishedLaw(law, published, keeps_zeros=True)
    for count in (1, 2, 3, 7, 12, 40, 200):
        alike = one.alike(count)
        change, plain = one.row(alike).shifted(-alike), one.row(count).shifted(-count)
        for value in range(-60, 61):
            assert change.at(value) == pytest.approx(plain.at(value), abs=1e-12)


def test_noise_that_follows_the_count_is_told_from_its_rows() -> None:
    law = PTableLaw(solve(PTableParameters(5, 2.0)))
    rows = [law.row(1).shifted(-1), law.row(100).shifted(-100)]
    wanted = sum(rows[0].at(v) * rows[1].at(v) for v in range(-5, 6))
    noise = exact(PublishedLaw(law, keeps_zeros=True))
    assert noise.right([1], [100]) == pytest.approx(wanted, abs=1e-12)
    assert noise.right([0, 0], []) == pytest.approx(1.0)


def test_clipped_and_rounded_noise_is_the_published_change() -> None:
    clipped = PublishedLaw(uniform(2), Publishing(Negatives.ZERO)).row(1).shifted(-1)
    assert [clipped.at(v) for v in (-1, 0, 1, 2)] == pytest.approx([0.4, 0.2, 0.2, 0.2])
    rounded = PublishedLaw(uniform(2), Publishing(Negatives.ZERO, 5)).row(4).shifted(-4)
    assert rounded.at(1) == pytest.approx(0.8)  # 3, 4, 5, 6 are published as 5
    assert rounded.at(-4) == pytest.approx(0.2)


def test_a_variance_stands_for_normal_noise_of_the_cells_that_are_not_empty() -> None:
    assert NormalNoise(2.0).right([5, 0], [3]) == pytest.approx(0.1974, abs=1e-4)
    assert NormalNoise(2.0).right([0], []) == 1.0


def test_an_outsider_knows_what_was_told() -> None:
    assert OutsiderNoise(known_noise(True, True)).of(ONE, TWO) is None
    assert isinstance(OutsiderNoise(known_noise(True, True, 2.0)).of(ONE, TWO), NormalNoise)
    laws = {str(TWO): uniform(1)}
    book = OutsiderNoise(
        known_noise(False, False, law=uniform(3), laws=laws, publishing=Publishing(Negatives.KEEP))
    )
    noise = book.of(ONE, TWO)
    assert noise is not None
    assert noise.right([10], [10]) == pytest.approx(1 / 7)
    assert book.of(ONE, TWO) is noise


def test_a_mean_rate_needs_to_know_the_noise_of_all() -> None:
    rate, cells = MeanRate(), lambda at: (np.array([10 + at]), np.array([10]))
    rate.add(None, 0, cells)
    assert rate.expected == 0.0
    rate.add(exact(PublishedLaw(uniform(2), Publishing(Negatives.KEEP), keeps_zeros=True)), 5000, cells)
    assert rate.expected == pytest.approx(1000)
    rate.add(None, 1, cells)
    assert rate.expected is None
