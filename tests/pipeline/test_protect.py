"""The whole path: what must hold of every release, whatever the machine does."""

import json
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io import databases, files
from discreet.release.reader import open_release
from discreet.release.verify import verify
from tests.pipeline.conftest import SECRET, contents, run


@pytest.fixture(scope="session")
def release(census: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release") / "release"
    run(census, out)
    return out


def rewritten(census: Path, folder: Path, order: np.ndarray | None) -> Path:
    """The same census with its persons in another order."""
    shutil.copytree(census, folder)
    persons = pq.read_table(folder / "persons.parquet")
    order = np.random.default_rng(3).permutation(len(persons)) if order is None else order
    pq.write_table(persons.take(pa.array(order)), folder / "persons.parquet", row_group_size=701)
    return folder


def values(folder: Path) -> dict[str, bytes]:
    """All files but the manifest, whose digest of the inputs sees the order of the rows."""
    return {name: held for name, held in contents(folder).items() if name != "manifest.json"}


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_byte(census: Path, release: Path, tmp_path: Path, threads: int) -> None:
    run(census, tmp_path / "r", threads=threads)
    assert contents(tmp_path / "r") == contents(release)


def test_chunk_size_does_not_change_a_byte(
    census: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH", 193)
    run(census, tmp_path / "r")
    assert contents(tmp_path / "r") == contents(release)


def test_row_order_does_not_change_a_value(census: Path, release: Path, tmp_path: Path) -> None:
    run(rewritten(census, tmp_path / "census", None), tmp_path / "r")
    assert values(tmp_path / "r") == values(release)


def test_sparse_and_dense_grids_agree(
    census: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.tabulate.counter.DENSE_CELLS", 1000)
    run(census, tmp_path / "r")
    assert contents(tmp_path / "r") == contents(release)


def test_several_passes_agree_with_one(
    census: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.run.tabulating.CELLS_AT_ONCE", 5000)
    run(census, tmp_path / "r")
    assert contents(tmp_path / "r") == contents(release)


def test_another_secret_gives_other_noise(census: Path, release: Path, tmp_path: Path) -> None:
    run(census, tmp_path / "r", secret=bytes(32))
    differing = [name for name, held in values(tmp_path / "r").items() if held != values(release)[name]]
    assert any(name.startswith("parquet/") for name in differing)


def test_a_release_verifies(release: Path) -> None:
    outcome = verify(release)
    assert outcome.passed, outcome.problems
    assert outcome.compared > 1000


def test_no_zero_is_published_and_the_private_side_stays_out(release: Path) -> None:
    for cube in open_release(release).manifest.cubes:
        assert min(open_release(release).read_cube(cube.id)["value"].to_pylist()) > 0
    for name, held in contents(release).items():
        assert SECRET not in held, name
        assert SECRET.hex().encode() not in held, name
    assert b'"rows"' not in contents(release)["manifest.json"]


def brute_force(census: Path, axes: dict[str, str]) -> dict[tuple[str, ...], int]:
    """True counts of the finest cells, by plain Python."""
    persons = pq.read_table(census / "persons.parquet", columns=list(axes.values())).to_pylist()
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for person in persons:
        counts[tuple(str(person[column]) for column in axes.values())] += 1
    return counts


def test_published_counts_are_true_counts_plus_bounded_noise_and_zeros_stay(
    census: Path, release: Path
) -> None:
    truth = brute_force(census, {"GEO": "lau", "SEX": "sex", "AGE": "age"})
    ages = {row["code"]: row["parent"] for row in _codes(census / "codelists/age.csv")}
    banded: dict[tuple[str, str, str], int] = defaultdict(int)
    for (geo, sex, age), count in truth.items():
        banded[geo, sex, _level(age, ages, 2)] += count
    places = {row["code"] for row in _codes(census / "codelists/geo.csv")} - {
        row["parent"] for row in _codes(census / "codelists/geo.csv")
    }
    published = {
        (r["GEO"], r["SEX"], r["AGE"]): r["value"] for r in open_release(release).read_cube("3.1").to_pylist()
    }
    bands = {key[2] for key in banded}
    finest = {
        key: value
        for key, value in published.items()
        if key[0] in places and key[1] != "_T" and key[2] in bands
    }
    assert set(finest) <= set(banded)  # zeros stay zero
    noise = [finest.get(key, 0) - count for key, count in banded.items()]
    assert max(map(abs, noise)) <= 5
    assert any(noise)
    assert abs(np.mean(noise)) < 5 * np.sqrt(2 / len(noise))  # unbiased: the variance of each is at most 2


def _codes(path: Path) -> list[dict[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [dict(zip(lines[0].split(","), line.split(",", 2), strict=False)) for line in lines[1:]]


def _level(code: str, parents: dict[str, str], level: int) -> str:
    chain = [code]
    while parents[chain[-1]]:
        chain.append(parents[chain[-1]])
    return chain[::-1][min(level, len(chain)) - 1]


def test_bad_data_leaves_nothing_behind(census: Path, tmp_path: Path) -> None:
    shutil.copytree(census, tmp_path / "census")
    persons = pq.read_table(tmp_path / "census/persons.parquet")
    doubled = pa.concat_tables([persons, persons.slice(0, 1)])
    pq.write_table(doubled, tmp_path / "census/persons.parquet")
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistakes, match="duplicate ids"):
        run(tmp_path / "census", tmp_path / "out/r")
    assert list((tmp_path / "out").iterdir()) == []


def test_bad_data_leaves_the_old_release(census: Path, release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "r")
    shutil.copytree(census, tmp_path / "census")
    persons = pq.read_table(tmp_path / "census/persons.parquet")
    sex = persons.schema.get_field_index("sex")
    broken = persons.set_column(sex, "sex", pa.array(["9"] * len(persons)))
    pq.write_table(broken, tmp_path / "census/persons.parquet")
    with pytest.raises(Mistakes, match="1 codes that are not leaves of the codelist: '9'"):
        run(tmp_path / "census", tmp_path / "r")
    assert contents(tmp_path / "r") == contents(release)


def test_the_private_manifest_holds_what_the_public_one_must_not(census: Path, tmp_path: Path) -> None:
    run(census, tmp_path / "r")
    private = json.loads((tmp_path / "r.private.json").read_text())
    assert private["rows"]["persons"] == 4000
    assert private["parameters"]["noise"]["table"]["D"] == 5
    assert (tmp_path / "r.private.json").stat().st_mode & 0o077 == 0


def test_records_from_a_query_give_the_same_values(census: Path, release: Path, tmp_path: Path) -> None:
    shutil.copytree(census, tmp_path / "census")
    programme = tmp_path / "census/programme.toml"
    text = programme.read_text().replace(
        'persons = "persons.parquet"',
        "persons = { query = \"SELECT * FROM 'persons.parquet' ORDER BY pid\" }",
    )
    programme.write_text(text)
    run(tmp_path / "census", tmp_path / "r")
    assert values(tmp_path / "r") == values(release)
    assert databases.quoted('a"b') == '"a""b"'


def test_csv_and_text_ids_give_the_same_values(census: Path, release: Path, tmp_path: Path) -> None:
    shutil.copytree(census, tmp_path / "census")
    pq.read_table(tmp_path / "census/persons.parquet").to_pandas().to_csv(
        tmp_path / "census/persons.csv", index=False
    )
    programme = tmp_path / "census/programme.toml"
    programme.write_text(programme.read_text().replace('"persons.parquet"', '"persons.csv"'))
    run(tmp_path / "census", tmp_path / "r")
    assert values(tmp_path / "r") == values(release)
