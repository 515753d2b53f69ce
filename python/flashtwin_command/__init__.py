"""The entry point of the command `flashtwin`.

The entry point is in a package of its own, so that Ctrl-C is handled while `flashtwin` is being imported.
"""

import os
import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Import the package and run the command line; Ctrl-C during the import ends it with one line."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _interrupted)
    from flashtwin.cli import main as command

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return command()


def _interrupted(_signal: int, _frame: object) -> None:
    # No exception is raised, because it could be lost in the compiled modules that are being imported.
    print("\nflashtwin: interrupted", file=sys.stderr, flush=True)
    os._exit(130)
