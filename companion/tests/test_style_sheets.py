"""Style sheets of the site: unused rules are removed, and the sheets of a page are joined."""

import pytest

from companion.site.sphinx.style_sheets import Used, join_sheets, reduced

USED = Used({"shown", "also-shown"})
LINK = '<link rel="stylesheet" href="{}?v=1" />'


def loads(*scripts):
    """Return the tags that load scripts."""
    return "".join(f'<script defer src="{script}?v=1"></script>' for script in scripts)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (".shown{color:red}", True),
        (".lost{color:red}", False),
        (".lost .shown{color:red}", False),
        ("p,a:hover{color:red}", True),
        (".shown:not(.lost){color:red}", True),
        (":is(.shown,.lost) p{color:red}", True),
        ('a[href=".lost"]{color:red}', True),
        ("@media print{.shown{color:red}}", True),
        ("@media print{.lost{color:red}}", False),
        ("@font-face{font-family:lost}", False),
        ("@keyframes lost{from{color:red}}", True),
        ('.shown::after{content:"}.lost{"}', True),
    ],
)
def test_only_rules_for_unknown_classes_are_removed(rule, kept):
    assert reduced([rule], USED) == (rule if kept else "")


def test_rules_for_composed_classes_are_kept():
    assert reduced([".made-0{color:red} .mad{color:red}"], Used(set(), ("made-",))) == ".made-0{color:red}"


def test_unknown_selectors_are_removed_from_a_list():
    assert reduced([".lost,.shown, .also-shown {color:red}"], USED) == ".shown,.also-shown{color:red}"


def test_licences_are_kept_and_comments_are_not():
    sheet = "/*! a licence */ /* a comment */ p{color:red}"
    assert reduced([sheet], USED) == "/*! a licence */p{color:red}"


def test_classes_of_scripts_and_pages_are_kept(tmp_path):
    """Not those of a script that no page loads itself, such as the texts of the search."""
    (tmp_path / "page.js").write_text('node.classList.add("by-script", `composed-${name}`);')
    (tmp_path / "data.js").write_text('"words of a text that are lost in the search"')
    used = Used.on_site(tmp_path, [f'<p class="on-page">{loads("page.js")}', "<p class=unquoted>"])
    kept = ".by-script{color:red}.on-page{color:red}.unquoted{color:red}.composed-a{color:red}"
    assert reduced([f"{kept} .lost{{color:red}}"], used) == kept


def test_components_of_the_theme_that_no_page_has_are_removed(tmp_path):
    """Scripts of the theme name the classes of all components; a page or another script has those that are kept."""
    (tmp_path / "_static/scripts").mkdir(parents=True)
    (tmp_path / "_static/scripts/theme.js").write_text('"modal-open list-group-item popover-body tooltip"')
    (tmp_path / "_static/page.js").write_text('"popover-body"')
    used = Used.on_site(tmp_path, [f'<ul class="list-group">{loads("_static/scripts/theme.js", "_static/page.js")}'])
    kept = ".list-group-item{a:b}.popover-body{a:b}.tooltip{a:b}"
    assert reduced([f".modal-open{{a:b}}{kept}"], used) == kept


def test_unused_custom_properties_are_removed(tmp_path):
    """Also one that only an unused one refers to. A page, a script or the sheet may use a property."""
    (tmp_path / "page.js").write_text('style.setProperty("--by-script", 1);')
    site = Used.on_site(tmp_path, [f'<p style="right: var(--on-page)">{loads("page.js")}'])
    used = "--by-script:1;--on-page:2;--elsewhere:3;"
    unused = ';--lost:url(data:x;y,"}");--last:var(--only)'
    sheet = f'b{{top:var( --elsewhere, 0)}}p{{--only:4;{used}left:var(--own);--own:"--x:1;"{unused}}}'
    assert reduced([sheet], site) == f'b{{top:var( --elsewhere, 0)}}p{{{used}left:var(--own);--own:"--x:1;";}}'


def test_faces_that_no_rule_names_are_removed():
    faces = ["@font-face{font-family:Used;src:url(a)}", '@font-face{font-family:"Not used";src:url(b)}']
    assert reduced([*faces, "p{font-family:Used}"], Used({"p"})) == f"{faces[0]}p{{font-family:Used}}"


def test_the_sheets_of_a_page_are_joined_in_order(tmp_path):
    """Addresses in them still lead to the same files; all other sheets are removed."""
    (tmp_path / "_static/styles").mkdir(parents=True)
    (tmp_path / "_static/first.css").write_text('@import "basic.css";p{color:red}')
    (tmp_path / "_static/basic.css").write_text("b{color:red}")
    (tmp_path / "_static/styles/second.css").write_text("i{background:url(../fonts/x.woff)}u{background:url(data:x)}")
    (tmp_path / "_static/only.css").write_text("i{color:red}")
    links = [LINK.format(f"../_static/{name}") for name in ("first.css", "styles/second.css")]
    one, two = tmp_path / "book/a.html", tmp_path / "b.html"
    other = LINK.format("_static/only.css")
    pages = join_sheets(tmp_path, {one: f"<head>{links[0]}<meta>{links[1]}</head>", two: other})
    (joined,) = (tmp_path / "_static").glob("sheets-*.css")
    assert pages[one].count('rel="stylesheet"') == 1
    assert f"../_static/{joined.name}?v=" in pages[one]
    assert joined.read_text() == "b{color:red}p{color:red}i{background:url(fonts/x.woff)}u{background:url(data:x)}"
    assert {path.name for path in tmp_path.rglob("*.css")} == {joined.name, "only.css"}
    assert join_sheets(tmp_path, pages) == pages
