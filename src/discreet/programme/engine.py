"""The ``[engine]`` section: where a run computes, and how its Spark session is made.

It changes nothing that is published: releases have the same bytes on every engine, so that no digest of a run's
parameters contains it. Credentials are refused: a programme is shared and versioned, and Spark shows its settings in
the command line of its processes, its event log and its pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from discreet.programme.engine_kind import EngineKind
from discreet.programme.section import Declared, Findings, Text, matching, with_home

Memory = Annotated[str, matching(r"[1-9][0-9]*[mgtMGT]", 'write an amount such as "512m" or "8g"')]
Package = Annotated[
    str,
    matching(
        r"[\w.-]+:[\w.-]+:[\w.-]+", 'write group:artifact:version, such as "io.delta:delta-spark_2.13:4.0.0"'
    ),
]
WAIT = 120

_CREDENTIAL = re.compile(
    r"secret|passw|passphrase|token|credential|access\.?key|account\.?key|private\.?key|sas\.fixed",
    re.IGNORECASE,
)
_NAMES_A_PLACE = re.compile(r"(provider|providers|provider\.path|file|enabled|type|class)$", re.IGNORECASE)
_CREDENTIAL_IN_VALUE = re.compile(
    r"://[^\s/@]*:[^\s/@]*@|(secret|passw\w*|passphrase|token|access\.?key)\s*=", re.IGNORECASE
)
_CREDENTIALS = (
    "leave it to the cluster: an instance role, spark-defaults.conf or a Hadoop credential provider"
)


class DeclaredMemory(Declared):
    """The memory of Spark's processes."""

    driver: Memory | None = None
    executor: Memory | None = None


class DeclaredEngine(Declared):
    """Where a run computes."""

    kind: Literal["embedded", "spark"]
    master: Text | None = None
    packages: list[Package] = []
    shuffle_partitions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    memory: DeclaredMemory = Field(default_factory=DeclaredMemory)
    wait: Annotated[int, Field(ge=1, le=86_400)] = WAIT
    folder: Text | None = None
    spark: dict[Text, object] = {}


@dataclass(frozen=True)
class EngineRule:
    """The engine of a run; the settings are those of Spark by their full names, and none is a credential."""

    kind: EngineKind = EngineKind.EMBEDDED
    settings: Mapping[str, str] = field(default_factory=dict)
    wait: int = WAIT  # seconds until the cluster must have run its first task
    folder: Path | None = None  # that driver and executors see

    @property
    def is_local(self) -> bool:
        """Whether Spark runs on this machine only, so that every folder is seen by its executors."""
        return self.settings.get("spark.master", "local").startswith("local")

    def of_kind(self, kind: EngineKind) -> EngineRule:
        """The same settings on another engine, as a command's option requests it."""
        return replace(self, kind=kind)


EMBEDDED = EngineRule()


def resolve_engine(declared: DeclaredEngine | None, findings: Findings) -> EngineRule:
    """The engine that is declared; embedded where the section is left out."""
    if declared is None:
        return EMBEDDED
    kind = EngineKind(declared.kind)
    if kind is EngineKind.EMBEDDED and declared.model_fields_set != {"kind"}:
        other = min(declared.model_fields_set - {"kind"})
        remedy = 'leave it out, or use kind = "spark"; `--engine embedded` overrides the kind for one run'
        findings.add(f"engine.{other}", 'has no meaning beside kind = "embedded"', remedy)
    named = {full: (key, value) for full, key, value in _named(declared) if value is not None}
    if declared.master is not None and declared.master.startswith("sc://"):
        remedy = 'name the cluster itself, such as "spark://host:7077", "yarn" or "local[4]"'
        findings.add("engine.master", "an address of Spark Connect, which is not supported", remedy)
    given = dict(_flat("spark", declared.spark, findings))
    for full in sorted(given.keys() & named.keys()):
        findings.add(
            f"engine.{full}", "is declared twice", f"leave it out, or leave out engine.{named[full][0]}"
        )
    for full, value in sorted(given.items()):
        if is_credential(full, value):
            findings.add(f"engine.{full}", "credentials do not belong into a programme", _CREDENTIALS)
    settings = {**given, **{full: value for full, (_, value) in named.items()}}
    folder = None if declared.folder is None else findings.folder / with_home(declared.folder)
    return EngineRule(kind, settings, declared.wait, folder)


def _named(declared: DeclaredEngine) -> Iterator[tuple[str, str, str | None]]:
    """Spark's name, our key and the value of what has a key of its own."""
    partitions = declared.shuffle_partitions
    yield "spark.master", "master", declared.master
    yield "spark.jars.packages", "packages", ",".join(declared.packages) or None
    yield (
        "spark.sql.shuffle.partitions",
        "shuffle_partitions",
        None if partitions is None else str(partitions),
    )
    yield "spark.driver.memory", "memory.driver", declared.memory.driver
    yield "spark.executor.memory", "memory.executor", declared.memory.executor


def _flat(prefix: str, table: Mapping[str, object], findings: Findings) -> Iterator[tuple[str, str]]:
    """The settings by their full names; TOML reads the dots of ``spark.executor.cores = 4`` as tables."""
    for name, value in table.items():
        full = f"{prefix}.{name}"
        if isinstance(value, dict):
            yield from _flat(full, value, findings)
        elif isinstance(value, bool):
            yield full, str(value).lower()
        elif isinstance(value, str | int | float):
            yield full, str(value)
        else:
            findings.add(f"engine.{full}", "a list or a date", "write a text, a number, true or false")


def is_credential(name: str, value: str) -> bool:
    """Whether a setting of Spark is a credential by its name, or contains one; names of files and classes do not."""
    by_name = _CREDENTIAL.search(name) is not None and _NAMES_A_PLACE.search(name) is None
    return by_name or _CREDENTIAL_IN_VALUE.search(value) is not None
