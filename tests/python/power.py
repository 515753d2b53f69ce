"""Power losses under clients that write numbered contents.

Each page is filled with two numbers: its own number, and how many times it was written. After a power loss,
the contents of a page must lie within bounds that its client knows. The newest possible contents are those of
the last submitted write. The oldest are those of the last acknowledged write. If the server reports the page
as lost, the oldest are those of the last write that was flushed or forced."""

import contextlib
import random
import struct
import threading
import time
from dataclasses import dataclass

from raw_nbd import FLUSH, FUA, READ, WRITE, Client

PAGE = 4096


class RefusedError(Exception):
    """The server returned an error, with its number as the argument, or closed the connection."""


class Connection:
    """A client of the network block device protocol: one request at a time."""

    def __init__(self, path):
        self._client = Client(path)

    def _ask(self, what, offset=0, length=0, **more):
        try:
            self._client.ask(what, offset, length, **more)
            _, error, data = self._client.response(length if what == READ else 0)
        except OSError as e:
            raise RefusedError from e
        if error:
            raise RefusedError(error)
        return data

    def read(self, offset, length):
        return self._ask(READ, offset, length)

    def write(self, offset, data, *, fua=False):
        self._ask(WRITE, offset, len(data), data=data, flags=FUA if fua else 0)

    def flush(self):
        self._ask(FLUSH)

    def leave_amid_writes(self, count, offset=0):
        """Write pages from `offset` on, and disconnect while the server is sending responses."""
        with contextlib.suppress(OSError):
            for page in range(count):
                self._client.ask(WRITE, offset + page * PAGE, PAGE, page, data=bytes(PAGE))
        self._client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()


@dataclass
class Known:
    """Numbers of the last submitted, acknowledged and safe (flushed or forced) contents of a page."""

    asked: int = 0
    answered: int = 0
    safe: int = 0


def contents(page, number):
    return struct.pack("<QQ", page, number) * (PAGE // 16) if number else bytes(PAGE)


class Checker:
    """Clients that write, each to its own pages, and what is known about the contents of these pages."""

    def __init__(self, server, path, *, may_lose=True, clients=4, pages=200, seed=1):
        # Whether an acknowledged write may be lost.
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

    def begin(self):
        """Start the clients; their threads end when the server fails a request or closes the connection."""
        # All clients connect here, before a power loss can end them. A client that connected after the power
        # loss would never end.
        threads = [
            threading.Thread(target=self._write, args=(Connection(self.path), which, self.rng.random()))
            for which in range(len(self.known))
        ]
        for thread in threads:
            thread.start()
        return threads

    def cut(self, longest_s=0.05, *, meanwhile=lambda: None):
        """Cause a power loss at a random moment after `meanwhile`, then check every page."""
        threads = self.begin()
        time.sleep(self.rng.uniform(0.01, longest_s))
        meanwhile()
        time.sleep(self.rng.uniform(0, longest_s))
        cut = self.server.power_cut()
        self.join(threads)
        self.lost += len(cut.lost)
        self.unfinished += cut.unfinished
        self.look(set(cut.lost))

    @staticmethod
    def join(threads):
        """Wait for the clients, whose connections have ended."""
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"

    def look(self, lost=frozenset()):
        """Check every page. Pages in `lost` may have their last safe contents."""
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
                    # These contents cannot be lost later, because the buffer is empty after a power loss.
                    of.answered = of.safe = number
