from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit.differencing import difference_releases, judge_releases
from discreet.audit.evidence import Published, Truth
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from tests.audit.made import Columns, cell_key, flat, nested, random_columns
from tests.audit.subsets import record_keys, universe

TREES = [nested("GEO", 4, 20), flat("SEX", 2), flat("AGE", 5)]
CROSSES = [["GEO", "SEX"], ["GEO", "SEX", "AGE"]]
PERSONS = 8_000


def release(
    columns: Columns, keys: NDArray[np.uint32], mechanism: Mechanism, known: Noise, persons: int
) -> tuple[Published, Truth]:
    chosen = {name: column[:persons] for name, column in columns.items()}
    whole, truth = universe(TREES, CROSSES, chosen, keys[:persons], mechanism)
    return Published("made", (whole,), known), Truth(truth, truth)


def test_with_the_same_keys_one_person_who_came_is_seen_in_every_cell_that_changed() -> None:
    columns, keys = random_columns(TREES, PERSONS, 1), record_keys(PERSONS, 1)
    mechanism, known = cell_key(5.0, 10)
    first, old = release(columns, keys, mechanism, known, PERSONS - 1)
    second, new = release(columns, keys, mechanism, known, PERSONS)
    seen = difference_releases(first, second, same_keys=True)
    # the newcomer stands in one cell of each of the 12 cross-tabulations, whose noise is new or the same by chance
    assert seen.participants == seen.changed
    assert 8 <= seen.changed <= 12
    newcomer = {name: f"{name}{column[-1]}" for name, column in columns.items() if name != "GEO"}
    for one in seen.examples:
        assert all(newcomer.get(variable, code) == code for variable, code in one.cell.items())
    found = judge_releases(first, second, (old, new))
    assert (found.moved, found.unfounded) == (12, 0)
    assert found.apparent_right == found.revealed <= found.apparent <= seen.small
    assert found.seen == seen.changed


def test_with_other_keys_the_same_change_drowns_in_noise() -> None:
    columns = random_columns(TREES, PERSONS, 1)
    mechanism, known = cell_key(5.0, 10)
    first, old = release(columns, record_keys(PERSONS, 1), mechanism, known, PERSONS - 1)
    second, new = release(columns, record_keys(PERSONS, 2), mechanism, known, PERSONS)
    seen = difference_releases(first, second, same_keys=False)
    assert seen.participants is None
    assert seen.changed > 500
    found = judge_releases(first, second, (old, new))
    assert found.unfounded / found.still > 0.8


@pytest.mark.parametrize(("V", "D", "low", "high"), [(0.05, 1, 0.85, 1.0), (5.0, 10, 0.05, 0.2)])
def test_changes_are_revealed_at_the_predicted_rate(V: float, D: int, low: float, high: float) -> None:
    columns, keys = random_columns(TREES, PERSONS, 3), record_keys(PERSONS, 3)
    mechanism, known = cell_key(V, D)
    first, old = release(columns, keys, mechanism, known, PERSONS - 400)
    second, new = release(columns, keys, mechanism, known, PERSONS)
    found = judge_releases(first, second, (old, new))
    assert found.expected is not None
    assert found.moved > 300
    rate = found.expected / found.moved
    assert low < found.revealed / found.moved < high
    assert abs(found.revealed - found.expected) < 4 * np.sqrt(found.moved * rate * (1 - rate))
    assert found.unfounded == 0
    assert json.loads(json_text(found))
    assert json.loads(json_text(difference_releases(first, second, same_keys=True)))


def test_each_release_has_its_own_noise() -> None:
    columns, keys = random_columns(TREES, PERSONS, 3), record_keys(PERSONS, 3)
    first, old = release(columns, keys, *cell_key(0.05, 1), PERSONS - 400)
    second, new = release(columns, record_keys(PERSONS, 4), *cell_key(5.0, 10), PERSONS)
    found = judge_releases(first, second, (old, new))
    assert found.expected is not None
    rate = found.expected / found.moved
    assert abs(found.revealed - found.expected) < 4 * np.sqrt(found.moved * rate * (1 - rate))
    assert found.apparent_right < found.apparent / 2


def test_cross_tabulations_with_other_codes_are_not_compared() -> None:
    columns, keys = random_columns(TREES, 500, 4), record_keys(500, 4)
    mechanism, known = cell_key(2.0, 5)
    first, _ = release(columns, keys, mechanism, known, 500)
    trees = [TREES[0], TREES[1], flat("AGE", 6)]
    other, _ = universe(trees, CROSSES, columns, keys, mechanism)
    seen = difference_releases(first, Published("later", (other,), known), same_keys=True)
    assert (seen.crosstabs, seen.changed) == (6, 0)
    assert len(seen.skipped) == 6
    assert all("AGE:1" in name for name in seen.skipped)


def test_releases_without_a_common_table_are_refused() -> None:
    columns, keys = random_columns(TREES, 100, 5), record_keys(100, 5)
    mechanism, known = cell_key(2.0, 5)
    first, _ = release(columns, keys, mechanism, known, 100)
    other, _ = universe(TREES, CROSSES, columns, keys, mechanism, 'SEX in ("SEX1")')
    with pytest.raises(Mistakes, match="no cross-tabulation in common"):
        difference_releases(first, Published("other", (other,), known), same_keys=True)
