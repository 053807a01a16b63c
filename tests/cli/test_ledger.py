"""Books of privacy budgets on the command line, and releases that are charged before they appear."""

import json
import shutil
from pathlib import Path

import pytest

from discreet.cli.app import main
from discreet.io.secret import make_secret
from discreet.synth import generate


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger") / "census"
    generate(500, 5, folder, tables=["3.3"], threads=1)
    programme = folder / "programme.toml"
    programme.write_text(
        programme.read_text().partition("[noise]")[0]
        + '[noise]\nallow_weak = true\nkind = "geometric"\nepsilon = 60\nsnapshot = "2021"\n'
    )
    return folder


class Book:
    """A place with a secret, a census and a ledger, and the commands that use them."""

    def __init__(
        self, folder: Path, census: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        shutil.copytree(census, folder / "census")
        make_secret(folder / "s.key")

    def call(self, *words: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr("sys.argv", ["discreet", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def ledger(self, command: str, *words: str) -> tuple[int, str, str]:
        return self.call(
            "ledger", command, str(self.folder / "l.db"), *words, "--secret", str(self.folder / "s.key")
        )

    def protect(self, out: str, *words: str) -> tuple[int, str, str]:
        programme, secret = self.folder / "census/programme.toml", self.folder / "s.key"
        place = ("--secret", str(secret), "--out", str(self.folder / out), "--quiet")
        return self.call("protect", str(programme), *place, "--ledger", str(self.folder / "l.db"), *words)


@pytest.fixture
def book(
    census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Book:
    return Book(tmp_path, census, monkeypatch, capsys)


def test_a_release_is_charged_once_and_never_beyond_the_budget(book: Book) -> None:
    assert book.ledger("create")[0] == 0
    assert book.ledger("account", "census", "--epsilon", "100", "--delta", "1e-9")[0] == 0
    for _ in range(2):
        assert book.protect("r", "--account", "census")[0] == 0
    code, out, _ = book.ledger("show", "--json")
    (account,) = json.loads(out)["accounts"]
    assert (code, len(account["charges"])) == (0, 1)
    assert account["spent"]["epsilon"] == "60"
    text = (book.folder / "census/programme.toml").read_text()
    (book.folder / "census/programme.toml").write_text(text.replace("epsilon = 60", "epsilon = 50"))
    code, _, err = book.protect("other", "--account", "census")
    assert code == 2
    assert "would exceed the budget" in err
    assert not [path for path in book.folder.iterdir() if "other" in path.name]
    assert book.ledger("verify")[0] == 0


def test_an_account_with_advanced_composition_takes_more_small_charges(book: Book) -> None:
    """Its composition is one of its terms: stated, charged by, and verified."""
    book.ledger("create")
    terms = ("--epsilon", "100", "--delta", "1e-6")
    code, out, _ = book.ledger("account", "census", *terms, "--composition", "advanced")
    assert (code, "advanced composition" in out) == (0, True)
    code, _, err = book.ledger("account", "census", *terms)
    assert (code, "it exists with other terms" in err) == (2, True)
    code, _, err = book.ledger("account", "b", *terms, "--composition", "pld")
    assert (code, "is not one of 'basic', 'advanced'" in err) == (2, True)
    code, _, err = book.ledger("account", "b", "--rho", "1", "--composition", "advanced")
    assert (code, "rhos add up exactly" in err) == (2, True)
    assert book.protect("r", "--account", "census")[0] == 0
    (account,) = json.loads(book.ledger("show", "--json")[1])["accounts"]
    assert account["composition"] == "advanced"
    assert account["spent"]["epsilon"] == "60"
    assert account["left"]["epsilon"] == "40"
    assert "advanced composition" in book.ledger("show")[1]
    assert book.ledger("verify")[0] == 0


def test_what_does_not_fit_is_refused(book: Book) -> None:
    assert "no such file" in book.protect("r", "--account", "census")[2]
    assert "without an account" in book.protect("r")[2]
    assert book.ledger("create")[0] == 0
    assert "exactly one of --epsilon and --rho" in book.ledger("account", "a")[2]
    assert "give a number" in book.ledger("account", "a", "--epsilon", "lots")[2]
    assert (
        book.ledger("account", "home", "--epsilon", "100", "--delta", "1e-9", "--protects", "household")[0]
        == 0
    )
    code, _, err = book.protect("r", "--account", "home")
    assert (code, (book.folder / "r").exists()) == (2, False)
    assert "is for add-remove of a household" in err
    assert book.protect("r", "--account", "nobody")[0] == 2


def test_the_cell_key_method_has_nothing_to_charge(book: Book) -> None:
    book.ledger("create")
    book.ledger("account", "census", "--rho", "1/2")
    programme = book.folder / "census/programme.toml"
    declared = programme.read_text().partition("[noise]")[0]
    programme.write_text(declared + '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n')
    code, _, err = book.protect("r", "--account", "census")
    assert (code, "noise without a guarantee" in err) == (2, True)


def test_the_natural_path_from_an_account_to_a_raise(book: Book) -> None:
    """An epsilon and geometric noise need no delta; what was spent and is left is printed in decimals."""
    programme = book.folder / "census/programme.toml"
    programme.write_text(programme.read_text().replace("epsilon = 60", "epsilon = 2.5"))
    book.ledger("create")
    assert book.ledger("account", "census", "--epsilon", "3")[1] == (
        "census: epsilon 3, for one person more or less (add-remove).\n"
    )
    words = (str(programme), "--secret", str(book.folder / "s.key"), "--out", str(book.folder / "r"))
    account = ("--ledger", str(book.folder / "l.db"), "--account", "census")
    _, free, _ = book.call("protect", *words, "--threads", "1")
    assert "Privacy: the release costs epsilon 2.5 and by rounding in the sampler delta " in free
    assert "No ledger was charged" in free
    code, out, err = book.call("protect", *words, *account, "--threads", "1")
    assert (code, err) == (0, "")
    assert "Account census was charged: epsilon 2.5 of epsilon 3 is spent, epsilon 0.5 is left." in out
    _, out, _ = book.call("protect", *words, *account, "--threads", "1", "--json")
    paid = json.loads(out)["paid"]
    assert (paid["charged_before"], paid["spent"]["epsilon"], paid["left"]) == (
        True,
        "2.5",
        {"epsilon": "0.5"},
    )
    programme.write_text(programme.read_text().replace('snapshot = "2021"', ""))
    code, _, err = book.protect("second", "--account", "census")
    assert (code, (book.folder / "second").exists()) == (2, False)
    assert "epsilon 2.5 would exceed the budget of epsilon 3, of which epsilon 2.5 is spent" in err
    code, out, _ = book.ledger("raise", "census", "--epsilon", "5.5", "--reason", "the board, for wave 2")
    assert (code, "raised from epsilon 3 to epsilon 5.5, epsilon 3 is left" in out) == (0, True)
    assert book.protect("second", "--account", "census")[0] == 0
    _, out, _ = book.ledger("show")
    assert "budget raised to epsilon 5.5: the board, for wave 2" in out
    assert "  left    epsilon 0.5\n" in out
    assert book.ledger("verify")[1].endswith("intact.\n")


def test_a_budget_is_raised_only_with_a_reason_and_upwards(book: Book) -> None:
    book.ledger("create")
    book.ledger("account", "census", "--epsilon", "3")
    for words, says in (
        (("--epsilon", "4", "--reason", " "), "no reason for a larger budget"),
        (("--epsilon", "3", "--reason", "x"), "must be larger than the present one"),
        (("--epsilon", "2", "--reason", "x"), "must be larger than the present one"),
        (("--rho", "9", "--reason", "x"), "give the amounts that the account has"),
        (("--reason", "x"), "exactly one of --epsilon and --rho"),
    ):
        code, _, err = book.ledger("raise", "census", *words)
        assert (code, says in err, err.count("\n")) == (2, True, 1), err
    assert json.loads(book.ledger("show", "--json")[1])["accounts"][0]["raises"] == []
