"""The engines that a run can compute with; commands offer them without loading what a programme declares."""

from __future__ import annotations

from enum import StrEnum


class EngineKind(StrEnum):
    """Where a run computes: in this process, or on Spark."""

    EMBEDDED = "embedded"
    SPARK = "spark"
