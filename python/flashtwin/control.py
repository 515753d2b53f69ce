"""Commands to a server at work, over its control socket: a line of JSON there, a line back."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from .errors import FlashtwinError

#: A power loss waits for the flash of a large device.
_ANSWER_S = 120


def ask(path: str | os.PathLike[str], what: str, **how: object) -> dict[str, Any]:
    """Give a command to the server whose control socket, or whose own socket, this is.

    Raises:
        FlashtwinError: there is no server, or it refuses, and why.
    """
    at = Path(path)
    beside = Path(f"{path}.ctl")
    at = beside if beside.exists() else at
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(str(at))
            connection.sendall(json.dumps({"do": what, **how}).encode() + b"\n")
            with connection.makefile() as answer:
                said = json.loads(answer.readline())
    except (OSError, ValueError) as e:
        raise FlashtwinError(
            f"{at}: no server listens here: {e}; use the socket that serve printed"
        ) from None
    if "error" in said:
        raise FlashtwinError(str(said["error"]))
    return dict(said)
