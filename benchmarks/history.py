"""The history guard of the table builder: the cost of one answer of a user who already has 1,000 to 100,000."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.io.store import Database, Journal
from discreet.maths.attacks.information import Ladder, Side, information, seen, seen_of_parts, side, with_sets
from discreet.programme.serve import HistoryRule
from discreet.serve.answer import Refusal
from discreet.serve.history import History
from discreet.serve.history_store import Collected, HistoryStore, Known, Received, Sums
from discreet.serve.information import Shown, Space

PERSONS = 100_000  # answers of one user
MILLISECONDS = 5.0  # of CPU that the guard may add to an answer
LAST = 500  # requests that are timed
AT_ONCE = 5000  # answers that are stored in one transaction
AREAS, AGES, VARIANCE = 100, 101, 2.0


class Town:
    """A hundred areas of ten districts, two sexes, and ages by groups."""

    records = 1_000_000

    @cache  # noqa: B019  # one town, for a process
    def ladder(self, variable: str) -> Ladder:
        leaves = {"AGE": AGES, "GEO": AREAS, "SEX": 2}[variable]
        upper = () if leaves == 2 else (np.arange(leaves) // 10,)
        return Ladder(
            (np.zeros(leaves, dtype=np.int64), *upper, np.arange(leaves)), np.full(leaves, 1e6 / leaves)
        )


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines = []
    for answers in (persons // 100, persons // 10, persons):
        for kind, success in (("answered", 1.0), ("mostly refused", 0.5)):
            cost = measured("history", "filtered", answers=answers, success=success)
            target = Target("ms of CPU", 1000 * cost.cpu / LAST, MILLISECONDS, 2)
            work = f"{LAST} filtered tables of a user with {answers:,} requests, {kind}"
            lines.append(
                Line(work, f"Discreet ({cost.facts['answered']:,.0f} answered)", cost, targets=(target,))
            )
    notes = (
        "Areas by sex, ages in a random set and its opposite, in turn; SQLite, one transaction for each answer.",
    )
    return [Section("History of the table builder", tuple(lines), notes)]


def filtered(watch: Stopwatch, answers: int, success: float) -> dict[str, float]:
    """The last requests of many; the earlier ones are not timed, and stored many at a time."""
    with tempfile.TemporaryDirectory() as place:
        database = Database(Path(place) / "h.sqlite", "store", Journal.AHEAD)
        kept = History(database, HistoryRule(success=success), VARIANCE)
        rng, space = np.random.default_rng(5), Town()
        if success < 1:
            before = sum(_is_answered(kept, rng, space) for _ in range(answers - LAST))
        else:
            before = answers - LAST
            _store(database, rng, space, before)
        with watch.running():
            after = sum(_is_answered(kept, rng, space) for _ in range(LAST))
    return {"answered": before + after}


def _store(database: Database, rng: np.random.Generator, space: Town, answers: int) -> None:
    """Store as many answers as a user has, each with its sets."""
    store = HistoryStore(database)
    for start in range(0, answers, AT_ONCE):
        with database.writing() as connection:
            for _ in range(start, min(answers, start + AT_ONCE)):
                table = _table(rng, space)
                plain, bounded = information(table.shown.sides, np.ones((1, 3, 2)), space.records)
                sums = {
                    name: Sums(plain[at].reshape(-1), bounded[at].reshape(-1))
                    for name, at in table.shown.blocks
                }
                known = Known(store.last(connection, "u", table))
                store.remember(connection, [Received("u", table, tuple(table.tables), sums, known)])


def _is_answered(kept: History, rng: np.random.Generator, space: Town) -> bool:
    return not isinstance(kept.collect("u", _table(rng, space), lambda _one, _other: None), Refusal)


@cache
def _whole(space: Town, variable: str) -> Side:
    """A variable without a filter, which a server has at hand."""
    ladder = space.ladder(variable)
    every = np.ones(len(ladder.sizes), dtype=bool)
    return side(variable, ladder, [seen(ladder, depth, every) for depth in range(len(ladder.levels))])


def _table(rng: np.random.Generator, space: Town) -> Collected:
    """Areas by sex of a random half of all ages."""
    inside = rng.permutation(AGES) < AGES // 2
    name, ladder = inside.tobytes().hex(), space.ladder("AGE")
    rows = np.where(inside, 0, -1)
    ages = with_sets(
        side("AGE", ladder, [seen(ladder, 0, inside)]),
        [seen_of_parts(ladder.weights, inside.astype(np.int64), rows)],
        0.5,
    )
    sides = (ages, _whole(space, "GEO"), _whole(space, "SEX"))
    tables = {json.dumps([geo, sex]): (0, geo, sex) for geo, sex in product(range(3), range(2))}
    shown = Shown(cast("Space", space), sides, (name, "", ""), (1, 2))
    return Collected("persons", name, "", tables, shown, ())
