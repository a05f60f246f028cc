"""Blobs in a local folder that gateways and workers share.

A blob is written beside the others under a name of its own, made durable, then renamed: half a file is never seen, and
what a killed process leaves in `.partial` goes after a while.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from gateway.blobs.names import check_name, check_prefix
from gateway.blobs.store import PAGE, BlobHead, BlobMissing, BlobsAway, Source

PIECE_BYTES = 256 * 1024
PARTIAL = ".partial"

T = TypeVar("T")


class LocalBlobs:
    """The blob store of one machine, or of a folder that several mount."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, name: str, source: Source) -> int:
        """Write a blob: own name, fsync, rename, fsync of the folder."""
        path = self._path(name)
        partial = self._folder / PARTIAL / secrets.token_hex(16)
        try:
            file = await self._do(_create, partial)
            try:
                size = await self._fill(file, source)
                await self._do(_publish, file, partial, path)
            finally:
                file.close()
        except BaseException:
            with contextlib.suppress(OSError):  # the folder itself may be what is wrong
                partial.unlink(missing_ok=True)
            raise
        return size

    async def _fill(self, file: BinaryIO, source: Source) -> int:
        if isinstance(source, bytes):
            return await self._do(file.write, source)
        if isinstance(source, AsyncIterator):
            size = 0
            async for piece in source:
                size += await self._do(file.write, piece)
            return size
        return await self._do(_copy, source, file)

    async def get(self, name: str) -> bytes:
        """Read a whole blob."""
        return await self._find(self._path(name).read_bytes)

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Open a blob, and read it piece by piece."""
        file = await self._find(_open_at, self._path(name), start)
        return self._pieces(file, None if end is None else end - start)

    async def _pieces(self, file: BinaryIO, left: int | None) -> AsyncIterator[bytes]:
        with file:
            while left is None or left > 0:
                piece = await self._find(file.read, PIECE_BYTES if left is None else min(left, PIECE_BYTES))
                if not piece:
                    return
                left = None if left is None else left - len(piece)
                yield piece

    async def head(self, name: str) -> BlobHead:
        """Look at a blob's file."""
        return _head(name, await self._find(os.stat, self._path(name)))

    async def delete(self, names: Sequence[str]) -> None:
        """Remove blobs, and the folders of days that have become empty."""
        await self._do(self._remove, [self._path(name) for name in names])

    async def page(self, prefix: str = "", after: str = "") -> list[BlobHead]:
        """Walk the folder in the order of names, leaving out what comes before."""
        check_prefix(prefix)
        return await self._do(self._page, prefix, after)

    async def tidy(self, older_than_s: float) -> int:
        """Remove files of writes that broke off."""
        return await self._do(self._tidy, time.time() - older_than_s)

    def _path(self, name: str) -> Path:
        check_name(name)
        return self._folder / name

    async def _do(self, work: "Callable[..., T]", *given: object) -> T:
        """Run file work on a thread; what fails is the store."""
        try:
            return await asyncio.to_thread(work, *given)
        except OSError as error:
            raise BlobsAway(error.strerror or "The blob folder does not answer.") from error

    async def _find(self, work: "Callable[..., T]", *given: object) -> T:
        """Run file work on a thread that needs a blob to be there."""
        try:
            return await asyncio.to_thread(work, *given)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise BlobMissing("There is no such blob.") from error
        except OSError as error:
            raise BlobsAway(error.strerror or "The blob folder does not answer.") from error

    def _remove(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {parent for path in paths for parent in path.parents if parent.is_relative_to(self._folder)}:
            if folder != self._folder:
                with contextlib.suppress(OSError):  # not empty, or gone
                    folder.rmdir()

    def _page(self, prefix: str, after: str) -> list[BlobHead]:
        page: list[BlobHead] = []
        for name, stat in _walk(self._folder, "", prefix, after):
            page.append(_head(name, stat))
            if len(page) == PAGE:
                break
        return page

    def _tidy(self, before_s: float) -> int:
        folder = self._folder / PARTIAL
        old = [path for path in folder.iterdir() if path.stat().st_mtime < before_s] if folder.is_dir() else []
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)


def _create(partial: Path) -> BinaryIO:
    partial.parent.mkdir(parents=True, exist_ok=True)
    return partial.open("xb")


def _copy(source: BinaryIO, file: BinaryIO) -> int:
    source.seek(0)
    shutil.copyfileobj(source, file, PIECE_BYTES)
    return file.tell()


def _publish(file: BinaryIO, partial: Path, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    for _ in range(3):  # a sweeper may remove the empty folder in between
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            partial.replace(path)
            break
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_at(path: Path, start: int) -> BinaryIO:
    file = path.open("rb")
    file.seek(start)
    return file


def _head(name: str, stat: os.stat_result) -> BlobHead:
    etag = f"{stat.st_mtime_ns:x}-{stat.st_size:x}"
    return BlobHead(name, stat.st_size, etag, stat.st_mtime_ns // 1000)


def _walk(folder: Path, base: str, prefix: str, after: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files below a folder in the order of their whole names, as an object store lists them."""
    try:
        with os.scandir(folder) as entries:
            here = sorted((f"{base}{each.name}{'/' if each.is_dir() else ''}", each) for each in entries)
    except FileNotFoundError:
        return  # a folder that is not made yet, or was removed as empty
    for name, entry in here:
        if entry.name.startswith("."):
            continue
        if name.endswith("/"):
            begins = name.startswith(prefix) or prefix.startswith(name)
            if begins and (name > after or after.startswith(name)):
                yield from _walk(folder / entry.name, name, prefix, after)
        elif name.startswith(prefix) and name > after:
            with contextlib.suppress(FileNotFoundError):
                yield name, entry.stat()
