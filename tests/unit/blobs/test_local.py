"""Media files are found by the names that workers give, and by no other; old days are forgotten."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.blobs.local import LocalBlobs
from gateway.errors import NotFound

REQUEST = "req_" + "0" * 32


def put(folder: Path, day: datetime) -> str:
    name = f"{day:%Y/%m/%d}/{REQUEST}-1.wav"
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"RIFF")
    return name


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "2026/11/21/../../x.wav", f"2026/11/21/{REQUEST}-1.wav\0", ""])
def test_a_name_that_no_worker_gives_is_not_looked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound):
        LocalBlobs(tmp_path).path(name)


def test_days_are_kept_for_as_long_as_outputs_and_then_forgotten(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    new, old = put(tmp_path, now - timedelta(days=1)), put(tmp_path, now - timedelta(days=10))
    blobs = LocalBlobs(tmp_path)
    assert blobs.prune(7 * 86400) == 1
    assert blobs.path(new).read_bytes() == b"RIFF"
    with pytest.raises(NotFound):
        blobs.path(old)
