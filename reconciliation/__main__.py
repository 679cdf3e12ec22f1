"""`python -m reconciliation`: what `realmgate reconcile` starts as a process of its own.

May import: `reconciliation`.
"""

import sys

from reconciliation.commands import main

sys.exit(main(sys.argv[1:]))
