"""Run the `regard` command, as `python -m regard`."""

import sys

from regard.cli.main import command, main

if vars(sys.modules["__main__"]) is globals():
    command()
else:  # called by another program, which continues afterwards
    main()
