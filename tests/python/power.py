"""Power cuts under clients that number what they write.

Each page holds its own number and how often it was written, again and again. After a cut a client knows for
every page of its own what it may be: at least what was flushed or forced, at least what was answered unless
the server says that the page is lost, and at most what was asked.
"""

import contextlib
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass

PAGE = 4096
_MAGIC = 0x25609513
_READ, _WRITE, _FLUSH = 0, 1, 3
_FUA = 1


class RefusedError(Exception):
    """The server returned an error, whose number is the argument, or closed the connection."""


class Connection:
    """A client of the network block device protocol: one request at a time."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        hello = self._take(18)
        assert hello[:16] == b"NBDMAGICIHAVEOPT"
        # Option GO for the one export there is, with no information asked for.
        go = struct.pack(">I", 0) + struct.pack(">H", 0)
        self._socket.sendall(struct.pack(">I", 1) + b"IHAVEOPT" + struct.pack(">II", 7, len(go)) + go)
        while True:
            _, _, kind, length = struct.unpack(">QIII", self._take(20))
            self._take(length)
            assert kind in (1, 3), f"reply {kind:#x}"
            if kind == 1:
                return

    def _take(self, count):
        taken = b""
        while len(taken) < count:
            part = self._socket.recv(count - len(taken))
            if not part:
                raise RefusedError
            taken += part
        return taken

    def _ask(self, what, offset=0, length=0, data=b"", flags=0):
        try:
            self._socket.sendall(struct.pack(">IHHQQI", _MAGIC, flags, what, 0, offset, length) + data)
            _, error, _ = struct.unpack(">IIQ", self._take(16))
            if error:
                raise RefusedError(error)
            return self._take(length) if what == _READ else b""
        except OSError as e:
            raise RefusedError from e

    def read(self, offset, length):
        return self._ask(_READ, offset, length)

    def write(self, offset, data, *, fua=False):
        self._ask(_WRITE, offset, len(data), data, _FUA if fua else 0)

    def flush(self):
        self._ask(_FLUSH)

    def leave_amid_writes(self, count, offset=0):
        """Write pages from `offset` on and disconnect amid the responses."""
        with contextlib.suppress(OSError):
            for page in range(count):
                request = struct.pack(">IHHQQI", _MAGIC, 0, _WRITE, page, offset + page * PAGE, PAGE)
                self._socket.sendall(request + bytes(PAGE))
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


@dataclass
class Known:
    """Of a page: how often it was written, answered, and safe."""

    asked: int = 0
    answered: int = 0
    safe: int = 0


def contents(page, number):
    return struct.pack("<QQ", page, number) * (PAGE // 16) if number else bytes(PAGE)


class Checker:
    """Clients on pages of their own, and what they know of them."""

    def __init__(self, server, path, *, may_lose=True, clients=4, pages=200, seed=1):
        # Whether an answered write may be lost at all.
        self.server, self.path, self.may_lose = server, path, may_lose
        self.known = [[Known() for _ in range(pages)] for _ in range(clients)]
        self.rng = random.Random(seed)
        self.lost = self.unfinished = self.answered = 0

    def _write(self, connection, which, seed):
        rng, known = random.Random(seed), self.known[which]
        base = which * len(known)
        with connection, contextlib.suppress(RefusedError):
            while True:
                first = rng.randrange(len(known) - 3)
                touched = range(first, first + rng.randint(1, 3))
                fua = rng.random() < 0.1
                for page in touched:
                    known[page].asked += 1
                data = b"".join(contents(base + page, known[page].asked) for page in touched)
                connection.write((base + first) * PAGE, data, fua=fua)
                self.answered += 1
                for page in touched:
                    known[page].answered = known[page].asked
                    if fua:
                        known[page].safe = known[page].asked
                if rng.random() < 0.05:
                    connection.flush()
                    for of in known:
                        of.safe = of.answered

    def cut(self, longest_s=0.05):
        """One power cut at a random moment, and a look at every page."""
        # All are connected before the cut: who comes later goes on.
        threads = [
            threading.Thread(target=self._write, args=(Connection(self.path), which, self.rng.random()))
            for which in range(len(self.known))
        ]
        for thread in threads:
            thread.start()
        time.sleep(self.rng.uniform(0.01, longest_s))
        cut = self.server.power_cut()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        self.lost += len(cut.lost)
        self.unfinished += cut.unfinished
        lost = set(cut.lost)
        with Connection(self.path) as connection:
            for which, known in enumerate(self.known):
                base = which * len(known)
                held = connection.read(base * PAGE, len(known) * PAGE)
                for page, of in enumerate(known):
                    found = held[page * PAGE : (page + 1) * PAGE]
                    number = struct.unpack("<QQ", found[:16])[1]
                    assert found == contents(base + page, number), f"page {base + page} is torn"
                    least = of.safe if self.may_lose and base + page in lost else of.answered
                    assert least <= number <= of.asked, (base + page, number, of)
                    # What is there is there to stay: a power cut leaves nothing in the buffer.
                    of.answered = of.safe = number
