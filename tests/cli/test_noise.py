import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.noise import app
from discreet.cli.noise_options import NoiseKind
from discreet.errors import DiscreetError, Mistakes
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.named import NEEDED

RUNNER = CliRunner()


def run(*words: object) -> str:
    result = RUNNER.invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


def test_the_exponential_mechanism_is_shown_and_drawn_by_its_utility(tmp_path: Path) -> None:
    file = tmp_path / "utility.csv"
    lines = (f"{a},{b},{-abs(a - b)}" for a in range(3) for b in range(12))
    file.write_text("\n".join(["count,published,utility", *lines]))
    words = ("--kind", "exponential", "--epsilon", 4, "--utility", file)
    report = run_json("show", *words, "--counts", "0,5")
    assert report["parameters"]["utility"].startswith("of counts 0 to 2, sha256 ")
    assert [row["count"] for row in report["rows"]] == [0, 5]
    assert next(iter(report["rows"][1]["pmf"])) == "-2"  # the row of 2, moved along
    assert report["certified"]["by_integers"]
    assert 0 < report["certified"]["delta"] < 0.3
    assert "exponential: epsilon 4, utility of counts 0 to 2" in run("show", *words)
    out = tmp_path / "x.parquet"
    run("sample", *words, "--n", 1000, "--count", 1, "--out", out)
    assert pq.read_table(out)["change"].to_numpy().min() >= -1
    with pytest.raises(Mistakes, match="--count: missing"):
        run("sample", *words, "--n", 10, "--out", out)


def test_show_tells_the_whole_law() -> None:
    report = run_json("show", "--kind", "laplace", "--epsilon", "1.5", "--bound", 7)
    law = truncated_laplace(1.5, 7)
    assert report["kind"] == "laplace"
    assert report["parameters"] == {"epsilon": 1.5, "bound": 7}
    assert [int(v) for v in report["pmf"]] == list(range(-7, 8))
    assert sum(report["pmf"].values()) == pytest.approx(1)
    assert report["mean"] == 0
    assert report["variance"] == pytest.approx(law.pmf.variance)
    certified = report["certified"]
    assert certified["epsilon"] == 1.5
    assert certified["delta"] == pytest.approx(law.pmf.at(7))
    assert certified["delta"] >= law.pmf.at(7) * (1 - 1e-12)
    zero = report["losses"][0]
    assert zero["count"] == 0
    assert zero["l1"] == pytest.approx(law.pmf.absolute_moment(1))
    assert zero["negatives_to_zero"]["l1"] == pytest.approx(law.pmf.absolute_moment(1) / 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kind", "laplace", "--epsilon", 1.5, "--bound", 7), "delta 1.749e-05"),
        (("--kind", "normal", "--epsilon", 0.5, "--bound", 10), "epsilon 0.5, delta 0.006692"),
        (("--kind", "geometric", "--epsilon", "1/3"), "epsilon 0.333333333333"),
        (("--kind", "discrete-gaussian", "--rho", "1/8", "--delta", 1e-6), "delta 1e-06, rho 0.125"),
        (("--kind", "discrete-gaussian", "--sigma", 2), "rho 0.125"),
        (("--kind", "hellinger", "--epsilon", 6, "--counts", "0,3"), "changes of 3"),
        (("--kind", "uniform", "--bound", 5), "no epsilon: delta 0.09091"),
        (("--kind", "cell-key", "--D", 5, "--V", 2, "--js", 1), "no epsilon"),
    ],
)
def test_every_kind_is_shown_with_its_guarantee(words: tuple[object, ...], said: str) -> None:
    text = run("show", *words)
    assert said in text
    assert "negatives to zero" in text
    report = run_json("show", *words)
    assert report["certified"]["delta"] > 0
    for law in report["rows"] or [report]:
        assert sum(law["pmf"].values()) == pytest.approx(1, abs=1e-6)


def test_every_kind_of_the_commands_has_a_law() -> None:
    assert {kind.value for kind in NoiseKind} == {kind.value for kind in NEEDED}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kind", "geometric", "--epsilon", 0), "above zero"),
        (("--kind", "geometric", "--epsilon", "-1"), "above zero"),
        (("--kind", "discrete-gaussian", "--epsilon", 1), "no pure epsilon"),
        (("--kind", "laplace", "--epsilon", 1), "bound: missing"),
        (("--kind", "laplace", "--epsilon", 1, "--bound", 7, "--V", 2), "V: 2.0; leave it out"),
        (
            ("--kind", "laplace", "--epsilon", 1, "--bound", 7, "--delta", 1e-6),
            "above 1e-06; use a larger bound",
        ),
        (("--kind", "laplace", "--epsilon", 1, "--bound", 7, "--delta", 2), "between 0 and 1"),
        (("--kind", "uniform", "--bound", 3, "--counts", "1,x"), "--counts"),
        (("--kind", "uniform", "--bound", 3, "--counts", 2**63), "counts up to"),
        (("--kind", "geometric", "--epsilon", "1e-9"), "less noise"),
    ],
)
def test_mistakes_are_refused(words: tuple[object, ...], said: str) -> None:
    with pytest.raises(Mistakes) as caught:
        run("show", *words)
    assert said in str(caught.value)


def test_samples_have_the_law(tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    report = run_json("sample", "--kind", "geometric", "--epsilon", 1, "--n", 200_000, "--out", out)
    changes = pq.read_table(out)["change"].to_numpy()
    assert len(changes) == report["n"] == 200_000
    assert np.var(changes) == pytest.approx(report["variance"])
    assert report["variance"] == pytest.approx(discrete_laplace(1).pmf.variance, rel=0.05)
    assert abs(report["mean"]) < 6 * math.sqrt(1.85 / 200_000)
    assert report["certified"]["epsilon"] == 1
    again = tmp_path / "y.parquet"
    assert (
        run("sample", "--kind", "geometric", "--epsilon", 1, "--n", 200_000, "--out", again, "--quiet") == ""
    )
    assert not np.array_equal(changes, pq.read_table(again)["change"].to_numpy())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.parquet", "y.parquet"]


@pytest.mark.parametrize(
    ("words", "least"),
    [(("--kind", "hellinger", "--epsilon", 6), -3), (("--kind", "cell-key", "--D", 5, "--V", 2), -3)],
)
def test_laws_of_a_count_are_sampled_for_it(tmp_path: Path, words: tuple[object, ...], least: int) -> None:
    out = tmp_path / "x.parquet"
    run("sample", *words, "--count", 3, "--n", 20_000, "--out", out)
    assert pq.read_table(out)["change"].to_numpy().min() == least
    with pytest.raises(Mistakes, match="--count: missing"):
        run("sample", *words, "--n", 10, "--out", out)


def test_where_samples_cannot_go(tmp_path: Path) -> None:
    law = ("sample", "--kind", "geometric", "--epsilon", 1, "--n", 10)
    for out in (tmp_path / "x.csv", tmp_path / "none" / "x.parquet"):
        with pytest.raises(Mistakes, match="--out"):
            run(*law, "--out", out)
    with pytest.raises(Mistakes, match="same for every count"):
        run(*law, "--out", tmp_path / "x.parquet", "--count", 3)
    assert RUNNER.invoke(app, [*map(str, law[:-1]), "0", "--out", str(tmp_path / "x.parquet")]).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_samples_replace_samples_only(tmp_path: Path) -> None:
    law = ("sample", "--kind", "geometric", "--epsilon", 1, "--n", 10)
    people = tmp_path / "persons.parquet"
    pq.write_table(pa.table({"pid": [1, 2]}), people)
    with pytest.raises(Mistakes, match="exists and has no samples; give another path"):
        run(*law, "--out", people)
    assert pq.read_table(people)["pid"].to_pylist() == [1, 2]
    for _ in range(2):
        run(*law, "--out", tmp_path / "x.parquet")
