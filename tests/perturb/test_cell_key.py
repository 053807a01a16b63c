"""The cell key mechanism: its law row by row, what it never does, and that a group always has the same noise."""

import ast
import math
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import discreet
from discreet.errors import Mistakes, UncoveredCount
from discreet.formats.dataset import dataset_of as release_dataset
from discreet.maths.cells.counting import increments
from discreet.maths.cells.lookup import KEYS, change, lookup_of_rows
from discreet.maths.noise.ptable import PTable
from discreet.maths.noise.ptable_solver import PTableParameters, Variance, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.choose import cell_key_mechanism
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.programme.noise import CellKeyNoise, KeyKind
from discreet.serve.answer import Answer
from discreet.serve.dataset import dataset_of as answer_dataset
from discreet.serve.dataset import keys_only
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.source_rules import nodes, tree

SECRET = bytes(range(7, 39))
CELLS = 60_000
_32 = np.uint64(32)


def line(size: int) -> Cube:
    """A cube of one axis with as many finest codes as wanted."""
    tree = codelist("X", [Code(f"x{n}", "", "") for n in range(size)])
    return Cube("line", "persons", (breakdown("X", "X", tree, tree.leaves),))


def table(counts: NDArray[np.int64], keys: NDArray[np.uint32]) -> ConfidentialTable:
    """A table that holds given counts with given cell keys."""
    cells = (keys.astype(np.uint64) << _32) | counts.astype(np.uint64)
    positions = np.arange(len(counts), dtype=np.int64)
    return ConfidentialTable(line(3), cells, positions)


def changes(mechanism: CellKeyMechanism, count: int, keys: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The change of each cell of one true count, zeros that are left out included."""
    made = mechanism.perturb(table(np.full(len(keys), count), keys))
    values = np.zeros(len(keys), dtype=np.int64)
    values[made.cells] = made.values
    return values - count


def mechanism(
    V: float, D: int = 5, js: int = 0, keys: KeyKind = KeyKind.PERMUTED
) -> tuple[PTable, CellKeyMechanism]:
    parameters = PTableParameters(D, V, js=js, variance=Variance.AT_MOST)
    return solve(parameters), cell_key_mechanism(CellKeyNoise(parameters, keys), SECRET)


def uniform(seed: int) -> NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, KEYS, CELLS, dtype=np.uint32)


def p_value(drawn: NDArray[np.int64], law: PTable, row: int) -> float:
    """Pearson's chi-square of drawn changes against a row of a p-table; rare changes are taken together."""
    expected = {int(c): p * len(drawn) for c, p in zip(law.changes(row), law.probabilities[row], strict=True)}
    assert set(drawn.tolist()) <= set(expected)
    common = [value for value, number in expected.items() if number >= 5]
    seen = [int((drawn == value).sum()) for value in common]
    rest = len(drawn) - sum(expected[value] for value in common)
    observed, wanted = [*seen, len(drawn) - sum(seen)], [*(expected[value] for value in common), rest]
    if rest < 5:
        observed, wanted = observed[:-1], wanted[:-1]
        wanted = [number * sum(observed) / sum(wanted) for number in wanted]
    return float(stats.chisquare(observed, wanted).pvalue)


@pytest.mark.parametrize("keys", KeyKind)
@pytest.mark.parametrize(("V", "js"), [(2.0, 0), (3.0, 2)])
def test_changes_follow_their_row_and_not_one_with_a_tenth_more_variance(
    keys: KeyKind, V: float, js: int
) -> None:
    law, cell_key = mechanism(V, js=js, keys=keys)
    other, _ = mechanism(1.1 * V, js=js, keys=keys)
    for row in range(1, law.last_row + 2):
        drawn = changes(cell_key, row, uniform(row))
        at = min(row, law.last_row)
        assert p_value(drawn, law, at) > 1e-4, row
    large = changes(cell_key, 1000, uniform(99))
    assert p_value(large, law, law.last_row) > 1e-4
    assert p_value(large, other, other.last_row) < 1e-6


def test_every_row_is_unbiased_with_the_variance_that_the_table_says() -> None:
    law, cell_key = mechanism(2.0)
    for row in (*range(1, law.last_row + 1), 50, 10**6):
        drawn = changes(cell_key, row, uniform(1000 + row))
        variance = law.variance(min(row, law.last_row))
        fourth = float((drawn.astype(float) ** 4).mean())
        assert abs(drawn.mean()) < 4.5 * math.sqrt(variance / CELLS)
        assert abs((drawn**2).mean() - variance) < 4.5 * math.sqrt(max(fourth - variance**2, 1e-9) / CELLS)
        assert variance <= 2.0 + 1e-9


@pytest.mark.parametrize("js", [0, 1, 2])
def test_no_published_count_lies_between_zero_and_js(js: int) -> None:
    _, cell_key = mechanism(3.0, D=6, js=js)
    for count in range(1, 16):
        published = changes(cell_key, count, uniform(count)) + count
        assert set(np.unique(published)) <= {0, *range(js + 1, count + 7)}
        assert np.abs(published - count).max() <= 6
    assert cell_key.smallest == js + 1


def test_zeros_stay_zero_whatever_key_stands_beside_them() -> None:
    _, cell_key = mechanism(2.0)
    made = cell_key.perturb(table(np.zeros(CELLS, dtype=np.int64), uniform(1)))
    assert len(made) == 0


def test_what_is_published_is_positive_ascending_and_inside_the_grid() -> None:
    _, cell_key = mechanism(2.0)
    counts = np.random.default_rng(4).integers(0, 4, CELLS)
    made = cell_key.perturb(table(counts, uniform(2)))
    assert (made.values > 0).all()
    assert (np.diff(made.cells) > 0).all()
    assert len(made) < np.count_nonzero(counts)  # some ones became zero, and are left out like empty cells


def test_a_table_that_leaves_counts_uncovered_cannot_be_made_and_a_count_without_a_row_raises() -> None:
    with pytest.raises(Mistakes, match="larger counts"):
        lookup_of_rows([[(0, 256)], [(-1, 128), (1, 128)]], 256, wrap_from=0, wrap_length=0)
    with pytest.raises(UncoveredCount):
        change(mechanism(2.0)[1].lookup, [3, -1], [0, 0])


@pytest.mark.parametrize("count", [1, 2, 2**31, 2**32 - 1])
def test_the_largest_counts_are_covered(count: int) -> None:
    drawn = changes(mechanism(2.0)[1], count, uniform(3)[:500])
    assert np.abs(drawn).max() <= 5
    assert drawn.any()


@settings(max_examples=60)
@given(
    st.integers(2, 40).flatmap(
        lambda people: st.tuples(
            st.lists(st.integers(0, KEYS - 1), min_size=people, max_size=people),
            st.lists(st.lists(st.integers(0, 3), min_size=people, max_size=people), min_size=2, max_size=5),
        )
    )
)
def test_the_same_participants_have_the_same_noise_in_overlapping_cubes(
    drawn: tuple[list[int], list[list[int]]],
) -> None:
    """Each column of codes is a cube; groups of the same members must get the same value wherever they appear."""
    keys, columns = drawn
    added = increments(np.array(keys, dtype=np.uint32))
    _, cell_key = mechanism(2.0)
    values: dict[frozenset[int], int] = {}
    for codes in [*columns, *(np.add(a, np.multiply(b, 4)).tolist() for a, b in pairwise(columns))]:
        sums = np.zeros(max(codes) + 1, dtype=np.uint64)
        np.add.at(sums, codes, added)
        made = cell_key.perturb(ConfidentialTable(line(3), sums))
        published = dict(zip(made.cells.tolist(), made.values.tolist(), strict=True))
        for code in set(codes):
            members = frozenset(k for k, other in enumerate(codes) if other == code)
            assert values.setdefault(members, published.get(code, 0)) == published.get(code, 0)


def noises_of_sums(keys: KeyKind, cells: int) -> NDArray[np.int64]:
    """The noises of two large disjoint groups and of their union, whose key is the sum of theirs: (3, cell)."""
    _, cell_key = mechanism(2.0, keys=keys)
    first, second = np.random.default_rng(4).integers(0, KEYS, (2, cells), dtype=np.uint32)
    return np.array([changes(cell_key, 1000, key) for key in (first, second, first + second)])


def test_noise_of_a_total_is_independent_of_its_parts_with_permuted_keys_and_not_with_plain_sums() -> None:
    for keys, is_independent in ((KeyKind.PERMUTED, True), (KeyKind.PLAIN, False)):
        noises = np.clip(noises_of_sums(keys, 400_000), -3, 3) + 3
        parts, total = 7 * noises[0] + noises[1], noises[2]
        seen = np.bincount(7 * parts + total, minlength=343).reshape(49, 7)
        assert (float(stats.chi2_contingency(seen).pvalue) > 1e-4) is is_independent


def test_the_order_of_the_records_of_a_cell_does_not_matter_and_another_secret_gives_other_noise() -> None:
    _, cell_key = mechanism(2.0)
    other = cell_key_mechanism(CellKeyNoise(PTableParameters(5, 2.0)), bytes(32))
    drawn = changes(cell_key, 1000, uniform(8))
    assert (drawn == changes(cell_key, 1000, uniform(8))).all()
    agree = float((drawn == changes(other, 1000, uniform(8))).mean())
    law = solve(PTableParameters(5, 2.0)).probabilities[-1]
    assert agree == pytest.approx(float((law**2).sum()), abs=0.01)


def test_a_confidential_table_shows_nothing_of_its_values() -> None:
    shown = repr(table(np.array([123_456]), np.array([987_654], dtype=np.uint32)))
    assert shown == "ConfidentialTable(line)"


def makers(name: str) -> set[str]:
    """The modules that call something by this name."""
    root = Path(discreet.__file__).parent
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if name in path.read_text(encoding="utf-8")
        for node in nodes(tree(path))
        if isinstance(node, ast.Call)
        and name == (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
    }


def test_only_the_perturbing_package_makes_protected_tables() -> None:
    reading_back = "tabulate/tables.py"  # of published cells
    assert makers("ProtectedTable") == {"perturb/cell_key.py", "perturb/private.py", reading_back}
    counted_before = "audit/case.py"  # true counts of an audit, perturbed by other noise
    others = makers("ConfidentialTable") - {counted_before}
    assert {place.partition("/")[0] for place in others} == {"tabulate"}


def test_datasets_are_made_of_protected_tables_and_answers_only() -> None:
    """What writers take: each maker is given a protected table, an answer, or no values at all."""
    assert makers("Dataset") == {"formats/dataset.py", "serve/dataset.py"}
    taken = {
        get_type_hints(make)[name] for make, name in ((release_dataset, "table"), (answer_dataset, "answer"))
    }
    assert taken == {ProtectedTable, Answer}
    assert not keys_only(table="t", title="", agency="A", version="1", axes=()).values.any()


@pytest.mark.parametrize("js", [0, 2])
def test_the_facts_are_those_of_the_p_table(js: int) -> None:
    law, cell_key = mechanism(2.0, D=4, js=js)
    noise = cell_key.noise()
    assert noise.variance == pytest.approx(
        max(law.variance(row) for row in range(law.last_row + 1)), rel=1e-6
    )
    assert noise.bound == 4
    assert dict(noise.parameters()) == {"D": 4, "V": noise.variance, "js": js}
    for row, held in enumerate(noise.listed()):
        expected = dict(zip(law.changes(row).tolist(), law.probabilities[row], strict=True))
        assert sum(held.values()) == pytest.approx(1)
        assert all(held.get(change, 0.0) == pytest.approx(p, abs=1e-9) for change, p in expected.items())


def test_a_table_with_weights_needs_noise_for_them() -> None:
    _, cell_key = mechanism(2.0)
    plain = table(np.arange(1, 20), uniform(5)[:19])
    assert cell_key.perturb(plain).weighted is None
    weights = np.full(19, 1_500_000, dtype=np.uint64)
    with pytest.raises(ValueError, match="no noise for them"):
        cell_key.perturb(ConfidentialTable(plain.cube, plain.cells, plain.positions, weights, weights))
