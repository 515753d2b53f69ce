"""Folders for results, local or at an fsspec URL. Files in them are complete or absent, never partial."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import FlashtwinError
from .files import whole_file
from .inputs import open_regular
from .partials import Partial, remove_all_dead_partials
from .prerequisites import install_line


def is_remote(text: str) -> bool:
    """Whether a path is a URL that fsspec opens, such as s3://bucket/trace.csv."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme.isalnum()


def _fsspec(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise FlashtwinError(f"{url}: URLs need fsspec: {install_line('fsspec')}") from None
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as e:
        raise FlashtwinError(f"{url}: cannot be opened: {e}") from e
    return filesystem, path


class Folder:
    """A folder of small files: a local directory, or a prefix of a URL."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.name = os.fspath(where)
        #: Name of the folder that other processes on this machine can use (an absolute path or a URL).
        self.anywhere = self.name if is_remote(self.name) else str(Path(self.name).resolve())
        self._fs: Any = None
        if is_remote(self.name):
            self._fs, self._root = _fsspec(self.name)
        else:
            self._root = self.name

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file, or None if it does not exist."""
        try:
            if self._fs is None:
                with open_regular(Path(self._root, name)) as file:
                    return file.read()
            data: bytes = self._fs.cat_file(f"{self._root}/{name}")
            return data
        except FileNotFoundError:
            return None
        except OSError as e:
            raise FlashtwinError(f"{self.name}/{name}: cannot read it: {e.strerror or e}") from e

    def names(self, inner: str) -> set[str]:
        """Return the names of the files in a subfolder."""
        try:
            if self._fs is None:
                return {entry.name for entry in os.scandir(Path(self._root, inner))}
            found = self._fs.ls(f"{self._root}/{inner}", detail=False)
            return {PurePosixPath(path).name for path in found}
        except FileNotFoundError:
            return set()
        except OSError as e:
            raise FlashtwinError(f"{self.name}/{inner}: cannot list it: {e.strerror or e}") from e

    def make(self, inner: str) -> None:
        """Create a subfolder, and the folder itself."""
        try:
            if self._fs is None:
                Path(self._root, inner).mkdir(parents=True, exist_ok=True)
            else:
                self._fs.makedirs(f"{self._root}/{inner}", exist_ok=True)
        except OSError as e:
            reason = e.strerror or e
            raise FlashtwinError(f"{self.name}: cannot make this directory: {reason}; give another") from e

    def write(self, name: str, data: bytes, what: str) -> None:
        """Write a file durably. After a power loss it is either complete or absent."""
        if self._fs is not None:
            try:
                self._fs.pipe_file(f"{self._root}/{name}", data)
            except OSError as e:
                reason = e.strerror or e
                raise FlashtwinError(f"{self.name}/{name}: cannot write {what}: {reason}") from e
            return
        path = Path(self._root, name)
        with whole_file(path, what) as file:
            file.write(data)
        try:
            # The new name of the file survives a power loss only after its directory has been synced.
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as e:
            raise FlashtwinError(f"{path}: cannot make {what} durable: {e.strerror or e}") from e

    @contextmanager
    def local_file(self, name: str) -> Iterator[Path]:
        """Yield the path of a local file, which the `with` block must write.

        If the folder is at a URL, the file is uploaded at the end of the block.
        """
        if self._fs is None:
            yield Path(self._root, name)
            return
        with TemporaryDirectory() as place:
            path = Path(place, PurePosixPath(name).name)
            yield path
            try:
                self._fs.put_file(str(path), f"{self._root}/{name}")
            except OSError as e:
                raise FlashtwinError(f"{self.name}/{name}: cannot write it: {e.strerror or e}") from e

    def append(self, name: str, lines: str) -> None:
        """Append lines to a file of notes. If the folder's files cannot be appended to, do nothing."""
        if self._fs is None:
            with suppress(OSError), Path(self._root, name).open("a", encoding="utf-8") as file:
                file.write(lines)

    def remove_dead_partials(self, inner: str) -> None:
        """Remove partial files that killed processes left in a subfolder."""
        if self._fs is None:
            remove_all_dead_partials(Path(self._root, inner))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder. Other processes that lock it receive an error. A folder at a URL is not locked.

        Raises:
            FlashtwinError: another process has locked the folder.
        """
        if self._fs is not None:
            yield
            return
        try:
            lock = os.open(Path(self._root, "lock"), os.O_WRONLY | os.O_CREAT, 0o666)
        except OSError as e:
            raise FlashtwinError(f"{self.name}: cannot write here: {e.strerror or e}; give another") from e
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FlashtwinError(
                    f"{self.name}: another sweep is writing here; wait for it, or give another directory"
                ) from None
            yield
        finally:
            os.close(lock)


#: Hashes of the traces that this process has read. The key is the path and the identity of a file.
_hashed: dict[tuple[str, int, int], str] = {}


def content_hash(path: str) -> str:
    """Return the SHA-256 of a file. A process reads a file only once, unless the file changes.

    Raises:
        FlashtwinError: the file cannot be read.
    """
    try:
        status = Path(path).stat()
        known = (path, status.st_size, status.st_mtime_ns)
        if known not in _hashed:
            digest = hashlib.sha256()
            with open_regular(Path(path)) as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            _hashed[known] = digest.hexdigest()
        return _hashed[known]
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot read this trace: {e.strerror}") from e


def fetch(url: str, sha256: str | None) -> tuple[str, str]:
    """Copy a file to this machine unless it is local already. Return its local path and its SHA-256.

    Args:
        url: path or URL of the file.
        sha256: expected hash; None to accept any content.

    Raises:
        FlashtwinError: the file cannot be read, or its hash differs.
    """
    if not is_remote(url):
        found = content_hash(url)
        if sha256 not in (None, found):
            raise FlashtwinError(f"{url}: this trace changed since the sweep began; begin it again")
        return url, found
    name = PurePosixPath(url.partition("://")[2]).name
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flashtwin" / "traces"
    if sha256 is not None:
        kept = cache / f"{sha256}-{name}"
        if kept.is_file() and content_hash(str(kept)) == sha256:
            return str(kept), sha256
    filesystem, path = _fsspec(url)
    fresh = None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Partial(cache / name)
        filesystem.get_file(path, str(fresh.path))
        found = content_hash(str(fresh.path))
        kept = cache / f"{found}-{name}"
        fresh.publish(kept)
    except OSError as e:
        raise FlashtwinError(f"{url}: cannot fetch this trace: {e.strerror or e}") from e
    finally:
        if fresh is not None:
            fresh.close()
    if sha256 not in (None, found):
        raise FlashtwinError(f"{url}: this trace changed since the sweep began; begin it again")
    return str(kept), found
