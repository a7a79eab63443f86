"""``python -m tests.fuzz``."""

import sys

from tests.fuzz.runner import main

if __name__ == "__main__":  # not in workers, which import this module by another name
    sys.exit(main())
