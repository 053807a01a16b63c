"""Numbers beyond all bounds in options: one or two lines, exit code 2, nothing written."""

import sys
from pathlib import Path

import pytest

from discreet.cli.app import main

HUGE = ("1e400", "1e-400", "1e999999999", "9" * 3000, "nan", "inf")
COMMANDS = (
    "noise show --kind geometric --epsilon @",
    "noise show --kind hellinger --epsilon @",
    "noise show --rho @",
    "forecast none.toml --epsilon @",
    "accounting convert --rho @ --delta 1e-6",
    "accounting convert --epsilon @ --delta 1e-6",
    "accounting convert --rho 1 --epsilon @",
    "accounting compose --epsilon @ --delta 1e-6",
    "accounting compose --laplace @ --delta 1e-6",
    "accounting compose --gaussian @ --delta 1e-6",
    "ptable make --out made --D 3 --V @",
    "ptable make --out made --D @ --V 1",
    "ptable make --out made --D 3 --V 1 --p-min @",
)
OTHERS = (
    ("ptable make --out made --D 101 --V 2", "give at most 100"),
    ("ptable make --out made --D 9223372036854775808 --V 2", "give at most 100"),
    ("accounting compose --gaussian 1e-9 --delta 1e-6", "give at least 1e-07"),
    ("infer loglinear table.csv --kind geometric --epsilon 1 --model +", "name at least one term"),
    ("ptable check huge.csv --wrap 1:1", "keep changes within 1,000,000"),
    ("ptable check wide.csv", "counts up to 10,000"),
)


def refused(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "argv", ["discreet", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert not Path("made").exists()
    return found.err


@pytest.mark.parametrize("command", COMMANDS)
def test_amounts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in HUGE:
        assert refused([value if word == "@" else word for word in command.split()], capsys, monkeypatch)


@pytest.mark.parametrize(("command", "says"), OTHERS)
def test_others(
    command: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("A,B,value\na,x,5\na,y,6\nb,x,7\nb,y,9\n")
    rows = [f"{count},{keys},{change}" for count, keys, change in ((1, "0-254", 0), (1, 255, 2**31))]
    Path("huge.csv").write_text("\n".join(["cell_value,cell_key,perturbation", *rows]) + "\n")
    Path("wide.csv").write_text("i,j,p,p_int_ub\n0,0,1,1\n1000000000,5,1,1\n")
    assert says in refused(command.split(), capsys, monkeypatch)
