"""The command line called in this process: what a subprocess would answer, without starting Python again."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from discreet.cli.app import main


def discreet(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command; its exit code and what it printed."""
    told = ["discreet", *map(str, words)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", told), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
    return subprocess.CompletedProcess(told, code, out.getvalue(), err.getvalue())
