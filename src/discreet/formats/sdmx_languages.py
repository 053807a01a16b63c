"""SDMX structures in several languages.

pysdmx writes one text for each name and description. A text with translations is passed to it as one string, its parts
separated by characters of Unicode's private area, and its parts become texts by language in the finished message.
"""

from __future__ import annotations

import re
from typing import Any

from discreet.text.phrase import others_of

_NEXT, _TAG = "\ue000", "\ue001"  # before each translation; between its language and its text
_TEXT = re.compile(rf'(<(com:\w+) xml:lang=")en(">)([^<]*?)(?:{_NEXT}([^<]*))?</\2>')


def marked(text: str) -> str:
    """A text with its translations as one string; any other of these characters is left out."""
    parts = [_clean(text), *(f"{tag}{_TAG}{_clean(other)}" for tag, other in sorted(others_of(text).items()))]
    return _NEXT.join(parts)


def _clean(text: str) -> str:
    return str(text).replace(_NEXT, "").replace(_TAG, "")


def in_languages(message: str, own: str) -> str:
    """An SDMX-ML message with its marked texts by language; the others are in the language ``own``."""

    def written(found: re.Match[str]) -> str:
        start, name, end, text, others = found.groups()
        texts = [(own, text), *(part.split(_TAG, 1) for part in (others or "").split(_NEXT) if part)]
        return "".join(f"{start}{tag}{end}{one}</{name}>" for tag, one in texts)

    return _TEXT.sub(written, message)


def json_in_languages(content: Any, own: str) -> Any:
    """An SDMX-JSON message with its marked texts by language next to those of the language ``own``."""
    if isinstance(content, list):
        return [json_in_languages(one, own) for one in content]
    if not isinstance(content, dict):
        return content.split(_NEXT)[0] if isinstance(content, str) else content
    made: dict[str, Any] = {}
    for name, value in content.items():
        made[name] = json_in_languages(value, own)
        if isinstance(value, str) and _NEXT in value:
            first, *others = value.split(_NEXT)
            made[f"{name}s"] = {own: first, **dict(part.split(_TAG, 1) for part in others)}
    return made
