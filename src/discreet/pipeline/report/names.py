"""What codes are called, from the public lists of a release; it owns how a cell is described in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.release.read import Release
from discreet.schema.labels import NO_LABELS, Labels


@dataclass(frozen=True)
class Names:
    """The labels of codes, by variable and code, and of variables."""

    labels: Mapping[tuple[str, str], str]
    variables: Labels = NO_LABELS

    def cell(self, codes: Mapping[str, str]) -> str:
        """A cell in words, by label where a code has one."""
        if not codes:
            return "the grand total"
        return "; ".join(
            f"{self.variables.variable(name)} {self.labels.get((name, code)) or code}"
            for name, code in codes.items()
        )


def names_of(release: Release) -> Names:
    """The labels of all that is published."""
    labels: dict[tuple[str, str], str] = {}
    axes = {axis.breakdown: axis.variable for cube in release.manifest.cubes for axis in cube.axes}
    for breakdown, variable in axes.items():
        listed = release.read_codes(breakdown)
        labels |= {
            (variable, code): label for code, label in zip(listed.codes, listed.labels, strict=True) if label
        }
    return Names(labels, release.manifest.labels)
