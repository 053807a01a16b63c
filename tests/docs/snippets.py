"""Reads the code blocks of a page and runs them in order, as a reader would type them.

Before a block, a comment may give its treatment: ``<!-- save: FILE -->`` writes it to a file, and
``<!-- not run: REASON -->`` leaves it out. A block of TOML without one must fit the programme file. A block ``text``
after a block that was run is its output: each line must occur there, in this order, up to numbers; a line of three dots
leaves lines out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from discreet.cli.app import main
from discreet.programme.reading import DeclaredProgramme

BLOCK = re.compile(
    r"(?:^<!-- (save|not run): ([^\n]*?) -->\n)?^```([\w{}]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
LANGUAGES = {"bash", "python", "toml", "text", "", "{toctree}"}
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e-?\d+)?")
SHELL = re.compile(r"[|<>;$*]")
PORT = "8000"  # of the pages; replaced by a free one
PATIENCE = 120.0


@dataclass(frozen=True)
class Block:
    """One block of a page: its language and text, and what a comment before it states."""

    language: str
    text: str
    treatment: str
    argument: str


def blocks(page: Path) -> list[Block]:
    """All code blocks of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(language, text, treatment, argument) for treatment, argument, language, text in found]


def shape(line: str) -> str:
    """A line of output with every number replaced, and blanks as one."""
    return " ".join(NUMBER.sub("#", line).split())


def missing_line(shown: str, output: str) -> str | None:
    """The first line of a page's output that the real output does not have, in the page's order."""
    rest = iter([shape(line) for line in output.splitlines()])
    for line in shown.splitlines():
        if line.strip() in ("", "...") or shape(line) in rest:
            continue
        return line
    return None


@dataclass
class Session:
    """What the blocks of one page share: the folder, variables of Python, servers, the port."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    port: int = 0

    def run(self, block: Block) -> str | None:
        """Run a block and return its output; None if there is nothing to run in it."""
        if block.treatment == "save":
            path = self.folder / block.argument
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            if block.language != "python":
                return None
        text = block.text.replace(PORT, str(self.port))
        if block.language == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, "page", "exec"), self.names)
            return said.getvalue()
        if block.language == "bash":
            return "".join(self.command(line) for line in commands(text))
        if block.language == "toml":
            DeclaredProgramme.model_validate(tomllib.loads(text))
        return None

    def command(self, line: str) -> str:
        """Run one command: Discreet in this process, anything else by the shell; what ends with & is a server."""
        line, _, expected = line.partition("  # exit code ")
        command = line.partition("  # ")[0].strip()
        if command.endswith("&"):
            self.serve(command.removesuffix("&"))
            return ""
        if command.startswith("discreet ") and not SHELL.search(command):
            code, said = discreet(shlex.split(command))
        else:
            programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-ec", command],
                capture_output=True,
                text=True,
                cwd=self.folder,
                env=os.environ | {"PATH": programs},
                check=False,
            )
            code, said = done.returncode, done.stdout + done.stderr
        assert code == int(expected or 0), f"{command}\nexit code {code}\n{said}"
        return said

    def serve(self, command: str) -> None:
        """Start a server and wait until it answers."""
        words = shlex.split(command)
        assert words[:2] == ["discreet", "serve"], command
        if "--port" not in words:
            words += ["--port", str(self.port)]
        server = subprocess.Popen([sys.executable, "-m", *words], cwd=self.folder, stdout=subprocess.DEVNULL)
        self.servers.append(server)
        until = time.monotonic() + PATIENCE
        while not answers(self.port):
            assert server.poll() is None, f"{command}: ended"
            assert time.monotonic() < until, f"{command}: does not answer"
            time.sleep(0.2)


def answers(port: int) -> bool:
    """Whether a server is running there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False


def commands(text: str) -> list[str]:
    """The commands of a block; a line that ends with a backslash goes on."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def discreet(words: list[str]) -> tuple[int, str]:
    """Exit code and output of the command line, run in this process."""
    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), patch.object(sys, "argv", words):
        try:
            main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, said.getvalue()


@contextmanager
def session(folder: Path) -> Iterator[Session]:
    """A session in a folder, which ends its servers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        one = Session(folder, port=free.getsockname()[1])
    try:
        with contextlib.chdir(folder):
            yield one
    finally:
        for server in one.servers:
            server.terminate()
            server.wait(PATIENCE)
