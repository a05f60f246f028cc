"""How pages are written: escaping, formats, parts for htmx, cards that fail alone, changes that are asked for first."""

import re

import pytest

from gateway.admin.site.jump import target_of
from gateway.admin.site.nav import ADMIN_PLACES, OWNER_PLACES
from gateway.admin.site.templates import Nonces
from tests.admin.conftest import SiteHouse, token_of

HTMX = {"hx-request": "true"}


async def test_a_name_that_is_a_script_is_shown_as_text(house: SiteHouse) -> None:
    async with house.operator() as client:
        for path in ("/admin/sample", "/admin/sample/2/stop"):
            page = await client.get(path)
            assert "<script>alert(1)</script>" not in page.text
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text


async def test_only_tags_of_our_own_get_the_pages_nonce(house: SiteHouse) -> None:
    async with house.operator() as client:
        page = await client.get("/admin/sample")
        nonce = re.search(r"'nonce-([^']+)'", page.headers["content-security-policy"])
        assert nonce is not None
        asking = re.findall(r"<[^>]*\shx-get=[^>]*>", page.text)
        assert asking
        assert all(f'hx-nonce="{nonce[1]}"' in tag for tag in asking)
        assert f'<script nonce="{nonce[1]}"' in page.text


def test_the_nonce_is_written_into_templates_and_never_into_what_is_put_there() -> None:
    stamp = Nonces.preprocess
    assert stamp(None, '<a hx-get="/x">{{ name }}</a>', "x") == (  # type: ignore[arg-type]
        '<a hx-get="/x" hx-nonce="{{ frame.nonce }}">{{ name }}</a>'
    )
    assert stamp(None, "<a href='{{ a > b }}' hx-get='x'>", "x").count("hx-nonce") == 1  # type: ignore[arg-type]
    assert stamp(None, '<p title="a hx-get=1">', "x") == '<p title="a hx-get=1">'  # type: ignore[arg-type]


async def test_what_htmx_asks_for_is_a_part_of_the_same_page(house: SiteHouse) -> None:
    async with house.operator() as client:
        main = await client.get("/admin/sample", headers={**HTMX, "hx-target": "main#main"})
        assert main.text.lstrip().startswith("<title>Sample")
        assert "<html" not in main.text
        assert "Spend per hour" in main.text
        dialog = await client.get("/admin/sample/0/stop", headers={**HTMX, "hx-target": "div#dialog-body"})
        assert 'id="dialog-title">Stop production' in dialog.text
        assert "<html" not in dialog.text
        assert "<nav" not in dialog.text


async def test_one_card_that_takes_too_long_says_so_alone(house: SiteHouse) -> None:
    async with house.operator() as client:
        page = await client.get("/admin/sample")
        assert page.status_code == 200
        assert "Took longer than 50 ms. Try a shorter range." in page.text
        assert page.text.count('class="failed"') == 1
        assert re.search(r"Page id <code>page_[0-9a-f]{16}", page.text)
        assert "$131.40" in page.text


async def test_every_page_is_there_as_csv_and_json(house: SiteHouse) -> None:
    async with house.operator() as client:
        table = await client.get("/admin/sample.csv")
        assert table.headers["content-type"].startswith("text/csv")
        assert table.text.splitlines()[:2] == ["name,spend_nanos", "production,84213440000"]
        data = await client.get("/admin/sample.json")
        assert data.json()["rows"][0]["spend"] == 84_213_440_000
        assert (await client.get("/admin/sample?format=csv")).text == table.text
        assert (await client.get("/admin/sample?format=pdf")).status_code == 400
    async with house.client() as stranger:
        refused = await stranger.get("/admin/sample.json")
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "sign_in_needed"


async def test_a_change_is_asked_for_typed_done_and_told(house: SiteHouse) -> None:
    async with house.operator("billing") as client:
        asked = await client.get("/admin/sample/0/stop")
        assert "It was used 1,204 times today" in asked.text
        token = token_of(asked.text)
        wrong = await client.post("/admin/sample/0/stop", data={"csrf_token": token, "confirm_name": "x"})
        assert wrong.status_code == 422
        assert 'aria-invalid="true"' in wrong.text
        fields = {"csrf_token": token, "confirm_name": "production"}
        done = await client.post("/admin/sample/0/stop", data=fields)
        assert (done.status_code, done.headers["location"]) == (303, "/admin/sample")
        told = await client.get("/admin/sample")
        assert "production is stopped." in told.text
        assert 'href="/admin/audit/7"' in told.text
        assert "production is stopped." not in (await client.get("/admin/sample")).text


async def test_a_toast_of_somebody_elses_making_is_not_shown(house: SiteHouse) -> None:
    async with house.operator() as client:
        client.cookies.set("faregate_toast", "eyJ0ZXh0IjoiaGkifQ.AAAA", path="/admin")
        assert "data-toast data-tone" not in (await client.get("/admin/sample")).text


async def test_htmx_is_led_on_by_a_header(house: SiteHouse) -> None:
    async with house.operator() as client:
        token = token_of((await client.get("/admin/sample/0/stop")).text)
        fields = {"confirm_name": "production"}
        done = await client.post("/admin/sample/0/stop", data=fields, headers={**HTMX, "x-csrf-token": token})
        assert (done.status_code, done.headers["hx-redirect"]) == (200, "/admin/sample")
    async with house.client() as stranger:
        out = await stranger.get("/admin/sample", headers=HTMX)
        assert (out.status_code, out.headers["hx-redirect"]) == (401, "/admin/sign-in")


async def test_who_may_not_sees_the_action_closed_with_its_reason(house: SiteHouse) -> None:
    async with house.operator("viewer") as client:
        page = await client.get("/admin/sample")
        assert re.search(
            r"<button[^>]*disabled[^>]*title=\"This needs the role billing or owner; yours is viewer", page.text
        )
        refused = await client.get("/admin/sample/0/stop")
        assert refused.status_code == 403
        assert "This needs the role billing or owner; yours is viewer." in refused.text


async def test_the_address_holds_the_period_and_links_take_it_along(house: SiteHouse) -> None:
    async with house.operator() as client:
        page = await client.get("/admin/sample?range=7d&tz=Europe/Berlin&q=x&sort=name")
        assert "Last 7 days" in page.text
        assert 'href="/admin/models?range=7d&amp;tz=Europe%2FBerlin"' in page.text
        assert 'href="/admin/sample?range=7d&amp;tz=Europe%2FBerlin&amp;q=x&amp;sort=-name"' in page.text
        wrong = await client.get("/admin/sample?tz=Atlantis")
        assert wrong.status_code == 400
        assert "name of a time zone" in wrong.text


async def test_the_bare_address_leads_to_the_dashboard_and_files_are_kept_for_good(house: SiteHouse) -> None:
    async with house.client() as client:
        assert (await client.get("/")).headers["location"] == "/admin"
        page = await client.get("/admin/sign-in")
        for address in re.findall(r'(?:href|src)="(/assets/[^"#]+)"', page.text):
            file = await client.get(address)
            assert file.status_code == 200, address
            assert "immutable" in file.headers["cache-control"]
            assert file.headers["x-content-type-options"] == "nosniff"
        assert (await client.get("/assets/app.js")).status_code == 404
        assert (await client.get("/assets/..%2f..%2fsettings.py")).status_code == 404


@pytest.mark.parametrize(
    ("text", "led_to"),
    [
        ("req_0190a00000007000800000000000abcd", "/admin/requests/req_0190a00000007000800000000000abcd"),
        ("req_0190a000-0000-7000", "/admin/requests?id=req_0190a000-0000-7000"),
        ("  books ", "/admin/books"),
        ("fg_live_abcdEFGHijklmnop", "/admin/keys?q=fg_live_abcd"),
        ("evt_0190a00000007000", "/admin/webhooks?event=evt_0190a00000007000"),
        ("qwen/tiny chat", "/admin/models?q=qwen%2Ftiny%20chat"),
        ("//evil.example", "/admin/models?q=%2F%2Fevil.example"),
    ],
)
def test_anything_can_be_jumped_to(text: str, led_to: str) -> None:
    assert target_of(text, ADMIN_PLACES, owner=False) == led_to


def test_an_owner_jumps_within_their_own_pages() -> None:
    assert target_of("req_0190a00000007000", OWNER_PLACES, owner=True) == "/usage/requests/req_0190a00000007000"
    assert target_of("anything", OWNER_PLACES, owner=True) == "/usage"
