"""Filter expressions on codes (population bases, structural zeros); it owns their grammar, not the data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Filter:
    """A checked expression such as ``HST in ("1.1", "1.2") and AGE != "Y_LT15"``."""

    text: str
