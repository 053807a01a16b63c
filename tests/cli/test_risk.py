import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.risk import app
from discreet.errors import DiscreetError, Mistakes

RUNNER = CliRunner()


def run(*words: object) -> str:
    result = RUNNER.invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


def test_redundancy_of_the_eu_programme() -> None:
    report = run_json("redundancy", "eu-census-2021", "--country", "MT", "--mode", "literal")
    assert report["regions"] == {"NUTS1": 1, "NUTS2": 1, "NUTS3": 2, "LAU": 68}
    persons = report["universes"][0]
    assert (persons["counted"], persons["tables"]) == ("persons", 103)
    found = {one["statistic"]: one for one in persons["statistics"]}
    assert (found["total"]["same_noise"]["t"], found["total"]["fresh_noise"]["t"]) == (1244, 3432)
    assert (found["AGE.M x SEX"]["same_noise"]["t"], found["AGE.M x SEX"]["fresh_noise"]["t"]) == (221, 630)
    for one in found.values():
        same = one["same_noise"]
        assert same["k_over_t2"] == pytest.approx(same["k"] / same["t"] ** 2)
        assert same["riskiest"]["k_over_t2"] <= same["first_minimum"]["k_over_t2"] * (1 + 1e-12)
    assert persons["most_exposed"]["same_noise"][0] == "total"


def test_regions_can_be_given_by_number() -> None:
    numbers = run_json("redundancy", "eu-census-2021", "--regions", "1,1,2,68")
    assert numbers["universes"] == run_json("redundancy", "eu-census-2021", "--country", "MT")["universes"]


def test_redundancy_is_shown_as_tables() -> None:
    text = run("redundancy", "eu-census-2021", "--country", "LU", "--mode", "bach-2020")
    assert "2747" in text
    assert "6330" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eu-census-2021",), "give one of them"),
        (("eu-census-2021", "--country", "XX"), "use one of BE"),
        (("eu-census-2021", "--country", "MT", "--regions", "1,1,1,1"), "both"),
        (("eu-census-2021", "--regions", "1,2,3"), "four whole numbers"),
        (("eu-census-2021", "--regions", "4,3,2,1"), "do not fall"),
        (("absent.toml",), "absent.toml"),
        (("absent.toml", "--country", "MT"), "leave it out"),
    ],
)
def test_mistakes_in_what_is_asked_of_redundancy(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match=said):
        run("redundancy", *words)
