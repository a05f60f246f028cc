"""Blobs in a local folder, written by workers under the name of their attempt: `yyyy/mm/dd/req_...-attempt.ext`."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.errors import NotFound

_NAME = re.compile(r"\d{4}/\d{2}/\d{2}/req_[0-9a-f]{32}-\d{1,4}\.[a-z0-9]{1,8}")


class LocalBlobs:
    """Reads blobs of a folder that gateways and workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Find a blob's file. Raises NotFound for a name that no worker gives, and where the file is gone."""
        if _NAME.fullmatch(name) is None:
            raise NotFound("There is no such file.")
        path = self._folder / name
        if not path.is_file():
            raise NotFound("This file is no longer kept.")
        return path

    def prune(self, keep_s: int) -> int:
        """Remove the folders of days that have been kept long enough; answers how many.

        What lost attempts left there goes with them. A day is added: a file lies under the day of its admission.
        """
        last = (datetime.now(UTC) - timedelta(seconds=keep_s) - timedelta(days=1)).strftime("%Y/%m/%d")
        old = [day for day in self._days() if day.relative_to(self._folder).as_posix() < last]
        for day in old:
            for file in day.iterdir():
                file.unlink(missing_ok=True)
            day.rmdir()
        return len(old)

    def _days(self) -> Iterator[Path]:
        return self._folder.glob("[0-9][0-9][0-9][0-9]/[0-9][0-9]/[0-9][0-9]")
