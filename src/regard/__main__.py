"""`python -m regard` is the command."""

from regard.cli.main import main

main()
