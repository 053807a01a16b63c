"""The gap attack on a release: guessing the noise of totals from the gaps to their parts.

It is for the cell key method and a known p-table. With permuted keys the gap helps no more than that of independent
noises; with plain sums more, and the gaps themselves show which of the two it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.audit.bound_propagation import cut
from discreet.audit.evidence import Published, Truth, cells_of
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.key_gaps import (
    FEWEST,
    GapRule,
    evidence,
    independent_rule,
    keyed_rule,
    most_parts,
    right_guesses,
    tally,
    unaided_chance,
)
from discreet.maths.cells.lookup import Lookup, Order, build
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.perturb.noise import LARGE

BLOCK = 1 << 24  # cells that are worked on at once
DECIDED = 14.0  # nats: odds of a million to one

Seen = Mapping[int, NDArray[np.int64]]  # parts -> tuples by (noise of the total, gap)


@dataclass(frozen=True, kw_only=True)
class KeyGapFindings:
    """How well gaps of large counts predict the noise of totals, by the laws and by the gaps that are published."""

    tuples: int
    by_parts: Mapping[int, int]
    unaided: float  # chance of the best guess without a gap
    independent: float  # with it, the noises of parts and total being independent
    plain_sums: (
        float | None
    )  # with it, keys being plain sums; None where larger counts have several rows of keys
    evidence: float | None  # log-likelihood ratio of plain sums over independence

    @property
    def shows_sums(self) -> bool | None:
        """Whether the gaps show that keys add up; None where they do not decide."""
        if self.evidence is None or abs(self.evidence) < DECIDED:
            return None
        return self.evidence > 0

    @property
    def chance(self) -> float:
        """The chance of an attacker who goes by what the gaps show."""
        return self.plain_sums if self.plain_sums is not None and self.shows_sums else self.independent

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {**vars(self), "shows_sums": self.shows_sums, "chance": self.chance}


@dataclass(frozen=True, eq=False)
class KeyGaps:
    """The attack: tuples of large counts by their gaps, and the laws to guess by."""

    published: Published
    noise: Pmf  # of large counts
    lookup: Lookup
    least: int  # published counts from this on have the noise of large ones
    seen: Seen

    @cached_property
    def independent(self) -> Mapping[int, GapRule]:
        """Parts -> the rule for independent noises."""
        return {parts: independent_rule(self.noise, parts) for parts in self.seen}

    @cached_property
    def plain(self) -> Mapping[int, GapRule]:
        """Parts -> the rule for plain sums of keys; none where larger counts have several rows of keys."""
        if self.lookup.wrap_length > 1:
            return {}
        return {parts: keyed_rule(self.lookup, parts) for parts in self.seen}

    def findings(self) -> KeyGapFindings:
        """What is known without a true count."""
        numbers = {parts: int(one.sum()) for parts, one in self.seen.items()}
        found = None
        if self.plain:
            found = sum(
                evidence(self.plain[parts], self.independent[parts], one.sum(axis=0))
                for parts, one in self.seen.items()
            )
        return KeyGapFindings(
            tuples=sum(numbers.values()),
            by_parts=numbers,
            unaided=unaided_chance(self.noise),
            independent=_mean_chance(self.independent, numbers),
            plain_sums=_mean_chance(self.plain, numbers) if self.plain else None,
            evidence=found,
        )


def _mean_chance(rules: Mapping[int, GapRule], numbers: Mapping[int, int]) -> float:
    return sum(rules[parts].chance * many for parts, many in numbers.items()) / sum(numbers.values())


def key_gaps(published: Published, lookup: Lookup | None = None, progress: Progress | None = None) -> KeyGaps:
    """Collect the gaps of all tuples of large counts; ``lookup`` is that of the office, otherwise in plain order."""
    noise = published.noise
    if not (noise.same_noise and noise.keeps_zeros):
        raise mistake("", "key gaps", "noise without cell keys", "only the cell key method has them")
    if not isinstance(noise.law, PTableLaw):
        raise mistake("", "noise", "its p-table is not public", "give the p-table or the private side")
    law = noise.law.row(LARGE).shifted(-LARGE)
    reach = max(-law.first, law.last)
    if most_parts(reach) < FEWEST:
        raise mistake("", "key gaps", "noise that is too wide for gaps to help", "leave it out")
    least = noise.law.ptable.last_row + reach
    seen = _tallied(published, None, least, reach, progress or Quiet())
    if not seen:
        remedy = "give a release with larger counts"
        raise mistake("", "key gaps", f"no total has parts of {least} or more each", remedy)
    return KeyGaps(published, law, lookup or build(noise.law.ptable, Order.PLAIN), least, seen)


def _tallied(published: Published, truth: Truth | None, least: int, reach: int, progress: Progress) -> Seen:
    most = most_parts(reach)
    seen = np.zeros((most + 1, 2 * reach + 1, 2 * (most + 1) * reach + 1), dtype=np.int64)
    progress.stage("gaps of totals", sum(len(universe.tables) for universe in published.universes))
    for universe in published.universes:
        for one in cut(universe, BLOCK):
            cells = one.table.load()
            counts = None if truth is None else cells_of(truth.counted, one.table.id)
            for block in one.blocks:
                shown = block.dense(cells)
                true = shown if counts is None else block.dense(counts)
                for tuples in one.tuples(block):
                    grids = shown.reshape(tuples.shape), true.reshape(tuples.shape)
                    tally(*grids, *tuples.arrays, least, reach, seen)
            progress.step()
    return {
        parts: seen[parts, :, : 2 * (parts + 1) * reach + 1]
        for parts in range(FEWEST, most + 1)
        if seen[parts].any()
    }


@dataclass(frozen=True, kw_only=True)
class KeyGapJudgement:
    """How many noises of totals are guessed right, by each rule: only numbers."""

    keys: str  # permuted or plain
    tuples: int
    unaided: int  # right without the gap
    independent: int  # right by the rule for independent noises
    plain_sums: int | None  # right by the rule for plain sums
    expected: float | None  # of the best rule for these keys, by the law
    hindsight: int  # right by the best rule that the true noises would allow to choose

    @property
    def share(self) -> float:
        """The share that the better rule guesses right."""
        return max(self.independent, self.plain_sums or 0) / self.tuples if self.tuples else 0.0

    @property
    def expected_share(self) -> float | None:
        """The share that the best rule for these keys is expected to guess right."""
        return None if self.expected is None or not self.tuples else self.expected / self.tuples

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {**vars(self), "share": self.share}


def judge(found: KeyGaps, truth: Truth, keys: str, progress: Progress | None = None) -> KeyGapJudgement:
    """Compare the guesses with the true noises."""
    reach = max(-found.noise.first, found.noise.last)
    seen = _tallied(found.published, truth, found.least, reach, progress or Quiet())
    rules = found.plain if keys == "plain" else found.independent
    return KeyGapJudgement(
        keys=keys,
        tuples=sum(int(one.sum()) for one in seen.values()),
        unaided=sum(
            int(one[int(found.noise.p.argmax()) + found.noise.first + reach].sum()) for one in seen.values()
        ),
        independent=sum(right_guesses(found.independent[parts], one) for parts, one in seen.items()),
        plain_sums=sum(right_guesses(found.plain[parts], one) for parts, one in seen.items())
        if found.plain
        else None,
        expected=sum(rules[parts].chance * int(one.sum()) for parts, one in seen.items()) if rules else None,
        hindsight=sum(int(one.max(axis=0).sum()) for one in seen.values()),
    )
