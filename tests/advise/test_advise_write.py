"""Writing a proposal: the file declares it afterwards, nothing else changes, and what does not fit is refused."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.advise.write import changed, write_noise
from discreet.errors import Mistakes
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.programme.noise import CellKeyNoise, PrivateNoise
from discreet.programme.programme import load_programme
from tests.cli import town

TEXT = """# a programme
[release]
name = "town"   # its name

[noise]  # how counts are protected
# chosen in spring
kind = "cell-key"  # the method
V = 2.0   # variance, not #1
D=5
keys = "plain"

# the end
[limits]
cells = 1000
"""


def test_values_change_in_their_places_and_comments_stay() -> None:
    found = changed(TEXT, {"kind": "cell-key", "V": 3.3, "D": 7, "js": 0})
    assert found == TEXT.replace("V = 2.0 ", "V = 3.3 ").replace("D=5", "D=7").replace(
        'keys = "plain"\n', 'keys = "plain"\njs = 0\n'
    )


def test_another_kind_takes_the_old_parameters_away() -> None:
    found = changed(TEXT, {"kind": "geometric", "epsilon": 12.5})
    assert tomllib.loads(found)["noise"] == {"kind": "geometric", "epsilon": 12.5}
    assert "# chosen in spring" in found
    assert "# the end" in found


def test_line_ends_are_kept() -> None:
    found = changed(TEXT.replace("\n", "\r\n"), {"kind": "cell-key", "V": 3.0, "D": 7})
    assert found.count("\n") == found.count("\r\n") == TEXT.count("\n")


@given(st.floats(0.1, 100, allow_nan=False), st.integers(1, 60), st.integers(0, 5))
def test_whatever_is_proposed_is_declared_afterwards(V: float, D: int, js: int) -> None:
    noise: dict[str, str | float | int] = {"kind": "cell-key", "V": V, "D": D, "js": js}
    found = tomllib.loads(changed(TEXT, noise))
    assert found["noise"] == {**noise, "keys": "plain"}
    assert {**found, "noise": 0} == {**tomllib.loads(TEXT), "noise": 0}
    assert changed(changed(TEXT, noise), noise) == changed(TEXT, noise)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'noise = { kind = "cell-key", V = 2.0, D = 5 }  # one line\n',
            'noise = { kind = "cell-key", V = 3.0, D = 6 }  # one line\n',
        ),
        (
            'noise.kind = "cell-key"\nnoise.V = 2.0\nnoise.D = 5\n',
            'noise.kind = "cell-key"\nnoise.V = 3.0\nnoise.D = 6\n',
        ),
        (
            '[noise]\nkind = "cell-key"\nV = [\n  1.0,\n  2.0,\n]\nD = 2\n',
            '[noise]\nkind = "cell-key"\nV = 3.0\nD = 6\n',
        ),
        (
            '[release]\ntitle = """\n[noise]\nkind = 1\n"""\n[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n',
            '[release]\ntitle = """\n[noise]\nkind = 1\n"""\n[noise]\nkind = "cell-key"\nV = 3.0\nD = 6\n',
        ),
        (
            "# a comment\n[noise]\n\n# the end\n[release]\n",
            '# a comment\n[noise]\nkind = "cell-key"\nV = 3.0\nD = 6\n\n# the end\n[release]\n',
        ),
        ('[noise]\nkind = "cell-key"', '[noise]\nkind = "cell-key"\nV = 3.0\nD = 6\n'),
    ],
)
def test_whatever_form_the_section_has_it_stays(text: str, expected: str) -> None:
    assert changed(text, {"kind": "cell-key", "V": 3.0, "D": 6}) == expected


@pytest.mark.parametrize("text", ['[release]\nname = "x"\n', "noise = 1\n", "[noise\n"])
def test_a_file_without_a_section_of_noise_is_refused(text: str) -> None:
    with pytest.raises(Mistakes, match="write them by hand into a section"):
        changed(text, {"kind": "cell-key", "V": 3.0, "D": 6})


def test_the_written_file_loads_and_has_the_proposed_noise(tmp_path: Path) -> None:
    path = town.build(tmp_path) / "programme.toml"
    path.chmod(0o640)
    before = load_programme(path)
    write_noise(path, {"kind": "cell-key", "V": 3.3, "D": 7, "js": 0})
    after = load_programme(path)
    assert isinstance(after.noise, CellKeyNoise)
    assert after.noise.table == PTableParameters(7, 3.3, 0)
    assert {**after.canonical(), "noise": 0} == {**before.canonical(), "noise": 0}
    assert path.stat().st_mode & 0o777 == 0o640
    assert "already declares these" in write_noise(path, {"kind": "cell-key", "V": 3.3, "D": 7, "js": 0})
    assert [left.name for left in tmp_path.glob(".*")] == []


def test_a_budget_can_be_written(tmp_path: Path) -> None:
    folder = town.build(tmp_path)
    town.edit(folder, ('weight = "weight"\n', ""))
    write_noise(folder / "programme.toml", {"kind": "geometric", "epsilon": 7.5})
    noise = load_programme(folder / "programme.toml").noise
    assert isinstance(noise, PrivateNoise)
    assert float(noise.budget.total) == 7.5


def test_a_file_that_would_not_load_is_left_alone(tmp_path: Path) -> None:
    folder = town.build(tmp_path)
    town.edit(folder, ("D = 5", "D = 5\npstay = [0.5, 0.5, 0.5, 0.5, 0.5]"))
    before = (folder / "programme.toml").read_bytes()
    with pytest.raises(Mistakes, match="does not fit the rest of the file"):
        write_noise(folder / "programme.toml", {"kind": "cell-key", "V": 3.3, "D": 7})
    assert (folder / "programme.toml").read_bytes() == before
    assert list(folder.glob(".*")) == []
