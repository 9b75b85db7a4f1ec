import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.display.answer import panel_data
from regard.display.panels import Column, Table
from regard.errors import RegardError
from regard.text.quoting import text_with_control_pictures
from regard.text.tokens import Token
from regard.web import html_file
from regard.web.html_file import html_parts, html_security_policy, readable, script_json, script_text, write_page
from regard.web.page import Page, text_data
from tests.support.browser import BUILT
from tests.support.web_pages import SCRIPT, Read

pytestmark = pytest.mark.usefixtures("stand_in")
NASTY = "</script><script>alert(1)</script><!-- <b onclick='x'>&amp; \x1b[31mred\x1b[0m \u2028\u2029 \x00 $x^2$ \ud800"


def nasty() -> Page:
    page = Page(NASTY, findings=[NASTY], status=[NASTY])
    page.add_text(text_data(NASTY, NASTY, []))
    return page


def test_nothing_in_a_text_is_an_element_or_ends_one(tmp_path: Path) -> None:
    write_page(nasty(), tmp_path / "a.html")
    read = Read(tmp_path / "a.html")
    tags = [tag for tag, _, _ in read.parsed.elements]
    assert tags.count("script") == 2  # the data and the program
    assert "b" not in tags
    assert all(not name.startswith("on") for _, attributes, _ in read.parsed.elements for name in attributes)
    assert read.data["texts"][0]["text"] == text_with_control_pictures(NASTY)
    assert read.data["findings"] == [text_with_control_pictures(NASTY)]
    shown = "".join(read.parsed.text)
    assert shown.count("</script><script>alert(1)</script><!-- <b onclick='x'>&amp; ␛[31mred␛[0m") == 3
    assert "\x1b" not in read.html
    assert "\x00" not in read.html


def test_json_may_stand_in_a_script() -> None:
    text = script_json({"a": "<>&\u2028\u2029é</script><!--"})
    assert text == '{"a":"\\u003c\\u003e\\u0026\\u2028\\u2029\\u00e9\\u003c/script\\u003e\\u003c!--"}'
    with pytest.raises(ValueError):
        script_json({"a": float("nan")})


def test_the_program_is_the_one_that_the_policy_lets_run(tmp_path: Path) -> None:
    write_page(nasty(), tmp_path / "a.html")
    read = Read(tmp_path / "a.html")
    programs = [text for attributes, text in read.parsed.scripts() if "type" not in attributes]
    (program,) = programs
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    (meta,) = [a for tag, a, _ in read.parsed.elements if tag == "meta" and a.get("http-equiv")]
    assert meta["http-equiv"] == "Content-Security-Policy"
    assert meta["content"] == html_security_policy(SCRIPT)
    parts = dict(part.strip().split(" ", 1) for part in html_security_policy(SCRIPT).split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == f"'sha256-{digest}'"
    assert parts["worker-src"] == "blob:"
    assert parts["img-src"] == "data: blob:"
    assert not re.search(r"(?:src|href)=", read.html.replace(program, ""))
    types = {a["type"] for a, _ in read.parsed.scripts() if "type" in a}
    assert types <= {"application/json", "text/plain"}


def test_the_program_comes_before_the_numbers_that_the_first_view_does_not_need(tmp_path: Path) -> None:
    page = nasty()
    numbers = [page.numbers.add(np.full(3, n, np.int32)) for n in range(6)]
    page.calls = [{"query": numbers[2 * n], "small": {"values": numbers[2 * n + 1]}} for n in range(3)]
    page.opening["call"] = 1
    write_page(page, tmp_path / "a.html")
    names = [attributes.get("id", "program") for attributes, _ in Read(tmp_path / "a.html").parsed.scripts()]
    first = ["regard-data", "numbers-1", "numbers-2", "numbers-3", "numbers-5"]
    assert names == [*first, "program", "numbers-0", "numbers-4"]


def test_a_program_with_html_in_its_strings_is_spelled_otherwise() -> None:
    assert script_text("a = '</script><!-- <SCRIPT>' + (1 < 2)") == (
        "a = '\\x3C/script>\\x3C!-- \\x3CSCRIPT>' + (1 < 2)"
    )


def test_a_style_sheet_that_would_end_its_element_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_file, "built_program", lambda _: ("", "a { content: '</STYLE>' }"))
    with pytest.raises(RegardError, match="style sheet holds </style"):
        write_page(nasty(), tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_without_javascript_it_says_what_was_found(tmp_path: Path) -> None:
    page = Page("Two banks", findings=["“bank” looks at “river”."])
    write_page(page, tmp_path / "a.html")
    read = Read(tmp_path / "a.html")
    shown = " ".join("".join(read.parsed.text).split())
    for line in ("Two banks", "“bank” looks at “river”.", "This page needs JavaScript."):
        assert line in shown, line
    assert [a["id"] for tag, a, _ in read.parsed.elements if tag == "div"] == ["regard-page"]
    assert read.html.index('id="regard-page"') < read.html.index('id="regard-data"')
    assert {"html", "head", "title", "body", "noscript", "h1"} <= {tag for tag, _, _ in read.parsed.elements}


def test_control_characters_have_pictures() -> None:
    assert readable("a\x1b\x00\x7f\n\t<") == "a␛␀␡\n\t&lt;"


@given(st.text(), st.lists(st.text(), min_size=1))
def test_nothing_of_a_text_is_unseen_or_turns_what_is_around_it(text: str, names: list[str]) -> None:
    text += "\u202eriver\u2066\x85\x9b31m\u200f"
    page = Page(text, findings=[f"“{text}” attends most to “{names[0]}”."])
    page.add_text(text_data(text, text, [Token(0, each, 0, len(text), None, False) for each in [text, *names]]))
    page.panels = [panel_data(Table(name=text, title=text, columns=[Column(text)], rows=[[each] for each in names]))]
    made = b"".join(html_parts(page)).decode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", made)
    data = json.loads(made.split('id="regard-data">')[1].split("</script>")[0])
    shown = data["texts"][0]["text"]
    assert len(shown) == len(text)  # so that each token has the place that it had
    assert shown.endswith("␦river␦␦␦31m␦")
    every = "".join(
        [data["title"], *data["findings"], *data["texts"][0]["tokens"]["text"], str(data["panels"][0]["title"])]
    )
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown + every)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot write"):
        write_page(nasty(), tmp_path / "none" / "a.html")
    page = nasty()
    page.opening["call"] = float("inf")  # which JSON does not have
    (tmp_path / "a.html").write_text("before")
    with pytest.raises(ValueError):
        write_page(page, tmp_path / "a.html")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.html", "before")]
    size = write_page(nasty(), tmp_path / "a.html")
    assert size == (tmp_path / "a.html").stat().st_size


def test_a_page_that_is_not_built_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_file, "BUILT", tmp_path)
    with pytest.raises(RegardError, match=r"^the page is not built: run make page \(panels\.js is not there; .*\)$"):
        html_file.check_page_built()
    (tmp_path / "panels.js").write_text("let a = 'ö'", encoding="utf-8")
    with pytest.raises(RegardError, match=r"panels\.css is not there"):
        html_file.built_program(html_file.bundle_of(Page("")))
    (tmp_path / "panels.css").write_text("b {}", encoding="utf-8")
    assert html_file.built_program(html_file.bundle_of(Page(""))) == ("let a = 'ö'", "b {}")


@pytest.mark.parametrize(
    ("has", "name"),
    [
        ({}, "panels"),
        ({"panels": [{"kind": "table"}, {"kind": "heat"}]}, "panels"),
        ({"panels": [{"kind": "heat", "over": {}}, {"kind": "heat", "over": {"titles": ["a"]}}]}, "weights"),
        ({"calls": [{}]}, "weights"),
        ({"calls": [{}], "steps": [{}], "comparisons": [{}], "panels": [{"kind": "bars"}]}, "weights"),
        ({"calls": [{}], "panels": [{"kind": "paths"}]}, "paths"),
        ({"panels": [{"kind": "paths"}]}, "paths"),
        ({"calls": [{}], "panels": [{"kind": "paths"}, {"kind": "heat"}]}, "page"),
        ({"calls": [{}], "overview": {"kind": "pair"}}, "page"),
        ({"calls": [{}], "overview": {"kind": "image"}}, "weights"),
        ({"calls": [{}], "overview": {"kind": "writing"}}, "page"),
    ],
)
def test_a_page_takes_the_smallest_bundle_that_has_all_its_views(has: dict[str, Any], name: str) -> None:
    assert html_file.bundle_of(Page("", **has)) == name


@pytest.mark.parametrize("name", [f"{name}.js" for name in (*html_file.BUNDLES, "widget", "live")])
def test_a_built_file_carries_the_licences_of_what_is_in_it(name: str) -> None:
    file = BUILT.with_name(name)
    if not file.exists():
        pytest.skip("the page is not built: make page")
    head, _, _ = file.read_text("utf-8").partition("*/")
    assert head.startswith("/*! This file carries code of\n"), "make page builds it anew"
    assert "svelte" in head.split()
    assert "Permission is hereby granted, free of charge" in head  # MIT
