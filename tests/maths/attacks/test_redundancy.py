from fractions import Fraction
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.redundancy import (
    Average,
    CategoryLevel,
    PublishedAxes,
    Redundancy,
    Statistic,
    exposure,
    redundancies,
)

SEX, AGE, AGE_L, GEO = (
    CategoryLevel("SEX", "SEX", 2),
    CategoryLevel("AGE", "AGE", 2),
    CategoryLevel("AGE", "AGE.L", 2),
    CategoryLevel("GEO", "GEO", 5),
)


def found(tables: PublishedAxes) -> dict[Statistic, Redundancy]:
    return {one.statistic: one for one in redundancies(tables)}


def test_the_paper_s_table_of_nine_cells() -> None:
    """Footnote 18: SEX x AGE, two categories each, with all margins."""
    table = found(PublishedAxes((((SEX,), (AGE,)),), {}))
    total = table[frozenset()].same_noise.all
    assert total == Average(4, Fraction(9))
    assert total.ratio == 9 / 16
    for margin in (SEX, AGE):
        assert table[frozenset({margin})].same_noise.all == Average(2, Fraction(3))
        assert table[frozenset({margin})].same_noise.all.ratio == 3 / 4
    assert table[frozenset({SEX, AGE})].same_noise.all == Average(1, Fraction(1))
    assert all(one.same_noise == one.fresh_noise for one in table.values())


def test_a_margin_of_two_tables_counts_once_with_the_same_noise() -> None:
    table = found(PublishedAxes((((SEX,), (AGE,)), ((SEX,), (GEO,))), {}))
    total = table[frozenset()]
    assert total.same_noise.all == Average(6, Fraction(1 + 2 + 2 + 4 + 5 + 10))
    assert total.fresh_noise.all == Average(8, Fraction(9 + 1 + 2 + 5 + 10))
    sex = table[frozenset({SEX})]
    assert sex.same_noise.all == Average(3, Fraction(1 + 2 + 5))
    assert sex.fresh_noise.all == Average(4, Fraction(1 + 1 + 2 + 5))


def test_the_statistic_itself_can_count_once() -> None:
    table = found(PublishedAxes((((SEX,), (AGE,)), ((SEX,), (GEO,))), {}, trivial_once=True))
    assert table[frozenset()].fresh_noise.all.t == 7
    assert table[frozenset({SEX})].fresh_noise.all.t == 3


def test_a_finer_level_adds_up_to_a_coarser_one() -> None:
    fine = CategoryLevel("AGE", "AGE.M", 6)
    table = found(PublishedAxes((((AGE_L, fine),),), {fine: (AGE_L,)}))
    assert table[frozenset()].same_noise.all == Average(3, Fraction(1 + 2 + 6))
    assert table[frozenset({AGE_L})].same_noise.all == Average(2, Fraction(1 + 3))
    assert table[frozenset({fine})].same_noise.all == Average(1, Fraction(1))


def test_the_first_increase_can_come_far_too_early() -> None:
    """1, 4, then many 4s: the second representation makes it worse, the tenth far better."""
    one = exposure([4] * 20 + [1])
    assert one.first_minimum == Average(1, Fraction(1))
    assert one.riskiest == Average(21, Fraction(81))
    assert one.riskiest.ratio < one.first_minimum.ratio / 5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_the_riskiest_prefix_is_the_riskiest_choice(sizes: list[int]) -> None:
    one = exposure(sizes)
    ordered = sorted(sizes)
    best = min(sum(ordered[:t]) / t**2 for t in range(1, len(sizes) + 1))
    assert one.riskiest.ratio <= best * (1 + 1e-12)
    assert one.riskiest.ratio <= one.first_minimum.ratio * (1 + 1e-12)
    assert one.all == Average(len(sizes), Fraction(sum(sizes)))


LEVELS = [CategoryLevel(name, name, size) for name, size in zip("abcde", (2, 3, 5, 7, 11), strict=True)]


@given(st.lists(st.sets(st.sampled_from(LEVELS), max_size=4), min_size=1, max_size=5))
def test_counts_are_those_of_the_printed_equations(tables: list[set[CategoryLevel]]) -> None:
    """Eq. 21 and 22 by brute force over power sets."""
    result = found(PublishedAxes(tuple(tuple((level,) for level in sorted(table)) for table in tables), {}))

    def powerset(items: frozenset[CategoryLevel]) -> list[frozenset[CategoryLevel]]:
        every = (combinations(items, n) for n in range(len(items) + 1))
        return [frozenset(one) for one in chain.from_iterable(every)]

    def size(items: frozenset[CategoryLevel]) -> int:
        product = 1
        for item in items:
            product *= item.size
        return product

    for statistic, one in result.items():
        drawn = [
            rest for table in tables if statistic <= table for rest in powerset(frozenset(table) - statistic)
        ]
        assert one.fresh_noise.all == Average(len(drawn), Fraction(sum(map(size, drawn))))
        assert one.same_noise.all == Average(len(set(drawn)), Fraction(sum(map(size, set(drawn)))))
