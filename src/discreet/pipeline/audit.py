"""The audit of a release: every measure of risk and every gate, as one confidential report.

It owns which measures there are and their order; each is worked out in measures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.advise.advise import region
from discreet.audit import averaging
from discreet.audit.case import Case
from discreet.audit.gates import Verdict, judge_gates
from discreet.audit.measures import USUAL_POSTERIOR, Measures
from discreet.errors import mistake
from discreet.io.atomic_folder import WholeFolder
from discreet.io.progress import Progress, Quiet
from discreet.release.reader import open_release
from discreet.report.confidential import confidential_page, write_pages
from discreet.report.public import public_page, public_view

REPORT = "audit.json"

Section = dict[str, Any]


@dataclass(frozen=True)
class Audit:
    """What an audit found; confidential, though it holds no single true count."""

    release: str
    sections: Mapping[str, Section]
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(verdict.passed for verdict in self.verdicts)

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "release": self.release,
            "passed": self.passed,
            "verdicts": [verdict.summary() for verdict in self.verdicts],
            **self.sections,
        }


def audit(case: Case, without: Collection[str] = (), progress: Progress | None = None) -> Audit:
    """Measure everything but what is left out, and judge the gates of the programme."""
    require_known(without)
    gates = case.programme.gates
    measures = Measures(case, progress or Quiet(), gates.reconstruction)
    sections = {name: section(measures) for name, section in SECTIONS.items() if name not in without}
    return Audit(case.published.name, sections, tuple(judge_gates(gates, measures)))


def write_audit(
    found: Audit, out: Path, release: Path, threads: int = 1, progress: Progress | None = None
) -> None:
    """Write the report into a folder that only its owner can read, whole or not at all.

    The public page is made from the public files alone: attacks whose measure was left out are left out there, too.
    """
    require_outside(out, release)
    told = progress or Quiet()
    without = [name for name in SECTIONS if name not in found.sections]
    view = public_view(open_release(release), without, threads, told)
    with WholeFolder(out, "--out") as folder:
        with folder.file(REPORT) as file:
            file.write(json.dumps(found.summary(), ensure_ascii=False, indent=1).encode())
        write_pages(folder, confidential_page(found.summary(), view), public_page(view), told)
        folder.publish()


def require_outside(out: Path, release: Path) -> None:
    """Refuse to put a confidential report into a release."""
    if out.resolve().is_relative_to(release.resolve()):
        raise mistake(out, "--out", "lies inside the release", "the report is confidential: put it elsewhere")


def _protection(measures: Measures) -> Section:
    """What was done, with the parameters that the public does not know."""
    noise, swap = measures.case.published.noise, measures.case.programme.swap
    return {
        "method": noise.method,
        "parameters": dict(noise.parameters()),
        "variance": noise.variance,
        "bound": noise.bound,
        "law": [{str(change): p for change, p in row.items()} for row in noise.listed()],
        "guarantee": noise.guarantee.sentence() if noise.guarantee else None,
        "swap": None if swap is None else {
            "k": swap.k,
            "risk": " x ".join(axis.full_name for axis in swap.risk) or "supplied by the office",
            "rate": float(swap.rate),
            "cap": None if swap.cap is None else float(swap.cap),
        },
    }  # fmt: skip


def _utility(measures: Measures) -> Section:
    return measures.utility.summary()


def _redundancy(measures: Measures) -> Section:
    return {"universes": measures.redundancy()}


def _averaging(measures: Measures) -> Section:
    found = measures.averaging
    return {"attack": found.summary(), "realised": averaging.judge(found, measures.case.truth).summary()}


def _bounds(measures: Measures) -> Section:
    attack = measures.bounds.summary()
    # with the right bound a deduced count is the true one: the report names the cell and what is published there
    attack["named"] = [{key: one[key] for key in one if key != "deduced"} for one in attack["named"]]
    return {"attack": attack, "realised": measures.bounds_judged.summary()}


def _bayes(measures: Measures) -> Section:
    gate = measures.case.programme.gates.posterior or USUAL_POSTERIOR
    return {
        "cells": measures.posterior(gate).summary(),
        "levels": [scan.summary() for scan in measures.levels(gate)],
        "histograms": [scan.summary() for scan in measures.histograms(gate)],
    }


def _differencing(measures: Measures) -> Section:
    gate = measures.case.programme.gates.differencing
    return {
        "bases": [one.summary() for one in measures.base_differences],
        "geographies": [one.summary() for one in measures.area_differences(gate)] if gate else [],
    }


def _reconstruction(measures: Measures) -> Section:
    rebuilt = measures.rebuilt
    if rebuilt is None:
        return {"not_possible": "no table about all persons has a place"}
    others, left_out = measures.rebuilt_otherwise()
    return {
        "released": rebuilt.summary(),
        "under_other_protections": [one.summary() for one in others],
        "left_out": left_out,
    }


def _disclosure(measures: Measures) -> Section:
    return measures.disclosures.summary()


def _privacy(measures: Measures) -> Section:
    return measures.privacy()


SECTIONS: Mapping[str, Callable[[Measures], Section]] = {
    "redundancy": _redundancy,
    "averaging": _averaging,
    "bounds": _bounds,
    "privacy": _privacy,
    "bayes": _bayes,
    "differencing": _differencing,
    "reconstruction": _reconstruction,
    "disclosure": _disclosure,
    "utility": _utility,
    "region": region,
    "protection": _protection,
}


def require_known(without: Collection[str]) -> None:
    """Refuse to leave out what does not exist, before any work is done."""
    for name in without:
        if name not in SECTIONS:
            raise mistake("", "--without", name, f"choose from {', '.join(SECTIONS)}")
