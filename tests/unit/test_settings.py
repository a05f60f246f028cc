"""The gateway's settings: read by name, checked in full, and never shown."""

import pytest

from gateway.settings import SettingsError, load_settings

ENVIRON = {
    "FAREGATE_DATABASE_URL": "postgresql://u:secret@127.0.0.1/x",
    "FAREGATE_REDIS_URL": "redis://127.0.0.1/0",
    "FAREGATE_ADMIN_KEY": "a key of twenty characters",
}


def test_media_settings_are_read_by_name_and_type() -> None:
    more = {"FAREGATE_BLOB_URL": "s3://bucket/media", "FAREGATE_BLOB_SECRET": "s", "FAREGATE_MAX_IMAGE_PIXELS": "5"}
    settings = load_settings(ENVIRON | more)
    assert (settings.blobs.url, settings.blobs.secret, settings.max_image_pixels) == ("s3://bucket/media", "s", 5)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"FAREGATE_BLOB_DIR": "secret"}, "FAREGATE_BLOB_DIR"),
        ({"FAREGATE_BLOB_URL": "ftp://secret/x"}, "bucket"),
        ({"FAREGATE_BLOB_URL": "s3:///secret"}, "bucket"),
        ({"FAREGATE_FETCH_ALLOW": "10.0.0.0/8,secret/99"}, "fetch_allow"),
        ({"FAREGATE_MAX_FILE_BYTES": "0"}, "max_file_bytes"),
        ({"FAREGATE_ADMIN_KEY": "secret"}, "FAREGATE_ADMIN_KEY"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(more: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as told:
        load_settings(ENVIRON | more)
    assert "secret" not in str(told.value)


def test_keys_of_upstreams_are_the_workers_and_other_names_are_refused() -> None:
    load_settings(ENVIRON | {"FAREGATE_UPSTREAM_GMI_KEY": "k", "FAREGATE_UPSTREAM_GMI_URL": "http://x"})
    with pytest.raises(SettingsError, match="FAREGATE_UPSTREAM_GMI_TOKEN"):
        load_settings(ENVIRON | {"FAREGATE_UPSTREAM_GMI_TOKEN": "k"})
