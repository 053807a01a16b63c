"""Where each code stands among the leaves that records hold; it does not draw them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from discreet.schema.codelist import Code, Codelist, codelist
from discreet.schema.eu2021 import codelist_rows

NOT_PRIVATE = "X"  # the size and type of a household of someone who does not live in a private one


@cache
def tree(variable: str) -> Codelist:
    """The codelist of a variable that is the same for every country."""
    return codelist(variable, rows(variable))


def rows(variable: str) -> list[Code]:
    """The codes of a variable of the programme, or of the household's size and type as its members carry them."""
    outside = Code(NOT_PRIVATE, "", "Not in a private household")
    if variable == "HHSIZE":
        return [*codelist_rows("SPH"), outside]
    if variable == "HHTYPE":
        return [*codelist_rows("TPH"), outside]
    return codelist_rows(variable)


@cache
def leaf(variable: str) -> Mapping[str, int]:
    """Each leaf's code and the small number that stands for it in a column."""
    return {code: index for index, code in enumerate(tree(variable).leaf_codes)}


def leaf_numbers(variable: str, *codes: str) -> list[int]:
    """The numbers of some leaves, in the order given."""
    return [leaf(variable)[code] for code in codes]
