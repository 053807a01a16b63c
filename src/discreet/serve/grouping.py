"""Custom groupings: an axis whose codes are unions of a variable's codes, named by the user.

It owns their checks and their identity: the same groups are the same axis, however they are named and ordered.
Whether a variable may be grouped is a rule's to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from discreet.errors import Problem
from discreet.schema.codelist import TOTAL, TOTAL_LABEL, Breakdown, Codelist
from discreet.schema.expression import MOST_TOLD, alternatives
from discreet.serve.catalogue import ServedVariable
from discreet.serve.query import LONGEST_NAME, Axis, Group
from discreet.words.phrase import phrase

MOST_GROUPS = 200


def grouped(variable: ServedVariable, axis: Axis, key: str) -> tuple[Breakdown | None, list[Problem]]:
    """The axis of some groups, the one with the first leaf first; leaves in no group count in the total alone."""
    problems = list(_problems(variable, axis, key))
    if problems:
        return None, problems
    masks = {group.name: variable.codelist.leaves_below(group.codes) for group in axis.groups}
    names = sorted(masks, key=lambda name: int(np.argmax(masks[name])))
    node_of_leaf = np.zeros(len(variable.codelist.leaves), dtype=np.int32)
    for node, name in enumerate(names, start=1):
        node_of_leaf[masks[name]] = node
    parents = np.array([-1, *(0 for _ in names)], dtype=np.int32)
    # as long as no two groupings can be found that share it: equal names have equal noise and are paid for once
    alias = f"{variable.name}~{hashlib.blake2b(node_of_leaf.tobytes(), digest_size=32).hexdigest()}"
    made = Breakdown(alias, alias, (TOTAL, *names), (TOTAL_LABEL, *names), parents, node_of_leaf)
    return made, []


def tree_of(axis: Breakdown) -> Codelist:
    """The groups as a codelist of their own, which names them by their place and not by the user's words."""
    groups = len(axis) - 1
    return Codelist(axis.variable, axis.codes[1:], axis.labels[1:], (-1,) * groups, (1,) * groups)


def normal(tree: Codelist, group: Group) -> Group:
    """The group with the fewest codes that mean the same, in the order of the codelist."""
    return Group(group.name, tree.fewest_codes(tree.leaves_below(group.codes)))


def _problems(variable: ServedVariable, axis: Axis, key: str) -> Iterator[Problem]:
    if axis.breakdown != variable.name:
        value = phrase("groups beside the breakdown {name}", name=repr(axis.breakdown))
        remedy = phrase("name the variable alone, {variable}", variable=variable.name)
        yield Problem("", f"{key}.breakdown", value, remedy)
    if len(axis.groups) > MOST_GROUPS:
        value = phrase("{number} groups", number=len(axis.groups))
        yield Problem("", f"{key}.groups", value, phrase("use at most {most}", most=MOST_GROUPS))
        return
    names = [group.name for group in axis.groups]
    for name in names:
        if not _is_plain(name) or name == TOTAL or len(name) > LONGEST_NAME or names.count(name) > 1:
            remedy = phrase(
                "give each group a name of its own, of up to {most} printable characters, the first none of = + - @",
                most=LONGEST_NAME,
            )
            yield Problem("", f"{key}.groups", phrase("name {name}", name=repr(name[:60])), remedy)
    unknown = list(islice(_unknown_codes(variable.codelist, axis.groups, key), MOST_TOLD))
    yield from unknown or _overlaps(variable.codelist, axis.groups, key)


def _is_plain(name: str) -> bool:
    """Whether no file and no spreadsheet takes a name for more: links hand it on to others than its author."""
    return name.isprintable() and bool(name.strip()) and not name.lstrip().startswith(("=", "+", "-", "@"))


def _unknown_codes(tree: Codelist, groups: Sequence[Group], key: str) -> Iterator[Problem]:
    for group in groups:
        if not group.codes:
            value = phrase("{group} holds no codes", group=repr(group.name[:60]))
            yield Problem("", f"{key}.groups", value, phrase("name some"))
        for code in group.codes:
            if code not in tree.position:
                value = phrase("unknown code {code}", code=repr(code[:60]))
                yield Problem("", f"{key}.groups", value, alternatives(code, tree.codes))


def _overlaps(tree: Codelist, groups: Sequence[Group], key: str) -> Iterator[Problem]:
    held = np.zeros(len(tree.leaves), dtype=bool)
    for group in groups:
        leaves = tree.leaves_below(group.codes)
        if (held & leaves).any():
            value = phrase("{group} shares codes with another group", group=repr(group.name[:60]))
            yield Problem("", f"{key}.groups", value, phrase("put each code into one group"))
        held |= leaves
