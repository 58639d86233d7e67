"""`python -m pullback`: the same as the command `pullback`."""

import sys

from pullback.cli import main

if __name__ == "__main__":
    sys.exit(main())
