"""What a user has collected is counted, judged, kept through a kill, and apart from what others have."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.io.store import Database, Journal
from discreet.maths.attacks.redundancy import exposure
from discreet.programme.cube import Signature
from discreet.programme.serve import Action, HistoryRule
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.history import History, averaged
from discreet.serve.history_store import Collected, Levels, Population, Received, Statistic
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query
from tests.serve.conftest import NOON, cells, query

Make = Callable[..., TableBuilder]


def statistic(cells: int, **levels: int) -> Statistic:
    return Statistic(Signature("persons", "", "", tuple(sorted(levels.items()))), cells)


def table(*statistics: Statistic, populations: tuple[Population, ...] = ()) -> Collected:
    return Collected(statistics, populations)


@pytest.fixture
def store(where: str) -> Store:
    return Store(where, lambda: NOON)


def history(where: str, rule: HistoryRule) -> History:
    return History(Database(where, "store", Journal.AHEAD), rule)


def received(of: dict[Levels, int]) -> Received:
    return Received().extended(list(of), list(of.values()), 1)


def no_difference(_new: str, _earlier: str) -> int | None:
    raise AssertionError("nothing to compare")


def test_representations_are_those_that_add_up_to_the_statistic() -> None:
    """Bach's example: a total shown by itself, by 2, by 2 and by 4 cells, and by 50: the best weights are 1/cells."""
    have = received({(): 1, (("A", 1),): 2, (("B", 1),): 2, (("A", 1), ("B", 1)): 4, (("A", 2),): 50})
    total = averaged(statistic(1), have)
    assert total.t == 5
    assert total.variance == pytest.approx(1 / (1 + 1 / 2 + 1 / 2 + 1 / 4 + 1 / 50))
    assert averaged(statistic(2, A=1), have).variance == pytest.approx(1 / (1 + 2 / 4 + 2 / 50))
    assert averaged(statistic(50, A=2), have).variance == 1.0


def test_the_guard_asks_the_function_that_judges_programmes() -> None:
    """What a user collects of a whole programme is as exposed as the programme's redundancy says."""
    sizes = [1, 2, 2, 4, 8, 8]
    have = received({tuple((f"V{n}_{k}", 1) for k in range(n)): size for n, size in enumerate(sizes)})
    assert averaged(statistic(1), have) == exposure(sizes).best


def test_the_guard_warns_and_then_refuses(where: str) -> None:
    kept = history(where, HistoryRule(warn=0.6, refuse=0.45))
    total = statistic(1)
    assert kept.collect("u", table(total, statistic(2, A=1)), no_difference) == ()
    warned = kept.collect("u", table(total, statistic(2, B=1)), no_difference)
    assert isinstance(warned, tuple)
    assert "could be averaged from 3 representations to 0.5 times the variance of one count" in warned[0]
    refused = kept.collect("u", table(total, statistic(2, C=1)), no_difference)
    assert isinstance(refused, Refusal)
    assert refused.rule is Rule.HISTORY
    assert kept.collect("u", table(total, statistic(2, B=1)), no_difference) == (), "a repeated one is free"
    assert kept.collect("other", table(total, statistic(2, C=1)), no_difference) == ()
    again = history(where, HistoryRule(warn=0.6, refuse=0.45))
    assert isinstance(again.collect("u", table(total, statistic(2, C=1)), no_difference), Refusal)


def test_looking_remembers_nothing(where: str) -> None:
    kept = history(where, HistoryRule(refuse=0.5))
    for name in "ABCD":
        assert kept.look("u", table(statistic(1), statistic(2, **{name: 1})), no_difference) == ()


def test_requests_at_the_same_time_do_not_slip_past_the_level(where: str) -> None:
    kept = history(where, HistoryRule(refuse=0.45))
    asked = [table(statistic(1), statistic(2, **{name: 1})) for name in "ABCDEFGH"]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: kept.collect("u", one, no_difference), asked))
    assert sum(not isinstance(one, Refusal) for one in found) == 2


@pytest.mark.parametrize("action", list(Action))
def test_populations_that_differ_by_few_are_told(where: str, action: Action) -> None:
    kept = history(where, HistoryRule(difference=10, on_difference=action))
    differences = {("b", "a"): 3, ("c", "a"): 400, ("b", "c"): 400}

    def collect(base: str, total: int) -> Refusal | tuple[str, ...]:
        one = table(statistic(1), populations=(Population(base, total),))
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


def test_averaging_is_guarded_from_question_to_question(ruled: Make) -> None:
    builder = ruled(history=HistoryRule(warn=0.45, refuse=0.35), axes=6)
    answers = [
        builder.ask(query("SEX", name), "u")
        for name in ("AGE.L", "EDU", "CAS.L", "LMS.L", "HAR", "LOC", "OCC")
    ]
    kinds = [
        "refused" if isinstance(one, Refusal) else "warned" if one.warnings else "free" for one in answers
    ]
    assert kinds[0] == "free"
    assert kinds.index("warned") < kinds.index("refused")
