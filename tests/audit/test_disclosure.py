"""Disclosures over a release: a weak protection leaves them true, a sound one does not, at the predicted rates."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit.disclosure import DisclosureRule, Disclosures, disclosures, judge
from discreet.audit.evidence import Published, PublishedTable, Truth, Universe
from discreet.errors import Mistakes
from discreet.io.serialize import to_json
from discreet.maths.attacks.disclosure import RowKind
from discreet.maths.noise.additive import discrete_laplace
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Code, codelist
from discreet.programme.cube import Cube
from discreet.programme.noise import NO_NEGATIVES
from tests.audit.known import known as known_noise
from tests.audit.made import Columns, Made, axis, cell_key, flat, made, nested, random_columns

TREES = [nested("GEO", 5, 12), flat("SEX", 2), flat("AGE", 12), flat("JOB", 8)]
CROSSES = [["GEO", "SEX", "AGE"], ["GEO", "AGE", "JOB"], ["SEX", "AGE", "JOB"]]
PERSONS = 10_000
RULE = DisclosureRule(areas=("GEO",))


def place_swapped(columns: Columns, share: float, seed: int) -> dict[str, NDArray[np.uint32]]:
    """A share of the persons have their places permuted among them."""
    generator = np.random.default_rng(seed)
    movers = generator.choice(PERSONS, int(share * PERSONS), replace=False)
    places = columns["GEO"].copy()
    places[movers] = places[generator.permutation(movers)]
    return {**columns, "GEO": places}


def release(V: float, D: int, swapped: float, seed: int = 1) -> Made:
    """A release by the cell key method, after swapping; its truth has both sides."""
    mechanism, known = cell_key(V, D)
    columns = random_columns(TREES, PERSONS, seed)
    before = made(TREES, CROSSES, columns, mechanism, known, seed)
    if not swapped:
        return before
    after = made(TREES, CROSSES, place_swapped(columns, swapped, seed), mechanism, known, seed)
    return Made(after.published, Truth(before.truth.original, after.truth.counted), columns)


def counts(made_: Made, column: str) -> NDArray[np.int64]:
    """The true counts of every cross-tabulation once, numbered alike on both sides."""
    tables = getattr(made_.truth, column)
    first = {"GEOxSEXxAGE": (), "GEOxAGExJOB": ("JOB",), "SEXxAGExJOB": ("SEX", "JOB")}
    found = []
    for table in made_.published.universes[0].tables:
        cells = np.zeros(table.cube.size, dtype=np.int64)
        cells[tables[table.id][0]] = tables[table.id][1]
        new = np.ones(table.cube.size, dtype=bool)
        for k, along in enumerate(table.cube.axes):
            if along.variable in first[table.id]:
                new &= table.cube.nodes(np.arange(table.cube.size), k) > 0
        found.append(cells[new])
    return np.concatenate(found)


def predicted(made_: Made) -> float:
    """Pr[original = 1 | published 1] from the law and the true counts before and after swapping."""
    law = made_.published.noise.law
    assert law is not None
    original, counted = counts(made_, "original"), counts(made_, "counted")
    shown = {int(count): law.row(int(count)).at(1) for count in np.unique(counted)}
    weight = np.vectorize(shown.get, otypes=[float])(counted)
    return float(weight[original == 1].sum() / weight.sum())


def within(share: float | None, expected: float, cells: int) -> bool:
    """Inside four standard errors; cells that share persons are not independent, hence twice the usual."""
    assert share is not None
    return abs(share - expected) < 8 * math.sqrt(expected * (1 - expected) / cells) + 1e-9


def test_with_hardly_any_noise_nearly_all_that_is_seen_is_true() -> None:
    weak = release(V=0.01, D=1, swapped=0)
    found = judge(weak.published, weak.truth, RULE)
    ones = found.total.ones
    assert ones.seen > 800
    assert ones.share_true is not None
    assert ones.share_true > 0.97
    assert within(ones.share_true, predicted(weak), ones.seen)
    for kind in (RowKind.INDIVIDUAL, RowKind.GROUP):
        tally = found.total.rows[kind]
        assert tally.seen > 20
        assert tally.share_true is not None
        assert tally.share_kept is not None
        assert tally.share_true > 0.97
        assert tally.share_kept > 0.95


def test_swapping_and_noise_make_a_one_doubtful_at_the_predicted_rate() -> None:
    sound = release(V=2, D=5, swapped=0.2)
    found = judge(sound.published, sound.truth, RULE)
    ones = found.total.ones
    assert ones.seen > 800
    assert ones.share_true is not None
    assert ones.share_true_counted is not None
    assert ones.share_true < 0.75
    assert ones.share_true < ones.share_true_counted  # the swap adds doubt to the noise's
    assert within(ones.share_true, predicted(sound), ones.seen)
    noise_alone = Made(sound.published, Truth(sound.truth.counted, sound.truth.counted), sound.columns)
    assert within(ones.share_true_counted, predicted(noise_alone), ones.seen)


def test_noise_hides_true_rows_and_shows_false_ones() -> None:
    weak, sound = release(0.01, 1, 0), release(2, 5, 0.2)
    shares = []
    for one in (weak, sound):
        rows = judge(one.published, one.truth, RULE).total.rows
        tallies = [rows[RowKind.INDIVIDUAL], rows[RowKind.GROUP]]
        shares.append(sum(t.true or 0 for t in tallies) / sum(t.seen for t in tallies))
    assert shares[1] < shares[0] - 0.1


def test_an_outsider_with_the_law_estimates_the_share_of_true_ones() -> None:
    noisy = release(V=2, D=5, swapped=0, seed=5)
    found = disclosures(noisy.published, RULE)
    judged = judge(noisy.published, noisy.truth, RULE)
    assert found.chances[0].value == 1
    assert found.chances[0].published == found.total.ones.seen
    assert judged.total.ones.share_true is not None
    assert abs(found.chances[0].chance - judged.total.ones.share_true) < 0.08


def test_an_outsider_sees_the_same_numbers_and_no_truth() -> None:
    one = release(2, 5, 0.2)
    seen, judged = disclosures(one.published, RULE), judge(one.published, one.truth, RULE)
    assert not seen.is_judged
    assert judged.is_judged
    assert seen.total.ones.true is None
    assert seen.total.ones.share_true is None
    for kind in RowKind:
        assert seen.total.rows[kind].seen == judged.total.rows[kind].seen
    assert {area.true_ones for area in seen.areas} == {None}


def test_every_way_of_adding_up_gives_the_whole() -> None:
    one = release(2, 5, 0.2)
    found = judge(one.published, one.truth, RULE)
    ways = (found.universes, found.cubes, {str(n): figures for n, figures in found.axes.items()})
    for way in ways:
        assert sum(figures.ones.seen for figures in way.values()) == found.total.ones.seen
        for kind in RowKind:
            assert sum(f.rows[kind].seen for f in way.values()) == found.total.rows[kind].seen
            assert sum(f.rows[kind].original or 0 for f in way.values()) == found.total.rows[kind].original
    assert (
        sum(f.rows[RowKind.GROUP].seen for f in found.attributes.values())
        == found.total.rows[RowKind.GROUP].seen
    )
    assert set(found.levels) == {"GEO:1", "GEO"}
    assert found.areas_looked_at == 65
    fine = [area for area in found.areas if "." in area.code]
    assert fine
    assert all((area.true_ones or 0) <= area.ones and (area.true_groups or 0) <= area.groups for area in fine)


def test_original_numbers_do_not_depend_on_the_noise() -> None:
    weak, sound = release(0.01, 1, 0), release(2, 5, 0.2)
    one, other = (judge(made_.published, made_.truth, RULE).total for made_ in (weak, sound))
    assert one.ones.original == other.ones.original == int((counts(weak, "original") == 1).sum())
    assert one.rows[RowKind.GROUP].original == other.rows[RowKind.GROUP].original


def test_named_disclosures_exist_and_are_the_plainest_true_ones() -> None:
    one = release(2, 5, 0.2)
    found = judge(one.published, one.truth, RULE)
    for some in (found.uniques, found.telling):
        assert len(some) == RULE.listed
        sizes = [len(named.cell) for named in some]
        assert sizes == sorted(sizes)
    tables = {table.id: table for table in one.published.universes[0].tables}
    for named in (*found.uniques, *found.telling):
        cube = tables[named.cube].cube
        nodes = [axis.position[named.cell.get(axis.variable, "_T")] for axis in cube.axes]
        flat_ = int(np.dot(nodes, cube.strides))
        shown = dict(zip(*(array.tolist() for array in tables[named.cube].load()), strict=True))
        true = dict(zip(*(array.tolist() for array in one.truth.original[named.cube]), strict=True))
        assert shown[flat_] == named.published
        if named.attribute:
            k = [axis.variable for axis in cube.axes].index(named.attribute)
            assert true[flat_] == true[flat_ - nodes[k] * cube.strides[k]]
        else:
            assert true[flat_] == named.published == 1


def test_an_area_whose_people_all_do_the_same_is_found() -> None:
    columns = dict(random_columns(TREES, PERSONS, 3))
    village = columns["GEO"] == 7
    columns["JOB"] = np.where(village, np.uint32(2), columns["JOB"])
    mechanism, known = cell_key(2, 5)
    one = made(TREES, CROSSES, columns, mechanism, known, 3)
    found = judge(one.published, one.truth, RULE)
    tally = found.whole_areas.rows[RowKind.GROUP]
    assert (tally.original, tally.true, tally.seen) == (1, 1, 1)  # the noise of both cells is the same
    assert found.telling[0].cell == {"GEO": "GEO0.7", "JOB": "JOB2"}
    assert found.telling[0].attribute == "JOB"


def test_a_summary_is_json() -> None:
    one = release(2, 5, 0.2)
    for found in (disclosures(one.published, RULE), judge(one.published, one.truth, RULE)):
        text = json.dumps(to_json(found), allow_nan=False)
        assert json.loads(text)["total"]["count_1"]["seen"] == found.total.ones.seen


def alone(tables: list[tuple[Cube, dict[int, int]]], known: Noise) -> Published:
    def shown(cube: Cube, values: dict[int, int]) -> PublishedTable:
        cells = np.array(sorted(values), dtype=np.int64)
        amounts = np.array([values[cell] for cell in sorted(values)], dtype=np.int64)
        return PublishedTable(cube, lambda: (cells, amounts))

    trees = {axis.variable: codelist(axis.variable, [Code(c, "", "") for c in axis.codes[1:]])
             for cube, _ in tables for axis in cube.axes}  # fmt: skip
    return Published(
        "alone", (Universe("persons", "", "", tuple(shown(*one) for one in tables), trees),), known
    )


SILENT = known_noise(same_noise=False, keeps_zeros=True)


def empty_of(found: Disclosures) -> bool:
    return not found.total.cells.seen and not any(tally.seen for tally in found.total.rows.values())


def test_empty_tables_and_no_tables() -> None:
    cube = Cube("x", "persons", (axis(flat("A", 2)),))
    assert empty_of(disclosures(alone([(cube, {})], SILENT)))
    none = disclosures(Published("nothing", (), SILENT))
    assert empty_of(none)
    json.dumps(to_json(none))
    nobody = Truth({"x": (np.empty(0, np.int64), np.empty(0, np.int64))}, {})
    assert judge(alone([(cube, {})], SILENT), Truth(nobody.original, nobody.original)).total.ones.true == 0


def test_perturbed_empty_cells_make_ones_mostly_false_and_leave_an_outsider_without_an_estimate() -> None:
    generator, law = np.random.default_rng(8), discrete_laplace(1)
    true = np.where(generator.random(20_000) < 0.8, 0, generator.geometric(0.2, 20_000))
    noisy = np.maximum(true + generator.choice(law.pmf.values, 20_000, p=law.pmf.p / law.pmf.p.sum()), 0)
    cube = Cube("x", "persons", (axis(flat("A", 20_000)),))
    known = known_noise(False, False, law.pmf.variance, None, law, publishing=NO_NEGATIVES)
    published = alone([(cube, sparse([200_000, *noisy.tolist()]))], known)
    counts = sparse([int(true.sum()), *true.tolist()])
    cells = np.array(list(counts)), np.array(list(counts.values()))
    found = judge(published, Truth({"x": cells}, {"x": cells}))
    share = float((true[noisy == 1] == 1).mean())
    assert share < 0.3
    assert found.total.ones.share_true == share
    assert found.chances == ()


def sparse(values: list[int]) -> dict[int, int]:
    return {cell: value for cell, value in enumerate(values) if value}


def test_a_single_axis_shows_whether_everybody_shares_a_code() -> None:
    cube = Cube("x", "persons", (axis(flat("A", 3)),))
    found = disclosures(alone([(cube, {0: 7, 2: 7})], SILENT))
    assert found.total.rows[RowKind.GROUP].seen == 1
    assert found.telling[0].cell == {"A": "A1"}
    assert found.chances == ()


def test_a_row_is_full_under_the_same_noise_only_where_the_group_agrees() -> None:
    cube = Cube("x", "persons", (axis(flat("A", 3)),))
    table = [(cube, {0: 9, 2: 7})]
    known = known_noise(same_noise=True, keeps_zeros=True)
    assert disclosures(alone(table, SILENT)).total.rows[RowKind.GROUP].seen == 1
    assert disclosures(alone(table, known)).total.rows[RowKind.GROUP].seen == 0


def test_a_cross_tabulation_of_several_tables_is_counted_once() -> None:
    small, large = (Cube(name, "persons", (axis(flat("A", 3)),)) for name in ("x", "y"))
    found = disclosures(alone([(small, {0: 9, 2: 1}), (large, {0: 9, 2: 1})], SILENT))
    assert found.total.ones.seen == 1
    assert set(found.cubes) == {"x"}


def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(Mistakes, match="from 2"):
        DisclosureRule(below=1)
    for share in (Fraction(1, 2), Fraction(1)):
        with pytest.raises(Mistakes, match="above one half"):
            DisclosureRule(share=share)
    with pytest.raises(Mistakes, match="at least 0"):
        DisclosureRule(listed=-1)
    one = release(2, 5, 0)
    lacking = Truth({}, {})
    with pytest.raises(Mistakes, match="is published, but not counted"):
        judge(one.published, lacking)
