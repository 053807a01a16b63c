"""Corrections between two releases: who is exposed under one secret, and what helps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.case import kept
from discreet.audit.corrections import (
    Averaged,
    Corrections,
    ExposedPerson,
    Relation,
    correction_verdict,
    corrections,
    hidden,
    judge_corrections,
)
from discreet.audit.evidence import Published, PublishedTable, Truth, Universe, values_at
from discreet.io.serialize import json_text
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Guarantee, Noise
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Cube
from discreet.programme.noise import Protects
from tests.audit.made import Columns, axis, cell_key, flat, nested, random_columns
from tests.audit.subsets import counted, occupied, record_keys
from tests.cases import few

SIZES = {"SEX": 2, "AGE": 9, "LMS": 5, "CAS": 6, "EDU": 7, "POB": 6, "COC": 5, "TEN": 4}
TREES = [nested("GEO", 5, 12), *(flat(name, size) for name, size in SIZES.items())]  # nine attributes
CROSSES = [["GEO", "SEX", "AGE"], *(["GEO", "SEX", name] for name in list(SIZES)[2:])]
PERSONS = 4_000
V, D = 2.0, 5


def release(
    columns: Columns,
    keys: np.ndarray[tuple[int], np.dtype[np.uint32]],
    noise: tuple[Mechanism, Noise],
    trees: Sequence[Codelist] = TREES,
    crosses: Sequence[Sequence[str]] = CROSSES,
) -> tuple[Published, Truth]:
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(names), "persons", tuple(axes[name] for name in names)) for names in crosses]
    tables = counted(cubes, columns, keys)
    protected = [noise[0].perturb(table) for table in tables]
    shown = tuple(PublishedTable(one.cube, lambda one=one: (one.cells, one.values)) for one in protected)  # type: ignore[misc]
    truth = {table.cube.id: occupied(table) for table in tables}
    records = {table.cube.id: kept(table)[1] for table in tables}
    whole = Universe("persons", "", "", shown, {tree.name: tree for tree in trees})
    return Published("before", (whole,), noise[1]), Truth(truth, truth, records)


def some(columns: Columns, persons: slice) -> Columns:
    return {name: column[persons] for name, column in columns.items()}


def described(columns: Columns, person: int) -> dict[str, str]:
    return {tree.name: tree.leaf_codes[columns[tree.name][person]] for tree in TREES}


@pytest.mark.parametrize("leaves", few([False, True], 0))
def test_one_newcomer_or_leaver_gives_nine_attributes_away(leaves: bool) -> None:
    noise = cell_key(V, D)
    complete = 0
    for seed in range(8):
        columns, keys = random_columns(TREES, PERSONS, seed), record_keys(PERSONS, seed)
        without = release(some(columns, slice(-1)), keys[:-1], noise)
        pair = [without, release(columns, keys, noise)]
        (first, old), (second, new) = reversed(pair) if leaves else pair
        found = corrections(first, second, same_secret=True)
        assert (found.relation, found.exposed, found.tables) == (Relation.SAME_NOISE, 1, len(CROSSES))
        (person,) = found.people
        truth = described(columns, -1)
        assert all(truth[name].startswith(code) for name, code in person.attributes.items())
        complete += person.attributes == truth
        judged = judge_corrections(found, first, second, (old, new))
        assert judged is not None
        assert (judged.listed, judged.right) == (1, 1)
        assert judged.seen == found.changed <= judged.changed
        assert not correction_verdict(found, None).passed
        assert correction_verdict(found, 1).passed
        assert json.loads(json_text(found))["people"][0]["attributes"] == person.attributes
    assert complete >= 7


def test_cells_of_newcomers_change_at_the_predicted_rate() -> None:
    noise, columns, keys = cell_key(V, D), random_columns(TREES, PERSONS, 5), record_keys(PERSONS, 5)
    (first, old), (second, new) = (
        release(some(columns, slice(-60)), keys[:-60], noise),
        release(columns, keys, noise),
    )
    judged = judge_corrections(corrections(first, second, same_secret=True), first, second, (old, new))
    assert judged is not None
    # cells with one newcomer dominate; a cell that was empty or tiny is hidden less often
    assert judged.seen / judged.changed == pytest.approx(1 - hidden(second.noise), abs=0.05)


def test_a_corrected_attribute_exposes_the_others() -> None:
    noise, right = cell_key(V, D), 0
    for seed in range(8):
        columns, keys = random_columns(TREES, PERSONS, seed), record_keys(PERSONS, seed)
        corrected = {name: column.copy() for name, column in columns.items()}
        corrected["SEX"][-1] = 1 - corrected["SEX"][-1]
        (first, old), (second, new) = release(columns, keys, noise), release(corrected, keys, noise)
        found = corrections(first, second, same_secret=True)
        judged = judge_corrections(found, first, second, (old, new))
        assert judged is not None
        assert 1 <= found.exposed <= 2  # as they were, and as they are
        truth = described(columns, -1) | {"SEX": ""}
        for person in found.people:
            others = {name: code for name, code in person.attributes.items() if name != "SEX"}
            right += all(truth[name].startswith(code) for name, code in others.items()) and len(others) >= 5
    assert right >= 8


def test_a_newcomer_who_changes_a_total_only_is_seen_and_not_exposed() -> None:
    noise, trees = cell_key(V, D), [flat("SEX", 2)]
    totals = 0
    for seed in range(200):
        columns, keys = random_columns(trees, 21, seed), record_keys(21, seed)
        releases = [(some(columns, slice(-1)), keys[:-1]), (columns, keys)]
        first, second = (release(*one, noise, trees, [["SEX"]])[0] for one in releases)
        found = corrections(first, second, same_secret=True)
        assert not found.exposed
        before, after = (
            dict(zip(*map(np.ndarray.tolist, side.universes[0].tables[0].load()), strict=True))
            for side in (first, second)
        )
        changed = {cell for cell in before | after if before.get(cell) != after.get(cell)}
        assert bool(found.changed) == bool(changed)
        totals += changed == {0}
    assert totals  # the noise of the newcomer's sex is sometimes one less


def test_a_release_that_is_reproduced_reveals_nothing() -> None:
    noise, columns, keys = cell_key(V, D), random_columns(TREES, PERSONS, 1), record_keys(PERSONS, 1)
    found = corrections(release(columns, keys, noise)[0], release(columns, keys, noise)[0], same_secret=True)
    assert (found.changed, found.exposed, found.reveals) == (0, 0, False)


def test_another_secret_hides_the_newcomer_and_allows_the_average_of_two() -> None:
    noise, by_one, by_both = cell_key(V, D), [], []
    for seed in range(4):
        columns = random_columns(TREES, 3 * PERSONS, seed)
        first, truth = release(columns, record_keys(3 * PERSONS, 2 * seed), noise)
        second, _ = release(columns, record_keys(3 * PERSONS, 2 * seed + 1), noise)
        found = corrections(first, second, same_secret=False)
        assert (found.relation, found.exposed, found.reveals) == (Relation.INDEPENDENT, 0, True)
        by_one += _right(first, None, truth)
        by_both += _right(first, second, truth)
    one, both = float(np.mean(by_one)), float(np.mean(by_both))
    assert len(by_one) > 3_000
    assert found.averaged.by_one == pytest.approx(one, abs=0.03)
    assert found.averaged.by_both == pytest.approx(both, abs=0.03)
    assert both > one + 0.05
    assert "averaging the two values" in "".join(found.sentences())


def _right(first: Published, second: Published | None, truth: Truth) -> list[float]:
    """Whether one value, or the mean of two, is a large count, each group once; a mean between two counts by half."""
    rates: dict[int, float] = {}
    for k, table in enumerate(first.universes[0].tables):
        cells, true = truth.counted[table.id]
        shown = values_at(table.load(), cells)
        other = shown if second is None else values_at(second.universes[0].tables[k].load(), cells)
        error = np.abs(shown + other - 2 * true)
        right = (error == 0) + 0.5 * (error == 1)
        large = true >= 20
        rates |= zip(truth.records[table.id][large].tolist(), right[large].tolist(), strict=True)
    return list(rates.values())


@pytest.mark.parametrize(("newcomers", "areas"), [(10, 150), (100, 150), (900, 150)])
def test_in_a_batch_newcomers_are_exposed_at_the_predicted_rate(newcomers: int, areas: int) -> None:
    """Tables of areas by one attribute of k codes: exposed is who stands in the only changed cell of an area.

    A cell has Poisson(m / (G k)) newcomers and changes with c = (1 - exp(-m / (G k))) (1 - q); G k c (1 - c)^(k - 1)
    areas have exactly one.
    """
    codes, noise = 8, cell_key(V, D)
    trees = [flat("GEO", areas), flat("EDU", codes)]
    found = []
    for seed in range(4):
        generator, persons = np.random.default_rng(seed), 30_000
        columns = {
            "GEO": generator.integers(0, areas, persons, dtype=np.uint32),
            "EDU": generator.integers(0, codes, persons, dtype=np.uint32),
        }
        keys = record_keys(persons, seed)
        first = release(some(columns, slice(-newcomers)), keys[:-newcomers], noise, trees, [["GEO", "EDU"]])[
            0
        ]
        second = release(columns, keys, noise, trees, [["GEO", "EDU"]])[0]
        found.append(corrections(first, second, same_secret=True).exposed)
    changed = (1 - np.exp(-newcomers / areas / codes)) * (1 - hidden(noise[1]))
    expected = areas * codes * changed * (1 - changed) ** (codes - 1)
    assert np.mean(found) == pytest.approx(expected, abs=3 * np.sqrt(max(expected, 1) / 4) + 0.06 * expected)
    if newcomers >= 900:
        assert np.mean(found) < 0.05 * newcomers


GUARANTEE = Guarantee(neighbours=Neighbours.ADD_REMOVE, unit=Protects.PERSON, epsilon=Fraction(1))


def test_guarantees_add_up() -> None:
    columns, keys = random_columns(TREES, 500, 1), record_keys(500, 1)
    first, _ = release(columns, keys, cell_key(V, D))
    private = [replace(first, noise=replace(first.noise, guarantee=one)) for one in _guarantees()]
    changed, _ = release(some(columns, slice(-1)), keys[:-1], cell_key(V, D))
    second = replace(changed, noise=private[0].noise)
    found = corrections(private[0], second, same_secret=True)
    assert (found.relation, found.exposed) == (Relation.GUARANTEED, 0)
    assert found.loss is not None
    assert found.loss.epsilon == 2.0
    assert "at most epsilon = 2," in "".join(found.sentences())
    assert not corrections(private[0], private[0], same_secret=True).reveals
    zero_concentrated = replace(second, noise=private[1].noise)
    loss = corrections(private[1], zero_concentrated, same_secret=True).loss
    assert loss is not None
    assert loss.rho == 0.5
    mixed = corrections(private[1], second, same_secret=True)
    assert mixed.loss is None
    assert "no sum is stated" in "".join(mixed.sentences())


def _guarantees() -> list[Guarantee]:
    return [GUARANTEE, replace(GUARANTEE, epsilon=None, rho=Fraction(1, 4))]


def test_one_secret_with_another_p_table_is_not_taken_for_people_who_moved() -> None:
    columns, keys = random_columns(TREES, 500, 1), record_keys(500, 1)
    first, _ = release(columns, keys, cell_key(V, D))
    second, _ = release(columns, keys, cell_key(1.0, D))
    found = corrections(first, second, same_secret=True, same_ptable=False)
    assert (found.relation, found.exposed, found.people) == (Relation.RELATED, 0, ())
    assert "more than independent ones" in "".join(found.sentences())
    assert not correction_verdict(found, 100).passed


def test_a_profile_of_two_people_is_not_right() -> None:
    noise = cell_key(V, D)
    columns, keys = random_columns(TREES, PERSONS, 2), record_keys(PERSONS, 2)
    (first, old), (second, new) = (
        release(some(columns, slice(-2)), keys[:-2], noise),
        release(columns, keys, noise),
    )
    found = corrections(first, second, same_secret=True)
    mixed = described(columns, -1) | {name: described(columns, -2)[name] for name in ("EDU", "LMS")}
    assert mixed not in (described(columns, -1), described(columns, -2))
    wrong = ExposedPerson(unit="persons", attributes=mixed, known=("GEO",), cells=0)
    judged = judge_corrections(replace(found, people=(wrong,)), first, second, (old, new))
    assert judged is not None
    assert (judged.listed, judged.right) == (1, 0)


def test_sentences_name_cells_tables_and_persons() -> None:
    found = Corrections(
        release="r", relation=Relation.SAME_NOISE, compared=1000, changed=30, tables=1, exposed=1, attributes=7,
        seeds=5, examined=5, people=(), averaged=Averaged(), loss=None,
    )  # fmt: skip
    text = "; ".join(found.sentences())
    assert "30 of 1,000 cells in 1 table changed" in text
    assert "1 person exposed: who knows up to 2 attributes of one learns up to 7 more" in text
    assert "about 3 persons" in "; ".join(replace(found, exposed=3, examined=2).sentences())
    assert "no person is exposed" in "; ".join(replace(found, exposed=0).sentences())
