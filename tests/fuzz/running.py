"""Many damaged inputs, one after the other: each ends with a code and a message, never with a traceback or a hang.

``python -m tests.fuzz.running 100000 7`` runs a hundred thousand inputs from seed 7 in a process of its own and watches
it: an input that takes too long, or ends the process, is recorded and left out. ``--only N`` runs input N and shows
what is raised. An input is a function of seed and number.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from unittest.mock import patch

import uvicorn
from uvicorn.supervisors import Multiprocess

from tests.fuzz.commands import READ, hostile
from tests.fuzz.counted import recounted
from tests.fuzz.depth import chosen_in_depth, small_row_groups
from tests.fuzz.inputs import made, prepare
from tests.fuzz.judgement import change, judged
from tests.fuzz.oracle import drafted, meaningless, shown, wrong_ending
from tests.fuzz.readers import Senseless, chosen, refused, reseal
from tests.fuzz.requests import request, server
from tests.fuzz.tables import companions, spoiled

HANGS = 60  # seconds of the processor that no input needs
STANDS = 600  # seconds in which something happens, on any machine
MEMORY = 6 * 2**30  # bytes that no input needs
SHARES = {  # of 100 inputs
    "reader": 43,
    "depth": 22,
    "request": 15,
    "option": 9,
    "file": 6,
    "judgement": 3,
    "count": 2,
}
SECOND = 0.15  # of the inputs with a damaged file, that have a second one
ROOT = Path(__file__).parents[2]
JUDGING = {  # damaged file -> the commands that accept it only if it has a meaning
    "persons.csv": ("check programme.toml", "protect programme.toml"),
    "persons.csv.gz": ("check packed.toml",),
    "ready.csv": ("check ready.toml", "protect ready.toml"),
    "ledger.sqlite": ("ledger verify", "protect private.toml"),
    "release/manifest.json": ("verify release",),
    "release/parquet/1.parquet": ("verify release",),
}


@dataclass
class Found:
    """What damaged inputs led to."""

    inputs: Counter[str] = field(default_factory=Counter)  # kind -> number
    codes: Counter[str] = field(default_factory=Counter)  # kind and how it ended -> number
    faults: dict[str, str] = field(default_factory=dict)  # what was raised, and where -> the first such input
    slowest: tuple[float, str] = (0.0, "")  # seconds of the processor

    def add(self, other: dict[str, object]) -> None:
        """One input, as a worker reports it."""
        kind, code, text = str(other["kind"]), str(other["code"]), str(other["text"])
        self.inputs[kind] += 1
        self.codes[f"{kind} {code}"] += 1
        if other["fault"]:
            self.faults.setdefault(str(other["fault"]), text)
        if (spent := float(str(other["spent"]))) > self.slowest[0]:
            self.slowest = (spent, text)


class Fuzzer:
    """Runs inputs in the working folder, which has a copy of the sound files."""

    def __init__(self, seed: int, pristine: Path, targets: Sequence[str]) -> None:
        self.seed, self.pristine = seed, pristine
        self.shares = {target: SHARES[target] for target in targets}
        self.sound = {
            str(path.relative_to(pristine)): path.read_bytes()
            for path in pristine.rglob("*")
            if path.is_file()
        }
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(patch.object(uvicorn.Server, "run", lambda *_, **__: None))
        self.stack.enter_context(patch.object(Multiprocess, "run", lambda *_, **__: None))
        self.released, self.records = (
            self.stack.enter_context(server(pristine / source, Path(f"store{number}.sqlite").resolve()))
            for number, source in enumerate(("release", "town/programme.toml"))
        )
        self.secret = self.sound["secret"].decode().strip()
        self.written: set[str] = set()  # by this input
        self.here = _paths()
        self.times = {name: _time(name) for name in self.sound}
        self.ignored: list[str] = []  # exceptions that only standard error shows
        self.stack.enter_context(
            patch.object(sys, "unraisablehook", lambda raised: self.ignored.append(str(raised.exc_value)))
        )

    def run(self, number: int) -> dict[str, object]:
        """One input: what it was, how it ended, what was wrong, and what it took."""
        dice = random.Random(f"{self.seed}/{number}")
        (kind,) = dice.choices(list(self.shares), list(self.shares.values()))
        text, began = [f"#{number}"], time.process_time()
        code: object = "fault"
        fault = ""
        try:
            code = getattr(self, f"_{kind}")(dice, text)
            if code not in (0, 1, 2) and kind != "request":
                fault = f"exit code {code!r} of {' '.join(text[1:])[:60]}"
            if self.ignored:
                fault = f"printed: {self.ignored.pop()[:100]}"
        except (Exception, Stands) as error:
            fault = _where(error)
        finally:
            self.restore()
        spent = time.process_time() - began
        return {"kind": kind, "code": code, "fault": fault, "text": " ".join(text)[:3000], "spent": spent}

    def _reader(self, dice: random.Random, text: list[str]) -> int:
        name, content, read = chosen(dice, self.sound)
        text += [name, read.__name__, repr(content[:1500])]
        self._write(name, content)
        alone = not self._second(name, dice, text)
        return 2 if refused(read, Path(name), self.sound[name] if alone else b"", self.secret) else 0

    def _depth(self, dice: random.Random, text: list[str]) -> object:
        name, content, note, read = chosen_in_depth(dice, self.sound)
        text += [name, note]
        self._write(name, content)
        self._second(name, dice, text)
        with small_row_groups(dice) as how:
            text.append(how)
            if not isinstance(read, tuple):
                text.append(read.__name__)
                return 2 if refused(read, Path(name), secret=self.secret) else 0
            if dice.random() < 0.7 and (folder := Path(Path(name).parts[0])).is_dir():
                self._reseal(folder)
            return self._command(dice.choice(read).split(), text)

    def _second(self, name: str, dice: random.Random, text: list[str]) -> bool:
        """Damage a second file that is read together with the first one, in some of the inputs; whether it was."""
        if dice.random() > SECOND:
            return False
        other = dice.choice(companions(name, self.sound))
        content = spoiled(other, self.sound[other], dice)
        self._write(other, content)
        text += [f"and {other}", repr(content[:300])]
        return True

    def _reseal(self, folder: Path) -> None:
        reseal(folder)
        self.written |= {f"{folder}/manifest.json", f"{folder}/manifest.sig"}

    def _request(self, dice: random.Random, text: list[str]) -> int:
        said, status, answer = request(self.released, self.records, dice)
        text.append(said)
        assert status < 500, f"status {status}"
        if wrong := shown(answer, self.secret):
            raise Senseless(f"{wrong} by the server")
        return status // 100 * 100

    def _option(self, dice: random.Random, text: list[str]) -> object:
        return self._command(hostile(dice), text)

    def _file(self, dice: random.Random, text: list[str]) -> object:
        name = dice.choice(list(READ))
        content = spoiled(name, self.sound[name], dice)
        self._write(name, content)
        alone = not self._second(name, dice, text)
        sealed = (folder := Path(Path(name).parts[0])).is_dir() and dice.random() < 0.5
        if sealed:
            self._reseal(folder)
        text += [name, repr(content[:1500])]
        words = dice.choice(READ[name]).split()
        code = self._command(words, text)
        command = " ".join(words[:2])
        judging = alone and command in JUDGING.get(name, ()) and (not sealed or "--public-key" in words)
        if code == 0 and judging and (wrong := meaningless(name, content, self.sound[name], None)):
            raise Senseless(f"accepted by {command}: {wrong}")
        return code

    def _judgement(self, dice: random.Random, text: list[str]) -> object:
        change(dice, text, self._write)
        return judged()

    def _count(self, dice: random.Random, text: list[str]) -> int:
        if wrong := recounted(Path("counted"), dice, text):
            raise Senseless(wrong)
        return 0

    def _command(self, words: list[str], text: list[str]) -> object:
        text += words
        code, said = made(words)
        if wrong := wrong_ending(code, said, words, self.secret):
            raise Senseless(f"{wrong}: {' '.join(words)[:60]} {said[:300]!r}")
        for path in map(Path, self._written()) if words[0] == "init" else ():
            if path.name == "programme.toml" and (wrong := drafted(path)):
                raise Senseless(wrong)
        if code == 2 and (written := self._written()):
            raise Senseless(f"exit code 2 of {' '.join(words[:2])}, and {written[0]} was written")
        return code

    def _written(self) -> list[str]:
        """What a command created or changed."""
        new = [path for path in _paths() - self.here if not path.endswith(("-wal", "-shm"))]  # of databases
        changed = [
            name for name in self.sound if name not in self.written and _time(name) != self.times[name]
        ]
        return [*new, *changed]

    def _write(self, name: str, content: bytes) -> None:
        Path(name).write_bytes(content)
        self.written.add(name)

    def restore(self) -> None:
        """Remove what was made, and restore what was changed."""
        for path in map(Path, sorted(_paths() - self.here)):  # folders before what is in them
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for name, content in self.sound.items():
            if name in self.written or _time(name) != self.times[name]:
                path = Path(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self.times[name] = _time(name)
        self.written.clear()


def _paths() -> set[str]:
    """All files and folders of the working folder."""
    return {
        f"{folder}/{name}".removeprefix("./")
        for folder, folders, files in os.walk(".")
        for name in (*folders, *files)
    }


def _time(name: str) -> int:
    """When a file was last changed; 0 where there is none."""
    try:
        return Path(name).stat().st_mtime_ns
    except OSError:
        return 0


def _where(error: BaseException) -> str:
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/src/discreet/" in one.filename]
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:100]}"


@contextlib.contextmanager
def fuzzer(seed: int, folder: Path, targets: Sequence[str] = tuple(SHARES)) -> Iterator[Fuzzer]:
    """A fuzzer in a folder of its own; the inputs are prepared there first."""
    pristine, work = folder / "sound", folder / "work"
    if not pristine.exists():
        pristine.mkdir()
        with contextlib.chdir(pristine):
            prepare(pristine)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(pristine, work)
    with contextlib.chdir(work):
        found = Fuzzer(seed, pristine, targets)
        with found.stack:
            yield found


def short(number: int, seed: int, folder: Path) -> Found:
    """Some inputs in this process; one that stands is a fault."""
    found = Found()
    with fuzzer(seed, folder) as one:
        for count in range(number):
            with limited():
                found.add(one.run(count))
    return found


class Stands(BaseException):
    """An input takes too long; no part of the program catches it."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise Stands in what takes too long, by the processor or by the clock."""

    def stands(_signal: int, _frame: FrameType | None) -> None:
        raise Stands

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, HANGS), signal.SIGALRM: (signal.ITIMER_REAL, STANDS)}
    before = {number: signal.signal(number, stands) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def watched(
    number: int,
    seed: int,
    folder: Path,
    told: Callable[[str], None] = lambda _: None,
    targets: Sequence[str] = tuple(SHARES),
) -> Found:
    """Many inputs in a process that is watched, and started again after an input that ends it."""
    found, first = Found(), 0
    with fuzzer(seed, folder):
        pass
    while first < number:
        call = [sys.executable, "-m", "tests.fuzz.running", str(number), str(seed)]
        call += ["--first", str(first), "--folder", str(folder), "--targets", *targets]
        with subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE) as worker:
            first = _watch(worker, first, number, found, told)
    return found


def _watch(
    worker: "subprocess.Popen[bytes]", first: int, number: int, found: Found, told: Callable[[str], None]
) -> int:
    """Read what a worker reports until it ends or stands; the number of the next input."""
    assert worker.stdout is not None
    os.set_blocking(worker.stdout.fileno(), False)
    rest, heard, spent = b"", time.monotonic(), _spent(worker.pid)
    while True:
        text = worker.stdout.read() or b""
        *lines, rest = (rest + text).split(b"\n")
        for line in lines:
            known = len(found.faults)
            found.add(json.loads(line))
            if len(found.faults) > known:
                told(f"{list(found.faults)[-1]} | {list(found.faults.values())[-1][:700]}")
            first += 1
            heard, spent = time.monotonic(), _spent(worker.pid)
            if first % 1000 == 0:
                told(f"{first} {len(found.faults)} faults, slowest {found.slowest[0]:.1f} s")
        ended = worker.poll() is not None
        stands = _spent(worker.pid) - spent > HANGS or time.monotonic() - heard > STANDS
        if ended and text:
            continue
        if ended or stands:
            worker.kill()
            worker.wait()
            if first < number:
                how = "hangs" if stands else f"ended by {worker.returncode}"
                found.add(
                    {
                        "kind": "worker",
                        "code": how,
                        "fault": f"{how}: #{first}",
                        "text": f"#{first}",
                        "spent": 0,
                    }
                )
                first += 1
            return first
        time.sleep(0.05)


def _spent(process: int) -> float:
    """Seconds of the processor that a process has taken."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(number: int, seed: int, first: int, folder: Path, targets: Sequence[str]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    said = os.fdopen(os.dup(1), "w")
    with fuzzer(seed, folder, targets) as one:
        for count in range(first, number):
            print(json.dumps(one.run(count)), file=said, flush=True)


def _shown(found: Found) -> None:
    print(sum(found.inputs.values()), dict(found.inputs), dict(found.codes))
    print(f"slowest {found.slowest[0]:.1f} s: {found.slowest[1][:300]}")
    print(len(found.faults), "faults")
    for where, example in found.faults.items():
        print(where, "|", example[:900])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", type=int)
    parser.add_argument("--first", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--targets", nargs="+", choices=list(SHARES), default=list(SHARES))
    given = parser.parse_args()
    if given.first is not None:
        _work(given.number, given.seed, given.first, given.folder, given.targets)
        return
    with tempfile.TemporaryDirectory() as place:
        if given.only is not None:
            with fuzzer(given.seed, Path(place), given.targets) as one:
                print(one.run(given.only))
        else:
            found = watched(
                given.number, given.seed, Path(place), lambda text: print(text, flush=True), given.targets
            )
            _shown(found)


if __name__ == "__main__":
    _main()
