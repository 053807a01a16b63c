import json
import re
import stat
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.attack import NotPossible, OutsiderFindings
from discreet.audit.audit import NoiseChoice, ReconstructionAudit, Region
from discreet.audit.evidence import Cells, Truth, published
from discreet.audit.linkage import Confirmed
from discreet.audit.measures import Privacy, Rebuilt
from discreet.audit.reconstruction import JudgedReconstruction, ReconstructionFindings
from discreet.audit.verdict import GateVerdict
from discreet.io.serialize import to_json
from discreet.maths.attacks.reconstruction import Status
from discreet.maths.feasible import Constraint, RiskLimits
from discreet.maths.noise.additive import discrete_laplace
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.noise import Guarantee, cell_key_noise
from discreet.pipeline.audit import audit, write_audit
from discreet.programme.noise import Protects
from discreet.programme.release import Disclosure
from discreet.release.reader import open_release
from discreet.report.confidential import confidential_page, gates_part, measured_parts, region_part
from discreet.report.people import privacy_part, reconstruction_part
from discreet.report.public import PublicView, public_page
from discreet.report.published import names_of
from discreet.report.utility import expected_errors, expected_part
from tests.audit.known import known as known_noise
from tests.report.conftest import Reported

PAGES = ("audit.html", "public.html")


def words(page: str) -> str:
    return re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def test_the_report_has_both_pages_their_charts_and_the_figures(reported: Reported) -> None:
    folder = reported.folder
    assert {path.name for path in folder.iterdir()} == {*PAGES, "audit.json", "charts", "public-charts"}
    for page, charts in zip(PAGES, ("charts", "public-charts"), strict=True):
        shown = set(re.findall(r'<figure id="chart-([^"]+)"', (folder / page).read_text(encoding="utf-8")))
        files = {path.name for path in (folder / charts).iterdir()}
        assert files == {f"{name}.{kind}" for name in shown for kind in ("svg", "png")}
        assert shown
    assert json.loads((folder / "audit.json").read_text(encoding="utf-8"))["region"]["chosen"]["D"] == 7


def test_only_its_owner_reads_the_report(reported: Reported) -> None:
    for path in (reported.folder, *reported.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("page", PAGES)
def test_pages_load_nothing_and_are_in_order(reported: Reported, page: str) -> None:
    html = (reported.folder / page).read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#)', html)
    assert "url(http" not in html
    assert html.count("<h1") == 1
    heads = [int(level) for level in re.findall(r"<h([1-6])[ >]", html)]
    assert all(after <= before + 1 for before, after in pairwise(heads))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert all(target in ids for target in re.findall(r'href="#([^"]+)"', html))


def test_the_confidential_page_says_so_first_and_tells_every_measure(reported: Reported) -> None:
    html = (reported.folder / "audit.html").read_text(encoding="utf-8")
    told = words(html)
    body = words(html[html.index("<body>") :])
    assert body.index("Confidential") < body.index("Audit of")
    parts = list(measured_parts(reported.audit, view(reported).names))
    assert len(parts) == 11
    for part in parts:
        assert f'<section id="{part.id}"' in html
    assert "Left out of this report: reconstruction" in told
    assert "V = 1.93" in told
    broken = [verdict for verdict in reported.audit.verdicts if not verdict.passed]
    assert broken
    for verdict in broken:
        assert verdict.remedy in told


def view(reported: Reported) -> PublicView:
    release = open_release(reported.release)
    return PublicView(release.manifest, published(release).noise, OutsiderFindings(), names_of(release))


def other_truth(cells: Cells) -> Cells:
    listed, values = cells
    return listed, np.asarray(values * 2 + 1, dtype=np.int64)


def test_the_public_page_does_not_depend_on_the_truth(reported: Reported, tmp_path: Path) -> None:
    counts = {cube: other_truth(cells) for cube, cells in reported.case.truth.original.items()}
    found = audit(replace(reported.case, truth=Truth(counts, counts)), without=["reconstruction"])
    write_audit(found, tmp_path / "other", reported.release)
    for path in reported.folder.rglob("*"):
        place = path.relative_to(reported.folder)
        if path.is_file() and place.parts[0].startswith("public"):
            assert path.read_bytes() == (tmp_path / "other" / place).read_bytes(), place
    assert (tmp_path / "other" / "audit.html").read_bytes() != (reported.folder / "audit.html").read_bytes()


def test_the_public_page_tells_no_private_parameter(reported: Reported) -> None:
    told = words((reported.folder / "public.html").read_text(encoding="utf-8"))
    assert "1.93" not in told
    assert "largest change of 7" not in told
    assert "variance of at most 2" in told
    assert "Public:" in told
    assert reported.case.run.secret.hex() not in told


def test_the_public_page_names_no_cell_that_an_attack_found(reported: Reported) -> None:
    assert reported.audit.averaging is not None
    attacked = reported.audit.averaging.attack
    shown = public_page(replace(view(reported), attacks=OutsiderFindings(averaging=attacked))).html()
    assert attacked.exposed
    for one in attacked.exposed:
        assert view(reported).names.cell(one.cell) not in words(shown)


def test_codes_of_a_release_cannot_inject_markup(reported: Reported) -> None:
    found = reported.audit
    assert found.averaging is not None
    attack = found.averaging.attack
    evil = replace(attack.exposed[0], cell={"X": "<img src=x onerror=alert(1)>"})
    averaging = replace(found.averaging, attack=replace(attack, exposed=(evil, *attack.exposed[1:])))
    verdict = replace(found.verdicts[0], where=("<script>alert(1)</script>",), limit=0.0, found=1.0)
    changed = replace(found, averaging=averaging, verdicts=(verdict, *found.verdicts[1:]))
    html = confidential_page(changed, view(reported)).html()
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert html.count("<script") == 1


def test_gates_are_told_apart_and_a_limit_of_nothing_is_broken_by_anything() -> None:
    verdict = GateVerdict("pinned_cells", 0, 3, "the number of cells", ("1: A=2",), "raise D")
    part = gates_part([verdict])
    html = part.html()
    assert part.mood == "bad"
    assert "Remedy: raise D." in html
    assert "3, allowed 0" in html
    assert gates_part([replace(verdict, found=0)]).mood == "good"
    assert "judges nothing" in gates_part([]).lead


def test_a_reconstruction_that_beats_guessing_is_no_good_news() -> None:
    made = ReconstructionFindings(
        counted="persons",
        geography="GEO",
        variables=("SEX",),
        joint_cells=2,
        areas=2,
        status={Status.OPTIMAL: 2},
        records=40,
        certain=20,
        r_certain=0.5,
        r_guessed=0.2,
        unique_areas=0,
        confidence=1.0,
        seconds=1.0,
    )
    judged = JudgedReconstruction(2, 40, 32, 0, 0, 0, 0, 4.0, 2.0, 0)
    one = Rebuilt("as released", made, judged, Confirmed(10, 4, 3, 0, judged.r_recon))
    part = reconstruction_part(ReconstructionAudit(one, (replace(one, protection="none"),), {}))
    assert part.mood == "bad"
    assert "more than guessing does (10%)" in part.lead
    assert "30%" in part.html()
    assert "not tried: nothing to do" in reconstruction_part(NotPossible("nothing to do")).lead


def test_the_region_judges_the_chosen_point() -> None:
    yes, least = np.ones((2, 2), dtype=bool), NoiseChoice(2.0, 1)
    found = Region(
        V=(1.0, 2.0),
        D=(1, 2),
        holds={
            Constraint.PTABLE: yes,
            Constraint.AVERAGING: np.array([[False, True], [False, True]]),
            Constraint.DISTORTION: np.array([[True, True], [True, False]]),
        },
        chosen=NoiseChoice(1.0, 1),
        least=least,
        limits=RiskLimits(),
    )
    part = region_part(found)
    assert part.mood == "bad"
    assert "breaks 1 of the usual limits" in part.lead
    assert (
        "within all limits in 25%, averaging succeeds in 50%, small counts too distorted in 25%"
        in part.html()
    )
    assert region_part(replace(found, chosen=least)).mood == "good"
    assert "no choice is within all limits" in region_part(replace(found, least=None)).lead
    told = to_json(found)
    assert told["holds"]["averaging"] == ["01", "01"]
    assert (told["utility"], told["exists"]) == (["distortion"], "p-table")


def test_expected_errors_are_the_laws_own() -> None:
    law = discrete_laplace("0.5")
    noise = known_noise(same_noise=False, keeps_zeros=False, law=law)
    errors = expected_errors(noise)
    assert errors[-1].deviation == pytest.approx(law.pmf.variance**0.5)
    assert errors[-1].unchanged == pytest.approx(law.pmf.at(0))
    within = errors[-1].within
    assert within is not None
    assert law.pmf.within(0, within) >= 0.95 > law.pmf.within(0, within - 1)
    known = known_noise(same_noise=True, keeps_zeros=True, variance=2.0)
    assert {one.deviation for one in expected_errors(known)} == {2**0.5}
    assert expected_errors(known_noise(same_noise=True, keeps_zeros=True)) == ()


@pytest.mark.parametrize(
    ("epsilon", "stated"),
    [
        (1, "change by a factor of at most 2.72, but for a probability of 1e-09."),
        (20, "that is no protection."),
    ],
)
def test_a_guarantee_is_explained_by_its_epsilon(epsilon: int, stated: str) -> None:
    guarantee = Guarantee(
        neighbours=Neighbours.ADD_REMOVE,
        unit=Protects.PERSON,
        epsilon=Fraction(epsilon),
        delta=Fraction(1, 10**9),
    )
    lead = privacy_part(Privacy(guarantee, None)).lead
    assert lead.endswith(stated)
    assert "hardly" not in lead


def test_the_error_of_swapping_is_not_passed_over() -> None:
    noise = cell_key_noise(variance=2.0, bound=10, disclosed=Disclosure.VARIANCE)
    assert "at most about 1.41" in expected_part(noise, swapped=False).lead
    assert "that is not published" not in expected_part(noise, swapped=False).lead
    assert "Swapping of households adds an error" in expected_part(noise, swapped=True).lead
    adjusted = expected_part(replace(noise, adjusted=True)).html()
    assert "All totals and sub-totals are the sums of their parts" in adjusted
    assert "differs from the sum" not in adjusted
