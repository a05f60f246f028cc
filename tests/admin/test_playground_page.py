"""The playground: a form of the model's own, the most it can cost before it runs, and real, charged runs."""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.admin.playground.fields import fields_of
from gateway.admin.playground.snippets import snippets
from gateway.catalog.model import Model, Parameter
from tests.admin.test_overview_page import signed_in
from tests.second_gateway import second_gateway
from tests.system import System, running_system

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)


CATALOG = Path(__file__).parents[1] / "browser" / "catalog.yaml"


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a running system with a fake model of each kind."""
    folder = tmp_path_factory.mktemp("playground")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG)) as system:
        system.wait_ready("scribe", "painter")
        yield system


@pytest.fixture(scope="module")
def operator(hall: System) -> Iterator[httpx.Client]:
    with signed_in(hall) as client:
        yield client


def form(client: httpx.Client, **query: str) -> dict[str, str]:
    """Give what the form of a model holds, as a browser would send it."""
    page = client.get("/admin/playground", params=query).text
    inner = page[page.index('id="playground"') :]
    fields = dict(re.findall(r'<input[^>]*name="([a-z_]+)"[^>]*? value="([^"]*)"', inner))
    fields |= dict(re.findall(r'<textarea[^>]*name="([a-z_]+)"[^>]*>([^<]*)</textarea>', inner))
    return fields


def run(client: httpx.Client, fields: dict[str, str]) -> str:
    """Run a form and follow it to its end; answers what the page then shows."""
    answer = client.post("/admin/playground/run", data=fields, headers={"hx-request": "true"})
    assert answer.status_code == 200, answer.text
    found = re.search(r'hx-sse:connect="(/admin/playground/runs/[^"]+/live)"', answer.text)
    assert found is not None, answer.text
    last = ""
    with client.stream("GET", found[1]) as stream:
        assert stream.status_code == 200
        event: list[str] = []
        for line in stream.iter_lines():
            if line.startswith("data:"):
                event.append(line[5:].removeprefix(" "))
            elif line.startswith("event: over"):
                return last
            elif not line and event:
                last, event = "\n".join(event), []
    raise AssertionError("the stream ended before the run")


def test_text_streams_and_its_charge_stands_against_its_quote(operator: httpx.Client, hall: System) -> None:
    with hall.admin() as admin:
        before = admin.get("/admin/api/accounts").json()["accounts"][0]
    fields = form(operator, model="scribe")
    assert fields["message"]
    quoted = operator.post("/admin/playground/quote", data=fields, headers={"hx-request": "true"}).text
    assert "At most" in quoted
    assert "chat/completions" in quoted
    shown = run(operator, fields)
    assert "succeeded" in shown
    assert re.search(r"Charged \$[0-9.]+ of at most \$[0-9.]+", shown)
    assert "First words" in shown
    assert "hx-" not in shown, "what streams has no page's nonce"
    with hall.admin() as admin:
        after = admin.get("/admin/api/accounts").json()["accounts"][0]
    assert after["spent_nanos"] > before["spent_nanos"], "a run is a real, charged request"


def test_a_picture_is_shown_from_this_very_host_and_the_log_knows_who_ran_it(
    operator: httpx.Client, hall: System
) -> None:
    shown = run(operator, form(operator, model="painter"))
    source = re.search(r'<img src="(/v1/blobs/[^"]+)"', shown)
    assert source is not None, shown
    picture = httpx.get(hall.base_url + source[1].replace("&amp;", "&"))
    assert picture.status_code == 200
    assert picture.headers["content-type"].startswith("image/")
    entries = operator.get("/admin/audit.json?action=playground.run").json()["entries"]
    assert entries[0]["changes"]["model"] == [None, "painter"]
    assert entries[0]["object_id"].startswith("req_")


def test_what_does_not_fit_is_said_in_the_place_of_the_quote(operator: httpx.Client) -> None:
    fields = form(operator, model="painter") | {"prompt": ""}
    told = operator.post("/admin/playground/quote", data=fields, headers={"hx-request": "true"})
    assert told.status_code == 200
    assert "failed" in told.text
    assert "prompt" in told.text
    unknown = operator.post("/admin/playground/run", data=fields | {"prompt": "x", "key": "99999"})
    assert "This key is not known" in unknown.text
    assert operator.get("/admin/playground?model=nothing").status_code == 404
    assert operator.post("/admin/playground/run", data={"model": "painter"}).status_code == 403, "no token"


def test_without_scripts_a_run_has_a_page_of_its_own(operator: httpx.Client) -> None:
    page = operator.post("/admin/playground/run", data=form(operator, model="painter"))
    assert page.status_code == 200
    assert "/admin/playground/runs/req_" in str(page.url)
    end = time.monotonic() + 90
    while "succeeded" not in page.text and time.monotonic() < end:
        time.sleep(0.1)
        page = operator.get(str(page.url))
    assert "<img src=" in page.text


def followed(client: httpx.Client, path: str) -> list[str]:
    """Follow a run to its end; answers all that its stream showed."""
    shown: list[str] = []
    with client.stream("GET", path) as stream:
        assert stream.status_code == 200, stream.read()
        event: list[str] = []
        for line in stream.iter_lines():
            if line.startswith("data:"):
                event.append(line[5:].removeprefix(" "))
            elif line.startswith("event: over"):
                return shown
            elif not line and event:
                shown.append("\n".join(event))
                event = []
    raise AssertionError("the stream ended before the run")


@pytest.fixture(scope="module")
def another(hall: System, operator: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Answer the same browser, whose requests come to another gateway."""
    log = tmp_path_factory.mktemp("another") / "gateway.log"
    with (
        second_gateway(hall, log) as beside,
        httpx.Client(base_url=beside.base_url, timeout=60.0, cookies=operator.cookies) as client,
    ):
        yield client


@pytest.mark.parametrize("model", ["scribe", "painter"])
def test_a_run_can_be_followed_through_another_gateway(
    operator: httpx.Client, another: httpx.Client, model: str
) -> None:
    """While it runs, and when it is over: both gateways show the same end."""
    answer = operator.post(
        "/admin/playground/run", data=form(operator, model=model), headers={"hx-request": "true"}
    ).text
    found = re.search(r'hx-sse:connect="((/admin/playground/runs/[^"]+)/live)"', answer)
    assert found is not None, answer
    there = followed(another, found[1])[-1]
    here = followed(operator, found[1])[-1]
    for shown in (there, here, another.get(found[2]).text):
        assert "succeeded" in shown
        assert re.search(r"Charged \$[0-9.]+ of at most \$[0-9.]+", shown)
        assert "curl" in shown
    said = re.compile(r'<div class="said[^"]*">(.*?)</div>|<img src="([^"?]+)', re.DOTALL)
    assert said.findall(there) == said.findall(here) != []


def test_a_request_that_is_no_run_is_not_shown_as_one(another: httpx.Client, hall: System) -> None:
    body = {"model": "scribe", "input": {"messages": [{"role": "user", "content": "hello"}]}}
    with hall.client() as client:
        made = client.post("/v1/requests", json=body, headers={"prefer": "wait=60"}).json()
    assert another.get(f"/admin/playground/runs/{made['id']}").status_code == 404
    assert another.get("/admin/playground/runs/req_" + "0" * 32).status_code == 404
    assert another.get("/admin/playground/runs/nonsense").status_code == 404


def test_a_file_goes_along_as_a_caller_would_send_it(operator: httpx.Client) -> None:
    fields = form(operator, model="painter", task="image-edit") | {"prompt": "redder"}
    answer = operator.post(
        "/admin/playground/quote",
        data=fields,
        files={"image": ("a.png", PNG, "image/png")},
        headers={"hx-request": "true"},
    )
    assert "At most" in answer.text, answer.text
    assert "data:image/png;base64,..." in answer.text, "the written call names the file, and does not hold it"


def test_the_form_has_what_the_task_needs_and_what_the_model_declares() -> None:
    parameters = {
        "size": Parameter(type="string", choices=("256x256", "512x512"), default="256x256", priced=True),
        "steps": Parameter(type="integer", minimum=1, maximum=50, default=20),
        "turbo": Parameter(type="boolean", default=True),
    }
    model = Model(name="m", tasks=("text-to-image",), description="", routes=(), parameters=parameters)
    fields = {field.name: field for field in fields_of(model, "text-to-image")}
    assert fields["prompt"].required
    assert (fields["size"].kind, fields["size"].priced) == ("choice", True)
    assert fields["steps"].attributes == {"step": "1", "min": "1", "max": "50"}
    assert (fields["turbo"].kind, fields["turbo"].value) == ("check", "1")


def test_a_call_is_written_so_that_nothing_in_it_ends_its_quotes() -> None:
    told = snippets("http://x", "m", "text-to-image", {"prompt": 'it\'s "so"', "n": 1, "fine": True})
    assert "it'\\''s" in told["curl"]
    ast.parse(told["Python"])
    assert '"fine": True' in told["Python"]
    assert '"fine": true' in told["JavaScript"]
