"""The ``discreet`` command: imports a subcommand's module on demand and prints every failure.

Exit codes: 0 done; 1 the release fails a check; 2 wrong input, nothing written; 130 interrupted. A signal that asks the
program to end (SIGTERM, SIGHUP) is an interruption too: work folders are removed, then the signal ends it.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from discreet.cli.group import LazyGroup
from discreet.errors import DiscreetError, GateBroken, mistake
from discreet.io.ending import Ended, until_asked_to_end
from discreet.lazy import lazily

if TYPE_CHECKING:
    from importlib import metadata

    from discreet.cli import output
else:
    metadata, output = lazily("importlib.metadata"), lazily("discreet.cli.output")

COMMANDS = {
    "demo": "Make a small synthetic census, protect it and verify the release.",
    "init": "Draft a programme from files of microdata.",
    "check": "Report every mistake in a programme and its data.",
    "swap": "Exchange households at risk with similar ones elsewhere.",
    "protect": "Count, perturb and publish every cube of a programme.",
    "forecast": "Predict the errors that each noise would cause in a programme, without its data.",
    "advise": "Propose noise parameters that keep risk and error within limits.",
    "audit": "Measure what a release discloses, using the confidential data.",
    "attack": "Attack a release as an outsider, from its public files only.",
    "utility": "Compare published counts of releases with the true counts.",
    "verify": "Check a release: hashes, signature, possible values, and one value per cell.",
    "key": "Make a pair of keys with which an office signs its releases.",
    "sign": "Sign a release, so that users can verify who published it.",
    "ptable": "Make, show, convert and check perturbation tables.",
    "noise": "Show and sample the noise laws.",
    "risk": "Compute by formula what an outsider can find out.",
    "infer": "Test and estimate from published counts, allowing for the noise.",
    "serve": "Serve a table builder over a programme or a release.",
    "token": "Make, list and revoke API tokens of a table builder.",
    "accounting": "Compose privacy losses and convert them into each other.",
    "ledger": "Manage ledgers of privacy budgets.",
    "synth": "Make a synthetic census.",
    "study": "Repeat a published study of a method on a synthetic census.",
    "secret": "Make a secret.",
}
EXTRAS = {  # package that is not installed by default -> extra of the distribution that has it
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "uvloop": "serve",
    "prometheus_client": "serve",
    "adbc_driver_postgresql": "databases",
    "adbc_driver_sqlite": "databases",
    "psycopg": "databases",
    "pyspark": "spark",
}
FAILED = 1  # as in output, which would import too much here
WRONG_INPUT = 2
INTERRUPTED = 130
MEMORY_DEVICES = 1  # major number of /dev/zero, /dev/random and their like
NULL_DEVICE = 3  # minor number of /dev/null
DEEPEST = 500  # folders of a path, which are made one inside the other
HUGE = re.compile(r"(?<![\w.])\d{100,}(?![\w.])")


class Commands(LazyGroup):
    """All commands; their list is printed without importing any of them."""

    modules: ClassVar[dict[str, str]] = {name: name for name in COMMANDS}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build one command; one that describes itself nowhere has the line of the list."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.help = command.help or COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {metadata.version('discreet')}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def discreet(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Protected frequency tables from census microdata."""


def _require_readable(words: list[str]) -> None:
    """Refuse what libraries would fail on: paths that are not text in UTF-8 or have hundreds of folders, whole numbers
    that no float can represent, devices that never end, and named pipes, which may have no writer.
    """
    with suppress(FileNotFoundError):  # a working folder that was deleted
        words = [*words, str(Path.cwd())]
    for word in words:
        if os.fsencode(word) != word.encode(errors="surrogatepass"):
            shown = os.fsencode(word).decode(errors="replace")
            remedy = "use names in UTF-8, and a locale such as LC_ALL=C.UTF-8"
            raise mistake(shown[:200], "", "not text in UTF-8", remedy)
        if word.count("/") > DEEPEST:
            raise mistake(f"{word[:40]}..", "", f"more than {DEEPEST} folders", "use a shorter path")
        if HUGE.search(word):
            raise mistake("", "", f"{word[:40]}..", "give numbers of fewer than 100 digits")
        if endless := _endless(Path(word.rpartition("=")[2])):
            raise mistake(word, "", f"is a {endless}", "give a file")


def _endless(path: Path) -> str:
    """What a path is if reading it may never end: a device such as /dev/zero, a disk, a named pipe; otherwise empty.

    A pipe that is open already, such as /dev/stdin or /dev/fd/63, has a writer.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ""
    if path.is_relative_to("/dev"):
        memory = stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) == MEMORY_DEVICES
        is_device = stat.S_ISBLK(found.st_mode) or (memory and os.minor(found.st_rdev) != NULL_DEVICE)
        return "device" if is_device else ""
    return "named pipe" if stat.S_ISFIFO(found.st_mode) and not path.is_relative_to("/proc") else ""


def main() -> None:
    """Run the command line; a user's mistake is printed in one or two lines, with exit code 2."""
    number = 0
    try:
        until_asked_to_end(_run)
    except Ended as ended:
        number = ended.number
        output.say_note(_unfinished(ended), "red")
    except KeyboardInterrupt:
        output.say_note("Interrupted; existing files are unchanged.", "red")
        sys.exit(INTERRUPTED)
    except (DiscreetError, ImportError, OSError) as error:
        output.say_note(_explained(error), "red")
        sys.exit(FAILED if isinstance(error, GateBroken) else WRONG_INPUT)
    except MemoryError:  # too little for the library that prints in colours
        typer.echo("Not enough memory; give Discreet more of it, or use fewer --threads.", err=True)
        sys.exit(WRONG_INPUT)
    if number == signal.SIGINT:
        sys.exit(INTERRUPTED)
    if number:  # here, where the exception and all that its frames refer to are gone: temporary folders, too
        signal.raise_signal(number)


def _run() -> None:
    _require_readable(sys.argv[1:])
    app()


def _unfinished(ended: Ended) -> str:
    """What a signal ended."""
    how = "Interrupted" if ended.number == signal.SIGINT else "Ended"
    if not ended.written:
        return f"{how}; existing files are unchanged."
    were = "was" if len(ended.written) == 1 else "were"
    return f"{how} after {', '.join(ended.written)} {were} written."


def _explained(error: DiscreetError | ImportError | OSError) -> str:
    """What went wrong, in a line."""
    if isinstance(error, DiscreetError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise error
        return f"{package}: not installed; run: pip install 'discreet[{EXTRAS[package]}]'"
    if isinstance(error, ImportError):
        return f"A library cannot be loaded: {error}; give Discreet more memory, or install it again."
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{os.strerror(error.errno) if error.errno else str(error) or 'input or output failed'}"
