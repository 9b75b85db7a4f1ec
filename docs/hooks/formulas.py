"""Write the formulas of every page as MathML while the site is built: no script draws them, and none is loaded.

In plain pages arithmatex has found them; in the pages made of lessons they stand between dollar signs, as in any
notebook. Code, what code printed, and dollar signs in plain pages stay as they are.
"""

import html
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">(?:\\\((?P<inline>.+?)\\\)|\\\[(?P<block>.+?)\\\])</(?P=tag)>', re.DOTALL
)
CODE = re.compile(r"(<(pre|code|script|style|clipboard-copy)\b.*?</\2>|<[^>]*>)", re.DOTALL)
BETWEEN_DOLLARS = re.compile(r"\$\$(?P<block>[^$]+)\$\$|\$(?P<inline>[^\s$](?:[^$]*[^\s$])?)\$")
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
# Chromium draws no root without a font for mathematics, which many machines lack: instead a sign, and a line above.
SIGN = '<mo stretchy="false" lspace="0" rspace="0">√</mo>'
ROOT = f'<mrow>{SIGN}<mrow style="border-top: .06em solid; padding: .05em .05em 0">'
LETTERS = re.compile(r'<mrow>((?:<mi mathvariant="normal">[^<]+</mi>){2,})</mrow>')


def mathml(latex: str, *, block: bool) -> str:
    """Write a formula as MathML.

    Raises:
        PluginError: it is not LaTeX, or holds a command that is not known.
    """
    try:
        found = convert(latex.strip(), display="block" if block else "inline")
        parts = {(element.tag.split("}")[1], len(element)) for element in ElementTree.fromstring(found).iter()}
    except Exception as error:  # latex2mathml has errors of many kinds for what is no LaTeX
        raise PluginError(f"no formula: {latex.strip()!r} ({type(error).__name__})") from error
    # it hands on commands that it does not know, and leaves out arguments that are not there
    if "\\" in found or any(PARTS.get(tag, count) != count for tag, count in parts):
        raise PluginError(f"no MathML for the formula {latex.strip()!r}")
    found = LETTERS.sub(lambda word: f"<mi>{re.sub('<[^>]*>', '', word[1])}</mi>", found)  # \mathrm{softmax}: one name
    found = found.replace("<msqrt>", ROOT).replace("</msqrt>", "</mrow></mrow>")
    return found.replace('"negativethinmathspace"', '"-0.167em"')  # browsers know lengths only


def marked(page: str) -> str:
    """Replace what arithmatex marked as a formula."""
    return MARKED.sub(_formula, page)


def between_dollars(page: str) -> str:
    """Replace what stands between dollar signs outside code."""
    parts = CODE.split(page)  # text, tag or code, its name or None, text, ...
    parts[0::3] = [BETWEEN_DOLLARS.sub(_formula, text) for text in parts[0::3]]
    return "".join(part for n, part in enumerate(parts) if n % 3 != 2)


def _formula(found: re.Match[str]) -> str:
    block = found["block"] is not None
    return mathml(html.unescape(found["block"] if block else found["inline"]), block=block)


def on_page_content(page_html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the content of each page."""
    try:
        return (between_dollars if page.file.src_uri.endswith(".py") else marked)(page_html)
    except PluginError as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from error
