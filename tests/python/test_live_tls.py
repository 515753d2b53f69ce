"""Served devices over TLS: with a pre-shared key, with certificates, and without either."""

import socket

import pytest

import flashtwin
from clients import client, need

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
#: Script that writes and reads back. It runs under the system's Python, which has the required module.
_SESSION = """
import os
h.set_uri_allow_local_file(True)
h.connect_uri(URI)
data = os.urandom(1 << 20)
h.pwrite(data, 4 << 20, nbd.CMD_FLAG_FUA)
assert h.pread(len(data), 4 << 20) == data
assert h.get_tls_negotiated() is True
"""


def served(**tls):
    need("nbdkit", "nbdsh")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return flashtwin.serve("demo", set=SMALL, precondition="none", tcp=port, **tls)


def session(uri):
    client("env", "PATH=/usr/bin:/bin", "nbdsh", "-c", _SESSION.replace("URI", repr(uri)))


def refused(uri):
    """Check that an unauthorised client receives the reason, and no information about the device."""
    said = client("nbdinfo", "--size", uri, code=1)
    assert "nbd_connect_uri" in said and not said.strip().isdigit(), said


def test_a_key_shared_before(tmp_path):
    need("openssl")
    keys = tmp_path / "keys.psk"
    for name, file in (("alice", keys), ("alice", tmp_path / "wrong.psk"), ("bob", tmp_path / "unknown.psk")):
        file.write_text(f"{name}:{client('openssl', 'rand', '-hex', '32')}")
        file.chmod(0o600)
    with served(tls_psk=keys) as server:
        at = server.uri.replace("localhost", "alice@localhost")
        session(f"{at}?tls-psk-file={keys}")
        back = tmp_path / "back"
        client("nbdcopy", f"{at}?tls-psk-file={keys}", back)
        assert back.stat().st_size == server.size_bytes
        refused(f"{at}?tls-psk-file={tmp_path / 'wrong.psk'}")
        refused(f"{at.replace('alice', 'bob')}?tls-psk-file={tmp_path / 'unknown.psk'}")
        refused(server.uri.replace("nbds://", "nbd://"))
        session(f"{at}?tls-psk-file={keys}")


def authority(directory, name):
    """Create a certificate authority, with a certificate for localhost in the same directory."""
    directory.mkdir()
    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]

    def make(*words):
        client("openssl", "req", *key, *words)

    make(
        "-x509",
        "-subj",
        f"/CN={name}",
        "-keyout",
        directory / "ca-key.pem",
        "-out",
        directory / "ca-cert.pem",
    )
    request = directory / "server.csr"
    make("-subj", "/CN=localhost", "-keyout", directory / "server-key.pem", "-out", request)
    names = directory / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    signed = ["-in", request, "-CA", directory / "ca-cert.pem", "-CAkey", directory / "ca-key.pem"]
    out = directory / "server-cert.pem"
    client(
        "openssl", "x509", "-req", *signed, "-CAcreateserial", "-extfile", names, "-days", "2", "-out", out
    )
    return directory


def test_certificates(tmp_path):
    need("openssl")
    ours = authority(tmp_path / "ours", "ours")
    trusting = tmp_path / "client"
    trusting.mkdir()
    (trusting / "ca-cert.pem").write_bytes((ours / "ca-cert.pem").read_bytes())
    with served(tls_certificates=ours) as server:
        session(f"{server.uri}?tls-certificates={trusting}")
        # A client that trusts another authority rejects this server.
        others = authority(tmp_path / "others", "others")
        refused(f"{server.uri}?tls-certificates={others}")
        refused(server.uri.replace("nbds://", "nbd://"))


@pytest.mark.parametrize(
    ("option", "said"), [("tls_psk", "nowhere"), ("tls_certificates", "could not load TLS certificates")]
)
def test_missing_keys_are_reported(tmp_path, option, said):
    with pytest.raises(flashtwin.FlashtwinError, match=said):
        served(**{option: tmp_path / "nowhere"})
