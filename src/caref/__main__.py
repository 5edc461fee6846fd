"""``python -m caref`` is the command line."""

from caref.cli import main

main()
