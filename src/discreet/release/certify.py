"""Judging a certificate: read it, recompute its claim, and compare it with the manifest of its release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import BrokenRelease
from discreet.io.serialize import read_json
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import ARITHMETIC
from discreet.maths.privacy.amounts import decimal_text
from discreet.maths.privacy.composition import Composition
from discreet.release.certificate import CERTIFICATE, KIND
from discreet.release.manifest import Manifest, read_manifest
from discreet.release.noise_entry import HierarchyEntry, NoiseEntry, ParametersEntry
from discreet.release.recompute import problems


@dataclass(frozen=True)
class Certified:
    """What recomputing a certificate found."""

    name: str
    claim: str
    problems: tuple[str, ...]
    tables: int
    statistics: int
    cells: int

    @property
    def passed(self) -> bool:
        """Whether the claim follows from what the certificate lists."""
        return not self.problems


def verify_certificate(place: Path) -> Certified:
    """Recompute the certificate of a release folder, or the file of one."""
    folder = place if place.is_dir() else None
    manifest = None if folder is None else read_manifest(folder)
    path = place if folder is None else folder / CERTIFICATE
    try:
        document = read_json(path)
    except FileNotFoundError:
        raise BrokenRelease(
            f"{path}: no certificate there; only releases with a guarantee have one"
        ) from None
    except (OSError, ValueError):
        raise BrokenRelease(f"{path}: not readable as JSON; fetch the release again") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise BrokenRelease(f"{path}: not a certificate; give one, or the folder of its release")
    found = list(problems(document))
    if manifest is not None and not found:  # what does not hold by itself need not be compared
        try:
            found += _against(document, manifest)
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
            found.append("a value that the manifest also states is missing, or of another kind")
    tables, statistics = (_listed(document.get(name)) for name in ("tables", "statistics"))
    cells = [one.get("cells") for one in statistics if isinstance(one, dict)]
    counted = [number for number in cells if isinstance(number, int) and not isinstance(number, bool)]
    if len(counted) < len(statistics) and not found:
        found.append("a statistic does not state its number of cells")
    return Certified(
        name=str(document.get("release", "")),
        claim=_claim(document.get("total")),
        problems=tuple(found),
        tables=len(tables),
        statistics=len(statistics),
        cells=0 if found else sum(counted),
    )


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _claim(total: Any) -> str:
    if not isinstance(total, dict):
        return "nothing"
    return ", ".join(f"{name} = {total[name]}" for name in ("epsilon", "rho") if name in total) + _delta(
        total
    )


def _delta(total: dict[str, Any]) -> str:
    """The delta beside an epsilon; one that is only that of arithmetic is named so."""
    try:
        delta = Fraction(total["delta"]) if "epsilon" in total else Fraction(0)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return ""  # what cannot be read is reported where it is recomputed
    if not delta:
        return ""
    return f", delta = {decimal_text(delta)}" + (" by rounding in the sampler" if delta <= ARITHMETIC else "")


def _against(document: dict[str, Any], manifest: Manifest) -> Iterator[str]:
    """What the manifest states otherwise."""
    guarantee, stated = manifest.noise.guarantee, manifest.noise.parameters
    if guarantee is None or (stated is None and manifest.noise.hierarchy is None):
        yield "the manifest states no guarantee"
        return
    total = document.get("total", {})
    for name in ("epsilon", "rho", "delta"):
        said = getattr(guarantee, name)
        if said is not None and str(said) != total.get(name):
            yield f"the manifest states {name} = {said}"
    if (guarantee.neighbours.value, guarantee.unit.value) != (
        document.get("neighbours"),
        document.get("protects"),
    ):
        yield "the manifest states other neighbours"
    most, fixed = document.get("largest_household"), document.get("fixed")
    if (guarantee.largest_household, list(guarantee.fixed or ())) != (most, fixed):
        yield "the manifest states other households or fixed attributes"
    if (guarantee.composition or Composition.BASIC).value != document.get("composition", "basic"):
        yield "the manifest states another composition"
    if manifest.noise.hierarchy is not None:
        yield from _against_hierarchy(document, manifest.noise, manifest.noise.hierarchy)
    elif stated is not None:
        yield from _against_law(document, manifest.noise, stated)


def _against_hierarchy(document: dict[str, Any], noise: NoiseEntry, stated: HierarchyEntry) -> Iterator[str]:
    """What the manifest states otherwise of a strategy: shares of levels and queries give every parameter."""
    if noise.kind.value != document["noise"]:
        yield "the manifest states another law"
    sensitivity = stated.reach.l2_squared if noise.kind is LawKind.DISCRETE_GAUSSIAN else stated.reach.l1
    parts = {
        (one.level, query): one.share * share for one in stated.levels for query, share in one.queries.items()
    }
    for one in document["statistics"]:
        names, query = one["statistic"].split(": ", 1)
        share = sum((parts.get((level, query), Fraction(0)) for level in names.split("+")), Fraction(0))
        if stated.budget * share / sensitivity != Fraction(one["parameter"]):
            yield f"the manifest states another share of {one['statistic']}"


def _against_law(document: dict[str, Any], noise: NoiseEntry, stated: ParametersEntry) -> Iterator[str]:
    """What the manifest states otherwise of the noise itself."""
    rows = [(one.first, list(map(str, one.utilities))) for one in stated.utility or ()]
    if rows != [(one["first"], one["utilities"]) for one in document.get("utility", ())]:
        yield "the manifest states another utility"
    if (noise.kind.value, noise.bound) != (document["noise"], document["bound"]):
        yield "the manifest states another law"
    if stated.cross_tabulations != len(document["statistics"]):
        yield f"the manifest states {stated.cross_tabulations} cross-tabulations"
    laws = {Fraction(one["parameter"]) for one in document["statistics"]}
    if laws != {stated.cell, *(stated.other_cells or {}).values()}:
        yield "the manifest states other parameters of the noise"
