"""A worker's settings: from the environment, checked by name."""

from pathlib import Path

import pytest

from workers.settings import SettingsError, load_settings

ENVIRON = {"FAREGATE_WORKER_REDIS_URL": "redis://:secret@127.0.0.1:6379/0", "FAREGATE_WORKER_POOL": "p", "HOME": "/"}


def test_settings_are_read_by_name_and_type() -> None:
    settings = load_settings(ENVIRON | {"FAREGATE_WORKER_DRAIN_S": "3.5", "FAREGATE_WORKER_BLOB_URL": "/b"})
    assert (settings.pool, settings.drain_s, settings.blobs.url) == ("p", 3.5, "/b")


def test_what_the_command_line_says_wins_and_what_it_leaves_out_does_not() -> None:
    settings = load_settings(ENVIRON, pool="q", redis_url=None)
    assert (settings.pool, settings.redis_url) == ("q", ENVIRON["FAREGATE_WORKER_REDIS_URL"])


def test_a_folder_may_come_from_the_command_line() -> None:
    assert load_settings(ENVIRON, models_dir=Path("/m")).models_dir == Path("/m")
    assert load_settings(ENVIRON | {"FAREGATE_WORKER_MODELS_DIR": "/n"}).models_dir == Path("/n")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"FAREGATE_WORKER_POOOL": "secret"}, "FAREGATE_WORKER_POOOL"),
        ({"FAREGATE_WORKER_MAX_CONCURRENCY": "0"}, "max_concurrency"),
        ({"FAREGATE_WORKER_HEARTBEAT_S": "secret"}, "heartbeat_s"),
        ({"FAREGATE_WORKER_BLOB_URL": "ftp://secret/x"}, "bucket"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(more: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(ENVIRON | more)
    assert named in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(SettingsError, match="redis_url"):
        load_settings({"FAREGATE_WORKER_POOL": "p"})


def test_settings_of_the_gateway_are_left_alone() -> None:
    assert load_settings(ENVIRON | {"FAREGATE_PORT": "x"}).pool == "p"


def test_keys_of_upstreams_are_read_by_name_and_never_shown() -> None:
    keys = {"FAREGATE_UPSTREAM_FAR_AWAY_KEY": " secret ", "FAREGATE_UPSTREAM_FAR_AWAY_URL": "http://10.0.0.1:1/v1"}
    settings = load_settings(ENVIRON | keys | {"FAREGATE_UPSTREAM_GMI_KEY": ""})
    assert (settings.upstreams["FAR_AWAY"].key, settings.upstreams["FAR_AWAY"].url) == (
        "secret",
        "http://10.0.0.1:1/v1",
    )
    assert settings.upstreams["GMI"].key == ""
    assert "secret" not in repr(settings.upstreams)


@pytest.mark.parametrize(
    "more",
    [
        {"FAREGATE_UPSTREAM_GMI_TOKEN": "secret"},
        {"FAREGATE_UPSTREAM_KEY": "secret"},
        {"FAREGATE_UPSTREAM_GMI_KEY": "secret\nx"},
        {"FAREGATE_UPSTREAM_GMI_URL": "secret"},
        {"FAREGATE_UPSTREAM_GMI_URL": "file:///secret"},
        {"FAREGATE_WORKER_UPSTREAMS": "secret"},
        {"FAREGATE_WORKER_FETCH_ALLOW": "10.0.0.0/99"},
    ],
)
def test_a_wrong_setting_of_an_upstream_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(ENVIRON | more)
    assert "secret" not in str(refused.value)
