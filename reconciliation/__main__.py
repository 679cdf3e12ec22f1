"""`python -m reconciliation`: what `realmgate reconcile` starts as a process of its own.

May import: `reconciliation`.
"""

import sys
import traceback

from reconciliation.commands import COULD_NOT_RUN, main

try:
    code = main(sys.argv[1:])
except Exception:  # ours to mend: shown in full, but never with the exit code that means "anomalies found"
    traceback.print_exc()
    code = COULD_NOT_RUN
sys.exit(code)
