"""The command line as a whole: a mistyped word is answered with the one that was meant; folders of any name."""

from pathlib import Path

import pytest

from tests.cli.called import discreet


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("protct", "x"), "Did you mean 'protect'"),
        (("leger", "show"), "Did you mean 'ledger'"),
        (("ledger", "shwo", "x"), "Did you mean 'show'"),
        (("risk", "bays", "count"), "Did you mean 'bayes'"),
        (("protect", "--secert", "x"), "--secret"),
        (("ptable", "make", "--pstya", "1"), "--pstay"),
    ],
)
def test_a_mistyped_word(words: tuple[str, ...], meant: str) -> None:
    said = discreet(*words)
    assert said.returncode == 2
    assert meant in said.stderr
    assert "Traceback" not in said.stderr


def test_a_folder_may_be_named_like_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes a relative path with a colon for an address, of a file system that it does not know."""
    monkeypatch.chdir(tmp_path)
    made = discreet("demo", "--out", "census:2021", "--persons", "600", "--quiet")
    assert (made.returncode, made.stderr) == (0, "")
    folder = Path("census:2021")
    assert discreet("verify", folder / "release").returncode == 0
    words = ("--programme", folder / "census/programme.toml", "--secret", folder / "secret.key")
    assert discreet("utility", folder / "release", *words).returncode == 0
    drawn = discreet(
        "noise", "sample", "--kind", "geometric", "--epsilon", "1", "--n", "9", "--out", "a:b.parquet"
    )
    assert drawn.returncode == 0, drawn.stderr
    assert Path("a:b.parquet").is_file()
