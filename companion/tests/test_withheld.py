"""A claim can be withheld with a reason: every list of claims shows it, and it is neither held nor failed."""

import json
import re

import jsonschema
import pandas as pd
import pytest

from companion import Claims, Numbers, Table
from companion.figures import record as records
from companion.figures import store
from companion.figures.record import WithheldClaim
from companion.figures.schema import Column
from companion.project.theorem_blocks import pages_quoting

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
REASON = "$1/L$ needs $L^2$ repeats."
SHOWN = "not claimed here: 1/L needs L2 repeats"  # without markup
SHORT = WithheldClaim(id="a-rate", statement="It falls.", source="[A, Lemma 1]", reason="short", box="b")


def withhold(clone):
    """Withhold the claim of toy unless `seed` is 1: the measured value of the claim plays no part."""
    clone.replace(CODE, "        rejects=", f"        requires=(False, {REASON!r}),\n        rejects=")


def text_of(page):
    """Return the text of an HTML page without markup."""
    return " ".join(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")).split())


def test_numbers_tell_claims_and_withheld_claims_apart():
    claims = Claims("a", source="[A, Lemma 1]", box="b")
    claims.at_most("bound", "It is small.", 0.5, 1, because="the lemma")
    claims.at_most("rate", "It falls.", 2, 1, because="the lemma", requires=(False, "short"))
    table = Table(pd.DataFrame({"x": [1]}), {"x": Column("abscissa")})
    numbers = Numbers(table, claims)
    assert ([claim.id for claim in numbers.made], numbers.withheld) == (["a-bound"], [SHORT])
    with pytest.raises(ValueError, match="rate"):
        Numbers(table, (*claims, SHORT))


def test_a_record_without_withheld_claims_is_written_as_before(ran_clone):
    """The field is in the JSON only if it is not empty, so that no published file changes."""
    folder = ran_clone.project.published / "toy"
    before, record = (folder / f"{FIGURE}.json").read_bytes(), store.read_record(folder, FIGURE)
    assert "withheld" not in json.loads(before)
    for withheld in ((SHORT,), ()):
        store.write_record(folder, record.model_copy(update={"withheld": withheld}))
        jsonschema.validate(json.loads((folder / f"{FIGURE}.json").read_text()), records.json_schema())
        assert store.read_record(folder, FIGURE).withheld == withheld
    assert (folder / f"{FIGURE}.json").read_bytes() == before


def test_the_default_profile_refuses_to_withhold_a_claim_that_a_page_quotes(clone):
    withhold(clone)
    finished = clone.companion("run", "toy")
    assert finished.returncode == 3
    said = " ".join(finished.stderr.split())
    assert "toy.ipynb quotes the claim 'toy-rate' by a role, but it is not claimed here: 1/L needs L² repeats." in said
    assert not (clone.project.published / "toy").exists()


def test_a_custom_run_shows_the_reason(clone):
    """On its page, in the terminal and in the notebook; the run succeeds, and no claim is counted."""
    withhold(clone)
    output = clone.succeed("run", "toy", "-p", "seed=1")
    assert "1 figure, 0 claims hold" in output
    assert "– toy-rate: not claimed here: 1/L needs L² repeats." in output
    (folder,) = clone.project.runs.iterdir()
    page = text_of(folder / "index.html")
    assert SHOWN.replace("L2", "L²") in page
    assert "This figure has no claim" not in page
    assert "not claimed here: 1/L needs L² repeats" in (folder / "executed/toy.ipynb").read_text(encoding="utf-8")


def test_the_site_shows_the_reason_and_refuses_a_quotation(clone):
    """The reason is below the figure and in the ledger; a page that quotes the claim stops the build."""
    withhold(clone)
    clone.replace("book/toy.ipynb", "{claim}`toy-rate`", "one")
    clone.succeed("run", "toy")
    clone.succeed("site")
    pages = clone.project.site("laptop") / "book"
    for page in ("toy", "claims"):
        assert SHOWN in text_of(pages / f"{page}.html"), page
    assert "1 not claimed here" in text_of(pages / "toy.html")
    assert "0 claims, 1 not claimed here" in text_of(pages / "claims.html")
    clone.replace("book/index.md", "Every figure", "It is {claim}`toy-rate`. Every figure")
    finished = clone.companion("site")
    assert finished.returncode != 0
    said = " ".join(finished.stderr.split())
    assert "quotes the claim 'toy-rate', which is not claimed here: 1/L needs L² repeats" in said


@pytest.mark.parametrize("role", ["claim", "claim-count", "claim-quiet"])
def test_a_page_that_quotes_a_claim_is_found(clone, role):
    """A longer identifier is another claim."""
    clone.write("book/more.md", f"# More\n\nIt is {{{role}}}`rate`, not {{{role}}}`rate-2`.\n")
    assert pages_quoting(clone.project, "rate") == ["more.md"]
    assert pages_quoting(clone.project, "rat") == []
