"""The adviser's page and its charts: feasible region, tuples, averaging, limits on a parameter, risk-utility curves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.advise.advise import Advice
from discreet.advise.alternatives import alternatives
from discreet.advise.curves import CurvePoint, Curves
from discreet.advise.reasons import (
    alternatives_text,
    caveats,
    conflicts,
    declared_words,
    margin_text,
    meanings,
    noise_text,
    reasons,
    swap_words,
)
from discreet.io.atomic_folder import AtomicFolder
from discreet.maths.attacks.averaging import success
from discreet.maths.feasible import Constraint, three_tuples
from discreet.maths.noise.additive import LawKind
from discreet.page.charts import (
    PERCENT,
    Axis,
    Bar,
    Chart,
    HeatTile,
    Mark,
    Point,
    Trial,
    bars,
    lines,
    panels,
    tiled,
)
from discreet.page.markup import (
    As,
    Column,
    Html,
    Tile,
    count,
    decimal,
    heading,
    listing,
    paragraph,
    share,
    table,
    tiles,
)
from discreet.page.skeleton import Page, Part
from discreet.page.style import BLUE, FEASIBLE, LOSSY, ORANGE, RISKY
from discreet.report.noise_plane import plane_chart

REVEALED, UNREVEALED = "the tuples reveal D", "they do not"
TOO_MUCH, TOO_LITTLE = "too much noise", "too little noise"
LOSSES = {
    "l1": "mean |b - a|",
    "l2": "mean (b - a)²",
    "l3": "mean |√b - √a|",
    "hellinger": "Hellinger distance",
    "cramers_v_shift": "shift of Cramér's V",
}
MOST_COLUMNS = 16
PAGE = "advice.html"
_NOTICE = "Private: the advice is computed from the confidential data. Review it before publishing any part."


def write_charts(out: Path, page: Page, report: Mapping[str, Any]) -> list[str]:
    """Write the page, its charts, their descriptions and the report into a new folder; return the names."""
    with AtomicFolder(out, "--out") as folder:
        names = []
        for name, content in _files(page, report):
            with folder.file(name) as file:
                file.write(content)
            names.append(name)
        folder.publish()
    return names


def _files(page: Page, report: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    yield PAGE, page.html().encode()
    for chart in page.charts:
        yield from chart.files()
    about = "".join(f"{chart.name}: {chart.description}\n\n" for chart in page.charts)
    yield "pictures.txt", about[:-1].encode()
    yield "advice.json", json.dumps(report, ensure_ascii=False, indent=1).encode()


def advice_page(advice: Advice, curves: Curves | None = None) -> Page:
    """The advice as a page: the proposal with its reasons, other choices, the charts, and what is not covered."""
    facts = advice.facts
    return Page(
        f"Noise for {facts.programme}",
        f"{count(facts.crosstabs)} cross-tabulations, {count(facts.cells)} cells, known from the {facts.known_from}.",
        _NOTICE,
        is_private=True,
        opening=_opening(advice),
        parts=(
            _proposal_part(advice),
            *_alternative_parts(advice),
            Part("pictures", "Pictures", "", tuple(advice_charts(advice, curves))),
            *_list_parts(advice),
        ),
    )


def _opening(advice: Advice) -> tuple[Html, ...]:
    if advice.proposal is None:
        return ()
    judged, noise = advice.proposal.judged, advice.proposal.noise
    chosen = [
        Tile(name, decimal(value) if isinstance(value, float) else str(value))
        for name, value in noise.items()
    ]
    return (
        tiles(
            [
                *(one for one in chosen if one.what not in ("kind", "js")),
                Tile("Typical error of a count", decimal(math.sqrt(judged.variance))),
                Tile(
                    "Averaging succeeds",
                    share(judged.success),
                    f"limit {share(advice.task.limits.averaging)}",
                ),
            ]
        ),
    )


def _proposal_part(advice: Advice) -> Part:
    if advice.proposal is None:
        lead = "No parameters keep all limits."
        return Part("proposal", "The proposal", lead, (listing(conflicts(advice)),), mood="bad")
    why = (*reasons(advice), *(f"note: {note}" for note in advice.proposal.notes))
    declared = declared_words(advice)
    blocks = (
        paragraph(noise_text(advice)),
        paragraph(margin_text(advice)),
        heading("Why"),
        listing(why),
        *([paragraph(declared)] if declared else []),
    )
    return Part("proposal", "The proposal", f"Proposed: {advice.proposal}", blocks, mood="good")


def _alternative_parts(advice: Advice) -> Iterator[Part]:
    rows = alternatives(advice)
    if not rows:
        return
    limits = advice.task.limits
    columns = [
        Column("choice"),
        *(Column(name, As.DECIMAL) for name in rows[0].noise),
        Column("averaging succeeds", As.SHARE),
        Column("largest change shown", As.SHARE),
        Column("1 stays 1", As.SHARE),
        Column("typical error", As.DECIMAL),
        Column(f"{limits.size} off by more than {limits.change}", As.SHARE),
        Column("keeps all limits"),
    ]
    body = [
        (
            *(row.choice.value, *row.noise.values(), row.success, row.revealed, row.stays, row.error),
            *(row.distorted, not row.breaks),
        )
        for row in rows
    ]
    compared = list(alternatives_text(advice, rows))[2 + len(rows) :]
    blocks = (table("Choices of noise", columns, body), listing(compared))
    yield Part("alternatives", "Alternatives", "", blocks)


def _list_parts(advice: Advice) -> Iterator[Part]:
    meant = [f"{name.value}: {meaning}" for name, meaning in meanings(advice)]
    swaps = [line.strip() for line in swap_words(advice)]
    for place, title, some in (
        ("limits", "What the limits are for", meant),
        ("swap", "Record swapping", swaps),
        ("caveats", "Not covered by these numbers", list(caveats(advice))),
    ):
        if some:
            yield Part(place, title, "", (listing(some),))


def advice_charts(advice: Advice, curves: Curves | None = None) -> list[Chart]:
    """Every chart that the advice allows."""
    charts = [region_chart(advice), tuples_chart(advice), averaging_chart(advice)]
    if advice.line is not None:
        charts.append(line_chart(advice))
    if curves is not None:
        charts.append(curves_chart(curves))
    return charts


def region_chart(advice: Advice) -> Chart:
    """The V x D plane with the declared and the proposed choice."""
    found, chosen = advice.plane, _chosen_text(advice)
    return plane_chart(
        found.V.tolist(),
        found.D.tolist(),
        found.holds,
        dict(_choices(advice)),
        title=f"Noise of the cell key method for {advice.facts.programme}",
        lead=chosen,
        caption=chosen,
    )


def _axes(advice: Advice) -> tuple[Axis, Axis]:
    """The axes of the plane: a square begins at its V and D, and D is labelled at its middle."""
    middles = tuple(D + 0.5 for D in range(1, len(advice.plane.D) + 1))
    return Axis("variance V"), Axis("largest change D", values=middles, labels="datum.value - 0.5")


def _choices(advice: Advice) -> Iterator[tuple[str, tuple[float, int]]]:
    """The proposed and the declared choice, where they are on the plane."""
    chosen = advice.proposal or advice.edge
    if chosen is not None and advice.task.kind is LawKind.CELL_KEY:
        name = "proposed" if advice.proposal is not None else "edge"
        yield name, (float(chosen.noise["V"]), int(chosen.noise["D"]))
    if advice.task.declared is not None:
        V, D = advice.task.declared
        if advice.plane.V[-1] >= V and len(advice.plane.D) >= D:
            yield "declared", (V, D)


def _chosen_text(advice: Advice) -> str:
    if advice.task.kind is not LawKind.CELL_KEY:
        return "The feasible region of the cell key method, for comparison."
    if advice.proposal is not None:
        return f"Proposed: {advice.proposal}."
    if advice.edge is None:
        return "Nothing is within all limits."
    return f"Nothing stays {advice.task.margin:.0%} inside every limit; {advice.edge} is within all of them."


def tuples_chart(advice: Advice) -> Chart:
    """The number of tuples of two parts that reveal D, and the choices for which the programme has too few."""
    found, have = advice.plane, three_tuples(advice.facts.tuples)
    every = max(1, math.ceil(len(found.V) / MOST_COLUMNS))
    step = every * float(found.V[1] - found.V[0])
    tiles = [
        HeatTile(
            float(found.V[j]),
            float(found.V[j]) + step,
            int(D),
            int(D) + 1,
            UNREVEALED if found.holds[Constraint.BOUND][i, j] else REVEALED,
            _power(float(found.needed[i, j])),
        )
        for i, D in enumerate(found.D)
        for j in range(0, len(found.V), every)
    ]
    text = (
        f"The programme has {have:,} tuples of two parts; where {REVEALED}, all tuples together reveal it with"
        f" probability {advice.task.limits.revealed:.0%}."
    )
    colours = {REVEALED: RISKY, UNREVEALED: FEASIBLE}
    return Chart(
        "tuples",
        "How many tuples {F, M, T} reveal the largest change D",
        f"Tuples needed, by V and D. {text}",
        lambda width: tiled(tiles, (), colours, *_axes(advice), width),
        colours,
        text,
    )


def _power(number: float) -> str:
    return "∞" if math.isinf(number) else f"{number:.0f}" if number < 1000 else f"1e{math.log10(number):.0f}"


def averaging_chart(advice: Advice) -> Chart:
    """Success probability of averaging against V, for the most exposed count, and with independent noise per table."""
    facts, limit, least = advice.facts, advice.task.limits.averaging, advice.least_variance
    top = max(float(advice.plane.V[-1]), 1.2 * least)
    kinds = {
        f"{label}: {name}, {ratio:.3g} of one count's variance": ratio
        for label, name, ratio in (
            ("with the best weights", advice.exposed.name, advice.exposed.ratio),
            (
                "independent noise in each table, equal weights",
                facts.fresh_noise.name,
                facts.fresh_noise.ratio,
            ),
        )
    }
    points = [
        Point(float(V), success(float(V), ratio), kind)
        for kind, ratio in kinds.items()
        for V in np.linspace(top / 200, top, 200)
    ]
    colours = dict(zip(kinds, (BLUE, ORANGE), strict=True))
    x, y = (
        Axis("variance V of a cell's noise", top=top),
        Axis("success probability of averaging", PERCENT, 1.0),
    )
    need = [Mark(least, limit, f"{limit:.0%} at V = {least:.3g}")]
    text = f"Averaging recovers the most exposed count with a probability below {limit:.0%} from V = {least:.3g} on."
    return Chart(
        "averaging",
        "Success of averaging",
        text,
        lambda width: lines(points, colours, x, y, width, 300, dots=(), marks=need, level=limit),
        colours,
        text,
    )


def line_chart(advice: Advice) -> Chart:
    """The limits on the noise parameter of one count: utility from below, risk from above."""
    found = advice.line
    assert found is not None
    ends = [one.value for one in found.limits]
    low, high = 10 ** math.floor(math.log10(min(ends) / 1.5)), 10 ** math.ceil(math.log10(max(ends) * 1.5))
    rows = [
        Bar(
            one.constraint.value,
            one.value,
            f"{'at least' if one.is_least else 'at most'} {one.value:.3g}",
            TOO_MUCH if one.is_least else TOO_LITTLE,
            start=low if one.is_least else high,
        )
        for one in sorted(found.limits, key=lambda one: (not one.is_least, one.value))
    ]
    allowed = (
        (found.least.value, found.most.value)
        if found.is_feasible and found.least is not None and found.most is not None
        else None
    )
    chosen = None if advice.proposal is None else advice.proposal.parameter
    colours = {TOO_MUCH: LOSSY, TOO_LITTLE: RISKY}
    x = Axis(f"{found.law.name} of one count", "~g", top=high, log=True, low=low)
    text = _line_text(advice)
    return Chart(
        "line",
        f"Limits on the {found.law.name} of one count",
        f"{text} {'; '.join(f'{row.item}: {row.label}' for row in rows)}.",
        lambda width: bars(rows, colours, x, width, allowed=allowed, chosen=chosen),
        colours,
        text,
    )


def _line_text(advice: Advice) -> str:
    found = advice.line
    if found is None or found.least is None or found.most is None:
        return ""
    if not found.is_feasible:
        least, most = (f"{one.constraint.value} {one.value:.3g}" for one in (found.least, found.most))
        return f"No value is feasible: {least} is the smallest with usable counts, {most} the largest that is safe."
    chosen = advice.proposal.parameter if advice.proposal is not None else None
    proposed = "" if chosen is None else f" The dark line is the proposal, {chosen:.3g}."
    return f"Values from {found.least.value:.3g} to {found.most.value:.3g} are within all limits.{proposed}"


def curves_chart(curves: Curves) -> Chart:
    """Losses against the share of published ones that are true, one panel for each loss, quartiles as bars."""
    trials = [trial for point in curves.points for trial in _trials(point)]
    trials.sort(key=lambda trial: list(LOSSES.values()).index(trial.panel))
    text = f"Each point is one {curves.name}, the mean of {curves.repeats} perturbations; bars are quartiles."
    points = "; ".join(f"{curves.name} {p.parameter:g}: {_curve_text(p)}" for p in curves.points)
    return Chart(
        "curves",
        f"Risk against utility, {curves.kind.value}" + (f", D = {curves.D}" if curves.D else ""),
        f"{text} {points}.",
        lambda width: panels(trials, Axis("published ones that are true", ".0%"), width),
        subtitle=text,
    )


def _trials(point: CurvePoint) -> Iterator[Trial]:
    risk = point.measures["true_ones"]
    for name, panel in LOSSES.items():
        loss = point.measures[name]
        if loss is not None and risk is not None:
            across, upward = (
                (one.quartiles[0], one.mean, one.quartiles[-1]) for one in (risk, loss)
            )  # the mean with the quartiles around it
            yield Trial(panel, f"{point.parameter:g}", across, upward)


def _curve_text(point: CurvePoint) -> str:
    risk, loss = point.measures["true_ones"], point.measures["l1"]
    if risk is None or loss is None:
        return "no published ones"
    return f"{risk.mean:.1%} of published ones true, mean absolute error {loss.mean:.3g}"
