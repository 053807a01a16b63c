"""What names and versions in an address match; it owns their wildcards, not what is looked up."""

from __future__ import annotations

import re

ANY = frozenset({"", "*", "all"})
_ANY_VERSION = ANY | {"latest", "+", "~"}
_NUMBERS = re.compile(r"[0-9]+")


def matches(asked: str, held: str) -> bool:
    """Whether a name in an address means a held one: itself, a list with it, or all."""
    return any(part in ANY or part == held for part in re.split(r"[,+ ]", asked))


def matches_version(asked: str, held: str) -> bool:
    """Whether a version in an address means the held one: only one version of anything is held.

    ``1.0`` is ``1.0.0``; ``2.3+.0`` (or ``~``) is any version from 2.3.0 on whose numbers before the sign are the same.
    """
    return any(_one_version(part, held) for part in asked.split(","))


def _one_version(asked: str, held: str) -> bool:
    if asked in _ANY_VERSION:
        return True
    before, sign, _ = asked.replace("~", "+").partition("+")
    wanted, have = _numbers(asked), _numbers(held)
    if not wanted:
        return False
    if not sign:
        return wanted == have and bool(re.fullmatch(r"[0-9.]+", asked))
    fixed = len(_NUMBERS.findall(before)) - 1
    return wanted[:fixed] == have[:fixed] and wanted <= have


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(number[:9]) for number in _NUMBERS.findall(version)[:3]]
    return (*found, *[0] * (3 - len(found))) if found else ()
