"""A client that violates the protocol: unread responses, incomplete requests, garbage."""

import resource
import socket
import struct
import time
from pathlib import Path

READ, WRITE, FLUSH, TRIM = 0, 1, 3, 4
FUA = 1
MAGIC = 0x25609513
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")
_OPTION = struct.Struct(">8sII")
_OPTION_REPLY = struct.Struct(">QIII")
_GO = 7


class RefusedError(Exception):
    """The server refused this client and gave a reason."""


class Client:
    """A connection, with the handshake done."""

    def __init__(self, path, timeout_s=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect(str(path))
            assert self.receive(16) == b"NBDMAGICIHAVEOPT"
            self.receive(2)
            self.socket.sendall(struct.pack(">I", 3) + _OPTION.pack(b"IHAVEOPT", _GO, 6) + bytes(6))
            while True:
                _, _, kind, length = _OPTION_REPLY.unpack(self.receive(20))
                data = self.receive(length)
                if kind == 1:
                    return
                if kind & 1 << 31:
                    raise RefusedError(data.decode())
        except BaseException:
            self.socket.close()
            raise

    def receive(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the server has closed the connection")
            data += part
        return bytes(data)

    def ask(self, command, offset=0, count=0, handle=0, *, data=b"", flags=0):
        """Send a request and do not wait for its response."""
        self.socket.sendall(REQUEST.pack(MAGIC, flags, command, handle, offset, count) + data)

    def response(self, count=0):
        """Receive a response: its handle, its error and, if there is no error, `count` bytes of data."""
        magic, error, handle = REPLY.unpack(self.receive(16))
        assert magic == 0x67446698
        return handle, error, self.receive(count) if not error else b""

    def read(self, offset, count):
        self.ask(READ, offset, count)
        _, error, data = self.response(count)
        assert error == 0
        return data

    def write(self, offset, data):
        self.ask(WRITE, offset, len(data), data=data)
        assert self.response() == (0, 0, b"")

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def threads(pid):
    """Return the number of threads of a process."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("Threads:")).split()[1])


def resident_bytes(pid):
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def settled(pid, most, timeout_s=30):
    """Wait until a process has at most `most` threads. Return their number."""
    deadline = time.monotonic() + timeout_s
    while (count := threads(pid)) > most and time.monotonic() < deadline:
        time.sleep(0.05)
    return count
