"""Manifests of format 1, which state in sentences what format 2 stores as numbers: the only module that parses them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict

from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.named import measure_of
from discreet.maths.noise.publishing import Negatives
from discreet.maths.privacy.accounting import Neighbours
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.release import Disclosure
from discreet.release.noise_entry import GuaranteeEntry, NoiseEntry, ParametersEntry, PublishingEntry

FORMAT_1 = 1


class NoiseStatement(BaseModel):
    """The ``noise`` of a format 1 manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    method: str
    kind: LawKind
    disclose: Disclosure
    variance: float | None = None
    bound: str | None = None  # "at most 10"
    parameters: dict[str, int | float | str] | None = None
    law: tuple[dict[int, float], ...] | None = None
    law_parameter: str | None = None
    other_laws: dict[str, str] | None = None
    guarantee: str | None = None  # a sentence


def noise_of_format_1(content: object) -> NoiseEntry:
    """The noise of a format 1 manifest as format 2 has it."""
    said = NoiseStatement.model_validate(content)
    return _cell_key(said) if said.kind is LawKind.CELL_KEY else _private(said)


def _cell_key(said: NoiseStatement) -> NoiseEntry:
    given = said.parameters or {}
    return NoiseEntry(
        kind=said.kind,
        disclose=said.disclose,
        drawing=Draw.PARTICIPANTS,
        zeros=KeptZeros.ALL,
        variance=float(given["V"]) if "V" in given else said.variance,
        bound=int(given["D"]) if "D" in given else _first_number(said.bound),
        parameters=ParametersEntry(js=int(given["js"])) if "js" in given else None,
        law=said.law or None,
    )


def _private(said: NoiseStatement) -> NoiseEntry:
    words = {name: str(value) for name, value in (said.parameters or {}).items()}
    neighbours = Neighbours(words.get("neighbours", Neighbours.ADD_REMOVE.value))
    unit = Protects(words.get("protects", Protects.PERSON.value))
    measure = measure_of(said.kind)
    amount: dict[str, Any] = {measure: words.get(measure)}
    return NoiseEntry(
        kind=said.kind,
        disclose=said.disclose,
        drawing=Draw(words.get("draw", Draw.DESCRIPTION.value)),
        zeros=KeptZeros(words.get("keep_zeros", KeptZeros.STRUCTURAL.value)),
        variance=said.variance,
        bound=_first_number(words.get("bound")),
        publishing=PublishingEntry(
            negatives=Negatives(words.get("negatives", Negatives.KEEP.value)),
            rounding=int(words.get("rounding", 1)),
            threshold=int(words.get("threshold", 0)),
        ),
        parameters=ParametersEntry(
            **amount,
            split=Split(words.get("split", Split.EVEN.value)),
            cross_tabulations=_first_number(words.get("cross-tabulations")),
            neighbours=neighbours,
            unit=unit,
            cell=said.law_parameter,  # type: ignore[arg-type]  # read as a fraction
            other_cells=said.other_laws,  # type: ignore[arg-type]
        ),
        guarantee=None
        if said.guarantee is None
        else GuaranteeEntry(
            **amount,
            delta=_delta(said.guarantee),
            neighbours=neighbours,
            unit=unit,
            largest_household=_first_number(said.guarantee.partition("at most")[2]),
        ),
    )


def _first_number(text: str | None) -> int | None:
    found = re.search(r"\d[\d,]*", text or "")
    return int(found.group().replace(",", "")) if found else None


def _delta(sentence: str) -> Fraction | None:
    """The delta of a guarantee; that of rho without one was written as 0, and is read as None."""
    found = re.search(r"delta = ([\d.e+-]+\d)", sentence)
    return Fraction(found.group(1)) if found else None
