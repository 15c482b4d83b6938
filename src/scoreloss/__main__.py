"""``python -m scoreloss``."""

import sys

from scoreloss.cli import main

if __name__ == "__main__":
    sys.exit(main())
