"""``discreet accounting``: known values, both ways of reporting, and one clear line for what is wrong."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.accounting import app
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


def test_the_budget_of_the_us_census_is_converted_both_ways() -> None:
    report = run_json("convert", "--rho", "2.56", "--delta", "1e-10")
    assert report["asked"] == "epsilon"
    assert report["published"] == pytest.approx(17.9153, abs=5e-5)
    assert report["tighter"] == pytest.approx(17.158, abs=5e-4)
    assert "a conversion does not change them" in report["neighbours"]
    text = run("convert", "--rho", "2.56", "--delta", "1e-10")
    assert "epsilon 17.9153 as published" in text
    assert "epsilon 17.158" in text


def test_two_of_rho_epsilon_and_delta_give_the_third() -> None:
    rho = run_json("convert", "--epsilon", "17.9153", "--delta", "1e-10")
    assert rho["asked"] == "rho"
    assert rho["published"] == pytest.approx(2.56, abs=1e-4)
    assert rho["tighter"] > rho["published"]
    delta = run_json("convert", "--epsilon", "17.9153", "--rho", "2.56")
    assert delta["asked"] == "delta"
    assert delta["published"] == pytest.approx(1e-10, rel=1e-3)
    assert delta["tighter"] < delta["published"]
    assert run_json("convert", "--epsilon", "1")["tighter"] == 0.5
    assert "rho 0.5\n" in run("convert", "--epsilon", "1")


def test_four_compositions_side_by_side() -> None:
    report = run_json("compose", "--laplace", "0.1*103", "--delta", "1e-6", "--at-epsilon", 5)
    assert report["releases"] == [{"kind": "laplace", "amount": "0.1", "times": 103}]
    assert list(report["epsilon_at_delta"]) == ["basic", "advanced", "zcdp", "loss_distribution"]
    assert list(report["epsilon_at_delta"].values()) == pytest.approx([10.3, 5.849, 5.310, 4.863], abs=6e-4)
    assert report["delta_at_epsilon"]["loss_distribution"] < 1e-6 < report["delta_at_epsilon"]["zcdp"]
    assert report["delta_at_epsilon"]["basic"] is None
    assert report["neighbours"] == "add-remove"
    assert "one record added or removed" in report["neighbours_meaning"]
    text = run("compose", "--laplace", "0.1*103", "--delta", "1e-6")
    assert "103 releases; neighbours: one record added or removed" in text
    assert "privacy-loss distribution" in text
    assert "4.863" in text


def test_losses_of_several_kinds_are_composed() -> None:
    report = run_json(
        "compose", "--epsilon", "0.5*3", "--epsilon", "1/4,1e-9", "--rho", 0.1, "--delta", "1e-6"
    )
    assert [one["times"] for one in report["releases"]] == [3, 1, 1]
    assert report["epsilon_at_delta"]["basic"] > 1.75
    assert report["epsilon_at_delta"]["zcdp"] is None
    assert report["not_available"].keys() == {"zcdp", "loss_distribution"}
    substitute = run_json("compose", "--laplace", "0.5", "--delta", "1e-6", "--neighbours", "substitute")
    assert substitute["epsilon_at_delta"]["basic"] == 1
    assert "two cells" in substitute["neighbours_meaning"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compose", "--delta", "1e-6"), "give at least one release"),
        (("compose", "--epsilon", "1"), "give the delta at which"),
        (("compose", "--epsilon", "1*x", "--delta", "1e-6"), "number after the"),
        (("compose", "--epsilon", "1*0", "--delta", "1e-6"), "1 to 10,000"),
        (("compose", "--epsilon", "a", "--delta", "1e-6"), "give a number from"),
        (("compose", "--rho", "0", "--delta", "1e-6"), "above zero"),
        (("compose", "--epsilon", "1,2", "--delta", "1e-6"), "below 1"),
        (("compose", "--epsilon", "1", "--delta", "0"), "above 0"),
        (("compose", "--epsilon", "1", "--at-epsilon", "-1"), "at least 0"),
        (("convert", "--rho", "1"), "too few; give two of them"),
        (("convert", "--delta", "1e-6"), "too few; give two of them"),
        (("convert", "--rho", "1", "--epsilon", "1", "--delta", "1e-6"), "all three"),
        (("convert", "--rho", "-1", "--delta", "1e-6"), "above zero"),
    ],
)
def test_mistakes(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said) as told:
        run(*words)
    assert len(str(told.value).splitlines()) == 1
