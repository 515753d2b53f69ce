"""Files of which the written part is stored on disk while more is written."""

import os

import pytest

from flashtwin._support.files import store_ahead


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot store ahead")
def test_a_file_keeps_what_is_stored_ahead(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as file:
        reach = 0
        for part in range(1, 4):
            file.write(bytes([part]) * 100_000)
            reach = store_ahead(file, reach)
            assert reach == part * 100_000
            assert path.stat().st_size == reach
    assert path.read_bytes() == b"".join(bytes([part]) * 100_000 for part in range(1, 4))


def test_a_pipe_is_left_alone():
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(b"ab")
        assert store_ahead(pipe, 0) == 0
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"ab"
