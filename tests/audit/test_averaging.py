from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.audit.averaging import Averaging, AveragingLimits, Estimates, Realised, average, judge
from discreet.audit.evidence import Cells, Published, PublishedTable, Truth, Universe
from discreet.io.serialize import json_text, to_json
from discreet.maths.attacks.averaging import Method
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube
from tests.audit.known import known as known_noise
from tests.audit.made import Made, axis, cell_key, flat, made, nested, random_columns
from tests.cases import few

KEPT = Publishing(Negatives.KEEP)
NAMES = ["A", "B", "C", "D", "E", "F"]
TRIPLES = [list(names) for names in combinations(NAMES, 3)]


def release(
    cubes: Sequence[tuple[Cube, Cells]], trees: Sequence[Codelist], noise: Noise, base: str = ""
) -> Published:
    tables = tuple(PublishedTable(cube, lambda cells=cells: cells) for cube, cells in cubes)  # type: ignore[misc]
    return Published(
        "x", (Universe("persons", base, "", tables, {tree.name: tree for tree in trees}),), noise
    )


def dense(values: object) -> Cells:
    flat_values = np.asarray(values, dtype=np.int64).ravel()
    here = np.flatnonzero(flat_values)
    return here, flat_values[here]


def table(found: Averaging, *levels: tuple[str, int]) -> Estimates:
    return next(one for one in found.tables if one.signature.levels == levels)


def attacked(world: Made) -> tuple[Averaging, Realised]:
    found = average(world.published)
    return found, judge(found, world.truth)


def calibrated(low: float, found: Averaging, real: Realised, method: Method = Method.WEIGHTED) -> bool:
    """Within ``low`` of the prediction as a share of targets, and four standard errors of correlated cells."""
    expected = found.expected(method)
    error = (
        4 * 2 * np.sqrt(expected * (1 - expected / found.targets))
    )  # cells of one table share noise: twice
    return bool(abs(real.hit[method] - expected) < low * found.targets + error)


def test_the_table_of_footnote_18_by_hand() -> None:
    """SEX x AGE of two categories each, 9 cells: t = 4, k/t^2 = 9/16; margins 3/4; the cells inside 1."""
    sex, age = flat("SEX", 2), flat("AGE", 2)
    cells = dense([[101, 60, 43], [55, 31, 22], [47, 26, 20]])
    noise = known_noise(False, True, 2.0)
    found = average(release([(Cube("1", "persons", (axis(sex), axis(age))), cells)], [sex, age], noise))
    total, inner = table(found).averages, table(found, ("AGE", 1), ("SEX", 1)).averages
    assert (total.t[Method.MEAN, 0], total.k[Method.MEAN, 0]) == (4, 9)
    assert total.variances[Method.MEAN, 0] == pytest.approx(2 * 9 / 16)
    assert total.estimates[Method.MEAN, 0] == pytest.approx((101 + 103 + 102 + 99) / 4)
    weights = np.array([1, 1 / 2, 1 / 2, 1 / 4])
    assert total.estimates[Method.WEIGHTED, 0] == pytest.approx(weights @ [101, 103, 102, 99] / weights.sum())
    assert total.variances[Method.WEIGHTED, 0] == pytest.approx(2 / weights.sum())
    margin = table(found, ("SEX", 1)).averages
    assert margin.variances[Method.MEAN] == pytest.approx([2 * 3 / 4] * 2)
    assert margin.estimates[Method.MEAN] == pytest.approx([(55 + 53) / 2, (47 + 46) / 2])
    assert (inner.t == 1).all()
    assert (inner.variances == 2).all()
    assert Fraction(int(total.k[0, 0]), int(total.t[0, 0]) ** 2) == Fraction(9, 16)


def test_the_riskiest_prefix_is_the_lowest_of_all() -> None:
    """The total itself (1), by SEX (2) and by 20 ages (20): k/t^2 is 1, 3/4, 23/9."""
    sex, age = flat("SEX", 2), flat("AGE", 20)
    cubes = [
        (Cube("1", "persons", (axis(sex),)), dense([400, 190, 213])),
        (Cube("2", "persons", (axis(age),)), dense([400, *[20] * 20])),
    ]
    total = table(average(release(cubes, [sex, age], known_noise(False, True, 1.0)))).averages
    assert total.t[Method.RISKIEST, 0] == 2
    assert total.variances[Method.RISKIEST, 0] == pytest.approx(3 / 4)
    assert total.estimates[Method.RISKIEST, 0] == pytest.approx((400 + 403) / 2)
    assert total.variances[Method.MEAN, 0] == pytest.approx(23 / 9)


def ragged() -> Codelist:
    return codelist("R", [Code("1", "", ""), Code("2", "", ""), Code("1.1", "1", ""), Code("1.2", "1", "")])


def test_branches_that_end_early_belong_to_the_sum_and_are_not_independent() -> None:
    """1 + 2 and 1.1 + 1.2 + 2 both represent the total and have the noise of 2 in common."""
    tree = ragged()
    assert axis(tree).codes == ("_T", "1", "1.1", "1.2", "2")
    shown = dense([100, 61, 30, 33, 41])
    found = average(
        release([(Cube("1", "persons", (axis(tree),)), shown)], [tree], known_noise(False, True, 1.0))
    )
    total, first = table(found).averages, table(found, ("R", 1)).averages
    assert total.t[Method.MEAN, 0] == 3
    assert total.estimates[Method.MEAN, 0] == pytest.approx((100 + 102 + 104) / 3)
    assert total.variances[Method.MEAN, 0] == pytest.approx((1 + 2 + 3 + 2) / 9)
    assert first.t[Method.MEAN].tolist() == [2, 1]  # 1 by itself and by its parts; 2 has none
    assert first.estimates[Method.MEAN].tolist() == [62.0, 41.0]


def test_a_breakdown_that_lacks_codes_represents_only_what_it_covers() -> None:
    tree = codelist(
        "R", [Code(f"{k}", "", "") for k in "12"] + [Code(f"{k}.{n}", k, "") for k in "12" for n in "ab"]
    )
    whole = breakdown("R", "H", tree, tree.leaves)
    part = Breakdown(
        "R", "P", ("_T", "1", "1.a", "1.b"), ("",) * 4, np.array([-1, 0, 1, 1]), np.array([2, 3, 0, 0])
    )
    sex = flat("SEX", 2)
    cubes = [
        (Cube("1", "persons", (breakdown("R", "L", tree, tree.level(1)),)), dense([90, 50, 40])),
        (
            Cube("2", "persons", (part, axis(sex))),
            dense([[90, 44, 45], [50, 26, 25], [20, 9, 9], [31, 15, 15]]),
        ),
    ]
    found = average(release(cubes, [tree, sex], known_noise(False, True, 1.0)))
    total, first = table(found).averages, table(found, ("R", 1)).averages
    assert len(whole) == 7
    assert total.t[Method.MEAN, 0] == 3  # itself, 1 + 2, by SEX; never the part
    assert first.t[Method.MEAN].tolist() == [4, 1]


def test_one_person_is_the_same_group_everywhere_and_nothing_is_gained() -> None:
    """A published 3 in every margin above one cell: one observation, however many sums show it."""
    trees = [flat(name, 3) for name in "ABC"]
    grid = np.zeros((4, 4, 4), dtype=np.int64)
    for corner in np.ndindex(2, 2, 2):
        grid[tuple(2 * k for k in corner)] = 3
    cube = Cube("1", "persons", tuple(map(axis, trees)))
    found = average(release([(cube, dense(grid))], trees, known_noise(True, True, 2.0)))
    assert all((one.averages.t == 1).all() for one in found.tables)
    assert all((one.averages.variances == 2.0).all() for one in found.tables)
    fresh = average(release([(cube, dense(grid))], trees, known_noise(False, True, 2.0)))
    assert table(fresh).averages.t[Method.MEAN, 0] == 8


def test_a_weak_choice_is_broken_at_the_predicted_rate() -> None:
    """V = 0.5 and all triples of six yes-no variables: one-way counts and the total come out nine times in ten."""
    trees = [flat(name, 2) for name in NAMES]
    mechanism, known = cell_key(0.5, 3)
    hit = near = expected = above = 0.0
    for seed in range(8):
        world = made(trees, TRIPLES, random_columns(trees, 20_000, seed), mechanism, known, seed + 10)
        found, real = attacked(world)
        assert table(found, ("A", 1)).success[Method.WEIGHTED].min() > 0.9
        bins = [one for one in real.bins[Method.WEIGHTED] if one.low >= 0.8]
        hit, near = hit + sum(one.hit for one in bins), near + sum(one.targets for one in bins)
        expected += sum(one.expected for one in bins)
        above += real.hit[Method.WEIGHTED] - real.baseline
        assert calibrated(0.02, found, real)
    assert near >= 8 * 13
    assert abs(hit - expected) < 4 * np.sqrt(expected * (1 - expected / near))
    assert above > 8 * 10  # of 232 targets each


def test_a_sum_of_one_cell_with_another_value_hides_a_second_cell() -> None:
    """5 and below it a single 4: not the same group, so somebody's count of one was published as zero."""
    tree, cells = flat("A", 2), dense([5, 4, 0])
    cube = Cube("1", "persons", (axis(tree),))
    total = table(average(release([(cube, cells)], [tree], known_noise(True, True, 2.0)))).averages
    assert (total.t[Method.MEAN, 0], total.k[Method.MEAN, 0]) == (2, 3)
    assert total.variances[Method.MEAN, 0] == pytest.approx(2 * 3 / 4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sound_choice_resists_at_the_predicted_rate(seed: int) -> None:
    """V = 6 and two small tables: hardly more is found than the published counts themselves tell."""
    trees = [flat(name, 8) for name in NAMES[:4]]
    mechanism, known = cell_key(6.0, 10)
    crosses = [["A", "B"], ["C", "D"]]
    found, real = attacked(
        made(trees, crosses, random_columns(trees, 20_000, seed), mechanism, known, seed + 10)
    )
    assert calibrated(0.02, found, real)
    assert found.above(Method.WEIGHTED, 0.4) == 0
    assert found.expected(Method.WEIGHTED) < found.baseline + 0.05 * found.targets


@pytest.mark.parametrize("persons", few([60, 400, 100_000], 0))
def test_the_predicted_variance_is_honest_for_small_counts_and_large(persons: int) -> None:
    """With the same noise for the same participants, also where most cells hold one or two."""
    trees = [nested("GEO", 2, 3), flat("A", 4), flat("B", 4), flat("C", 3)]
    crosses = [["GEO", "A", "B"], ["GEO", "B", "C"], ["A", "B", "C"], ["GEO", "A", "C"]]
    mechanism, known = cell_key(2.0, 5)
    errors, variances = [], []
    for seed in range(12):
        world = made(trees, crosses, random_columns(trees, persons, seed), mechanism, known, seed + 50)
        found = average(world.published)
        for one in found.tables:
            if len(one.signature.levels) <= 1:
                errors.append((one.averages.estimates - true_of(world, one)) ** 2)
                variances.append(one.averages.variances)
    ratio = np.concatenate(errors, axis=1).mean(axis=1) / np.concatenate(variances, axis=1).mean(axis=1)
    assert ratio.min() > 0.6
    assert ratio.max() < 1.6


def true_of(world: Made, one: Estimates) -> np.ndarray:
    """The true counts of one-way targets, from the persons themselves."""
    if not one.signature.levels:
        return np.array([len(next(iter(world.columns.values())))])
    ((variable, depth),) = one.signature.levels
    tree = world.published.universes[0].codelists[variable]
    places = [k for k, at in enumerate(tree.depths) if at == depth]
    counts = [
        int(tree.leaves_under(tree.codes[places[number]])[world.columns[variable]].sum())
        for number in one.numbers
    ]
    return np.array(counts)


def test_weights_are_never_worse_than_the_plain_mean() -> None:
    trees = [nested("GEO", 3, 3), flat("A", 5), flat("B", 2)]
    mechanism, known = cell_key(1.0, 5)
    world = made(
        trees, [["GEO", "A"], ["GEO", "B"], ["A", "B"]], random_columns(trees, 3000, 4), mechanism, known, 5
    )
    for one in average(world.published).tables:
        variances = one.averages.variances
        assert (variances[Method.WEIGHTED] <= variances[Method.MEAN] + 1e-12).all()
        assert (variances[Method.WEIGHTED] <= variances[Method.RISKIEST] + 1e-12).all()


def noisy(trees: Sequence[Codelist], persons: int, known: Noise, seed: int) -> tuple[Published, Truth]:
    """Two flat variables with fresh noise of each cross-tabulation's own law in all 3 x 5 cells."""
    generator = np.random.default_rng(seed)
    grid = np.zeros((len(trees[0].codes) + 1, len(trees[1].codes) + 1), dtype=np.int64)
    grid[1:, 1:] = generator.integers(0, persons, (len(trees[0].codes), len(trees[1].codes)))
    grid[0], grid[:, 0] = grid.sum(axis=0), grid.sum(axis=1)
    grid[0, 0] = grid[0, 1:].sum()
    shown = grid.copy()
    for rows, columns, levels in (
        (slice(0, 1), slice(0, 1), ()),
        (slice(1, None), slice(0, 1), (("A", 1),)),
        (slice(0, 1), slice(1, None), (("B", 1),)),
        (slice(1, None), slice(1, None), (("A", 1), ("B", 1))),
    ):
        law = known.laws.get(f"persons///{' x '.join(f'{v}:{d}' for v, d in levels) or 'total'}", known.law)
        assert law is not None
        row = law.row(0)
        part = shown[rows, columns]
        part += generator.choice(row.values, size=part.shape, p=row.p / row.p.sum())
    if known.publishing.negatives is Negatives.ZERO:
        shown = np.maximum(shown, 0)
    cube = Cube("1", "persons", tuple(map(axis, trees)))
    return release([(cube, dense(shown))], trees, known), Truth({"1": dense(grid)}, {"1": dense(grid)})


def test_every_cross_tabulation_s_own_law_counts() -> None:
    """The total with much noise is found from its margins with little; predicted and realised agree."""
    trees = [flat("A", 3), flat("B", 5)]
    laws = {"persons///total": discrete_gaussian("1/200"), "persons///A:1": discrete_laplace("5/2")}
    known = known_noise(False, False, 100.0, None, discrete_laplace(1), laws, KEPT)
    hits, expected = 0, 0.0
    for seed in range(100):
        published, truth = noisy(trees, 40, known, seed)
        found = average(published)
        total = table(found).averages
        hits, expected = (
            hits + judge(found, truth).hit[Method.WEIGHTED],
            expected + found.expected(Method.WEIGHTED),
        )
        small, big = discrete_laplace("5/2").pmf.variance, discrete_laplace(1).pmf.variance
        weights = [
            1 / discrete_gaussian("1/200").pmf.variance,
            1 / (3 * small),
            1 / (5 * big),
            1 / (15 * big),
        ]
        assert total.variances[Method.WEIGHTED, 0] == pytest.approx(1 / sum(weights))
        assert total.k[Method.MEAN, 0] == 1 + 3 + 5 + 15
    assert hits == pytest.approx(expected, rel=0.1)


def test_sums_in_which_counts_hide_below_zero_are_not_used() -> None:
    """Negatives published as zero make sums of sparse cells too large: only sums of visible cells count."""
    trees = [flat("A", 3), flat("B", 5)]
    known = known_noise(False, False, None, None, discrete_laplace(1))
    published, _ = noisy(trees, 2, known, 3)
    cells, _ = published.universes[0].tables[0].load()
    assert len(cells) < 24
    assert table(average(published)).averages.t[Method.MEAN, 0] < 4


def test_what_is_left_out_is_told() -> None:
    trees = [flat("A", 3), flat("B", 5)]
    mechanism, known = cell_key(1.0, 5)
    world = made(trees, [["A", "B"]], random_columns(trees, 500, 4), mechanism, known, 5)
    assert average(world.published, limits=AveragingLimits(most_axes=1)).left_out == {"more than 1 axes": 1}
    assert average(world.published, limits=AveragingLimits(largest=4)).left_out == {
        "more than 4 possible cells": 2
    }
    assert sum(average(world.published, limits=AveragingLimits(targets=5)).left_out.values()) == 2
    assert sum(average(world.published, limits=AveragingLimits(effort=30)).left_out.values()) > 0


def test_the_summaries_name_cells_and_no_count() -> None:
    trees = [flat("A", 3), flat("B", 5)]
    mechanism, known = cell_key(1.0, 5)
    world = made(trees, [["A", "B"]], random_columns(trees, 12_345, 4), mechanism, known, 5)
    found, real = attacked(world)
    told = to_json(found.findings())
    assert told["targets"] == real.targets == 24
    assert {} in [one["cell"] for one in told["exposed"]]
    assert all(set(one) == {"counted", "cell", "t", "k", "ratio", "success"} for one in told["exposed"])
    assert "12345" not in str(told) + json_text(real)
    assert set(to_json(real)["methods"]) == {"mean", "riskiest", "weighted"}
