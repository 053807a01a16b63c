"""Weighted tables from the command line: protected, verified, attacked and audited, and an old release still read."""

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.inference import cross_table
from discreet.inference.weighted import weighted
from discreet.maths.cells.counting import counts_of
from discreet.perturb.weights import WeightedSums
from discreet.tabulate.tables import ConfidentialTable

PERSONS = 5000
PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"

[variables.AREA]
codelist = "area.csv"

[variables.JOB]
codelist = "job.csv"

[[cubes]]
id = "counts"
axes = ["AREA", "JOB"]

[[cubes]]
id = "sums"
axes = ["AREA", "JOB"]
weight = "weight"

[[cubes]]
id = "areas"
axes = ["AREA"]
weight = "weight"

[noise]
kind = "cell-key"
V = 2.0
D = 5

[release]
disclose = "law"
formats = ["parquet", "csv"]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with sums of whole weights beside the counts."""
    folder = tmp_path_factory.mktemp("weights")
    draw = np.random.default_rng(8)
    columns = {
        "pid": np.arange(PERSONS),
        "area": [f"a{one}" for one in draw.integers(0, 200, PERSONS)],
        "job": [f"j{one}" for one in draw.integers(0, 5, PERSONS)],
        "weight": draw.integers(1, 30, PERSONS),
    }
    pq.write_table(pa.table(columns), folder / "persons.parquet")
    for name, size in (("area", 200), ("job", 5)):
        codes = "".join(f"{name[0]}{one},,\n" for one in range(size))
        (folder / f"{name}.csv").write_text("code,parent,label\n" + codes)
    (folder / "programme.toml").write_text(PROGRAMME)
    (folder / "secret.key").write_text("ab" * 32)
    (folder / "secret.key").chmod(0o600)
    words: list[str | Path] = [
        "protect",
        folder / "programme.toml",
        "--secret",
        folder / "secret.key",
        "--out",
    ]
    discreet(*words, folder / "release", "--quiet")
    return folder


def discreet(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def told(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(discreet(*words, "--json"))
    return found


ATTACKS = "averaging,removal,bounds,bayes,differencing,reconstruction,disclosure"


def without(names: str) -> list[str]:
    return [word for name in names.split(",") for word in ("--without", name)]


def test_the_release_is_verified_and_cells_of_two_weighted_tables_agree(made: Path) -> None:
    assert told("verify", str(made / "release"))["problems"] == []
    folder = made / "release" / "parquet"
    sums, areas = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("sums", "areas"))
    totals = {row["AREA"]: row["value"] for row in sums if row["JOB"] == "_T"}
    assert totals == {row["AREA"]: row["value"] for row in areas}
    assert len(totals) == 201


def test_no_count_follows_from_the_weights(made: Path) -> None:
    found = told("attack", str(made / "release"), *without(ATTACKS))["weights"]
    assert found["cells"] > 700
    assert (found["certain"], found["certain_without"]) == (0, 0)
    assert found["left"] > 8
    programme, secret = (str(made / name) for name in ("programme.toml", "secret.key"))
    left_out = without("redundancy,privacy,utility,region,protection," + ATTACKS)
    audited = told("audit", made / "release", "--programme", programme, "--secret", secret, *left_out)
    attack = audited["weights"]["attack"]
    assert attack.pop("reach") == pytest.approx(found.pop("reach"))
    assert audited["weights"] == {"attack": found, "realised": {"certain": 0, "right": 0}}


def test_the_error_of_weighted_estimates(made: Path) -> None:
    """Intervals by the stated largest weight cover the true sums, at least as often as they state."""
    rows = pq.read_table(made / "persons.parquet").to_pandas()
    sums = rows.groupby("area")["weight"].sum().head(60)
    found = [weighted(made / "release", "areas", f'AREA == "{code}"', 29) for code in sums.index]
    assert sum(one.low <= exact <= one.high for one, exact in zip(found, sums, strict=True)) >= 57
    assert found[0].standard_error == pytest.approx(29 * sqrt(2 * 2.0), rel=1e-3)  # V = 2, reach sqrt(3 V)
    shown = told(
        "infer",
        "weighted",
        made / "release",
        "--cube",
        "areas",
        "--where",
        "AREA=a0",
        "--largest-weight",
        "29",
    )
    assert shown["published"] == found[list(sums.index).index("a0")].published
    assert "error of the sample is not included" in " ".join(shown["caveats"])


def test_counts_and_weighted_estimates_are_told_apart(made: Path) -> None:
    with pytest.raises(Mistakes, match="the noise is scaled by it"):
        weighted(made / "release", "areas")
    with pytest.raises(Mistakes, match="discreet infer weighted"):
        cross_table(made / "release", "sums", ["AREA", "JOB"])
    with pytest.raises(Mistakes, match="has counts; use `discreet infer interval`"):
        weighted(made / "release", "counts", largest=29)


def exact_means(
    self: WeightedSums, table: ConfidentialTable, places: NDArray[np.int64], values: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The law of version 0.1: published count x mean weight."""
    assert table.weights is not None
    return np.asarray(values * (table.weights[places] / (counts_of(table.cells[places]) * 1e6)))


def test_a_release_of_exact_mean_weights_is_read_and_broken(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As version 0.1 published: the manifest states no noise of the sums."""
    monkeypatch.setattr(WeightedSums, "published", exact_means)
    monkeypatch.setattr("discreet.perturb.cell_key.ScaledWeights", lambda reach: None)
    old = tmp_path / "release"
    discreet("protect", made / "programme.toml", "--secret", made / "secret.key", "--out", old, "--quiet")
    assert "weighted" not in json.loads((old / "manifest.json").read_text())["noise"]
    found = told("attack", old, *without(ATTACKS))["weights"]
    assert found["reach"] is None
    assert found["certain"] > 0.15 * found["cells"]
    assert "sums show the exact mean weight" in discreet("attack", old, *without(ATTACKS))
