"""Commands run in this process on damaged inputs: each ends with a code and a message, never with a traceback.

``python -m tests.fuzz.commands 10000 7`` runs ten thousand inputs from seed 7 and prints what was found.
"""

import contextlib
import io
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from discreet.cli.app import main
from discreet.io.signing_key import make_key, read_private_key
from discreet.release.sign import sign_release

HANGS = 120  # seconds of one command; a loaded machine needs a few
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
WORD = re.compile(rb"[A-Za-z_]{2,}")
NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1e400",
    b"1e-400",
    b"1e999999999",
    b"nan",
    b"inf",
    b"-0",
    b"0x10",
    b"1_000",
    b"99999999999999999999999999",
    b"",
    b"1/0",
    b"1e308",
    b"0.1",
    b"\xd9\xa3",
    b"9" * 5000,
)
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b'"',
    b"'",
    b",,,,",
    b";",
    b"[[",
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b"=",
    b"# ",
    b"\\",
    b"\xc3",
    b"\xed\xa0\x80",
    b"_T",
    b"null",
    b"true",
    b"../../x",
    b"/dev/null",
    b"\t",
    b" " * 300,
)
VALUES = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "1e999999999",
    "1/3",
    "1/0",
    "x",
    "9" * 30,
    "9" * 5000,
    "2147483648",
    "9223372036854775808",
    "é",
    "\udcff",
    "*",
    "+",
    ",",
    "a,b",
    "[[",
    "GEO",
    "SEX",
    "..",
    "/",
    "1e15",
    "1e-15",
)
PROGRAMME = """
[population]
persons = "persons.csv"
person_id = "pid"
geography = ["lau"]
[variables.SEX]
column = "sex"
codelist = "sex.csv"
[variables.LAU]
column = "lau"
codelist = "lau.csv"
breakdowns = { L = 1, H = 2 }
[noise]
kind = "cell-key"
D = 3
V = 1
js = 1
allow_weak = true
[[cubes]]
id = "1"
unit = "persons"
axes = ["SEX", "LAU.H"]
[[cubes]]
id = "2"
unit = "persons"
axes = ["LAU.L"]
base = 'SEX in ("F")'
[release]
name = "fuzz"
formats = ["parquet", "csv"]
"""
FILES = {  # damaged file -> the commands that read it
    "programme.toml": ("check programme.toml", "forecast programme.toml --epsilon 1"),
    "persons.csv": ("check programme.toml", "init persons.csv --out drafted"),
    "sex.csv": ("check programme.toml",),
    "lau.csv": ("check programme.toml",),
    "r.csv": (
        "ptable check r.csv",
        "ptable show r.csv --json",
        "ptable convert r.csv --to cantabular --out o.csv --to-modulus 256",
    ),
    "keyed.csv": (
        "ptable check keyed.csv --wrap 4:1",
        "ptable convert keyed.csv --wrap 4:1 --to r --out o.csv",
    ),
    "superstar.csv": ("ptable check superstar.csv",),
    "release/manifest.json": ("verify release", "verify release --public-key k.pub --json"),
    "release/manifest.sig": ("verify release", "verify release --public-key k.pub"),
    "release/parquet/1.parquet": ("verify release",),
    "release/codelists/LAU.H.csv": ("verify release",),
    "k.pub": ("verify release --public-key k.pub",),
    "ledger.sqlite": (
        "ledger verify ledger.sqlite --secret secret",
        "ledger show ledger.sqlite --secret secret",
    ),
    "table.csv": (
        "infer independence table.csv --kind geometric --epsilon 1",
        "infer loglinear table.csv --kind geometric --epsilon 1 --model A*B",
    ),
    "utility.csv": ("noise show --kind exponential --epsilon 1 --utility utility.csv",),
    "secret": ("ledger verify ledger.sqlite --secret secret",),
}
OPTIONS = (  # @ is replaced by a hostile value
    "ptable make --out o.csv --D @ --V 2",
    "ptable make --out o.csv --D 3 --V @",
    "ptable make --out o.csv --D 3 --V 1 --js @",
    "ptable make --out o.csv --D 3 --V 1 --pstay @",
    "ptable make --out o.csv --D 3 --V 1 --p-min @",
    "ptable make --out o.csv --D 3 --V 1 --to ons --modulus @",
    "ptable make --out o.csv --D 3 --V 1 --monotony @",
    "ptable check r.csv --D @",
    "ptable check r.csv --V @",
    "ptable check keyed.csv --wrap @",
    "ptable check @",
    "noise show --kind geometric --epsilon @",
    "noise show --kind laplace --epsilon 1 --bound @",
    "noise show --kind hellinger --epsilon @",
    "noise show --rho @",
    "noise show --sigma @",
    "noise show --D 3 --V @",
    "risk bound --bound @",
    "risk averaging --variance @",
    "risk dp --kind geometric --epsilon @",
    "forecast programme.toml --epsilon @",
    "forecast programme.toml --cube @",
    "accounting convert --rho @ --delta 1e-6",
    "accounting convert --epsilon @ --delta 1e-6",
    "accounting convert --rho 1 --delta @",
    "accounting compose --epsilon @ --delta 1e-6",
    "accounting compose --rho @ --delta 1e-6",
    "accounting compose --laplace @ --delta 1e-6",
    "ledger account ledger.sqlite a --secret secret --epsilon @",
    "ledger account ledger.sqlite @ --secret secret --rho 1",
    "ledger verify @ --secret secret",
    "verify @",
    "sign @ --key k",
    "verify release --public-key @",
    "infer loglinear table.csv --kind geometric --epsilon 1 --model @",
    "infer interval @ --kind geometric --epsilon 1",
    "check @",
    "check programme.toml --secret @",
    "token list @",
    "attack release --bound @ --without averaging",
)


@dataclass
class Found:
    """What damaged inputs led to."""

    inputs: int = 0
    codes: Counter[object] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)  # what was raised, and where -> the first such input


def prepare(folder: Path) -> None:
    """Sound inputs of every kind, in an empty folder that is the working folder."""
    places = ["A1", "A2", "B1"]
    lines = [f"{n},{'FM'[n % 2]},{places[n % 3]}" for n in range(60)]
    (folder / "persons.csv").write_text("\n".join(["pid,sex,lau", *lines]) + "\n")
    (folder / "sex.csv").write_text("code,parent,label\nF,,female\nM,,male\n")
    (folder / "lau.csv").write_text("code,parent,label\nA,,a\nA1,A,a1\nA2,A,a2\nB,,b\nB1,B,b1\n")
    (folder / "programme.toml").write_text(PROGRAMME)
    (folder / "table.csv").write_text("A,B,value\na,x,5\na,y,6\nb,x,7\nb,y,9\n")
    (folder / "utility.csv").write_text("change,utility\n-1,-1\n0,0\n1,-1\n")
    keys = [
        f"{count},{key},{change}" for count in range(1, 5) for key, change in (("0-127", -1), ("128-255", 1))
    ]
    (folder / "keyed.csv").write_text("\n".join(["cell_value,cell_key,perturbation", *keys]) + "\n")
    (folder / "superstar.csv").write_text(
        "\n".join([",".join(["-1"] * 30)] * 128 + [",".join(["1"] * 30)] * 128) + "\n"
    )
    for command in (
        "secret --out secret",
        "ptable make --out r.csv --D 3 --V 1",
        "ledger create ledger.sqlite --secret secret",
        "ledger account ledger.sqlite a --secret secret --epsilon 5",
        "protect programme.toml --secret secret --out release --quiet",
    ):
        code, text = run(command.split())
        assert code == 0, (command, text)
    make_key(Path("k"))
    assert sign_release(Path("release"), read_private_key(Path("k"))).passed


def run(arguments: list[str]) -> tuple[object, str]:
    """One command in this process: its exit code and what it printed; anything else that is raised is a fault."""
    said, given = io.StringIO(), sys.argv
    sys.argv = ["discreet", *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = given
    return code, said.getvalue()


def damaged(sound: bytes, dice: random.Random) -> bytes:
    """A file with one to four changes of the kinds that people and disks make."""
    content = sound
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(content) + 1)
        to = min(len(content), at + dice.choice((1, 2, 8, 40)))
        kind = dice.randrange(8)
        if kind <= 1 and (places := list(NUMBER.finditer(content))):
            spot = dice.choice(places)
            content = content[: spot.start()] + dice.choice(NUMBERS) + content[spot.end() :]
        elif kind == 2 and (places := list(WORD.finditer(content))):
            spot, other = dice.choice(places), dice.choice(places)
            content = content[: spot.start()] + other.group() + content[spot.end() :]
        elif kind == 3:
            content = content[:at] + dice.choice(PIECES) + content[at:]
        elif kind == 4:
            content = content[:at] + content[to:]
        elif kind == 5:
            content = content[:to] + content[at:]
        elif kind == 6:
            content = content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]
        elif dice.random() < 0.3:
            content = content[:at]
    return content


def inputs(dice: random.Random, sound: dict[str, bytes]) -> Iterator[tuple[str, bytes, list[str]]]:
    """Without end: a damaged file and a command that reads it, or (without a file) a command with a hostile value."""
    while True:
        if dice.random() < 0.25:
            chosen = dice.choice(OPTIONS).split()
            yield "", b"", [dice.choice(VALUES) if word == "@" else word for word in chosen]
        else:
            name = dice.choice(list(FILES))
            yield name, damaged(sound[name], dice), dice.choice(FILES[name]).split()


def fuzz(number: int, seed: int) -> Found:
    """Run many damaged inputs from the working folder, which ``prepare`` filled."""
    found, dice = Found(), random.Random(seed)
    sound = {name: Path(name).read_bytes() for name in FILES}
    signal.signal(signal.SIGALRM, _hangs)
    for name, content, arguments in inputs(dice, sound):
        if found.inputs == number:
            return found
        found.inputs += 1
        if name:
            Path(name).write_bytes(content)
        signal.alarm(HANGS)
        try:
            code, text = run(arguments)
            found.codes[code] += 1
            if code not in (0, 1, 2) or (code == 2 and not text.strip()):
                found.faults.setdefault(f"exit code {code!r}", " ".join(arguments)[:200])
        except Exception as error:
            frames = [
                one for one in traceback.extract_tb(error.__traceback__) if "/discreet/" in one.filename
            ]
            place = (
                f"{type(error).__name__} in {frames[-1].name}:{frames[-1].lineno}" if frames else repr(error)
            )
            found.faults.setdefault(place, f"{' '.join(arguments)[:120]} {name} {content[:2000]!r}")
            found.codes["fault"] += 1
        finally:
            signal.alarm(0)
            _restore(name, sound)
    return found


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _restore(name: str, sound: dict[str, bytes]) -> None:
    for made in ("drafted", "o.csv"):
        shutil.rmtree(made, ignore_errors=True)
        Path(made).unlink(missing_ok=True)
    for beside in Path().glob("ledger.sqlite-*"):
        beside.unlink()
    for one in {name, "ledger.sqlite"} - {""}:
        Path(one).write_bytes(sound[one])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        prepare(Path(place))
        result = fuzz(int(sys.argv[1]), int(sys.argv[2]))
    print(result.inputs, dict(result.codes), len(result.faults), "faults")
    for where, example in result.faults.items():
        print(where, "|", example[:600])
