"""What a new release reveals beside one that is already published: reported, and judged, before it replaces it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.audit.verdict import GateVerdict
from discreet.errors import BrokenRelease, GateBroken, Mistakes, mistake
from discreet.io.progress import Progress
from discreet.perturb.noise import Noise
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import is_release
from discreet.release.reader import Release, open_release

if TYPE_CHECKING:  # the attacks take longer to import than a small release takes to make
    from discreet.audit.corrections import Corrections

ACCEPT = "--accept-corrections"


def _say_nothing(line: str) -> None:
    """For callers who print nothing."""


@dataclass(frozen=True)
class EarlierReleases:
    """Releases of the same population that are already published, and how a run deals with what they reveal."""

    folders: tuple[Path, ...] = ()  # beside the one that is replaced
    accepted: bool = False  # publish whatever is revealed
    tell: Callable[[str], None] = _say_nothing  # called before anything is replaced
    another_ptable: bool = False  # the same for one secret with another p-table

    def compared_with(self, out: Path) -> bool:
        """Whether there is a release that a new one at ``out`` is compared with."""
        return any(True for _ in _folders(out, self.folders))

    def untold(self) -> EarlierReleases:
        """The same for a task on another machine, with full paths."""
        return replace(self, folders=tuple(one.resolve() for one in self.folders), tell=_say_nothing)


NO_EARLIER = EarlierReleases()


def require_releases(earlier: EarlierReleases) -> None:
    """Refuse folders that are not releases, before any work is done."""
    for folder in earlier.folders:
        open_release(folder)


def require_comparable(out: Path, earlier: EarlierReleases) -> None:
    """Refuse to replace a release that cannot be read, unless what both reveal together is accepted unseen."""
    if is_release(out) and not earlier.accepted:
        try:
            open_release(out)
        except BrokenRelease as broken:
            raise _unreadable(out, broken) from None


def _unreadable(folder: Path, broken: BrokenRelease) -> Mistakes:
    remedy = f"restore it to have both compared, or publish without that with {ACCEPT}"
    return mistake(folder, "release", f"cannot be compared: {broken}", remedy)


@dataclass(frozen=True)
class Pair:
    """A release that is published already, and what it reveals beside the new one."""

    folder: Path
    found: Corrections

    def __str__(self) -> str:
        return f"{self.folder}, published before: {'; '.join(self.found.sentences())}"

    def verdict(self, limit: int | None) -> GateVerdict:
        """Whether both together expose more persons than is allowed."""
        from discreet.audit.corrections import correction_verdict  # noqa: PLC0415

        return correction_verdict(self.found, limit)

    @property
    def is_another_ptable(self) -> bool:
        """Whether both have one secret, and another p-table or other keys."""
        from discreet.audit.corrections import Relation  # noqa: PLC0415

        return self.found.relation is Relation.RELATED


def pairs_with_earlier(
    made: Release, out: Path, earlier: EarlierReleases, noise: Noise, progress: Progress | None = None
) -> Iterator[Pair]:
    """What ``made`` reveals beside the release that it replaces and others; one that is reproduced is left out.

    ``noise`` is what the office knows of the noise of ``made``.
    """
    for folder in _folders(out, earlier.folders):
        found = _compared(folder, made, noise, earlier, progress)
        if found is not None and found.reveals:
            yield Pair(folder, found)


def found_pairs(
    made: Release, out: Path, earlier: EarlierReleases, noise: Noise
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """The same for a task: the pairs, and the lines that a caller prints."""
    lines: list[str] = []
    pairs = tuple(pairs_with_earlier(made, out, replace(earlier, tell=lines.append), noise))
    return pairs, tuple(lines)


def judge_pairs(
    pairs: Iterable[Pair], limit: int | None, earlier: EarlierReleases
) -> tuple[Corrections, ...]:
    """Report what the pairs reveal; beyond the limit the release is refused unless that was accepted."""
    found: list[Corrections] = []
    refused: list[str] = []
    for pair in pairs:
        found.append(pair.found)
        verdict = pair.verdict(limit)
        accepted = earlier.accepted or (earlier.another_ptable and pair.is_another_ptable)
        if verdict.passed or accepted:
            earlier.tell(str(pair))
        else:
            refused.append(f"{pair}\n{verdict}, or publish it all the same with {ACCEPT}")
    if refused:
        raise GateBroken("\n".join(refused))
    return tuple(found)


def _folders(out: Path, others: tuple[Path, ...]) -> Iterator[Path]:
    if is_release(out):
        yield out
    yield from (folder for folder in others if folder.resolve() != out.resolve())


def _compared(
    folder: Path, made: Release, noise: Noise, earlier: EarlierReleases, progress: Progress | None
) -> Corrections | None:
    """The pair; None where the releases have no table in common, so that nothing can be subtracted."""
    from discreet.audit.corrections import corrections  # noqa: PLC0415
    from discreet.audit.evidence import published, same_ptable, same_secret  # noqa: PLC0415

    try:
        before = open_release(folder)
        if _values(before) == _values(made):
            return None
        old, new = published(before), published(made)
        return corrections(
            old,
            replace(new, noise=noise),
            same_secret=same_secret(before, made),
            same_ptable=same_ptable(before, made),
            progress=progress,
        )
    except BrokenRelease as broken:
        if earlier.accepted:
            earlier.tell(f"{broken}; what it reveals together with the new release is not known")
            return None
        raise _unreadable(folder, broken) from None
    except Mistakes:  # no cross-tabulation in common
        return None


def _values(release: Release) -> dict[str, str]:
    """The digests of the files that have the values: equal ones reveal nothing new."""
    files = {cube.id: cube.file(ReleaseFormat.PARQUET) for cube in release.manifest.cubes}
    return {cube: file.sha256 for cube, file in files.items() if file is not None}
