"""What a user has collected is counted, judged, kept through a kill, and apart from what others have."""

import json
import math
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from discreet.io.store import Database, Journal
from discreet.maths.attacks.information import Ladder, least_variances, seen, side
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme
from discreet.programme.serve import Action, HistoryRule
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.history import History, _levels
from discreet.serve.history_store import Collected, Population, Sums
from discreet.serve.information import Shown, Space
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import resolve
from discreet.serve.records import MicrodataSource
from discreet.tabulate.tables import ProtectedTable
from tests.cases import BOTH_DATABASES, few
from tests.serve.conftest import NOON, cells, query

Make = Callable[..., TableBuilder]
VARIANCE = 2.0


class Even:
    """A population of a million records; variables have 10 codes of the same size, those in small letters 2."""

    records = total = 1_000_000

    def ladder(self, variable: str) -> Ladder:
        codes = 2 if variable.islower() else 10
        return Ladder((np.zeros(codes, dtype=np.int64), np.arange(codes)), np.full(codes, 1e6 / codes))

    def level_name(self, variable: str, depth: int) -> str:
        return f"{variable}.LEVEL{depth}"


class Deep(Even):
    """The same, but codes of capital letters are five pairs."""

    def ladder(self, variable: str) -> Ladder:
        flat = super().ladder(variable)
        pairs = np.arange(len(flat.sizes)) // 2
        return flat if variable.islower() else Ladder((flat.levels[0], pairs, flat.levels[1]), flat.sizes)


EVEN, DEEP = Even(), Deep()


def table(*variables: str, populations: tuple[Population, ...] = (), space: Even = EVEN) -> Collected:
    """A table by some variables with all its margins."""
    ladders = {name: space.ladder(name) for name in sorted(variables)}
    sides = [
        side(
            name,
            one,
            [seen(one, depth, np.ones(len(one.sizes), dtype=bool)) for depth in range(len(one.levels))],
        )
        for name, one in ladders.items()
    ]
    depths = product(*(range(len(one.levels)) for one in ladders.values()))
    tables = {
        json.dumps([(one.name, depth) for one, depth in zip(sides, along, strict=True) if depth]): along
        for along in depths
    }
    names = tuple("" for _ in sides)
    shown = Shown(cast("Space", space), tuple(sides), names, tuple(range(len(sides))))
    return Collected("persons", "", "", tables, shown, populations)


@pytest.fixture
def store(where: str) -> Store:
    return Store(where, lambda: NOON)


def history(where: str, rule: HistoryRule) -> History:
    return History(Database(where, "store", Journal.AHEAD), rule, VARIANCE)


def no_difference(_new: str, _earlier: str) -> int | None:
    raise AssertionError("nothing to compare")


def answered(kept: History, user: str = "u", *, names: str = "ABCDEFGHIJKLMNOP") -> int:
    """How many tables of two variables a user gets."""
    asked = (kept.collect(user, table("X", name), no_difference) for name in names)
    return sum(not isinstance(one, Refusal) for one in asked)


@BOTH_DATABASES
def test_the_guard_warns_and_then_refuses(where: str) -> None:
    """Each table adds a tenth of a count of X: its success rises until a table would pass the declared one."""
    rule = HistoryRule(success=0.38, warn=0.34)
    kept = history(where, rule)
    found = [kept.collect("u", table("X", name), no_difference) for name in "ABCDEFGHIJKLMNOP"]
    kinds = ["refused" if isinstance(one, Refusal) else "warned" if one else "free" for one in found]
    assert kinds == sorted(kinds, key=["free", "warned", "refused"].index)
    assert set(kinds) == {"free", "warned", "refused"}
    refused = found[-1]
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.HISTORY
    assert "found exactly with a probability above 0.38" in refused.message
    assert "counts of X.LEVEL1" in refused.message, "levels by their names"
    assert kept.collect("u", table("X", "A"), no_difference) == (), "a repeated one is free"
    assert not isinstance(kept.collect("other", table("X", "P"), no_difference), Refusal)
    assert isinstance(history(where, rule).collect("u", table("X", "P"), no_difference), Refusal)


def test_counts_of_many_people_need_no_guard(where: str) -> None:
    """Counts of X alone have 100,000 people, of X and another 10,000."""
    few = answered(history(where, HistoryRule(success=0.38)))
    assert few < 16
    assert answered(history(where, HistoryRule(success=0.38, largest=50_000)), "another") == 16


def test_looking_remembers_nothing(where: str) -> None:
    kept = history(where, HistoryRule(success=0.38))
    for _ in range(3):
        for name in "ABCDEFGHIJKLMNOP":
            assert kept.look("u", table("X", name), no_difference) == ()


def test_users_without_a_token_may_have_one_history(where: str) -> None:
    """What several addresses have together is within the declared success, and free for each of them."""
    alone = answered(history(where, HistoryRule(success=0.38)), "address:alone")
    kept = history(where, HistoryRule(success=0.38, together=True))
    found = [
        kept.collect(f"address:{turn % 3}", table("X", name), no_difference)
        for turn, name in enumerate("ABCDEFGHIJKLMNOP")
    ]
    assert [isinstance(one, Refusal) for one in found] == [turn >= alone for turn in range(16)]
    assert kept.collect("address:new", table("X", "A"), no_difference) == ()
    assert isinstance(kept.look("address:new", table("X", "Q"), no_difference), Refusal)
    assert answered(kept, "token:ann") == alone, "who has a token has an own history"
    apart = history(where, HistoryRule(success=0.38))
    assert answered(apart, "address:other") == alone


def test_a_refused_table_is_not_remembered(where: str) -> None:
    kept = history(where, HistoryRule(success=0.38))
    first = answered(kept)
    assert answered(kept, names="QRSTUVW") == 0
    kept.collect("other", table("X", "Q"), no_difference)
    assert answered(kept) == first


@BOTH_DATABASES
@pytest.mark.parametrize("workers", [1, 4])
def test_requests_at_the_same_time_do_not_slip_past_the_level(where: str, workers: int) -> None:
    alone = answered(history(where, HistoryRule(success=0.38)), "alone")
    kept = [history(where, HistoryRule(success=0.38)) for _ in range(workers)]
    asked = [(kept[turn % workers], table("X", name)) for turn, name in enumerate("ABCDEFGHIJKLMNOP")]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: one[0].collect("u", one[1], no_difference), asked))
    assert sum(not isinstance(one, Refusal) for one in found) == alone


def test_threads_of_a_process_judge_the_tables_of_one_user_one_after_the_other(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two at once one would be judged twice, with what the other has added."""
    kept, judged, judge = history(where, HistoryRule(success=0.9)), [], History._judge

    def counting(*given: Any) -> Any:
        judged.append(True)
        return judge(*given)

    monkeypatch.setattr(History, "_judge", counting)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda name: kept.collect("u", table("X", name), no_difference), "ABCDEFGHIJKL")
        )
    assert found == [()] * 12
    assert len(judged) == 12
    assert kept._turns._locks == {}


@pytest.mark.parametrize(
    ("space", "success", "largest", "seed"),
    few([(EVEN, 0.42, 300_000, 0), (DEEP, 0.45, 30_000, 1), (DEEP, 0.6, 30_000, 2)], 1),
)
def test_what_is_not_looked_at_would_change_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: Even, success: float, largest: int, seed: int
) -> None:
    """Of a user's other variables only those are looked at of which there could be something to say."""
    rng, rule = random.Random(seed), HistoryRule(success=success, largest=largest)
    chosen = [rng.sample("abxy", 2) for _ in range(4)] + [rng.sample("abxyBCDEF", 2) for _ in range(3)]
    chosen += [rng.sample("abxyBCDEF", rng.choice((2, 2, 3))) for _ in range(33)]
    asked = [table(*names, space=space) for names in chosen]
    quick = history(str(tmp_path / "quick.sqlite"), rule)
    found = [quick.collect("u", one, no_difference) for one in asked]
    monkeypatch.setattr(History, "_low", math.inf)
    thorough = history(str(tmp_path / "thorough.sqlite"), rule)
    assert [thorough.collect("u", one, no_difference) for one in asked] == found
    named = [
        set(re.findall(r"(\w)\.LEVEL", one.message)) if isinstance(one, Refusal) else set() for one in found
    ]
    assert any(one - set(names) for one, names in zip(named, chosen, strict=True)), "others decide, too"


@pytest.mark.parametrize(("names", "largest"), [("AB", 30_000), ("Ax", 60_000), ("ABx", 8_000)])
def test_what_is_known_of_a_count_by_its_own_contrast_is_no_more_than_by_all(
    tmp_path: Path, names: str, largest: int
) -> None:
    kept = history(str(tmp_path / "h.sqlite"), HistoryRule(success=0.5, largest=largest))
    crossed = kept._make_crossed(cast("Space", DEEP), json.dumps(list(names)), False)
    assert 0 < crossed.guarded.sum() < crossed.guarded.size
    shape = [one.rungs for one in crossed.sides]
    plain, bounded = np.random.default_rng(3).lognormal(0, 2, (2, *shape))
    inner = tuple(slice(1, None) for _ in names)
    most = crossed.most_of(Sums(plain[inner].reshape(-1), bounded[inner].reshape(-1)))
    assert most == max(plain[tuple(depths)] for depths in np.argwhere(crossed.guarded).tolist())
    least = least_variances(plain, bounded, crossed.sides)[crossed.guarded].min()
    assert 1 / most <= least * (1 + 1e-12)


def test_of_margins_that_are_guarded_too_their_own_contrast_says_nothing(tmp_path: Path) -> None:
    kept = history(str(tmp_path / "h.sqlite"), HistoryRule(success=0.5, largest=30_000))
    crossed = kept._make_crossed(cast("Space", DEEP), '["A", "B", "x"]', False)
    assert crossed.guarded[2, 2].all(), "A by B, and both by x"
    assert crossed.most_of(Sums(np.ones(1), np.ones(1))) == math.inf


@pytest.mark.parametrize("names", [("A", "A!", "B"), ("é", "Z", "e")])
def test_levels_are_stored_as_signatures_have_them(builder: TableBuilder, names: tuple[str, ...]) -> None:
    axes = resolve(query("AGE.M", "SEX", "GEO.L"), builder.catalogue).cube.axes
    renamed = tuple(replace(axis, variable=name) for axis, name in zip(axes, names, strict=True))
    cube = Cube("", "persons", renamed)
    assert _levels(cube) == [json.dumps(cube.signature(depths).levels) for depths in cube.depths]


def collected(builder: TableBuilder, asked: Query) -> tuple[Cube, Collected]:
    cube = (question := resolve(asked, builder.catalogue)).cube
    return cube, builder._collecting(question, builder._source.table(cube))[0]


def test_only_what_is_published_of_the_same_records_is_public(builder: TableBuilder) -> None:
    """Neither the same cross-tabulations of a counted column, of another population or of another unit."""
    catalogue, kinds = builder.catalogue, set()
    for one in catalogue.tables:
        for unit, base, count in product(
            {one.unit, "households"}, {one.base, "", 'SEX == "1"'}, {one.count, "works", ""}
        ):
            axes = [name for name in one.axes if unit in catalogue.variables[name.partition(".")[0]].units]
            if (count and unit != "persons") or (base and unit != "persons"):
                continue
            cube, found = collected(builder, query(*axes, where=base, count=count, unit=unit))
            published = all(cube.signature(depths) in catalogue.published for depths in cube.depths)
            assert found.is_public == published, cube.signature(cube.depths[-1])
            kinds.add((found.is_public, unit == one.unit, base == one.base, count == one.count))
    assert {(True, True, True, True), (False, True, True, False), (False, True, False, True)} <= kinds
    assert (False, False, True, True) in kinds


def test_tables_that_are_offered_instead_of_a_refused_one_are_answered(ruled: Make) -> None:
    builder, offered = ruled(history=HistoryRule(success=0.5, largest=1000)), 0
    for others in combinations(("AGE.M", "EDU", "CAS.H", "LMS.H", "HAR", "OCC"), 2):
        found = builder.ask(query("GEO.M", *others), "u")
        if isinstance(found, Refusal):
            assert found.rule is Rule.HISTORY
            assert all(builder.preview(one.query, "u").refusal is None for one in found.nearest)
            offered += len(found.nearest)
    assert offered > 3


def test_no_table_is_offered_that_takes_long_to_judge(ruled: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may ask for refused tables as often as for others, and are charged for the work of answers only."""
    builder, limit, made = ruled(history=HistoryRule(success=0.5, largest=1000)), 2.5, set[str]()
    table = MicrodataSource.table

    def noted(self: MicrodataSource, cube: Cube) -> ProtectedTable:
        if len(cube.axes) > 1:  # sizes of codes are looked up once for each variable
            made.add(",".join(axis.full_name for axis in cube.axes))
        return table(self, cube)

    monkeypatch.setattr(MicrodataSource, "seconds", lambda *_: 1.0)
    monkeypatch.setattr("discreet.serve.builder.MOST_SECONDS", limit)
    monkeypatch.setattr(MicrodataSource, "table", noted)
    refused = 0
    for others in combinations(("AGE.M", "EDU", "CAS.H", "LMS.H", "HAR", "OCC"), 2):
        made.clear()
        if isinstance(builder.ask(query("GEO.M", *others), "u"), Refusal):
            refused += 1
            assert len(made) <= 1 + int(limit)  # what was asked for, and two to be offered
    assert refused > 3


@pytest.mark.parametrize("where", ["", 'CAS == "1.1"', 'AGE == "Y_LT15" or LOC == "1"'])
def test_depths_of_cross_tabulations_are_along_the_variables_of_axes_and_filters(
    builder: TableBuilder, where: str
) -> None:
    group = Axis("AGE", groups=(Group("young", ("Y_LT15",)),))
    for axes in ((Axis("SEX"), Axis("EDU")), (Axis("SEX"), group, Axis("EDU"))):
        cube, found = collected(builder, Query("persons", axes, where))
        roots = {axis.variable: axis.root for axis in cube.axes}
        assert len(found.tables) == len(cube.depths)
        for name, depths in found.tables.items():
            sides = {one.name: depth for one, depth in zip(found.shown.sides, depths, strict=True) if depth}
            assert sides == {roots[variable]: depth for variable, depth in json.loads(name)}


def test_a_margin_that_others_sharpen_is_judged_again(where: str) -> None:
    """A table by a and x, then others by a: what they tell of a adds to what is known of a by x, 0.404 at first."""
    kept = history(where, HistoryRule(success=0.42, largest=300_000))
    assert kept.collect("u", table("a", "x"), no_difference) == ()
    found = [kept.collect("u", table("a", name), no_difference) for name in "BCDEFGHIJKLMNOP"]
    assert not isinstance(found[0], Refusal)
    assert any(isinstance(one, Refusal) and "a.LEVEL1 x x.LEVEL1" in one.message for one in found)


@pytest.mark.parametrize("action", list(Action))
def test_populations_that_differ_by_few_are_told(where: str, action: Action) -> None:
    kept = history(where, HistoryRule(difference=10, on_difference=action))
    differences = {("b", "a"): 3, ("c", "a"): 400, ("b", "c"): 400}

    def collect(base: str, total: int) -> Refusal | tuple[str, ...]:
        one = table(populations=(Population(base, total),))
        return kept.collect("u", one, lambda new, old: differences[new, old])

    assert collect("a", 1000) == ()
    assert collect("c", 1001) == ()
    found = collect("b", 1002)
    if action is Action.WARN:
        assert isinstance(found, tuple)
        assert "fewer than 10 records" in found[0]
    else:
        assert isinstance(found, Refusal)
        assert found.rule is Rule.DIFFERENCE


@BOTH_DATABASES
def test_populations_stored_meanwhile_are_compared_before_a_user_has_sums_too(where: str) -> None:
    """A history of a time when averaging was not guarded: tables and populations, and no number that rises."""
    history(where, HistoryRule(difference=10)).collect(
        "u", table("A", populations=(Population("a", 1000),)), no_difference
    )
    kept, other = (history(where, HistoryRule(success=0.9, difference=10)) for _ in range(2))
    compared: list[tuple[str, str]] = []

    def far(new: str, earlier: str) -> int | None:
        compared.append((new, earlier))
        if len(compared) == 1:
            assert other.collect("u", table("A", populations=(Population("b", 1002),)), far) == ()
        return 500

    assert kept.collect("u", table("A", populations=(Population("c", 1001),)), far) == ()
    assert set(compared) == {("c", "a"), ("b", "a"), ("c", "b")}


def test_an_asker_cannot_subtract_two_filters(ruled: Make) -> None:
    builder = ruled(history=HistoryRule(difference=40), groupings=("AGE",))
    areas = cells(builder.ask(query("GEO.H"), "u"))
    finest = builder.catalogue.variables["GEO"].codelist.leaf_codes
    small = min(finest, key=lambda code: areas[(code,)])
    assert areas[(small,)] < 40
    assert isinstance(builder.ask(query("SEX", where='AGE != "Y_LT15"'), "u"), Answer)
    refused = builder.ask(query("SEX", where=f'GEO != "{small}"'), "u")
    assert isinstance(refused, Refusal), "everybody but a small area"
    assert refused.rule is Rule.DIFFERENCE
    assert builder.preview(query("SEX", where=f'GEO != "{small}"'), "u").refusal is not None
    men, women = query("SEX", where='SEX == "1"'), query("SEX", where='SEX == "2"')
    assert isinstance(builder.ask(men, "u"), Answer)
    assert isinstance(builder.ask(women, "u"), Answer), "totals that are close by chance are no difference"


def test_an_asker_cannot_subtract_two_groups(ruled: Make) -> None:
    builder = ruled(history=HistoryRule(difference=200), groupings=("AGE",))
    leaves = builder.catalogue.variables["AGE"].codelist.leaf_codes
    first = Query("persons", (Axis("AGE", (), (Group("most", leaves[:60]),)), Axis("EDU")))
    second = Query("persons", (Axis("AGE", (), (Group("most", leaves[:59]),)), Axis("EDU")))
    assert isinstance(builder.ask(first, "u"), Answer)
    refused = builder.ask(second, "u")
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.DIFFERENCE
    assert isinstance(builder.ask(second, "another"), Answer)
    assert isinstance(builder.ask(first, "u"), Answer)


def test_decoys_do_not_hide_a_population(where: str) -> None:
    """A user who first collects more populations of one size than can be compared gets no further one of that size."""
    kept = history(where, HistoryRule(difference=10))
    crowd = tuple(Population(f"b{number}", 1000) for number in range(100))

    def far(_new: str, _earlier: str) -> int | None:
        return 500

    def collect(name: str, total: int) -> Refusal | tuple[str, ...]:
        return kept.collect("u", table(populations=(Population(name, total),)), far)

    for one in crowd:
        assert collect(one.base, one.total) == ()
    assert collect("the last that is compared with all", 1001) == ()
    refused = collect("hidden", 1002)
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.DIFFERENCE
    assert collect("elsewhere", 5000) == ()


def test_averaging_is_guarded_from_question_to_question(ruled: Make) -> None:
    builder = ruled(history=HistoryRule(warn=0.4, success=0.5), axes=6)
    answers = [
        builder.ask(query("SEX", name), "u")
        for name in ("AGE.L", "EDU", "CAS.L", "LMS.L", "HAR", "LOC", "OCC")
    ]
    kinds = [
        "refused" if isinstance(one, Refusal) else "warned" if one.warnings else "free" for one in answers
    ]
    assert kinds[0] == "free"
    assert kinds.index("warned") < kinds.index("refused")


def test_tables_of_the_programme_are_neither_refused_nor_added_up(programme: Programme, ruled: Make) -> None:
    builder = ruled(history=HistoryRule(success=0.4, largest=1000, difference=10))
    every = [
        Query(
            cube.unit, tuple(Axis(axis.full_name) for axis in cube.axes), cube.base.text if cube.base else ""
        )
        for cube in programme.cubes
        if not cube.weight and not cube.count
    ]
    for one in (*every, *every):
        assert isinstance(builder.ask(one, "ann", job=True), Answer)
    similar = query("GEO.H", "SEX", "AGE.H", "EDU")
    assert isinstance(builder.ask(similar, "ann", job=True), Refusal)
    question = resolve(every[0], builder.catalogue)
    with builder._history._database.reading() as connection:
        collected, _ = builder._collecting(question, builder._source.table(question.cube))
        assert len(builder._history._store.new_tables(connection, "ann", collected)) == len(collected.tables)
