"""Where a command or a function of the library computes: on this machine, or on the Spark that is declared or given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import mistake
from discreet.programme.engine_kind import EngineKind
from discreet.programme.programme import Programme
from discreet.programme.sources import hadoop_scheme, local_place

if TYPE_CHECKING:
    from discreet.engine.spark import SparkEngine


@dataclass(frozen=True)
class Computing:
    """The engine (None: this machine), and the programme with sources that it can read."""

    programme: Programme
    engine: SparkEngine | None

    def release_folder(self, out: str) -> AbstractContextManager[Path]:
        """Where a release is made that is then at ``out``."""
        if self.engine is not None:
            return self.engine.release_folder(out)
        if hadoop_scheme(out):
            raise mistake(out, "--out", "only Spark can write there", "add --engine spark, or give a folder")
        return nullcontext(local_place(out))

    def published_release(self, release: str) -> AbstractContextManager[Path]:
        """The folder of a release that is read, or of its copy on this machine."""
        if self.engine is not None:
            return self.engine.published_release(release)
        require_here(release)
        return nullcontext(Path(release))


@contextmanager
def computing(
    programme: Programme, kind: EngineKind | None = None, given: SparkEngine | None = None
) -> Iterator[Computing]:
    """Where to compute, as long as the block lasts: on the engine that is given, of this kind, or as declared."""
    rule = programme.engine if kind is None else programme.engine.of_kind(kind)
    if given is not None:
        with given.readable(programme) as found:
            yield Computing(found, given)
    elif rule.kind is EngineKind.EMBEDDED:
        yield Computing(programme, None)
    else:
        # what Spark needs is imported only where it is used
        from discreet.engine.spark import opened_engine  # noqa: PLC0415

        with opened_engine(rule) as engine, engine.readable(programme) as found:
            yield Computing(found, engine)


def require_here(release: str) -> None:
    """Refuse the address of a release where only this machine reads."""
    if hadoop_scheme(release):
        raise mistake(release, "release", "only Spark can read there", "add --engine spark, or give a folder")


def require_embedded(programme: Programme, command: str) -> None:
    """Refuse a programme that declares Spark where a function of the library runs on this machine only."""
    if programme.engine.kind is not EngineKind.EMBEDDED:
        remedy = f'use `discreet {command}`, or declare kind = "embedded"'
        raise mistake(programme.path, "engine.kind", "the library does this on one machine only", remedy)
