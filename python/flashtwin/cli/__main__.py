"""`python -m flashtwin.cli`."""

import sys

from . import main

sys.exit(main())
