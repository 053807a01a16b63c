"""``python -m discreet``, and the ``discreet`` command: the command line, once it is imported."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from discreet.lazy import lazily

if TYPE_CHECKING:
    from discreet.cli import app
else:
    app = lazily("discreet.cli.app")


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it at once, because there is nothing to clear up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    app.main()


if __name__ == "__main__":
    main()
