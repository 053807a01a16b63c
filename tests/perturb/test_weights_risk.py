"""How often the best guess of a count is right from count and weighted sum: by the law, its forerunner and another."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.weights import reach_of

LARGEST, HEAVIEST, DRAWS = 12, 5, 1500
V, D = 2.0, 5
REACH = reach_of(V)

Floats = NDArray[np.float64]
Cells = list[Floats]  # by count: rows of sum, largest weight and probability


def exact_mean(count: int, n: int, total: Floats, heaviest: Floats) -> tuple[Floats, Floats]:
    return count * total / n, np.full_like(total, 0.05)


def chosen(count: int, n: int, total: Floats, heaviest: Floats) -> tuple[Floats, Floats]:
    core = count * total / n
    return core, np.minimum(REACH * heaviest, core)


def independent(count: int, n: int, total: Floats, heaviest: Floats) -> tuple[Floats, Floats]:
    """Of the same variance as the chosen law, for equal weights."""
    return total, np.sqrt(2) * REACH * heaviest


Law = Callable[[int, int, Floats, Floats], tuple[Floats, Floats]]
LAWS: dict[str, Law] = {"exact mean": exact_mean, "chosen": chosen, "independent": independent}


@dataclass(frozen=True)
class Setting:
    counts: Floats  # [n, published]: probability

    def guess(self, law: Law, count: int, published: float, known: Cells) -> int:
        """The most probable count; sums below zero are published as zero, with what would be below."""
        belief = np.zeros(LARGEST + 1)
        for n in range(1, LARGEST + 1):
            total, heaviest, p = known[n]
            centre, room = law(count, n, total, heaviest)
            if published > 0:
                density = (np.abs(centre - published) <= room * (1 + 1e-9)) / (2 * room)
            else:
                density = np.clip((room - centre) / (2 * room), 0, 1)
            belief[n] = self.counts[n, count] * float(p @ density)
        return int(belief.argmax())


def published_counts() -> Floats:
    law = solve(PTableParameters(D, V))
    found = np.zeros((LARGEST + 1, LARGEST + D + 1))
    for n in range(1, LARGEST + 1):
        row = min(n, law.last_row)
        for change, p in zip(law.changes(row).tolist(), law.probabilities[row], strict=True):
            found[n, n + change] += p
    return found


def all_sums() -> Cells:
    """The law of sum and largest of n weights that are uniform on 1 to HEAVIEST."""
    cells = [np.zeros((3, 0))]
    for n in range(1, LARGEST + 1):
        below = np.zeros(n * HEAVIEST + 1)
        parts = []
        for largest in range(1, HEAVIEST + 1):
            up_to = np.zeros(n * HEAVIEST + 1)
            up_to[0] = 1
            for _ in range(n):
                up_to = sum(np.roll(up_to, w) for w in range(1, largest + 1)) / HEAVIEST  # type: ignore[assignment]
            total = np.flatnonzero(up_to - below > 1e-15)
            parts.append(np.stack([total, np.full(len(total), largest), (up_to - below)[total]]))
            below = up_to
        cells.append(np.concatenate(parts, axis=1))
    return cells


@pytest.fixture(scope="module")
def success() -> dict[tuple[str, str], float]:
    """What is known of the weights, law -> share of right guesses; all with the same draws."""
    draw = np.random.default_rng(1)
    setting, uniform = Setting(published_counts()), all_sums()
    ones = [np.zeros((3, 0)), *(np.array([[n], [1.0], [1.0]]) for n in range(1, LARGEST + 1))]
    right: dict[tuple[str, str], float] = {}

    def note(known: str, law: str, is_right: bool) -> None:
        right[known, law] = right.get((known, law), 0.0) + is_right / DRAWS

    for _ in range(DRAWS):
        n = int(draw.integers(1, LARGEST + 1))
        weights = draw.integers(1, HEAVIEST + 1, n).astype(float)
        count = int(draw.choice(LARGEST + D + 1, p=setting.counts[n] / setting.counts[n].sum()))
        u = draw.uniform(-1, 1)
        blind = int(setting.counts[:, count].argmax())
        note("", "count only", blind == n)
        total = weights.sum()
        equal = [np.zeros((3, 0)), *(np.array([[total], [total / k], [1.0]]) for k in range(1, LARGEST + 1))]
        for known, (sum_, heaviest), cells in (
            ("whole", (total, weights.max()), uniform),
            ("constant", (float(n), 1.0), ones),
            ("sum", (total, total / n), equal),
        ):
            for name, law in LAWS.items():
                centre, room = law(count, n, np.array([sum_]), np.array([heaviest]))
                value = round(centre[0], 1) if law is exact_mean else max(0.0, centre[0] + u * room[0])
                is_right = (setting.guess(law, count, value, cells) if count else blind) == n
                note(known, name, is_right)
    return right


def test_whole_weights_add_nothing_to_the_count_unless_their_mean_is_exact(
    success: dict[tuple[str, str], float],
) -> None:
    alone = success["", "count only"]
    assert alone == pytest.approx(0.349, abs=0.04)
    assert success["whole", "exact mean"] == pytest.approx(0.758, abs=0.04)
    assert success["whole", "chosen"] == pytest.approx(alone, abs=0.015)


def test_a_constant_weight_gives_a_second_look_only_where_noise_is_independent(
    success: dict[tuple[str, str], float],
) -> None:
    alone = success["", "count only"]
    assert success["constant", "chosen"] == pytest.approx(alone, abs=1e-9)
    assert success["constant", "independent"] == pytest.approx(0.439, abs=0.04)


def test_a_known_sum_shows_part_of_the_noise(success: dict[tuple[str, str], float]) -> None:
    assert success["sum", "exact mean"] == pytest.approx(0.95, abs=0.04)
    assert success["sum", "chosen"] == pytest.approx(0.496, abs=0.04)
    assert success["sum", "independent"] == pytest.approx(0.41, abs=0.04)
