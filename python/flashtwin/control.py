"""Commands to a running server over its control socket. Request and response are one line of JSON each."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from .errors import FlashtwinError

#: Maximum wait for a response, in seconds. After a power loss, the response comes when the flash is idle,
#: which takes long on a large device.
_ANSWER_S = 120


def ask(path: str | os.PathLike[str], what: str, **how: object) -> dict[str, Any]:
    """Send a command to a server. `path` is its control socket or its socket for clients.

    Raises:
        FlashtwinError: there is no server, or it rejects the command; the message has the reason.
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
