"""What a programme declares of its neighbours: compared with the records in every command, and stated in a release."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.pipeline.check import check_data
from discreet.programme.noise import PrivateNoise
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme
from discreet.text.phrase import Language, said
from tests.cli.called import discreet
from tests.pipeline.conftest import NOON, SECRET, run
from tests.pipeline.test_private_release import with_noise

TOO_SMALL = "2 is too small: a household has more members than that"
SMALL = 'kind = "geometric"\nepsilon = 3000\nlargest_household = 2\nsnapshot = "2021"\n'


def largest(census: Path) -> int:
    sizes = pq.read_table(census / "persons.parquet").group_by("hid").aggregate([("pid", "count")])
    return int(max(sizes["pid_count"].to_pylist()))


@pytest.mark.parametrize("protects", ["person", "household"])
def test_a_household_larger_than_declared_is_refused_by_every_command(
    small_census: Path, tmp_path: Path, protects: str
) -> None:
    folder = with_noise(
        small_census,
        tmp_path / "census",
        f'{SMALL}protects = "{protects}"\n[serve]\naccount = {{ each = 1, user = 9 }}',
    )
    programme = load_programme(folder / "programme.toml")
    size = str(largest(small_census))
    assert int(size) > 2
    (problem,) = [one for one in check_data(programme) if one.key == "noise.largest_household"]
    assert TOO_SMALL in str(problem)
    assert size not in problem.value + problem.remedy
    with pytest.raises(Mistakes, match=TOO_SMALL):
        run(folder, tmp_path / "r")
    assert not (tmp_path / "r").exists()
    where = str(tmp_path / "state.sqlite")
    ledger = Ledger.create(where, lambda: NOON)
    with pytest.raises(Mistakes, match=TOO_SMALL):
        serve_programme(
            programme,
            SECRET,
            Store(where, lambda: NOON),
            ledger=ledger,
            register=Register.of(tmp_path / "serve.register", SECRET),
        )
    shown = discreet("check", folder / "programme.toml")
    assert shown.returncode == 2
    assert TOO_SMALL in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_the_size_of_the_largest_household_is_accepted(small_census: Path, tmp_path: Path) -> None:
    rule = SMALL.replace("= 2", f"= {largest(small_census)}")
    run(with_noise(small_census, tmp_path / "census", rule), tmp_path / "r")
    assert verify(tmp_path / "r").passed


def test_a_release_states_what_its_neighbours_have_in_common(small_census: Path, tmp_path: Path) -> None:
    folder = with_noise(small_census, tmp_path / "census", 'kind = "geometric"\nepsilon = 300')
    run(folder, tmp_path / "r")
    fixed = json.loads((tmp_path / "r/manifest.json").read_text())["noise"]["guarantee"]
    assert {"TOB", "GEO"} <= set(fixed["fixed"])
    assert "SEX" not in fixed["fixed"]
    assert fixed["fixed_families"] is True
    stated = open_release(tmp_path / "r").noise.sentence()
    listed = ", ".join(fixed["fixed"])
    assert f"Unchanged for everyone else, by definition: {listed}." in stated
    assert "By definition no one else changes family." in stated
    assert f"by definition: {listed}." in (tmp_path / "r/README.md").read_text()
    assert f"Für alle anderen laut Definition unverändert: {listed}." in said(stated, Language.GERMAN)


def test_a_release_that_fixes_nothing_reaches_further_and_states_nothing_fixed(
    small_census: Path, tmp_path: Path
) -> None:
    most = largest(small_census)
    folder = with_noise(
        small_census, tmp_path / "census", f'kind = "geometric"\nepsilon = 3000\nlargest_household = {most}'
    )
    path = folder / "programme.toml"
    text = (
        path.read_text()
        .replace("fixed_families = true\n", "")
        .replace('of = "household"\nfixed = true', 'of = "household"')
    )
    path.write_text(text.replace('of = "family"\nfixed = true', 'of = "family"'))
    run(folder, tmp_path / "r")
    manifest = json.loads((tmp_path / "r/manifest.json").read_text())["noise"]
    assert not {"HST", "FST"} & set(manifest["guarantee"]["fixed"])
    assert "fixed_families" not in manifest["guarantee"]
    cells = {manifest["parameters"]["cell"], *manifest["parameters"]["other_cells"].values()}
    assert len(cells) >= 4  # 1, 2, M and 2M - 1 records
    assert f"household of at most {most} members" in open_release(tmp_path / "r").noise.sentence()


READY = """
[variables.SEX]
codelist = "sex.csv"
of = "person"

[[cubes]]
id = "c"
axes = ["SEX"]
counts = {{ file = "c.parquet" }}

[noise]
kind = "discrete-gaussian"
rho = 1
delta = {delta}
"""


@pytest.mark.parametrize(("delta", "refused"), [("1e-2", True), ("0.001", True), ("0.0009", False)])
def test_the_delta_of_ready_made_counts_is_compared_with_their_number(
    tmp_path: Path, delta: str, refused: bool
) -> None:
    """Their total is 1,000."""
    folder = tmp_path / "ready"
    folder.mkdir()
    (folder / "sex.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (folder / "programme.toml").write_text(READY.format(delta=delta))
    table = {"SEX": ["1", "2"], "count": [400, 600], "key": [3_000_000_001, 2_500_000_007]}
    pq.write_table(pa.table(table), folder / "c.parquet")
    programme = load_programme(folder / "programme.toml")
    assert isinstance(programme.noise, PrivateNoise)
    problems = check_data(programme)
    assert [one.key for one in problems] == (["noise.delta"] if refused else [])
    if refused:
        with pytest.raises(Mistakes, match="not below one in the number of records"):
            run(folder, tmp_path / "r")
        assert not (tmp_path / "r").exists()
    else:
        run(folder, tmp_path / "r")
        assert verify(tmp_path / "r").passed
