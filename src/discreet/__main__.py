"""``python -m discreet``: the same as the ``discreet`` command."""

from discreet.cli.app import main

main()
