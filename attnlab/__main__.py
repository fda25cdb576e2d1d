"""`python -m attnlab`: the command line."""

import sys

from attnlab.cli import main

sys.exit(main())
