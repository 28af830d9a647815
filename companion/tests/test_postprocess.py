"""Pages without what no reader needs."""

from companion.site.sphinx import postprocess


def test_indents_go_except_in_preformatted_text():
    page = "<p>\n    <b>one</b> two\n  three</p>\n<pre>\n  <i>four</i>\n</pre>\n\n  <p>"
    slim = "<p>\n<b>one</b> two\n  three</p>\n<pre>\n  <i>four</i>\n</pre>\n<p>"
    assert postprocess.without_indents(page) == slim
