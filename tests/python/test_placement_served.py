"""Placement rules of the user on a served device."""

import collections

import pytest

import flashtwin
from clients import client, fio, need
from test_placement_timed import SMALL

need("nbdkit", "fio")


class Counting(flashtwin.Placement):
    """A scheme that equals the included one with four handles, and counts the pages of each handle."""

    classes = 4

    def __init__(self):
        self.pages = collections.Counter()

    def host(self, page):
        self.pages[page.handle] += 1
        return page.handle


class Greedy(flashtwin.Victim):
    """A rule that equals the included one, and records the number of valid pages of each chosen unit."""

    def __init__(self):
        self.chosen = []

    def choose(self, pool):
        best = min(pool.units, key=lambda unit: (unit.valid, -unit.age), default=None)
        self.chosen.append(best.valid)
        return best


def serve(**more):
    options = {"set": SMALL, "precondition": "random:1", "dilation": 0.01, **more}
    return flashtwin.serve("nvme-fdp", **options)


def test_rules_of_users_serve():
    scheme, victim = Counting(), Greedy()
    with serve(placement=scheme, victim=victim) as server:
        before, first = scheme.pages.copy(), len(victim.chosen)
        assert before[0] > 0
        assert first > 0
        for handle, size in ((1, "4m"), (3, "2m")):
            uri = server.uri.replace(":///?", f":///h{handle}?")
            client(*fio(uri, rw="randwrite", size=size, io_size=size))
        client(*fio(server.uri, rw="randwrite", size="40m", io_size="120m", do_verify=0))
        status = {row["pid"]: row for row in server.placement_status()}
        assert set(status) == {0, 1, 2, 3}
    written = scheme.pages - before
    assert written[1] >= 1000
    assert written[3] >= 500
    assert written[2] == 0
    assert len(victim.chosen) > first


class Faulty(Counting):
    """Fails after some pages."""

    def host(self, page):
        return super().host(page) if self.pages.total() < 100 else 1 // 0


def test_a_rule_that_fails_ends_the_service():
    server = serve(placement=Faulty(), precondition="none")
    try:
        client(*fio(server.uri, rw="write", size="8m", do_verify=0), code=1)
        with pytest.raises(ZeroDivisionError):
            server.stop()
    finally:
        if server.running:
            server.stop()


def test_shipped_rules_are_named():
    with serve(placement="gc", victim="fifo", precondition="none") as server:
        client(*fio(server.uri, rw="write", size="1m"))
        assert server.placement_log()
    with pytest.raises(flashtwin.FlashtwinError, match="nonsense"):
        serve(placement="nonsense")
    with pytest.raises(flashtwin.FlashtwinError, match=r"placement\.scheme|placement rules"):
        flashtwin.serve("raid6-nvme", placement=Counting, precondition="none")
