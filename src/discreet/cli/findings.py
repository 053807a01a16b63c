"""The findings of an audit and of an attack in plain lines; it owns the words, not the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from discreet.audit.evidence import Published
from discreet.pipeline.audit import Audit

Section = Mapping[str, Any]
NAMED = 3
SOLVED = ("optimal", "feasible")


def audit_lines(found: Audit) -> Iterator[str]:
    """An audit for people: the gates first, then a line or two for each measure."""
    for verdict in found.verdicts:
        yield f"{'Passed' if verdict.passed else 'BROKEN'}: {verdict}"
    if not found.verdicts:
        yield "No gates are declared: nothing is judged, everything is measured."
    for name, section in found.sections.items():
        yield from _AUDIT[name](section)


def attack_lines(seen: Published, found: Mapping[str, Section]) -> Iterator[str]:
    """An attack for people."""
    known = "its whole law" if seen.noise.law else "its variance" if seen.noise.variance else "nothing"
    yield f"{seen.name}: {sum(len(one.tables) for one in seen.universes)} tables; of the noise {known} is public."
    for name, section in found.items():
        if "not_possible" in section:
            yield f"{name}: not possible: {section['not_possible']}"
        else:
            yield from _ATTACK[name](section)


def _redundancy(section: Section) -> Iterator[str]:
    for universe in section["universes"]:
        for one in universe["exposed"][:1]:
            yield (
                f"redundancy, {universe['counted']}: {one['statistic']} stands {one['t']} times in "
                f"{universe['tables']} tables, k/t2 {one['k_over_t2']:.4g}"
            )


def _averaging(section: Section) -> Iterator[str]:
    best = section["methods"]["weighted"]
    yield (
        f"averaging: {section['targets']:,} counts attacked, {best['expected']:,.0f} expected to come out true "
        f"({section['baseline']:,.0f} are published so)"
    )
    for one in section["exposed"][:NAMED]:
        yield f"  {one['counted']}: {_cell(one['cell'])}: {one['t']} representations, chance {one['success']:.3f}"


def _averaging_judged(section: Section) -> Iterator[str]:
    yield from _averaging(section["attack"])
    realised = section["realised"]["methods"]["weighted"]
    yield f"  realised: {realised['hit']:,} come out true"


def _bounds(section: Section) -> Iterator[str]:
    bound = "is not known" if section["bound"] is None else f"taken as {section['bound']}"
    yield (
        f"bound of the noise: at least {section['least_bound']} by {section['tuples']:,} sums; {bound}; "
        f"{section['pinned']:,} counts follow from it, {section['pinned_small']:,} of them 1 to 3"
    )
    if section["contradicted"]:
        yield f"  {section['contradicted']:,} cells contradict it: the bound is too small, or tables are foreign"


def _bounds_judged(section: Section) -> Iterator[str]:
    yield from _bounds(section["attack"])
    judged = section["realised"]
    if judged["pinned"]:
        yield f"  {judged['right']:,} of these are right"


def _privacy(section: Section) -> Iterator[str]:
    if "epsilon" in section:
        yield f"privacy: epsilon {section['epsilon']:.4g}, delta {section['delta']:.3g} for the whole release"
    elif "fixed_zeros_delta" in section:
        yield (
            f"privacy: no guarantee; zeros that stay give delta {section['fixed_zeros_delta']:.3g}, the same noise "
            f"for the same people delta {section['same_participants_delta']:.3g} at any epsilon"
        )


def _bayes(section: Section) -> Iterator[str]:
    cells = section["cells"]
    yield (
        f"Bayesian adversary: in {cells['above']:,} of {cells['cells']:,} small cells the posterior exceeds "
        f"{cells['gate']:g} from a prior of {cells['prior']:g}; {cells['above_beside_others']:,} where others are there"
    )
    for scan in section["levels"]:
        yield f"  with all levels of {scan['along']}: {scan['above']:,} of {scan['cells']:,}"
    for scan in section["histograms"]:
        yield f"  histograms of {scan['area']}: largest gain over the prior {scan['largest_gain']:.3f}"


def _exposed(section: Section) -> Iterator[str]:
    yield (
        f"Bayesian adversary: {section['exposed_alone']:,} of {section['cells']:,} published counts would give "
        f"somebody away who is known to be the only one there; beside one other "
        f"{section['exposed_by_others_known'][1] if len(section['exposed_by_others_known']) > 1 else 0:,}"
    )


def _differencing(section: Section) -> Iterator[str]:
    for one in section["bases"]:
        yield f"differencing: {one['outer']} minus {one['inner']}: {_subtracted(one)}"
    for one in section.get("geographies", ()):
        after = one["after"]
        yield (
            f"differencing: {' and '.join(one['geographies'])}: {one['found']:,} differences below "
            f"{one['threshold']} records, {after['above'] if after else one['found']:,} revealed"
        )
    if "earlier_release" in section:
        update = section["earlier_release"]
        yield f"earlier release: {update['changed']:,} of {update['compared']:,} cells changed"
        if update.get("judged"):
            yield (
                f"  {_judged(update['judged'], 'published small changes')}; {update['judged']['revealed']:,} of "
                f"{update['judged']['moved']:,} true small changes are published with their true size"
            )
        elif "judged" in update:
            yield "  not judged: --earlier-programme gives the true counts of the earlier release"
    if "maps" in section:
        maps = section["maps"]
        yield (
            f"differencing: {' and '.join(maps['geographies'])}: {maps['small']:,} small differences among "
            f"{maps['compared']:,} that the map suggests"
        )
        if "judged" in maps:
            yield f"  {_judged(maps['judged'], 'small differences')}"
    if not any(section.get(key) for key in ("bases", "geographies", "earlier_release", "maps")):
        yield "differencing: no population base lies inside another, no pair of geographies is declared"


def _judged(judged: Section, what: str) -> str:
    share = "" if judged["apparent_share"] is None else f" ({judged['apparent_share']:.1%})"
    return f"{judged['apparent_right']:,} of {judged['apparent']:,} {what} are true{share}"


def _subtracted(one: Section) -> str:
    if "exact" in one:
        return f"{one['exact']:,} small differences, {one['revealed']:,} published with their true size"
    return f"{one['small']:,} small differences are published"


def _reconstruction(section: Section) -> Iterator[str]:
    yield (
        f"reconstruction: {section['areas']} areas of {section['geography']}, {section['records']:,} records, "
        f"{section['certain']:,} of them for certain{_unsolved(section)}"
    )


def _reconstruction_judged(section: Section) -> Iterator[str]:
    if "not_possible" in section:
        yield f"reconstruction: not possible: {section['not_possible']}"
        return
    for one in (section["released"], *section["under_other_protections"]):
        yield (
            f"reconstruction, {one['protection']}: {one['r_recon']:.1%} of the records of {one['areas']} areas "
            f"(guessing {one['baseline']:.1%}), {one['r_reid']:.1%} re-identified{_unsolved(one)}"
        )
    for name, why in section["left_out"].items():
        yield f"reconstruction, {name}: not possible: {why}"


def _unsolved(section: Section) -> str:
    """Areas that no time was enough for, which tell nothing of safety."""
    left = {status: many for status, many in section["status"].items() if status not in SOLVED}
    return f"; {', '.join(f'{many} {status}' for status, many in left.items())}" if left else ""


def _disclosure(section: Section) -> Iterator[str]:
    ones = section["total"]["count_1"]
    yield f"small counts: {ones['seen']:,} published ones{_true(ones)}"
    for kind, name in (("individual", "persons"), ("group", "groups")):
        yield f"attributes: {section['total'][kind]['seen']:,} {name} told{_true(section['total'][kind])}"


def _protection(section: Section) -> Iterator[str]:
    named = ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in section["parameters"].items()
    )
    swapped = "" if section["swap"] is None else ", after swapping households at risk"
    yield f"protection: {section['method']} ({named}){swapped}"


def _utility(section: Section) -> Iterator[str]:
    cells = section["errors"]["original"]["total"]["occupied"]
    if cells["cells"]:
        yield (
            f"utility: a count is off by {cells['mean_l1']:.3g} on average, "
            f"{cells['share_unchanged']:.1%} are as they were"
        )


def _region(section: Section) -> Iterator[str]:
    if "not_possible" in section:
        return
    least = section["least"]
    yield (
        "feasible region: no choice of V and D keeps all limits"
        if least is None
        else f"feasible region: the least noise that keeps all limits is V = {least['V']:g}, D = {least['D']}"
    )


def _true(tally: Section) -> str:
    share = tally.get("share_true")
    return "" if share is None else f", {share:.1%} of them true"


def _cell(codes: Mapping[str, str]) -> str:
    return ", ".join(f"{variable}={code}" for variable, code in codes.items()) or "the grand total"


_AUDIT = {
    "protection": _protection,
    "utility": _utility,
    "region": _region,
    "redundancy": _redundancy,
    "averaging": _averaging_judged,
    "bounds": _bounds_judged,
    "privacy": _privacy,
    "bayes": _bayes,
    "differencing": _differencing,
    "reconstruction": _reconstruction_judged,
    "disclosure": _disclosure,
}
_ATTACK = {
    "averaging": _averaging,
    "bounds": _bounds,
    "bayes": _exposed,
    "differencing": _differencing,
    "reconstruction": _reconstruction,
    "disclosure": _disclosure,
}
