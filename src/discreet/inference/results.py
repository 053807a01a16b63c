"""What every function of inference returns: a typed result with a sentence, that a notebook shows as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.errors import mistake

if TYPE_CHECKING:
    import pandas as pd


class Inferred:
    """A result with a ``sentence``, the ``assumption`` that it needs, and ``caveats``."""

    sentence: str
    assumption: str
    caveats: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """The whole result, ready for JSON; infinite values are null."""
        return dict(_finite(asdict(self)))  # type: ignore[call-overload]

    def to_pandas(self) -> pd.DataFrame:
        """Every figure by name, as a pandas data frame."""
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            raise mistake("", "pandas", "is not installed", "install it: pip install pandas") from None
        rows = list(_figures(self.summary()))
        frame: pd.DataFrame = pandas.DataFrame(rows, columns=["figure", "value"])
        return frame

    def _repr_html_(self) -> str:
        lines = [self.sentence, f"Assumed: {self.assumption}.", *(f"Note: {one}." for one in self.caveats)]
        return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _finite(value: Any) -> Any:
    """The value for JSON, which has no infinity: null instead."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _figures(found: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _figures(value, f"{above}{name}.")
        elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            for place, one in enumerate(value):
                yield from _figures(one, f"{above}{name}.{place}.")
        elif above or name not in ("sentence", "assumption", "caveats"):
            yield f"{above}{name}", value
