"""Gates: protect refuses to finish what breaks one, says by what, and leaves nothing; a sound choice passes."""

from pathlib import Path

import pytest

from discreet.audit.audit import MEASURES
from discreet.audit.case import open_case
from discreet.errors import GateBroken
from discreet.io.serialize import to_json
from discreet.pipeline.audit import audit
from discreet.pipeline.protect import Protected, protect, rehearse
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from tests.cases import few
from tests.pipeline.conftest import NOON, with_cubes

SECRET = bytes(
    range(3, 35)
)  # under some others all of the twenty apparent attribute disclosures happen to be true
GATES = """
[gates]
averaging = 0.999
bound_revealed = 0.5
pinned_cells = 0
true_uniques = 0.9
true_attributes = 0.99
posterior = { prior = 0.1, above = 0.99, share = 0.2, alone = false }
reconstruction = { areas = 2, seconds = 1, reconstructed = 0.98, quasi = ["SEX"] }
"""
TWO_GATES = "[gates]\naveraging = 0.999\ntrue_uniques = 0.9\n"
WEAK = '[noise]\nallow_weak = true\nkind = "cell-key"\nV = 0.05\nD = 1\n'
NARROW = '[noise]\nkind = "cell-key"\nV = 0.6\nD = 1\n'
SOUND = '[noise]\nkind = "cell-key"\nV = 3.0\nD = 8\n'


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, census: Path) -> Path:
    """Two tables of the census, so that every attack is quick."""
    folder = tmp_path_factory.mktemp("town")
    axes = {"a": '["GEO.H", "SEX", "AGE.M"]', "b": '["GEO.H", "AGE.M", "POB.L"]'}
    (folder / "head.toml").write_text(with_cubes((census / "programme.toml").read_text(), axes))
    for path in (*census.glob("*.parquet"), census / "codelists"):
        (folder / path.name).symlink_to(path)
    return folder


def programme(town: Path, file: str, noise: str, gates: str = GATES) -> Path:
    path = town / file
    path.write_text((town / "head.toml").read_text() + noise + gates)
    return path


def run(path: Path, out: Path) -> Protected:
    return protect(load_programme(path), SECRET, out, out.with_suffix(".json"), clock=lambda: NOON)


def test_a_sound_choice_passes_every_gate(town: Path, tmp_path: Path) -> None:
    done = run(programme(town, "sound.toml", SOUND), tmp_path / "r")
    assert (tmp_path / "r" / "manifest.json").exists()
    names = [verdict.gate for verdict in done.verdicts]
    assert names[:5] == ["averaging", "bound_revealed", "pinned_cells", "true_uniques", "true_attributes"]
    assert names[5:] == ["posterior", "reconstruction.reconstructed", "reconstruction.reidentified"]
    assert all(verdict.passed for verdict in done.verdicts)


@pytest.mark.parametrize(
    ("noise", "gates", "remedy"),
    few(
        [
            (WEAK, ("averaging", "bound_revealed", "true_uniques", "true_attributes"), "raise V to"),
            (NARROW, ("bound_revealed", "pinned_cells"), "raise D"),
        ],
        0,
    ),
)
def test_a_weak_choice_is_refused_and_leaves_nothing(
    noise: str, gates: tuple[str, ...], remedy: str, town: Path, tmp_path: Path
) -> None:
    with pytest.raises(GateBroken) as broken:
        run(programme(town, "weak.toml", noise), tmp_path / "r")
    for gate in gates:
        assert f"gates.{gate}: " in str(broken.value)
    assert remedy in str(broken.value)
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_does_not_touch_the_release_that_stands(town: Path, tmp_path: Path) -> None:
    run(programme(town, "first.toml", SOUND, ""), tmp_path / "r")
    before = (tmp_path / "r" / "manifest.json").read_bytes()
    with pytest.raises(GateBroken):
        run(programme(town, "second.toml", WEAK, TWO_GATES), tmp_path / "r")
    assert (tmp_path / "r" / "manifest.json").read_bytes() == before


def test_a_rehearsal_judges_and_publishes_nothing(town: Path, tmp_path: Path) -> None:
    verdicts = rehearse(
        load_programme(programme(town, "weak2.toml", WEAK, TWO_GATES)), SECRET, tmp_path / "r"
    )
    assert {verdict.gate for verdict in verdicts if not verdict.passed} >= {"averaging", "true_uniques"}
    assert list(tmp_path.iterdir()) == []


def test_an_audit_names_pinned_cells_without_their_counts(town: Path, tmp_path: Path) -> None:
    path = programme(town, "pinned.toml", NARROW, "")
    run(path, tmp_path / "r")
    case = open_case(load_programme(path), SECRET, open_release(tmp_path / "r"))
    found = audit(case, [name for name in MEASURES if name != "bounds"])
    assert found.bounds is not None
    assert found.bounds.realised.right == found.bounds.attack.pinned > 0
    named = to_json(found)["bounds"]["attack"]["named"]
    assert named
    for one in named:
        assert set(one) == {"counted", "table", "cell", "published"}


def test_a_guarantee_is_judged_by_its_certified_numbers(town: Path, tmp_path: Path) -> None:
    noise = '[noise]\nkind = "geometric"\nepsilon = 4\n'
    gates = "[gates]\nepsilon = 3\n"
    with pytest.raises(GateBroken, match=r"epsilon of the release is 4, 3 is allowed; lower the budget"):
        run(programme(town, "private.toml", noise, gates), tmp_path / "r")
    done = run(programme(town, "private2.toml", noise, gates.replace("3", "4")), tmp_path / "r")
    assert [verdict.passed for verdict in done.verdicts] == [True]


def test_sparse_cross_tabulations_are_refused_by_name(town: Path, tmp_path: Path) -> None:
    gates = "[gates]\nsparsity = {{ zeros = {zeros}, ones = 1, ones_and_twos = 1 }}\n"
    with pytest.raises(GateBroken) as broken:
        run(programme(town, "sparse.toml", SOUND, gates.format(zeros=0.05)), tmp_path / "r")
    assert "gates.sparsity.zeros: the share of empty cells in a cross-tabulation is" in str(broken.value)
    assert "of persons); coarsen its breakdowns, or leave it out" in str(broken.value)
    assert "gates.sparsity.ones:" not in str(broken.value)
    done = run(programme(town, "dense.toml", SOUND, gates.format(zeros=1)), tmp_path / "r")
    assert [one.gate for one in done.verdicts] == [
        "sparsity.zeros",
        "sparsity.ones",
        "sparsity.ones_and_twos",
    ]


def test_averaging_beside_a_guarantee_is_judged_by_the_law_alone(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the true counts nor the drawn ones are looked at: with other microdata the verdict is the same."""

    def looks(*_: object, **__: object) -> None:
        raise AssertionError("the release was looked at")

    monkeypatch.setattr("discreet.audit.averaging.average", looks)
    noise = '[noise]\nkind = "geometric"\nepsilon = {}\n'
    found = []
    for number, epsilon in enumerate((4, 8)):
        path = programme(town, f"law{number}.toml", noise.format(epsilon), "[gates]\naveraging = 0.999\n")
        (verdict,) = run(path, tmp_path / f"r{number}").verdicts
        found.append(verdict.found)
    assert found[0] < found[1] < 0.999
    with pytest.raises(GateBroken, match=r"gates.averaging: .* representations\); lower epsilon"):
        run(programme(town, "law2.toml", noise.format(4), "[gates]\naveraging = 0.01\n"), tmp_path / "r2")
