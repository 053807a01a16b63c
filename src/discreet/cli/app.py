"""The ``discreet`` command: imports a subcommand's module on demand and prints every failure.

Exit codes: 0 done; 1 the release fails a check; 2 wrong input, nothing written; 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from discreet.cli.group import LazyGroup
from discreet.errors import DiscreetError, GateBroken, mistake
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
    """Refuse paths that are not text in UTF-8, and whole numbers that no float can represent: libraries would fail."""
    with suppress(FileNotFoundError):  # a working folder that was deleted
        words = [*words, str(Path.cwd())]
    for word in words:
        if os.fsencode(word) != word.encode(errors="surrogatepass"):
            shown = os.fsencode(word).decode(errors="replace")
            remedy = "use names in UTF-8, and a locale such as LC_ALL=C.UTF-8"
            raise mistake(shown[:200], "", "not text in UTF-8", remedy)
        if HUGE.search(word):
            raise mistake("", "", f"{word[:40]}..", "give numbers of fewer than 100 digits")


def main() -> None:
    """Run the command line; a user's mistake is printed in one or two lines, with exit code 2."""
    try:
        _require_readable(sys.argv[1:])
        app()
    except DiscreetError as error:
        output.say_note(str(error), "red")
        sys.exit(FAILED if isinstance(error, GateBroken) else WRONG_INPUT)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        text = f"{package}: not installed; run: pip install 'discreet[{EXTRAS[package]}]'"
        output.say_note(text, "red")
        sys.exit(WRONG_INPUT)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        output.say_note(f"{place}{error.strerror or 'input or output failed'}", "red")
        sys.exit(WRONG_INPUT)
    except KeyboardInterrupt:
        output.say_note("Interrupted; existing files are unchanged.", "red")
        sys.exit(INTERRUPTED)
