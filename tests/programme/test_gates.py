"""The [gates] section: what it resolves to, and every mistake it can hold."""

from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.gates import BESIDE_A_GUARANTEE, NO_GATES, Gates, PosteriorGate, SparsityGate
from discreet.programme.programme import load_programme
from tests.programme.test_swap_rule import GOOD, programme

PRIVATE = '[noise]\nkind = "geometric"\nepsilon = 1\n'


def gates(folder: Path, text: str, noise: str | None = None) -> Gates:
    folder.mkdir(exist_ok=True)
    path = programme(folder, GOOD)
    declared = path.read_text()
    if noise is not None:
        declared = declared.partition("[swap]")[0] + declared.partition("[variables.GEO]")[1]
        declared += path.read_text().partition("[variables.GEO]")[2].partition("[noise]")[0] + noise
    path.write_text(declared + text)
    return load_programme(path).gates


def test_no_gates_is_the_default(tmp_path: Path) -> None:
    assert gates(tmp_path, "") == NO_GATES
    assert NO_GATES.declared == ()


def test_gates_resolve_with_their_defaults(tmp_path: Path) -> None:
    found = gates(
        tmp_path,
        "[gates]\naveraging = 0.9\npinned_cells = 0\nposterior = { prior = 0.1 }\n"
        'differencing = { pairs = [["GEO", "AGE"]] }\nreconstruction = { reconstructed = 0.5 }\n',
    )
    assert found.declared == ("averaging", "pinned_cells", "posterior", "differencing", "reconstruction")
    assert found.posterior == PosteriorGate(0.1, 0.95, 0.0, 10)
    assert found.differencing is not None
    assert [(a.name, b.name) for a, b in found.differencing.pairs] == [("GEO", "AGE")]
    assert found.reconstruction is not None
    assert (found.reconstruction.place, found.reconstruction.areas) == ("GEO", 20)


def test_a_guarantee_has_gates_of_its_own(tmp_path: Path) -> None:
    found = gates(tmp_path, '[gates]\nepsilon = "1/3"\ndelta = 1e-9\n', PRIVATE)
    assert (found.epsilon, found.delta) == (Fraction(1, 3), Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gates]\nepsilon = 1\n", r"gates\.epsilon: the cell key method has no such guarantee"),
        ("[gates]\naveraging = 1.5\n", r"gates\.averaging"),
        ("[gates]\naverage = 0.5\n", r"averaging"),
        (
            '[gates]\ndifferencing = { pairs = [["GEO", "GRID"]] }\n',
            r"unknown variable 'GRID'; .*use one of GEO",
        ),
        ('[gates]\ndifferencing = { pairs = [["GEO", "GEO"]] }\n', r"GEO twice; name two geographies"),
        ('[gates]\nreconstruction = { variables = ["RACE"] }\n', r"unknown variable 'RACE'"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match=message):
        gates(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gates]\npinned_cells = 0\n", r"gates\.pinned_cells: this noise has no bound"),
        ("[gates]\nepsilon = 0\n", r"give a positive number"),
        ('[gates]\ndelta = "a"\n', r"give a positive number"),
    ],
)
def test_a_gate_that_cannot_be_judged_is_no_pass(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match=message):
        gates(tmp_path, text, PRIVATE)


LOOKS_AT_DATA = {
    "bound_revealed": "0.5",
    "pinned_cells": "0",
    "true_uniques": "0",
    "true_attributes": "0.5",
    "sparsity": "{ ones = 0.5 }",
    "posterior": "{ prior = 0.1 }",
    "differencing": '{ pairs = [["GEO", "AGE"]] }',
    "reconstruction": "{ reconstructed = 0.5 }",
}
BY_LAW = {"averaging": "0.5", "epsilon": "1", "delta": "1e-9"}
OF_RELEASES = {"corrections": "0"}  # compares published releases, whatever their noise
BOUNDED = '[noise]\nkind = "laplace"\nepsilon = 1\nbound = 40\ndelta = 1e-6\n'


def test_every_gate_is_either_judged_by_the_law_or_looks_at_the_data() -> None:
    assert {item.name for item in fields(Gates)} == {*LOOKS_AT_DATA, *BY_LAW, *OF_RELEASES}
    assert set(BESIDE_A_GUARANTEE) == set(BY_LAW)


@pytest.mark.parametrize(("gate", "value"), LOOKS_AT_DATA.items())
def test_a_gate_that_looks_at_the_data_does_not_stand_beside_a_guarantee(
    gate: str, value: str, tmp_path: Path
) -> None:
    """With true_uniques = 0 a published 1 would prove that two or nobody is there, whatever the epsilon."""
    text = f"[gates]\n{gate} = {value}\n"
    with pytest.raises(
        Mistakes, match=rf"gates\.{gate}: looks at the data beside a privacy guarantee; .*audit"
    ):
        gates(tmp_path / "dp", text, BOUNDED)
    claimed = gates(tmp_path / "none", text, BOUNDED + 'claim = "none"\n')
    assert claimed.declared == (gate,)
    assert gates(tmp_path / "keyed", text).declared == (gate,)


@pytest.mark.parametrize(("gate", "value"), BY_LAW.items())
def test_a_gate_that_is_judged_by_the_law_does(gate: str, value: str, tmp_path: Path) -> None:
    assert gates(tmp_path, f"[gates]\n{gate} = {value}\n", BOUNDED).declared == (gate,)


def test_a_posterior_that_is_allowed_is_not_below_the_prior(tmp_path: Path) -> None:
    found = gates(tmp_path / "one", "[gates]\nposterior = { prior = 0.9, above = 0.9 }\n").posterior
    assert found == PosteriorGate(0.9, 0.9, 0.0, 10)
    with pytest.raises(Mistakes, match=r"gates\.posterior\.above: 0\.95; give a number from .*prior, 0\.99"):
        gates(tmp_path / "two", "[gates]\nposterior = { prior = 0.99 }\n")


def test_a_sparsity_gate_limits_something(tmp_path: Path) -> None:
    found = gates(tmp_path / "one", "[gates]\nsparsity = { zeros = 0.9, ones_and_twos = 0 }\n").sparsity
    assert found == SparsityGate(zeros=0.9, ones=None, ones_and_twos=0.0)
    with pytest.raises(Mistakes, match=r"gates\.sparsity: limits nothing; give zeros, ones or ones_and_twos"):
        gates(tmp_path / "none", "[gates]\nsparsity = {}\n")
    with pytest.raises(Mistakes, match=r"gates\.sparsity\.ones"):
        gates(tmp_path / "two", "[gates]\nsparsity = { ones = 1.5 }\n")
