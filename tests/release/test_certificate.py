"""Certificates: every law and way to draw certifies, and no number in a certificate can be changed unnoticed."""

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import main
from discreet.errors import BrokenRelease
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.named import budgeted_law
from discreet.maths.noise.thresholds import row_table as drawn_row
from discreet.maths.noise.thresholds import threshold_table
from discreet.maths.privacy.accounting import ARITHMETIC
from discreet.release import recompute
from discreet.release.certificate import CERTIFICATE
from discreet.release.certify import verify_certificate
from discreet.release.recompute import Table, law_table, problems, row_table
from discreet.release.verify import verify
from discreet.synth import generate
from tests.pipeline.conftest import run

NOISE = {
    "geometric": 'kind = "geometric"\nepsilon = 30',
    "substitute": 'kind = "geometric"\nepsilon = "100/3"\nneighbours = "substitute"',
    "household": 'kind = "geometric"\nepsilon = 500\nprotects = "household"\nlargest_household = 20',
    "laplace": 'kind = "laplace"\nepsilon = 60\nbound = 30\ndelta = 1e-3\nlarge_delta = true',
    "normal": 'kind = "normal"\nepsilon = 300\nbound = 30\ndelta = 1e-3\nlarge_delta = true',
    "gaussian": 'kind = "discrete-gaussian"\nrho = 8',
    "hellinger": 'kind = "hellinger"\nepsilon = 200',
    "exponential": 'kind = "exponential"\nepsilon = 100\ndelta = 1e-3\nlarge_delta = true\nutility = "by_count.csv"',
    "change": 'kind = "exponential"\nepsilon = 60\ndelta = 1e-3\nlarge_delta = true\nutility = "by_change.csv"',
    "advanced": 'kind = "geometric"\nepsilon = 2\ndelta = 1e-2\nlarge_delta = true\ncomposition = "advanced"',
    "pld": 'kind = "geometric"\nepsilon = 2\ndelta = 1e-2\nlarge_delta = true\ncomposition = "pld"',
}
BY_COUNT = [f"{a},{b},{-abs(a - b) - (a == 0 < b) / 2}" for a in range(3) for b in range(-20, 23)]
BY_CHANGE = [f"{v},{-abs(v)}" for v in range(-30, 31)]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("certified")
    generate(400, 3, folder / "census", tables=["3.3"], threads=1)
    before = (folder / "census/programme.toml").read_text().partition("[noise]")[0]
    (folder / "census/by_count.csv").write_text("\n".join(["count,published,utility", *BY_COUNT]))
    (folder / "census/by_change.csv").write_text("\n".join(["change,utility", *BY_CHANGE]))
    made = {}
    for name, noise in NOISE.items():
        (folder / "census/programme.toml").write_text(f"{before}[noise]\nallow_weak = true\n{noise}\n")
        run(folder / "census", folder / name)
        made[name] = folder / name
    return made


@pytest.mark.parametrize("name", NOISE)
def test_every_release_with_a_guarantee_has_a_certificate_that_proves_it(
    releases: dict[str, Path], name: str
) -> None:
    found = verify_certificate(releases[name])
    assert found.passed, found.problems
    assert found.statistics > 3
    assert verify_certificate(releases[name] / CERTIFICATE).passed, "also without the release"
    assert verify(releases[name]).passed


def test_a_delta_of_arithmetic_is_part_of_the_claim(releases: dict[str, Path]) -> None:
    """Exactly what the certificate sums up, and what a ledger charges in whole units of 1e-30."""
    claim = verify_certificate(releases["geometric"]).claim
    assert re.fullmatch(
        r"epsilon = \d+, delta = [\d.]+e-\d\d( \(rounded up\))? by rounding in the sampler", claim
    )
    total = json.loads((releases["geometric"] / CERTIFICATE).read_text())["total"]
    assert 0 < Fraction(total["delta"]) <= ARITHMETIC
    assert "rounding" not in verify_certificate(releases["advanced"]).claim


def test_a_utility_is_stated_and_cannot_be_exchanged(releases: dict[str, Path]) -> None:
    text = (releases["exponential"] / CERTIFICATE).read_text()
    document: dict[str, Any] = json.loads(text)
    assert [row["first"] for row in document["utility"]] == [-20] * 3
    assert len(document["tables"][0]["rows"]) == 4  # the row after the last is the last one moved along
    document["utility"][1]["utilities"][5] = "-3"
    assert any("another digest" in problem for problem in problems(document))


@pytest.mark.parametrize("name", ["advanced", "pld"])
def test_a_composition_is_recomputed(releases: dict[str, Path], name: str) -> None:
    """Shares sum to more than epsilon, and the composed delta is what is stated: less of it is found out."""
    text = (releases[name] / CERTIFICATE).read_text()
    document: dict[str, Any] = json.loads(text)
    shares = sum(Fraction(one["share"]) for one in document["statistics"])
    assert document["composition"] == name
    if name == "pld":
        assert shares > Fraction(document["total"]["epsilon"])
    assert list(problems(document)) == []
    if shares > Fraction(document["total"]["epsilon"]):
        for key, value in (("delta", str(Fraction(document["total"]["delta"]) / 2)), ("epsilon", "1")):
            document = json.loads(text)
            document["total"][key] = value
            assert any("composed, delta is" in problem for problem in problems(document)), key
        document = json.loads(text)
        del document["composition"]
        assert any("the shares sum to epsilon" in problem for problem in problems(document))


LARGER = ("share", "parameter", "l1", "l2_squared", "largest", "came", "units", "delta", "distance")


@pytest.mark.parametrize("name", ["geometric", "laplace", "gaussian"])
def test_no_number_can_be_changed_unnoticed(releases: dict[str, Path], name: str) -> None:
    """Each number of a cross-tabulation, of a law and of the total, made to claim more than is true."""
    text = (releases[name] / CERTIFICATE).read_text()
    assert list(problems(json.loads(text))) == []
    for key in LARGER:
        document: dict[str, Any] = json.loads(text)
        entry = document["statistics"][0]
        if key not in entry or (key in ("distance", "delta") and Fraction(entry[key]) == 0):
            continue
        factor = Fraction(1, 2) if key == "delta" else 2
        entry[key] = type(entry[key])(Fraction(entry[key]) * factor)
        if key == "distance":
            entry[key] = str(Fraction(1, 2))
        assert list(problems(document)), key
    for change in ("sha256", "first", "last"):
        document = json.loads(text)
        row = document["tables"][0]["rows"][0]
        row[change] = "0" * 64 if change == "sha256" else row[change] + 1
        assert list(problems(document)), change
    for measure in ("epsilon", "rho", "delta"):
        document = json.loads(text)
        if Fraction(document["total"].get(measure, 0)) and (name, measure) != ("gaussian", "delta"):
            document["total"][measure] = str(Fraction(document["total"][measure]) * Fraction(999, 1000))
            assert list(problems(document)), measure
    document = json.loads(text)
    document["statistics"].append(document["statistics"][0])
    assert list(problems(document)), "a cross-tabulation more"


def test_what_cannot_hold_is_not_recomputed(
    releases: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of changes of one record take minutes to compare."""
    document: dict[str, Any] = json.loads((releases["geometric"] / CERTIFICATE).read_text())
    document["statistics"] = [document["statistics"][0] | {"units": 7099}]
    monkeypatch.setattr(recompute, "_delta", None)
    assert any("neighbours differ by" in one for one in problems(document))


def test_it_must_agree_with_its_manifest(releases: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(releases["geometric"], tmp_path / "r")
    shutil.copy(releases["substitute"] / CERTIFICATE, tmp_path / "r" / CERTIFICATE)
    found = verify_certificate(tmp_path / "r")
    assert "the manifest states other neighbours" in found.problems
    assert not verify(tmp_path / "r").passed, "and its checksum"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("largest_household", 99, "other households"),
        ("fixed", ["SEX"], "fixed attributes"),
        ("utility", [{"first": 0, "utilities": ["1"]}], "another utility"),
    ],
)
def test_what_only_the_manifest_contradicts_is_found(
    releases: dict[str, Path], tmp_path: Path, key: str, value: object, said: str
) -> None:
    shutil.copytree(releases["geometric"], tmp_path / "r")
    path = tmp_path / "r" / CERTIFICATE
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert verify_certificate(path).passed, "by itself it holds"
    assert any(said in problem for problem in verify_certificate(tmp_path / "r").problems)


def test_a_damaged_certificate_beside_its_manifest_is_reported(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(releases["geometric"], tmp_path / "r")
    (tmp_path / "r" / CERTIFICATE).write_text('{"kind": "discreet certificate"}')
    assert "cannot be read" in verify_certificate(tmp_path / "r").problems[0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "discreet certificate"}'])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    if "certificate" in text:
        assert not verify_certificate(tmp_path / "c.json").passed
    else:
        with pytest.raises(BrokenRelease):
            verify_certificate(tmp_path / "c.json")


def test_the_command(
    releases: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["discreet", "verify", "--certificate", str(releases["gaussian"])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert "certified, rho = 8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "parameter", "bound"),
    [
        (LawKind.GEOMETRIC, Fraction(1, 50), None),
        (LawKind.GEOMETRIC, Fraction(3), None),
        (LawKind.LAPLACE, Fraction(1, 3), 12),
        (LawKind.NORMAL, Fraction(2), 9),
        (LawKind.DISCRETE_GAUSSIAN, Fraction(1, 300), None),
    ],
)
def test_two_codes_give_the_same_integers(kind: LawKind, parameter: Fraction, bound: int | None) -> None:
    drawn = threshold_table(budgeted_law(kind, parameter, bound))
    found = law_table(kind.value, parameter, bound, drawn.first, drawn.last)
    assert found == Table(drawn.first, drawn.numbers)
    for shift in (1, 2):
        at = shift * parameter
        ours, theirs = found.delta(found, at, shift), drawn.certified_delta(at, shift)
        assert ours <= theirs
        assert theirs - ours <= Fraction(1, 2**200)


@pytest.mark.parametrize("count", [0, 3])
def test_two_codes_give_the_same_rows(count: int) -> None:
    drawn = drawn_row(hellinger(4), count)
    assert row_table(Fraction(4), count, drawn.last) == Table(0, drawn.numbers)
