"""How a budget is divided, what of a cube is published, and every declaration that cannot be kept."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.programme.codelist import Breakdown, Code, breakdown, codelist, with_level_names
from discreet.programme.cube import Cube, Signature, crossed, signatures
from discreet.programme.programme import Programme, load_declaration
from discreet.programme.split import BudgetRule, Split, allotted, public_totals, summed_cells, with_shown


def axis(name: str, groups: int, each: int = 0) -> Breakdown:
    """A variable with one level, or with two."""
    rows = [Code(f"{name}{g}", "", "") for g in range(groups)]
    rows += [Code(f"{name}{g}.{c}", f"{name}{g}", "") for g in range(groups) for c in range(each)]
    tree = codelist(name, rows)
    return breakdown(name, name, tree, tree.level(2 if each else 1))


A, B, G = axis("A", 2), axis("B", 3), axis("G", 2, 3)
CUBES = (Cube("ab", "persons", (A, B)), Cube("ag", "persons", (G, A)), Cube("h", "households", (G,)))
ONE = Fraction(1)


def names(found: dict[Signature, Fraction]) -> dict[str, Fraction]:
    return {f"{one.unit[0]} {crossed(one.levels)}": share for one, share in found.items()}


RULES = [
    BudgetRule(ONE),
    BudgetRule(ONE, margins=("interior",)),
    BudgetRule(ONE, margins=("A x B", "G:1", "interior")),
    BudgetRule(ONE, Split.BY_AXES, {"0": Fraction(0), "1": Fraction(1, 3), "2": Fraction(2, 3)}),
    BudgetRule(ONE, Split.BY_TABLE, {"ab": Fraction(0), "ag": Fraction(3, 4), "h": Fraction(1, 4)}),
    BudgetRule(
        ONE, Split.BY_MARGIN, {"A x G:2": Fraction(1, 2), "G:2": Fraction(1, 4), "rest": Fraction(1, 4)}
    ),
    BudgetRule(ONE, Split.BY_MARGIN, {"A x B": Fraction(1, 2), "G:2": Fraction(1, 2), "rest": Fraction(0)}),
    BudgetRule(ONE, Split.BY_LEVEL, {"G:0": Fraction(1, 5), "G:1": Fraction(0), "G:2": Fraction(4, 5)}),
    BudgetRule(ONE, Split.HALVING, {"G:2": Fraction(1, 2), "A": Fraction(1, 4), "rest": Fraction(1, 8)}),
    BudgetRule(ONE, public={"persons": 10}),
    BudgetRule(
        ONE,
        Split.BY_AXES,
        {"0": Fraction(1, 2), "1": Fraction(1, 4), "2": Fraction(1, 4)},
        public={"households": 7},
    ),
]


def test_levels_may_have_the_names_of_breakdowns() -> None:
    tree = codelist("G", [Code("1", "", ""), Code("1.1", "1", ""), Code("1.2", "1", "")])
    named = with_level_names(
        {name: breakdown("G", name, tree, tree.level(d)) for name, d in {"BIG": 1, "SMALL": 2}.items()}
    )
    cubes = (Cube("ag", "persons", (named["SMALL"], A)),)
    numbers = {"A x G:2": ONE / 2, "G:1": ONE / 4, "rest": ONE / 4}
    names = {"A x G.SMALL": ONE / 2, "G.BIG": ONE / 4, "rest": ONE / 4}
    assert allotted(BudgetRule(ONE, Split.BY_MARGIN, names), cubes) == allotted(
        BudgetRule(ONE, Split.BY_MARGIN, numbers), cubes
    )
    by_level = {"G:0": ONE / 5, "G.BIG": Fraction(0), "G.SMALL": 4 * ONE / 5}
    found = allotted(BudgetRule(ONE, Split.BY_LEVEL, by_level), cubes)
    assert {crossed(one.levels) for one in found} == {"total", "A:1", "G:2", "A:1 x G:2"}
    with pytest.raises(Mistakes, match=r"G has the levels G\.BIG, G\.SMALL"):
        allotted(BudgetRule(ONE, Split.BY_MARGIN, {"G": ONE / 2, "rest": ONE / 2}), cubes)
    with pytest.raises(Mistakes, match="named twice"):
        allotted(BudgetRule(ONE, Split.BY_LEVEL, {"G:1": ONE / 2, "G.BIG": ONE / 2}), cubes)


@pytest.mark.parametrize("total", [Fraction(1), Fraction(7, 3), Fraction(1, 1000)])
@pytest.mark.parametrize("rule", RULES)
def test_what_is_allotted_is_what_is_spent_exactly(rule: BudgetRule, total: Fraction) -> None:
    rule = BudgetRule(total, rule.split, rule.shares, rule.margins, rule.sums, rule.public)
    found = allotted(rule, CUBES)
    assert sum(found.values()) == rule.spent <= total
    assert all(share > 0 for share in found.values())
    assert not found.keys() & public_totals(rule).keys()
    shown = with_shown(rule, CUBES)
    assert set(signatures(shown)) == set(found), "what is published with noise is what was paid for"
    assert allotted(rule, shown) == found, "the same from the cubes as they are published"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_shares_of_any_named_margins_are_spent_exactly(data: st.DataObject) -> None:
    every = sorted({crossed(one.levels) for one in signatures(CUBES)})
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    parts = data.draw(st.lists(st.integers(0, 5), min_size=len(chosen) + 1, max_size=len(chosen) + 1))
    if len(chosen) == len(every):
        parts[-1] = 0
    if not sum(parts):
        parts[0] = 1
    shares = {name: Fraction(part, sum(parts)) for name, part in zip([*chosen, "rest"], parts, strict=True)}
    found = allotted(BudgetRule(Fraction(5, 7), Split.BY_MARGIN, shares), CUBES)
    assert sum(found.values()) == Fraction(5, 7)
    for one, share in found.items():
        same = [s for s in signatures(CUBES) if s.levels == one.levels]
        if crossed(one.levels) in shares:
            assert share == Fraction(5, 7) * shares[crossed(one.levels)] / len(same)


def test_rinotts_example_of_named_margins() -> None:
    """Section 7: a 3-way table and one of its margins with a third of epsilon each, five others with a fifteenth."""
    cube = Cube("t", "persons", (axis("INC", 3), axis("EDU", 2), axis("ETH", 2)))
    third = Fraction(1, 3)
    rule = BudgetRule(
        ONE,
        Split.BY_MARGIN,
        {"INC x EDU x ETH": third, "INC x EDU": third, "total": Fraction(0), "rest": third},
    )
    found = names(allotted(rule, [cube]))
    assert found.pop("p EDU:1 x ETH:1 x INC:1") == found.pop("p EDU:1 x INC:1") == third
    assert set(found.values()) == {Fraction(1, 15)}
    assert len(found) == 5


def test_rinotts_two_dimensional_margins_only() -> None:
    """Section 7: of a 4-way table only the six 2-dimensional margins, each with a sixth of epsilon."""
    axes = [axis(name, 10) for name in "ABCD"]
    pairs = tuple(" x ".join(pair) for pair in combinations("ABCD", 2))
    found = allotted(BudgetRule(ONE, margins=pairs), [Cube("t", "persons", tuple(axes))])
    assert set(found.values()) == {Fraction(1, 6)}
    assert {len(one.levels) for one in found} == {2}
    assert len(found) == 6


def test_halving_leaves_the_last_half() -> None:
    rule = BudgetRule(
        Fraction(2), Split.HALVING, {"A": Fraction(1, 2), "B": Fraction(1, 4), "rest": Fraction(1, 8)}
    )
    found = names(allotted(rule, CUBES[:1]))
    assert found == {
        "p A:1": 1,
        "p B:1": Fraction(1, 2),
        "p A:1 x B:1": Fraction(1, 8),
        "p total": Fraction(1, 8),
    }
    assert rule.spent == Fraction(7, 4)


def test_one_cube_adds_up_each_margin_and_from_the_fewest_cells() -> None:
    rule = BudgetRule(ONE, margins=("interior",), sums=True)
    ab, ag, h = with_shown(rule, CUBES)
    summed = [
        (cube.id, cube.signature(depths))
        for cube in (ab, ag, h)
        for depths in (cube.shown.summed if cube.shown else ())
    ]
    assert len({one for _, one in summed}) == len(summed), "no cell has two values"
    by = {one: cube for cube, one in summed}
    assert by[Signature("persons", "", "", (("A", 1),))] == "ab", "3 cells of B, against 6 of G"
    assert by[Signature("persons", "", "", ())] == "ab", "6 cells, against 12"
    for cube in (ab, ag, h):
        for depths in cube.shown.summed if cube.shown else ():
            assert summed_cells(cube, depths) == _most_counted(cube, depths)


def _most_counted(cube: Cube, depths: tuple[int, ...]) -> int:
    """By enumeration: how many finest cells are below a cell of a cross-tabulation, at most."""
    most = 0
    per_axis = [
        [k for k in range(len(a)) if a.depths[k] == d] for a, d in zip(cube.axes, depths, strict=True)
    ]
    for nodes in product(*per_axis):
        below = 1
        for a, node in zip(cube.axes, nodes, strict=True):
            below *= sum(_is_below(a, leaf, node) for leaf in range(len(a)) if a.finest[leaf])
        most = max(most, below)
    return most


def _is_below(a: Breakdown, node: int, above: int) -> bool:
    while node >= 0:
        if node == above:
            return True
        node = int(a.parents[node])
    return False


PROGRAMME = """
[population]
persons = "absent.parquet"
person_id = "pid"

[variables.SEX]
codelist = "sex.csv"

[variables.GEO]
codelist = "geo.csv"

[[cubes]]
id = "a"
axes = ["GEO", "SEX"]
"""


def programme(folder: Path, noise: str, more: str = "", population: str = "") -> Programme:
    (folder / "sex.csv").write_text("code,parent,label\nf,,\nm,,\n")
    (folder / "geo.csv").write_text("code,parent,label\nN,,\nS,,\nN1,N,\nN2,N,\nS1,S,\n")
    head = PROGRAMME.replace('person_id = "pid"\n', f'person_id = "pid"\n{population}\n')
    (folder / "programme.toml").write_text(f"{head}{more}\n[noise]\n{noise}\n")
    return load_declaration(folder / "programme.toml")


GEOMETRIC = 'kind = "geometric"\nepsilon = 1\n'


@pytest.mark.parametrize(
    ("noise", "shown"),
    [
        ("", None),
        ('split = { margins = "none" }', {"GEO:2 x SEX:1"}),
        ('split = { margins = ["GEO:1 x SEX", "total"] }', {"GEO:1 x SEX:1", "total"}),
        ('split = { by_axes = { "0" = "0", "1" = "0", "2" = 1 } }', {"GEO:1 x SEX:1", "GEO:2 x SEX:1"}),
        ('split = { by_level = { "GEO:0" = 0, "GEO:1" = 0, "GEO:2" = 1 } }', {"GEO:2", "GEO:2 x SEX:1"}),
        ('split = { halving = ["SEX", "GEO:1"], margins = ["SEX", "GEO:1"] }', {"SEX:1", "GEO:1"}),
        (
            'split = { by_margin = { "SEX x GEO:1" = "1/4", "GEO:2" = "3/4", rest = 0 } }',
            {"GEO:1 x SEX:1", "GEO:2"},
        ),
    ],
)
def test_a_programme_publishes_what_has_a_share(tmp_path: Path, noise: str, shown: set[str] | None) -> None:
    cube = programme(tmp_path, GEOMETRIC + noise).cubes[0]
    if shown is None:
        assert cube.shown is None
    else:
        assert {crossed(cube.signature(depths).levels) for depths in cube.published} == shown


KEPT = 'negatives = "keep"\n'
REFUSED = {
    'split = { by_axes = { "1" = 1 }, by_table = { a = 1 } }': "not exactly one of by_axes, by_table, by_margin",
    "split = { by_axes = {} }": "by_axes is empty",
    'split = { by_axes = { "1" = -1, "2" = 2 } }': "a share that is not a number from 0 to 1",
    'split = { by_axes = { "0" = "1/2", "1" = "1/2" } }': "margin 2: has no share of the budget",
    "split = { by_margin = { SEX = 1 } }": "margin rest: has no share",
    'split = { by_margin = { GEO = "1/2", rest = "1/2" } }': "GEO has the levels GEO:1, GEO:2",
    'split = { by_margin = { "GEO:3" = "1/2", rest = "1/2" } }': "GEO has the levels GEO:1, GEO:2",
    'split = { by_margin = { AGE = "1/2", rest = "1/2" } }': "with each of GEO, SEX at most once",
    'split = { by_margin = { "SEX x GEO:1" = "1/2", "GEO:1 x SEX:1" = "1/2", rest = 0 } }': "it is named twice",
    'split = { by_level = { "GEO:0" = "1/2", "SEX:1" = "1/2" } }': "name the levels of one of GEO, SEX",
    'split = { by_level = { "GEO:0" = 1 } }': "margin GEO:1: has no share",
    'split = { halving = ["SEX", "SEX"] }': "a name occurs twice",
    'split = { halving = ["SEX"] }': "margin rest: has no share",
    "split = { margins = [] }": "an empty list",
    'split = { margins = ["SEX x GEO:1 x AGE"] }': "at most once",
    "split = { by_table = { a = 0 } }": "the shares sum to 0",
    'split = { margins = "none", sums = true }': 'zero together with split.sums; set negatives = "keep"',
    KEPT + 'threshold = 3\nsplit = { sums = true, margins = "none" }': "3 together with split.sums",
    KEPT + 'split = { sums = true, margins = ["SEX"] }': "its finest cells are not measured",
    "public_totals = { households = 7 }": "noise.public_totals: households; add a cube of all households",
    "largest_weight = 0": "noise.largest_weight: 0",
}


@pytest.mark.parametrize(("noise", "said"), REFUSED.items())
def test_what_cannot_be_kept_is_refused_with_what_is_missing(tmp_path: Path, noise: str, said: str) -> None:
    with pytest.raises(Mistakes) as refused:
        programme(tmp_path, GEOMETRIC + noise)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


def test_a_cube_of_which_nothing_would_be_published_is_refused(tmp_path: Path) -> None:
    more = '[[cubes]]\nid = "sexes"\naxes = ["SEX"]\n'
    with pytest.raises(Mistakes, match="cube sexes: none of its cells would be measured"):
        programme(tmp_path, GEOMETRIC + 'split = { margins = ["GEO:1"] }', more)


SAMPLE = 'sample = { rate = "1/10", method = "poisson" }'
FIXED = 'sample = { rate = "1/10", method = "without-replacement" }'


@pytest.mark.parametrize(
    ("noise", "sample", "said"),
    [
        (GEOMETRIC, SAMPLE, None),
        (GEOMETRIC + 'neighbours = "substitute"', FIXED, None),
        (GEOMETRIC, FIXED, "no theorem covers this pair"),
        (GEOMETRIC + 'neighbours = "substitute"', SAMPLE, "no theorem covers this pair"),
        ('kind = "discrete-gaussian"\nrho = 1', SAMPLE, "rho is not amplified by sampling"),
        ('kind = "cell-key"\nV = 2\nD = 5', SAMPLE, "no guarantee to amplify"),
        (GEOMETRIC + 'claim = "none"', SAMPLE, "no guarantee to amplify"),
        (
            GEOMETRIC + 'protects = "household"\nlargest_household = 9',
            SAMPLE,
            "a sample of persons that protects a household",
        ),
        (
            GEOMETRIC + 'protects = "household"\nlargest_household = 9',
            'sample = { rate = "1/10", method = "poisson", unit = "households" }',
            None,
        ),
        (
            GEOMETRIC,
            'sample = { rate = "1/10", method = "poisson", unit = "households" }',
            "a sample of households that protects a person",
        ),
        (GEOMETRIC + "public_totals = { persons = 9 }", SAMPLE, "a public total of a Poisson sample"),
        (GEOMETRIC, SAMPLE.replace("1/10", "3/2"), "population.sample.rate: 3/2"),
        (GEOMETRIC, SAMPLE.replace("1/10", "0"), "population.sample.rate: '0'"),
    ],
)
def test_a_sample_amplifies_only_where_a_theorem_says_so(
    tmp_path: Path, noise: str, sample: str, said: str | None
) -> None:
    if said is None:
        rule = programme(tmp_path, noise, population=sample).population
        assert rule is not None
        assert rule.sample is not None
        assert rule.sample.rate == Fraction(1, 10)
    else:
        with pytest.raises(Mistakes) as refused:
            programme(tmp_path, noise, population=sample)
        assert said in str(refused.value)
