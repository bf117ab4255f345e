"""``python -m reviewer`` is the ``reviewer`` command."""

from reviewer.cli import main

main()
