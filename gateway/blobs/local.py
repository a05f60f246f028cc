"""Blobs in a local folder, written by workers under the name of their attempt."""

import re
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
