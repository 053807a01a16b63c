"""What a specification draws: the rows behind a chart or one of its layers."""

from typing import Any


def rows(spec: dict[str, Any], part: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["datasets"][(part or spec)["data"]["name"]]
    return found
