"""The record of a figure: one schema, written and read by one module; records of the earlier format are converted."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from companion.figures import record as records
from companion.figures import store
from companion.figures.claims import Claims
from companion.figures.record import Alternative, ColumnRecord, FigureRecord, RunRecord
from companion.io.errors import UserError
from companion.site.sphinx.downloads import copy_files

ROOT = Path(__file__).resolve().parents[2]


def only(form, *arguments, **options):
    """Return a claim of this form of the builder."""
    claims = Claims("a", source="derived here")
    getattr(claims, form)("claim", *arguments, **options)
    (claim,) = claims
    return claim


NUMBERS = {"within": 0.1, "because": "the lemma", "std_error": 0.02, "rejects": ("it rises", 2.0)}
CLAIM = only("equal", "It falls.", 1.0, 1.02, box="rate", **NUMBERS)
RUN = RunRecord(
    schema_version=1,
    figure="falling",
    notebook="toy",
    profile="laptop",
    parameters={"seed": 0, "lengths": [1, 2]},
    seed=0,
    columns={"x": ColumnRecord(meaning="abscissa", kind="number")},
    claims=(CLAIM,),
    steps=("publish(falling, x)",),
    functions=("papers.toy.falling.numbers",),
    sources=("papers/toy/falling.py",),
)
RECORD = FigureRecord.of_run(RUN, caption="It falls.", alt="A line.", picture="12ab", files={".csv": "34cd"})


def edited(**changes):
    """Return the JSON of the record with `changes` of its claim."""
    content = json.loads(json.dumps(records.dump(RECORD)))
    content["claims"][0] |= changes
    return json.dumps(content)


def test_a_record_is_read_as_it_was_written(tmp_path):
    store.write_record(tmp_path, RECORD)
    assert store.read_record(tmp_path, "falling") == RECORD
    assert json.loads((tmp_path / "falling.json").read_text(encoding="utf-8"))["schema_version"] == 1


def test_a_record_of_a_run_has_no_caption_and_no_files(tmp_path):
    store.write_record(tmp_path, RUN)
    assert store.read_run_record(tmp_path, "falling") == RUN
    with pytest.raises(UserError, match="is not the record of a figure"):
        store.read_record(tmp_path, "falling")


CONTENT = records.dump(RECORD)
WITHOUT_ALT = {name: value for name, value in CONTENT.items() if name != "alt"}
# Missing keys, unknown keys, other types and unknown versions.
INVALID = ["", "[]", "{}", '{"claims": 1}', '{"claims": [{}]}', '{"claims": []}', '{"schema_version": 1}']
INVALID += [edited(note="more"), edited(measured="1.0"), edited(relation="<"), edited(holds=1)]
INVALID += [json.dumps(content) for content in (CONTENT | {"schema_version": 2}, WITHOUT_ALT)]


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_record_is_refused(tmp_path, text):
    (tmp_path / "falling.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is not the record of a figure"):
        store.read_record(tmp_path, "falling")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 0.1, 1e300])
def test_numbers_that_json_lacks_are_written_as_text(tmp_path, value):
    claim = CLAIM.model_copy(update={"measured": float(value)})
    record = RECORD.model_copy(update={"claims": (claim,)})
    store.write_record(tmp_path, record)
    assert store.read_record(tmp_path, "falling") == record
    written = json.loads((tmp_path / "falling.json").read_text(encoding="utf-8"))["claims"][0]["measured"]
    assert written == (value if np.isfinite(value) else str(value))


def test_a_claim_is_recorded_with_six_digits_and_its_verdict():
    """The verdict is computed from the unrounded numbers."""
    options = {"within": 0.0, "because": "the lemma", "std_error": 1e-9 / 3, "rejects": ("b", 2 / 3)}
    record = only("equal", "A.", 1 / 3, 1 / 3 + 1e-9, **options)
    assert (record.measured, record.expected, record.std_error) == (0.333333, 0.333333, 3.33333e-10)
    assert record.alternative == Alternative(theory="b", measured=0.666667)
    assert not record.holds
    assert record.accepts(record.measured)
    assert record.catches_alternative


def test_a_claim_without_alternative_is_recorded(tmp_path):
    """`catches_alternative` is null then; a claim is broken only if it is false."""
    claim = only("at_most", "A.", 0.5, 1.0, because="the lemma")
    assert (claim.alternative, claim.catches_alternative, claim.reason) == (None, None, "the lemma")
    assert not claim.is_broken
    assert claim.model_copy(update={"catches_alternative": False}).is_broken
    assert claim.without_numbers().alternative is None
    store.write_record(tmp_path, RECORD.model_copy(update={"claims": (claim,)}))
    assert store.read_record(tmp_path, "falling").claims == (claim,)


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ("statement", "claim 'a-claim' has `\\\\frac`"),
        ("reason", "the reason of claim 'a-claim'"),
        ("theory", "the alternative of claim 'a-claim'"),
    ],
)
def test_a_formula_that_cannot_be_shown_is_not_recorded(tmp_path, part, place):
    """The message names the place and says what to write instead."""
    text = {"statement": "A.", "reason": "the lemma", "theory": "b"} | {part: r"It is $\frac12$."}
    claim = only("at_most", text["statement"], 0.5, 1.0, because=text["reason"], rejects=(text["theory"], 2.0))
    with pytest.raises(UserError, match=rf"{place}.*write `a/b`"):
        store.write_record(tmp_path, RECORD.model_copy(update={"claims": (claim,)}))


def test_claims_without_numbers_are_equal_on_all_machines():
    """`without_numbers` removes every number that may differ; text and counts remain.

    The numbers in the statement of an agreement are removed, too.
    """
    agreements = [only("agree", "They agree", [0.1, largest]) for largest in (1.0, 1.2)]
    assert agreements[0].statement != agreements[1].statement
    assert agreements[0].without_numbers() == agreements[1].without_numbers()
    numbers = {"measured": 1.1, "expected": 1.2, "tolerance": 0.2, "std_error": 0.3, "holds": False}
    numbers["alternative"] = Alternative(theory="it rises", measured=3.0)
    assert CLAIM.model_copy(update=numbers).without_numbers() == CLAIM.without_numbers()
    for change in ({"statement": "It stays."}, {"reason": "it must"}, {"relation": "≤"}, {"comparisons": 3}):
        assert CLAIM.model_copy(update=change).without_numbers() != CLAIM.without_numbers()


@pytest.mark.parametrize(
    ("relation", "measured", "distance"),
    [("=", 3.0, 2.0), ("=", 1.0, 2.0), ("≤", 3.0, 2.0), ("≤", 1.0, -2.0), ("≥", 1.0, 2.0), ("≥", 3.0, -2.0)],
)
def test_distances_are_measured_in_tolerances(relation, measured, distance):
    """For a bound, a negative distance is on the safe side."""
    claim = CLAIM.model_copy(update={"expected": 2.0, "tolerance": 0.5, "relation": relation})
    assert claim.in_tolerances(measured) == distance
    exact = claim.model_copy(update={"tolerance": 0.0})
    assert exact.in_tolerances(measured) == distance * np.inf
    assert exact.in_tolerances(2.0) == 0.0


def validator(kind):
    """Return a validator of the JSON schema of a kind of record, whose schema is itself checked once."""
    schema = records.json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_json_schema_describes_records():
    """Every published record can be read and is accepted by a JSON Schema validator, which refuses invalid ones."""
    figures, claims = map(validator, (records.FigureRecord, records.NotebookClaims))
    for folder in sorted((ROOT / "figures").glob("*/")):
        published = store.records_in(folder)
        for record in published:
            (figures if record.figure else claims).validate(records.dump(record))
        names = sorted((record.notebook, record.figure or "claims") for record in published)
        assert names == [(folder.name, path.stem) for path in sorted(folder.glob("*.json"))]
    for content in (CONTENT | {"note": "more"}, CONTENT | {"schema_version": 2}, WITHOUT_ALT):
        with pytest.raises(jsonschema.ValidationError):
            figures.validate(content)


def test_the_page_about_the_record_is_current():
    """`docs/figure-record.md` is generated from the schema."""
    command = [sys.executable, str(ROOT / "tools/describe_record.py"), "--check"]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_the_site_offers_the_schema(ran, tmp_path):
    """It is next to the figures; files of deleted figures are removed."""
    stale = tmp_path / "figures/toy/gone.csv"
    stale.parent.mkdir(parents=True)
    stale.touch()
    copy_files(ran.project, "laptop", tmp_path)
    schema = json.loads((tmp_path / "figures/record.schema.json").read_text(encoding="utf-8"))
    assert schema == records.json_schema()
    jsonschema.validate(json.loads((tmp_path / "figures/toy/toy_error.json").read_text(encoding="utf-8")), schema)
    assert not stale.exists()
