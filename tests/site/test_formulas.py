"""Formulas become MathML while the site is built; code, and dollar signs that are none of theirs, stay."""

from types import SimpleNamespace

import pytest

from tests.support.pages import hook

pytest.importorskip("latex2mathml", reason="needs the extra docs (make docs runs this test)")
pytest.importorskip("mkdocs", reason="needs the extra docs (make docs runs this test)")
pytestmark = pytest.mark.docs
formulas, lessons = hook("formulas"), hook("lessons")


def page(name: str) -> SimpleNamespace:
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


def test_a_lessons_formulas() -> None:
    content = "<p>$$ \\frac{a_i}{\\sqrt{2}} $$</p><p>Of $a &lt; b$ and <b>$c$</b>.</p>"
    written = formulas.on_page_content(content, page=page("lessons/x.py"))
    assert "$" not in written
    assert written.count("<math ") == 3
    assert written.count('display="block"') == 1
    assert "<mfrac><mrow><msub><mi>a</mi><mi>i</mi></msub></mrow><mrow><mrow><mo" in written
    assert "<mi>a</mi><mo>&#x0003C;</mo><mi>b</mi>" in written
    assert written.startswith("<p><math ")
    assert "</p><p>Of <math " in written


@pytest.mark.parametrize(
    "code",
    [
        "<pre><span>echo</span> $HOME $PATH</pre>",
        "<code>$HOME and $PATH</code>",
        '<a title="$HOME$">one</a>',
        "<script>`$${a}$$`</script>",
        "<style>$a$</style>",
        '<div class="highlight"><pre>cost = "$5" # $x$</pre></div>',
        "one $ alone, and $ another",
    ],
)
@pytest.mark.parametrize("name", ["x.md", "lessons/x.py"])
def test_code_stays(code: str, name: str) -> None:
    assert formulas.on_page_content(code, page=page(name)) == code


@pytest.mark.parametrize("formula", [r"\nosuchcommand{a}", r"\frac{a}", r"a^"])
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(formulas.PluginError, match=r"lessons/x\.py: no .*ormula"):
        formulas.on_page_content(f"<p>${formula}$</p>", page=page("lessons/x.py"))


def test_links_between_lessons_lead_to_what_is_built() -> None:
    scripts = "<!-- Load mathjax --><!-- End of mermaid configuration -->"
    content = '<a href="2_x.py">a</a><a href="../see.md#a">b</a><a href="https://x.org/a.py">c</a><a href="#md">d</a>'
    content += '<a href="painter.py">e</a>'  # a file that is not built
    built = lessons.on_page_content(scripts + content, page=page("lessons/1_x.py"))
    assert built == lessons.STYLE + (
        '<a class="md-button" href="1_x.ipynb" download>Open as notebook</a>\n'
        '<a href="2_x.html">a</a><a href="../see.html#a">b</a><a href="https://x.org/a.py">c</a><a href="#md">d</a>'
        '<a href="painter.py">e</a>'
    )
