"""The Files API, by openai-python and by hand."""

import os
from collections.abc import Iterator

import openai
import pytest

from tests.media.samples import film, picture
from tests.system import System


@pytest.fixture
def client(taking_system: System) -> Iterator[openai.OpenAI]:
    """Answer OpenAI's own client, with an account of its own."""
    _, key = taking_system.account(f"files-{os.urandom(4).hex()}", "1")
    with openai.OpenAI(base_url=f"{taking_system.base_url}/v1", api_key=key, max_retries=0) as made:
        yield made


def test_a_file_is_uploaded_listed_read_and_removed(client: openai.OpenAI) -> None:
    data = film()
    made = client.files.create(file=("ride.mp4", data), purpose="vision")
    assert (made.object, made.bytes, made.filename, made.purpose) == ("file", len(data), "ride.mp4", "vision")
    assert made.status == "processed"
    assert made.id.startswith("file_")
    assert client.files.retrieve(made.id) == made
    assert [file.id for file in client.files.list()] == [made.id]
    assert client.files.content(made.id).read() == data
    assert client.files.delete(made.id).deleted
    for call in (client.files.retrieve, client.files.delete, client.files.content):
        with pytest.raises(openai.NotFoundError):
            call(made.id)
    assert list(client.files.list()) == []


def test_files_come_page_by_page_in_either_order_and_by_purpose(client: openai.OpenAI) -> None:
    ids = [client.files.create(file=(f"{n}.txt", b"x" * n), purpose=purpose).id
           for n, purpose in enumerate(("batch", "vision", "batch", "batch", "vision"))]  # fmt: skip
    assert [file.id for file in client.files.list(limit=2)] == ids[::-1], "the client follows the pages"
    page = client.files.list(limit=2, order="asc")
    assert ([file.id for file in page.data], page.has_more) == (ids[:2], True)
    assert [file.id for file in client.files.list(order="asc", after=ids[2])] == ids[3:]
    assert [file.id for file in client.files.list(order="asc", purpose="vision")] == [ids[1], ids[4]]


def test_a_caller_may_have_a_file_forgotten_sooner(client: openai.OpenAI) -> None:
    made = client.files.create(
        file=("a.txt", b"x"), purpose="user_data", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert made.expires_at == made.created_at + 3600


def test_what_is_no_media_is_kept_as_bytes_and_named_plainly(client: openai.OpenAI, taking_system: System) -> None:
    made = client.files.create(file=('x"\r\n../../ünï.html', b"<script>alert(1)</script>"), purpose="user_data")
    with taking_system.client(client.api_key) as plain:
        answer = plain.get(f"/v1/files/{made.id}/content")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "/" not in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("fields", "files", "param"),
    [
        ({}, {"file": ("a.png", picture())}, "purpose"),
        ({"purpose": ""}, {"file": ("a.png", picture())}, "purpose"),
        ({"purpose": "vision"}, {"other": ("a.png", picture())}, "other"),
        ({"purpose": "vision", "more": "x"}, {"file": ("a.png", picture())}, "more"),
        ({"purpose": "vision", "expires_after[seconds]": "-1"}, {"file": ("a", b"x")}, "expires_after[seconds]"),
    ],
)
def test_a_wrong_form_is_refused_by_field_and_leaves_no_file(
    taking_system: System, fields: dict[str, str], files: dict[str, tuple[str, bytes]], param: str
) -> None:
    before = set((taking_system.data / "blobs" / "files").rglob("file_*"))
    with taking_system.client() as client:
        answer = client.post("/v1/files", data=fields, files=files)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert set((taking_system.data / "blobs" / "files").rglob("file_*")) <= before


def test_a_file_is_missing(taking_system: System) -> None:
    with taking_system.client() as client:
        answer = client.post("/v1/files", files={"purpose": (None, "vision")})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")


def test_the_files_of_another_tenant_are_not_there(taking_system: System, client: openai.OpenAI) -> None:
    """404, the same as for a file that never was; in calls too."""
    file = client.files.create(file=("a.png", picture()), purpose="vision")
    _, other = taking_system.account(f"stranger-{file.id}", "1")
    never = "file_" + "0" * 32
    with taking_system.client(other) as stranger:
        for path in ("/v1/files/{}", "/v1/files/{}/content"):
            answers = [stranger.get(path.format(id_)) for id_ in (file.id, never)]
            assert [answer.status_code for answer in answers] == [404, 404]
            assert answers[0].json() == answers[1].json()
        assert stranger.delete(f"/v1/files/{file.id}").status_code == 404
        assert stranger.get("/v1/files").json()["data"] == []
        body = {"model": "picture", "input": {"prompt": "x", "image": file.id}}
        assert stranger.post("/v1/requests", json=body).status_code == 404
    assert client.files.retrieve(file.id).id == file.id


def test_a_key_that_is_none_uploads_nothing(taking_system: System) -> None:
    with taking_system.client("fg_nobody") as client:
        for answer in (
            client.post("/v1/files", files={"file": ("a", b"x")}, data={"purpose": "vision"}),
            client.get("/v1/files"),
            client.get("/v1/files/file_" + "0" * 32),
            client.delete("/v1/files/file_" + "0" * 32),
        ):
            assert answer.status_code == 401
