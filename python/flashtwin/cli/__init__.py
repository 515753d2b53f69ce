"""The command `flashtwin`.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 a validation
found mismatches, 2 something was wrong with what was given, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..errors import FlashtwinError
from .parser import build


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if "_ARGCOMPLETE" in os.environ:
            from . import completion

            completion.complete(build(completion.words_so_far()))
        args = build(given).parse_args(given)
        code: int = args.command(args)
        sys.stdout.flush()
        return code
    except FlashtwinError as e:
        return _fail(str(e), 2)
    except KeyboardInterrupt:
        # Work without a control (reading a whole trace) still runs in its thread; nothing of it is
        # wanted any more.
        print("\nflashtwin: interrupted", file=sys.stderr, flush=True)
        os._exit(130)
    except BrokenPipeError:
        # The reader of our output has ended, as `head` does.
        _abandon_stdout()
        return 141
    except MemoryError:
        return _fail("out of memory: take a smaller device, or run fewer policies at a time", 2)
    except OSError as e:
        _abandon_stdout()
        return _fail(f"cannot write to standard output: {e.strerror or e}", 2)


def _fail(message: str, code: int) -> int:
    print(f"flashtwin: error: {message}", file=sys.stderr, flush=True)
    return code


def _abandon_stdout() -> None:
    """Keep the interpreter from writing what is left, and failing once more, as it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
