"""Words for what a model finds wrong with the form of a request; which errors there are is pydantic's matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.words.phrase import Phrase, phrase

Context = Mapping[str, Any]

_NUMBER, _WHOLE = phrase("is no number"), phrase("is no whole number")
_LIST, _TABLE, _TEXT = phrase("is no list"), phrase("is no table"), phrase("is no text")
_FIXED = {
    "missing": phrase("is missing"),
    "extra_forbidden": phrase("is not known here"),
    "json_invalid": phrase("is no JSON"),
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "list_type": _LIST,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "model_attributes_type": _TABLE,
    "string_type": _TEXT,
}
_WITH_LIMIT: Mapping[str, Callable[[Context], Phrase]] = {
    "string_too_long": lambda said: phrase("has more than {most} characters", most=said["max_length"]),
    "too_long": lambda said: phrase("has more than {most} entries", most=said["max_length"]),
    "too_short": lambda said: phrase("has fewer than {least} entries", least=said["min_length"]),
    "greater_than_equal": lambda said: phrase("is below {least}", least=said["ge"]),
    "less_than_equal": lambda said: phrase("is above {most}", most=said["le"]),
    "enum": lambda said: phrase("is none of {expected}", expected=said["expected"]),
    "string_pattern_mismatch": lambda said: phrase("is not of the form {form}", form=said["pattern"]),
}


def invalid_words(error: Mapping[str, Any]) -> str:
    """What is wrong, without what was sent; an error that is not known here keeps its English words."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WITH_LIMIT:
        return _WITH_LIMIT[kind](context)
    ours = next(iter(getattr(context.get("error"), "args", ())), "")  # what a check of our own raised
    return ours if isinstance(ours, Phrase) else _FIXED.get(kind, str(error["msg"]))
