"""Identifiers that SDMX accepts, made from ours; it owns the spelling, not the structures.

SDMX ids consist of letters, digits, ``_``, ``@``, ``$`` and ``-``; those of maintained things and of
components start with a letter. Codes such as ``1.1`` are therefore spelled ``1_1`` in SDMX files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.schema.codelist import Breakdown

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_@$-]")
_FORBIDDEN_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


def code_ids(codes: Iterable[str]) -> tuple[str, ...]:
    """Spell every code as an SDMX id; where two codes become one the later gets a number."""
    spelled: dict[str, None] = {}
    for code in codes:
        plain = _FORBIDDEN.sub("_", code)
        unique, number = plain, 1
        while unique in spelled:
            number += 1
            unique = f"{plain}_{number}"
        spelled[unique] = None
    return tuple(spelled)


def component_id(variable: str) -> str:
    """Spell a variable as the id of a dimension and of its concept."""
    plain = _FORBIDDEN_IN_NAME.sub("_", variable)
    return plain if plain[:1].isalpha() else f"V_{plain}"


def codelist_id(axis: Breakdown) -> str:
    """The codelist of a breakdown: CL_<VARIABLE>_<BREAKDOWN>."""
    return "CL_" + _FORBIDDEN_IN_NAME.sub("_", axis.full_name)


def hierarchy_id(axis: Breakdown) -> str:
    """The hierarchy of a breakdown: H_<VARIABLE>_<BREAKDOWN>."""
    return "H_" + _FORBIDDEN_IN_NAME.sub("_", axis.full_name)


def dataflow_id(cube: str) -> str:
    """The dataflow of a cube."""
    return "DF_" + _FORBIDDEN_IN_NAME.sub("_", cube)


def structure_id(cube: str) -> str:
    """The data structure definition of a cube."""
    return "DSD_" + _FORBIDDEN_IN_NAME.sub("_", cube)
