"""The page at `/` in a browser: what it shows of a cut, a stream, an error; nothing comes from outside."""

from __future__ import annotations

import pytest
import server_browser

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(server_browser.find() is None, reason="needs Chromium"),
]
READY = "!document.getElementById('go').disabled"


@pytest.fixture
def page(server):
    with server_browser.Page(server.url + "/") as opened:
        opened.until("document.getElementById('model').options.length > 0")
        yield opened


def fill(page, **values):
    for name, value in values.items():
        page.run(f"document.getElementById('{name}').value = {value!r}")


def text(page, name):
    return page.run(f"document.getElementById('{name}').textContent")


def test_a_healed_and_constrained_answer(page):
    fill(page, prompt="x.re", kind="regex", source="turn|place", budget="20", heal="auto")
    page.run("document.getElementById('go').click()")
    page.until(READY)
    assert text(page, "text").split(" ")[0] in ("turn", "place") and text(page, "error") == ""
    assert text(page, "kept").endswith("re") and page.run("document.querySelectorAll('#kept .owed').length") == 1
    assert page.run("document.querySelectorAll('#kept .cut').length") == 1
    assert page.run("document.querySelectorAll('#next tr').length") > 0 and "%" in text(page, "next")
    page.run("document.querySelector('#answer .new').onmouseenter()")
    assert "state" in text(page, "facts") and "may end here" in text(page, "facts")


def test_the_place_in_a_schema(page):
    schema = '{"properties": {"n": {"enum": ["x"]}}, "required": ["n"], "additionalProperties": false, "type":"object"}'
    fill(page, prompt='{"n"', kind="json_schema", source=schema, prefill='{"n"', budget="30", heal="exact")
    page.run("document.getElementById('go').click()")
    page.until(READY)
    assert text(page, "text").replace(" ", "").startswith(':"x"}'), text(page, "error")
    places = page.run("[...document.querySelectorAll('#answer .token')].map(e => (e.onmouseenter(), "
                      "document.getElementById('facts').textContent)).join('|')")  # fmt: skip
    assert "/n" in places


def test_an_error_is_shown_and_nothing_comes_from_outside(page):
    fill(page, prompt="x", kind="regex", source="(")
    page.run("document.getElementById('cut').click()")
    page.until(READY)
    assert "unterminated" in text(page, "error") or "(" in text(page, "error")
    asked = page.run("performance.getEntriesByType('resource').map(e => e.name)")
    assert asked and all(name.startswith(page.run("location.origin")) for name in asked)
