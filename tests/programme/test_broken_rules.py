"""Rules that are judged together are broken by the records that break them one by one."""

import gc
import weakref

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.population.encode import code_type
from discreet.programme.broken_rules import Rules, comparisons
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.filter import Filter, parse_filter

SIZES = {"A": 2, "B": 5, "C": 9, "D": 300}
LISTS: dict[str, Codelist] = {
    name: codelist(name, [Code(f"c{k}", "", "") for k in range(size)]) for name, size in SIZES.items()
}


def rule(text: str) -> Filter:
    return parse_filter(text, LISTS)


def one_comparison(name: str) -> st.SearchStrategy[str]:
    code = st.integers(0, min(SIZES[name], 9) - 1)
    return st.tuples(st.sampled_from(["==", "!="]), code).map(lambda one: f'{name} {one[0]} "c{one[1]}"')


CONJUNCTIONS = st.lists(st.sampled_from("ABCD"), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*map(one_comparison, names)).map(" and ".join)
)
OTHERS = st.tuples(one_comparison("A"), one_comparison("B"), one_comparison("C")).map(
    lambda parts: f"{parts[0]} or ({parts[1]} and {parts[2]})"
)


@settings(max_examples=80, deadline=None)
@given(st.lists(CONJUNCTIONS | OTHERS, max_size=90), st.integers(0, 2**32), st.integers(0, 12))
def test_together_as_one_by_one(texts: list[str], seed: int, records: int) -> None:
    rules = [rule(text) for text in texts]
    random = np.random.default_rng(seed)
    columns = {
        name: random.integers(0, min(size, 9), records).astype(code_type(size))
        for name, size in SIZES.items()
    }
    assert Rules(rules).broken(columns) == {one for one in rules if one.mask(columns).any()}


def test_one_record_of_many_breaks_a_rule() -> None:
    codes = np.zeros(200_001, dtype=np.uint8)
    codes[-1] = 1
    broken, sound = rule('A == "c1" and B == "c0"'), rule('A == "c1" and B == "c1"')
    assert Rules([broken, sound]).broken({"A": codes, "B": np.zeros_like(codes)}) == {broken}


def test_records_that_were_judged_are_given_back_at_once() -> None:
    rules = Rules([rule('A == "c1"'), rule('A == "c1" or (A == "c0" and B == "c0")')])
    gc.disable()  # what only a search for garbage finds stays in memory beside the next records
    try:
        codes = np.zeros(10, dtype=np.uint8)
        seen = weakref.ref(codes)
        assert rules.broken({"A": codes, "B": codes})
        del codes
        assert seen() is None
    finally:
        gc.enable()


def test_forms_with_one_comparison_per_variable_are_recognised() -> None:
    assert len(comparisons(rule('A == "c0" and B != "c1"').term)) == 2
    assert len(comparisons(rule('B in ("c0", "c1")').term)) == 1
    assert not comparisons(rule('A == "c0" or B != "c1"').term)
    assert not comparisons(rule('A == "c0" and (B != "c1" or C == "c2")').term)
