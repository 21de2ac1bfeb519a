"""`python -m roof_agent`."""

import sys

from roof_agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
