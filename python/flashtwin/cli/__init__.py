"""The command `flashtwin`.

Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 a validation found
mismatches, 2 an argument or an input was wrong, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..errors import FlashtwinError
from .parser import build
from .streams import StdoutError, abandon_stdout, prepare

#: Message of the RuntimeError that Python raises if the system permits no further thread.
_NO_THREAD = "can't start new thread"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        prepare()
        if "_ARGCOMPLETE" in os.environ:
            from . import completion

            completion.complete(build(completion.words_so_far()))
        args = build(given).parse_args(given)
        code: int = args.command(args)
        sys.stdout.flush()
        return code
    except (FlashtwinError, StdoutError) as e:
        if isinstance(e, StdoutError):
            abandon_stdout()
        return _fail(str(e), 2)
    except KeyboardInterrupt:
        # Work that cannot be stopped, such as reading a whole trace, still runs in its thread. The command
        # ends without its result.
        print("\nflashtwin: interrupted", file=sys.stderr, flush=True)
        os._exit(130)
    except BrokenPipeError:
        # The program that reads this command's output has ended, as `head` does after its last line.
        abandon_stdout()
        return 141
    except MemoryError:
        return _fail("out of memory: take a smaller device, or run fewer policies at a time", 2)
    except (OSError, UnicodeEncodeError) as e:
        return _fail(_described(e), 2)
    except RuntimeError as e:
        if str(e) != _NO_THREAD:
            raise
        return _fail("no thread can be started: end other processes, or raise the limit (ulimit -u)", 2)


def _described(e: OSError | UnicodeEncodeError) -> str:
    if isinstance(e, UnicodeEncodeError):
        return f"{e.object!r}: an argument that is not a file name must be UTF-8"
    named = [os.fsdecode(e.filename)] if e.filename is not None else []
    return ": ".join([*named, e.strerror or str(e)])


def _fail(message: str, code: int) -> int:
    print(f"flashtwin: error: {message}", file=sys.stderr, flush=True)
    return code
