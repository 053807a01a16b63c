"""Noise with a guarantee through the whole path, and every refusal that keeps its promise."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.exponential import UtilityLaw
from discreet.programme.programme import load_programme
from discreet.programme.utility_file import read_utility
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.synth import generate
from tests.cases import few
from tests.pipeline.conftest import contents, run


def with_noise(census: Path, folder: Path, noise: str) -> Path:
    shutil.copytree(census, folder)
    programme = folder / "programme.toml"
    programme.write_text(
        programme.read_text().partition("[noise]")[0] + f"[noise]\nallow_weak = true\n{noise}\n"
    )
    return folder


@pytest.mark.parametrize(
    ("noise", "guarantee"),
    few(
        [
            ('kind = "geometric"\nepsilon = 300', "epsilon = 300 and delta ="),
            ('kind = "laplace"\nepsilon = 2000\nbound = 30\ndelta = 1e-6', "epsilon = 2000 and delta ="),
            ('kind = "normal"\nepsilon = 3000\nbound = 30\ndelta = 1e-5', "epsilon = 3000 and delta ="),
            ('kind = "discrete-gaussian"\nrho = 300', "rho = 300 (zero-concentrated), when"),
            ('kind = "discrete-gaussian"\nrho = 3\ndelta = 1e-9', "and delta = 1e-09"),
            ('kind = "geometric"\nepsilon = 300\nneighbours = "substitute"', "is replaced by another"),
            (
                'kind = "geometric"\nepsilon = 3000\nprotects = "household"\nlargest_household = 16',
                "household of at most 16 members",
            ),
        ],
        0,
        4,
        6,
    ),
)
def test_a_release_states_what_it_guarantees_and_agrees_with_itself(
    small_census: Path, tmp_path: Path, noise: str, guarantee: str
) -> None:
    run(with_noise(small_census, tmp_path / "census", noise), tmp_path / "r")
    outcome = verify(tmp_path / "r")
    assert outcome.passed, outcome.problems
    assert guarantee in open_release(tmp_path / "r").noise.sentence()
    assert guarantee in (tmp_path / "r/README.md").read_text()


@pytest.fixture(scope="module")
def one_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For noise whose thresholds take long to compute."""
    folder = tmp_path_factory.mktemp("census") / "census"
    generate(400, 3, folder, tables=["3.3"], threads=1)
    return folder


def test_hellinger_noise_is_kept_for_comparison(one_table: Path, tmp_path: Path) -> None:
    run(with_noise(one_table, tmp_path / "census", 'kind = "hellinger"\nepsilon = 200'), tmp_path / "r")
    assert verify(tmp_path / "r").passed
    assert "epsilon = 200" in open_release(tmp_path / "r").noise.sentence()


def test_the_exponential_mechanism_goes_the_whole_way(one_table: Path, tmp_path: Path) -> None:
    """Its utility is in the manifest, so that a reader rebuilds the law; larger counts have its last row."""
    folder = with_noise(
        one_table, tmp_path / "census", 'kind = "exponential"\nepsilon = 100\ndelta = 1e-3\nutility = "u.csv"'
    )
    rows = ["count,published,utility"]
    rows += [f"{a},{b},{-abs(a - b) + (0.5 if a == b == 0 else 0)}" for a in range(3) for b in range(-20, 23)]
    (folder / "u.csv").write_text("\n".join(rows))
    run(folder, tmp_path / "r")
    assert verify(tmp_path / "r").passed
    noise = open_release(tmp_path / "r").noise
    assert "epsilon = 100 and delta =" in noise.sentence()
    assert noise.utility == read_utility(folder / "u.csv")
    assert isinstance(noise.law, UtilityLaw)
    assert noise.law.table == noise.utility
    assert noise.law.settled == 2
    assert noise.law.row(100).first == 78
    (folder / "u.csv").write_text("\n".join(rows[:-17]))
    with pytest.raises(Mistakes, match=r"the ends of the utility's rows cost .* list more published values"):
        run(folder, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("composition", few(["advanced", "pld"], "advanced"))
def test_a_release_states_how_its_cross_tabulations_are_composed(
    small_census: Path, tmp_path: Path, composition: str
) -> None:
    noise = f'kind = "geometric"\nepsilon = 60\ndelta = 1e-5\nthreshold = 20\ncomposition = "{composition}"'
    run(with_noise(small_census, tmp_path / "census", noise), tmp_path / "r")
    assert verify(tmp_path / "r").passed
    opened = open_release(tmp_path / "r")
    guarantee = opened.manifest.noise.guarantee
    assert guarantee is not None
    assert guarantee.composition == composition
    assert guarantee.epsilon == 60
    assert 0 < float(guarantee.delta or 0) <= 1e-5
    said = {"advanced": "by advanced composition", "pld": "by privacy-loss distributions"}[composition]
    assert said in opened.noise.sentence()
    assert said in (tmp_path / "r/README.md").read_text()


def test_fresh_noise_is_new_each_time_and_keyed_noise_is_not(small_census: Path, tmp_path: Path) -> None:
    rule = 'kind = "geometric"\nepsilon = 150\n'
    keyed = with_noise(small_census, tmp_path / "keyed", rule + 'snapshot = "2021"')
    fresh = with_noise(small_census, tmp_path / "fresh", rule + 'draw = "fresh"')
    made = {}
    for name, folder in (("a", keyed), ("b", keyed), ("c", fresh), ("d", fresh)):
        run(folder, tmp_path / name)
        made[name] = contents(tmp_path / name)["parquet/3.1.parquet"]
        assert verify(tmp_path / name).passed
    assert made["a"] == made["b"]
    assert len({made["a"], made["c"], made["d"]}) == 3


@pytest.mark.parametrize("snapshots", few([("", ""), ("2021", "2021 corrected")], 1, single=True))
def test_another_population_gets_other_noise_under_the_same_secret(
    small_census: Path, tmp_path: Path, snapshots: tuple[str, str]
) -> None:
    """Otherwise the difference of two releases would show who was added, exactly."""
    first, second = (
        with_noise(
            small_census,
            tmp_path / name,
            'kind = "geometric"\nepsilon = 100\n' + (f'snapshot = "{snapshot}"' if snapshot else ""),
        )
        for name, snapshot in zip(("first", "second"), snapshots, strict=True)
    )
    persons = pq.read_table(second / "persons.parquet")
    pq.write_table(persons.slice(1), second / "persons.parquet")
    cells = []
    for folder, name in ((first, "a"), (second, "b")):
        run(folder, tmp_path / name, register=tmp_path / "register")
        rows = open_release(tmp_path / name).read_cube("3.1").to_pylist()
        cells.append({(r["GEO"], r["SEX"], r["AGE"]): r["value"] for r in rows})
    differing = [cell for cell in cells[0].keys() & cells[1].keys() if cells[0][cell] != cells[1][cell]]
    assert len(differing) > 100  # one person alone would change some thirty cells


def test_records_that_cannot_be_known_again_need_fresh_noise(small_census: Path, tmp_path: Path) -> None:
    query = "{ query = \"SELECT * FROM 'persons.parquet'\" }"
    for draw, said in (("snapshot", "the same records must be recognised"), ("fresh", "")):
        rule = 'kind = "geometric"\nepsilon = 300\n' + ("" if draw == "fresh" else 'snapshot = "2021"')
        folder = with_noise(small_census, tmp_path / draw, rule)
        text = (folder / "programme.toml").read_text()
        (folder / "programme.toml").write_text(text.replace('"persons.parquet"', query, 1))
        if said:
            with pytest.raises(Mistakes, match=said):
                run(folder, tmp_path / f"{draw}-release")
        else:
            run(folder, tmp_path / f"{draw}-release")
            assert verify(tmp_path / f"{draw}-release").passed


REFUSED = {
    'kind = "geometric"\nepsilon = 0': "noise.epsilon: 0; give a number above 0",
    'kind = "geometric"\nepsilon = -1': "noise.epsilon: -1",
    'kind = "geometric"': "noise.epsilon: is missing",
    'kind = "geometric"\nepsilon = "one"': "noise.epsilon: one",
    'kind = "discrete-gaussian"\nepsilon = 1': "never purely epsilon-private",
    'kind = "discrete-gaussian"\nrho = 1\ndelta = 2': "noise.delta: 2",
    'kind = "geometric"\nepsilon = 1\nrho = 1': "noise.rho: 1",
    'kind = "geometric"\nepsilon = 1\nbound = 4': "only laplace and normal are truncated",
    'kind = "laplace"\nepsilon = 1\ndelta = 0.1': "noise.bound: is missing",
    'kind = "laplace"\nepsilon = 1\nbound = 4': "noise.delta: is missing; truncated noise costs a delta",
    'kind = "geometric"\nepsilon = 1\nsigma = 2': "unknown key 'sigma'",
    'kind = "geometric"\nepsilon = 1\ndraw = "participants"\nkeep_zeros = "all"': "same participants, same noise",
    'kind = "geometric"\nepsilon = 1\nkeep_zeros = "all"': "unperturbed zeros with a DP claim",
    'kind = "geometric"\nepsilon = 1\nclaim = "none"\ndraw = "participants"': "noise by participants",
    'kind = "geometric"\nepsilon = 1\nprotects = "household"': "noise.largest_household: is missing",
    'kind = "geometric"\nepsilon = 1\nsplit = { by_axes = { "0" = "1/2", "1" = "1/3" } }': "the shares sum to 5/6",
    'kind = "geometric"\nepsilon = 1\nsplit = { }': "noise.split: is empty",
    'kind = "geometric"\nepsilon = 1\ndraw = "description"': "name the records whose noise may be repeated",
    'kind = "geometric"\nepsilon = 1\ndraw = "fresh"\nsnapshot = "a"': "it goes with draw",
    'kind = "gauss"\nepsilon = 1': "use 'cell-key', 'laplace'",
}


@pytest.mark.parametrize(("noise", "said"), REFUSED.items())
def test_what_cannot_keep_its_promise_is_refused_in_the_programme(
    one_table: Path, tmp_path: Path, noise: str, said: str
) -> None:
    with pytest.raises(Mistakes) as refused:
        load_programme(with_noise(one_table, tmp_path / "census", noise) / "programme.toml")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ('kind = "laplace"\nepsilon = 150\nbound = 3\ndelta = 1e-9', "truncation at 3 costs"),
        (
            'kind = "laplace"\nepsilon = 250\nbound = 6\ndelta = 0.9',
            "not below one in the number of records",
        ),
        ('kind = "discrete-gaussian"\nrho = 3\ndelta = 0.01', "not below one in the number of records"),
        ('kind = "discrete-gaussian"\nrho = 300\ndelta = 1e-9', "below what the sampler itself adds"),
        ('kind = "geometric"\nepsilon = 500\nsplit = { by_axes = { "9" = 1 } }', "choose from"),
        ('kind = "geometric"\nepsilon = 500\nsplit = { by_table = { "3.1" = 1 } }', "8.1"),
        ('kind = "geometric"\nepsilon = "1/100"', "take less noise"),
    ],
)
def test_what_the_cubes_or_the_records_contradict_is_refused_and_nothing_is_written(
    small_census: Path, tmp_path: Path, noise: str, said: str
) -> None:
    folder = with_noise(small_census, tmp_path / "census", noise)
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistakes) as refused:
        run(folder, tmp_path / "out/r")
    assert said in str(refused.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_large_delta_needs_a_word(small_census: Path, tmp_path: Path) -> None:
    rule = 'kind = "discrete-gaussian"\nrho = 3\ndelta = 0.01\nlarge_delta = true'
    run(with_noise(small_census, tmp_path / "census", rule), tmp_path / "r")
    assert verify(tmp_path / "r").passed


def test_a_release_that_noise_would_make_dense_is_refused_with_what_to_expect(
    small_census: Path, tmp_path: Path
) -> None:
    rule = 'kind = "geometric"\nepsilon = 10\n[limits]\npublished = 50'
    with pytest.raises(
        Mistakes, match=r"noise would make about .* cells visible; raise the budget, or set a threshold"
    ):
        run(with_noise(small_census, tmp_path / "census", rule), tmp_path / "r")
    sparse = 'kind = "geometric"\nepsilon = 300\nthreshold = 25\n[limits]\npublished = 50'
    run(with_noise(small_census, tmp_path / "thin", sparse), tmp_path / "r")
    assert verify(tmp_path / "r").passed
