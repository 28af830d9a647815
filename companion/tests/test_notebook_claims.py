"""A notebook publishes claims that no figure shows, `claims.json`, which are treated as those of figures."""

import json
import re

import jsonschema
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from companion.build import publication_policy
from companion.figures import record as records
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.slicing import publishes_claims

BY_HAND = """\
# by hand: the mean of four numbers
import numpy as np

half = np.mean([0.2, 0.4, 0.6, 0.8])
print(half)
"""
MODULE = """\
from companion import Claims


def close(value):
    claim = Claims("toy", source="derived here")
    claim.equal("by-hand", "The mean is ½.", value, 0.5, within=1e-9, because="rounding", rejects=("it is one", 1))
    return claim
"""
CLAIMS = "figures/toy/claims.json"


@pytest.fixture(scope="module")
def by_hand(ran, tmp_path_factory):
    """A copy of a book that was run, whose notebook has a by-hand cell, publishes its number and quotes it."""
    clone = ran.copy_to(tmp_path_factory.mktemp("by_hand") / "clone")
    clone.write("clone/toy/by_hand.py", MODULE)
    hidden = "# the number by hand\nfrom clone.toy import by_hand\npublish.claims(by_hand.close(half))"
    clone.add_cells((BY_HAND, ["by-hand"]), (hidden, ["remove-cell"]))
    clone.replace("book/toy.ipynb", "{claim}`toy-rate`", "{claim}`toy-rate` and {claim}`toy-by-hand`")
    clone.succeed("run", "toy")
    clone.succeed("site")
    return clone


def page(clone, name):
    return (clone.project.site("laptop") / f"book/{name}.html").read_text(encoding="utf-8")


def test_the_claims_are_published(by_hand):
    record = store.read_claims(by_hand.project.published / "toy")
    assert (record.notebook, record.profile) == ("toy", "laptop")
    assert [claim.id for claim in record.claims] == ["toy-by-hand"]
    schema = records.json_schema(records.NotebookClaims)
    jsonschema.validate(json.loads((by_hand.root / CLAIMS).read_text(encoding="utf-8")), schema)
    assert store.names_in(by_hand.project.published / "toy") == ["toy_error"]
    assert [claim.id for claim in publication_policy.published_claims(by_hand.project)] == ["toy-rate", "toy-by-hand"]


def test_the_page_shows_the_code_and_the_number(by_hand):
    """The code is not folded, the printed output and the cell that publishes are not shown."""
    html = page(by_hand, "toy")
    text = re.sub(r"<[^>]*>", "", html)
    assert "half = np.mean([0.2, 0.4, 0.6, 0.8])" in text
    assert "publish.claims" not in text
    assert re.search(r'claims\.html#ledger-toy-by-hand">0\.5\N{NO-BREAK SPACE}', html)
    assert 'id="ledger-toy-by-hand"' in page(by_hand, "claims")
    assert "2 claims" in page(by_hand, "claims")


def test_a_rebuild_keeps_the_published_claims(by_hand):
    """They are replaced if a word changes, and restored if they are lost."""
    before = (by_hand.root / CLAIMS).read_bytes()
    assert publication_policy.differing(by_hand.project, "toy").replaced == []
    (by_hand.root / CLAIMS).write_bytes(before.replace("½".encode(), b"a half"))
    assert publication_policy.differing(by_hand.project, "toy").replaced == ["claims"]
    (by_hand.root / CLAIMS).unlink()
    assert publication_policy.publish_figures(by_hand.project, "toy").replaced == ["claims"]
    assert (by_hand.root / CLAIMS).read_bytes() == before


def test_differences_are_reported(by_hand, tmp_path):
    """By `compare`, and by `verify`, which computes the claims again."""
    other = by_hand.copy_to(tmp_path / "other")
    other.replace(CLAIMS, '"measured": 0.5', '"measured": 0.7')
    finished = other.companion("compare", str(by_hand.project.published), str(other.project.published))
    assert "claim 'toy-by-hand', measured: 0.5 and 0.7" in " ".join(finished.stdout.split())
    finished = other.companion("verify", "toy")
    assert finished.returncode != 0
    assert "toy/claims" in finished.stdout
    assert "claim toy-by-hand: measured" in " ".join(finished.stdout.split())


def test_sweeps_and_the_pages_of_custom_runs_have_the_claims(by_hand, tmp_path):
    other = by_hand.copy_to(tmp_path / "other")
    for command in ("run", "sweep"):  # which finds the result of the run
        other.succeed(command, "toy", "-p", "seed=1")
    claims = pd.read_csv(other.project.sweeps / "toy-seed/claims.csv", keep_default_na=False)
    assert dict(zip(claims["claim"], claims["figure"], strict=True)) == {"toy-rate": "toy_error", "toy-by-hand": ""}
    (run,) = other.project.runs.iterdir()
    section = BeautifulSoup((run / "index.html").read_text(encoding="utf-8"), "html.parser").select_one("#claims")
    assert "The mean is ½. derived here" in section.text
    assert "published 0.5 ✓" in section.text


def test_a_failing_claim_publishes_nothing(by_hand, tmp_path):
    other = by_hand.copy_to(tmp_path / "other")
    other.replace("book/toy.ipynb", "0.8])", "0.9])")
    before = other.tree("figures")
    finished = other.companion("run", "toy")
    assert finished.returncode == 3
    assert "toy-by-hand" in finished.stderr
    assert other.tree("figures") == before


def test_a_run_of_one_figure_needs_no_claims(by_hand, tmp_path):
    """The by-hand cell and the claims lead to no figure."""
    notebook = Notebook.named(by_hand.project, "toy")
    cells = notebook.only("toy_error")["cells"]
    assert not publishes_claims([cell["source"] for cell in cells if cell["cell_type"] == "code"])
    assert not any("np.mean" in cell["source"] for cell in cells)
    assert publishes_claims(notebook.code)
    by_hand.copy_to(tmp_path / "other").succeed("run", "toy", "--figure", "toy_error")


def test_the_rules_of_by_hand_cells_are_checked(by_hand, omissions, tmp_path):
    other = by_hand.copy_to(tmp_path / "other")
    assert omissions(other.project) == []
    other.rewrite_cell("# by hand", "def mean(x):\n    return x\n" + "half = 0.5\n" * 12)
    faults = " ".join(omissions(other.project))
    for fault in ("at most 12 lines", "defines no function", "prints its number"):
        assert fault in faults
