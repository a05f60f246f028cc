"""A data folder belongs to one stack, keeps its secrets, and is not touched by a release that is too old for it."""

import json
import stat
from pathlib import Path

import pytest

from gateway.stack.errors import StackError
from gateway.stack.folder import FORMAT, LOG_BYTES, hold_folder


def test_keys_and_passwords_stay_the_same_from_start_to_start(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "data") as folder:
        folder.keep(api_key="fg_live_x")
        first = folder.kept
    with hold_folder(tmp_path / "data") as folder:
        assert folder.kept == first


def test_secrets_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "data"):
        assert stat.S_IMODE((tmp_path / "data" / "stack.json").stat().st_mode) == 0o600


def test_a_second_stack_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with (
        hold_folder(tmp_path / "data"),
        pytest.raises(StackError, match="in use by another"),
        hold_folder(tmp_path / "data"),
    ):
        pass


def test_a_folder_of_a_newer_release_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "data"):
        pass
    path = tmp_path / "data" / "stack.json"
    newer = json.dumps({**json.loads(path.read_text()), "format": FORMAT + 1, "something": "new"})
    path.write_text(newer)
    with pytest.raises(StackError, match="newer Faregate"), hold_folder(tmp_path / "data"):
        pass
    assert path.read_text() == newer


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "data"):
        pass
    (tmp_path / "data" / "stack.json").write_text("{")
    with pytest.raises(StackError, match=r"stack\.json is damaged"), hold_folder(tmp_path / "data"):
        pass


def test_a_path_that_cannot_be_a_folder_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StackError, match="cannot be used: Not a directory"), hold_folder(tmp_path / "file" / "data"):
        pass


def test_a_log_that_has_grown_large_is_set_aside_at_the_next_start(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "data") as folder:
        with folder.log("gateway").open("wb") as log:
            log.truncate(LOG_BYTES + 1)
        assert not folder.log("gateway").exists()
        assert (folder.logs / "gateway.log.1").stat().st_size == LOG_BYTES + 1
