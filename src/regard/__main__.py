"""Run the `regard` command, as `python -m regard`."""

import sys

from regard.cli.main import command, main

if vars(sys.modules["__main__"]) is globals():
    command()
else:  # run by another program, which goes on afterwards
    main()
