"""Pages without what no reader needs."""

from companion.site.sphinx import postprocess, script_files


def test_indents_go_except_in_preformatted_text():
    page = "<p>\n    <b>one</b> two\n  three</p>\n<pre>\n  <i>four</i>\n</pre>\n\n  <p>"
    slim = "<p>\n<b>one</b> two\n  three</p>\n<pre>\n  <i>four</i>\n</pre>\n<p>"
    assert postprocess.without_indents(page) == slim


def test_scripts_of_every_page_and_of_a_chapter_are_joined(tmp_path):
    """They run in the same order. Tables, and scripts of some pages such as that of the gallery, stay alone. One script
    at the end, which waits for the style sheet, writes them all.
    """
    static, page = tmp_path / "_static", tmp_path / "book/one.html"
    chapter = [f"chapters/lab/{name}.js" for name in ("tables/t", "c", "d")]
    files = ["a.js", chapter[0], "b.js", *chapter[1:], "png.js", "last/e.js"]
    for file in files:
        (static / file).parent.mkdir(parents=True, exist_ok=True)
        (static / file).write_text(f"// {file}", encoding="utf-8")
    text = "".join(f'<script defer="defer" src="../_static/{file}?v=1"></script>\n' for file in files)
    joined = script_files.join_scripts(tmp_path, {page: text})
    shown = [static / source.partition("_static/")[2] for source in script_files.SCRIPT.findall(joined[page])]
    content = [script.read_text(encoding="utf-8").split("\n;\n") for script in shown]
    assert [[line.strip() for line in lines] for lines in content] == [
        ["// a.js", "// b.js", "// last/e.js"],
        ["// chapters/lab/tables/t.js"],
        ["// chapters/lab/c.js", "// chapters/lab/d.js"],
        ["// png.js"],
    ]
    assert sorted(static.rglob("*.js")) == sorted(shown)
    assert joined[page].count("<script") == len(shown) + 1
    assert joined[page].endswith("')</script>\n")
    assert script_files.join_scripts(tmp_path, joined) == joined
