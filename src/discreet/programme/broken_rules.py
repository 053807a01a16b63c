"""Which of many rules some record breaks: all rules at once, one lookup per record and variable.

Structural zeros are nearly all of the form ``A and B and ...`` with one comparison per variable. Each has a bit; a
leaf of a variable has the bits of the rules that it does not speak against, and the bits that all leaves of a record
have are those of the rules that it breaks. Rules of another form are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import keep_bits
from discreet.programme.filter import Columns, Comparison, Filter, Term, masks

_TOGETHER = 64  # rules, the bits of a word
_AT_ONCE = 1 << 16  # records whose words stay in the cache
_EVERY = np.uint64(2**64 - 1)


class Rules:
    """Rules that no record may break, prepared to be compared with many batches of records."""

    def __init__(self, rules: Sequence[Filter]) -> None:
        plain = [rule for rule in rules if comparisons(rule.term)]
        self._others = [rule for rule in rules if not comparisons(rule.term)]
        self._groups = [_Conjunctions(plain[at : at + _TOGETHER]) for at in range(0, len(plain), _TOGETHER)]

    def broken(self, columns: Columns) -> set[Filter]:
        """The rules that some record passes, which none may."""
        records = len(next(iter(columns.values()), ()))
        found: set[Filter] = set()
        for start in range(0, records, _AT_ONCE):
            part = {name: leaves[start : start + _AT_ONCE] for name, leaves in columns.items()}
            for group in self._groups:
                found.update(group.broken(part))
            passing = zip(self._others, masks(self._others, part), strict=True)
            found.update(rule for rule, records_of_it in passing if records_of_it.any())
        return found


def comparisons(term: Term) -> tuple[Comparison, ...]:
    """The comparisons of a conjunction with one per variable; none for an expression of another form."""
    if isinstance(term, Comparison):
        return (term,)
    found = tuple(part for part in term.terms if isinstance(part, Comparison))
    is_plain = term.word == "and" and len({one.variable for one in found}) == len(term.terms)
    return found if is_plain else ()


class _Conjunctions:
    """At most 64 conjunctions: for each variable the rules that each of its leaves does not speak against."""

    def __init__(self, rules: Sequence[Filter]) -> None:
        self._rules = rules
        self._tables: dict[str, NDArray[np.uint64]] = {}
        for bit, rule in enumerate(rules):
            for one in comparisons(rule.term):
                every = np.full(len(one.lookup), _EVERY)
                table = self._tables.setdefault(one.variable, every)
                table[~one.lookup] &= ~np.uint64(1 << bit)

    def broken(self, columns: Columns) -> Iterator[Filter]:
        """Those that some record breaks."""
        records = len(next(iter(columns.values()), ()))
        words = np.full(records, np.uint64((1 << len(self._rules)) - 1))
        for name, table in self._tables.items():
            keep_bits(words, columns[name], table)
        found = int(np.bitwise_or.reduce(words)) if records else 0
        yield from (rule for bit, rule in enumerate(self._rules) if found >> bit & 1)
