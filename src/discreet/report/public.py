"""The public page: what users of the tables may know, from a type that cannot contain anything confidential."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from discreet.audit.attack import ATTACKS, Outsider, OutsiderFindings, attack
from discreet.audit.evidence import published
from discreet.io.progress import Progress
from discreet.page.markup import Tile, decimal, share, tiles
from discreet.page.skeleton import Page
from discreet.perturb.noise import Noise
from discreet.programme.hierarchical import Output
from discreet.release.manifest import Manifest
from discreet.release.reader import Release
from discreet.report.published import (
    Names,
    attack_part,
    names_of,
    origin_of,
    protection_part,
    public_caveats,
    published_part,
    size_tiles,
    title_of,
)
from discreet.report.utility import expected_errors, expected_part

AREAS, SECONDS = 3, 5.0  # of the reconstruction by an outsider


@dataclass(frozen=True, eq=False)
class PublicView:
    """The public view of a release: its manifest, what is public of its noise, and the findings of attacks."""

    manifest: Manifest
    noise: Noise
    attacks: OutsiderFindings
    names: Names


def public_view(release: Release, without: Collection[str], threads: int, progress: Progress) -> PublicView:
    """Read the public files of a release and run the attacks on them; nothing else is read."""
    seen = published(release)
    outsider = Outsider(
        seen,
        earlier=None,
        same_secret=False,
        lookup=None,
        bound=None,
        place=None,
        areas=AREAS,
        seconds=SECONDS,
        threads=threads,
        progress=progress,
    )
    found = attack(outsider, [name for name in ATTACKS if name in without])
    return PublicView(release.manifest, seen.noise, found, names_of(release))


def public_page(view: PublicView) -> Page:
    """The page for users of the tables."""
    manifest = view.manifest
    return Page(
        f"{title_of(manifest)}: protection and accuracy",
        " · ".join(filter(None, [origin_of(manifest), "for all users of these tables"])),
        "Public: this page was made from only the published files and may be published with them.",
        False,
        (tiles([*size_tiles(manifest), *_noise_tiles(view.noise, manifest.swapped)]),),
        (
            published_part(manifest),
            protection_part(manifest, view.noise),
            expected_part(view.noise, manifest.swapped),
            attack_part(view.attacks),
            public_caveats(manifest),
        ),
        f"Made by Discreet {manifest.discreet_version} from the public files of the release.",
    )


def _noise_tiles(noise: Noise, swapped: bool) -> list[Tile]:
    """The error by the noise, never called that of a count where households were swapped as well."""
    if noise.hierarchy is not None:
        has_estimates = Output.ESTIMATES in noise.hierarchy.outputs
        note = "a standard error for every count" if has_estimates else "no estimates are published"
        return [Tile("Error of a count", "differs", note), _zeros_tile(noise, swapped)]
    errors = expected_errors(noise)
    most = "" if noise.has_one_law else ", at most"
    error = f"±{decimal(errors[-1].deviation)}" if errors else "not published"
    more = "; swapping adds an error that is not published" if swapped else ""
    note = f"one standard deviation{most}{more}" if errors else more.removeprefix("; ")
    return [
        Tile("Error by noise" if swapped else "Error of a count", error, note),
        _zeros_tile(noise, swapped),
    ]


def _zeros_tile(noise: Noise, swapped: bool) -> Tile:
    if not noise.keeps_zeros:
        chance = noise.listed_if_empty
        note = (
            "" if chance is None else f"an empty cell is listed with a probability of up to {share(chance)}"
        )
        return Tile("Zeros", "are perturbed", note)
    if swapped:
        return Tile("Zeros", "get no noise", "swapping may fill or empty a cell")
    return Tile("Zeros", "stay zero")
