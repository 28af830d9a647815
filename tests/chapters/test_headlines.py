"""Headlines of published figures that no claim states: the published table shows them.

The headline of a figure is the first sentence of its module's docstring; most are stated by the claims of the figure,
which `test_notebooks` judges. `CHECKS` has a function for each of the others. The bounds in these functions follow from
the words of the headline, such as "falls", "far" or "most", and from the columns of standard errors. A change of such a
headline needs a look at its function.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from companion.figures import store
from companion.figures.record import FigureRecord

FIGURES = Path(__file__).parents[2] / "figures"
# So many standard errors are more than chance, also where a hundred values are compared.
SIGMAS = 4.0
# What the words of headlines mean here, as ratios.
NEAR, FAR, LITTLE = 1.5, 10.0, 0.05


# --- shared by several figures


def rises(values) -> bool:
    return bool((np.diff(values) > 0).all())


def falls(values) -> bool:
    return bool((np.diff(values) < 0).all())


def falls_beyond_chance(values, errors) -> bool:
    """Whether the last value is below the first by more than chance."""
    values, errors = np.asarray(values), np.asarray(errors)
    return bool(values[0] - values[-1] > SIGMAS * math.hypot(errors[0], errors[-1]))


def last_slope(frame: pd.DataFrame, x: str, y: str) -> float:
    """Return the slope of ln y in ln x between the last two rows."""
    end = frame.sort_values(x).iloc[-2:]
    assert rises(end[x])
    assert (end[y] > 0).all()
    return float(np.diff(np.log(end[y]))[0] / np.diff(np.log(end[x]))[0])


def groups(frame: pd.DataFrame, *names: str, by: str | None = None):
    """Yield the groups of equal `names`, at least two, each sorted `by` a column."""
    found = list(frame.groupby(list(names) if len(names) > 1 else names[0], sort=True))
    assert len(found) > 1
    for key, group in found:
        yield key, group if by is None else group.sort_values(by, ignore_index=True)


# --- concentration


def the_slope_approaches_one_later_in_higher_dimensions(table):
    ends = []
    for _, curve in groups(table[table["kind"] == "exact"], "dimension", by="length"):
        slopes = np.diff(np.log(curve["error"])) / np.diff(np.log(curve["length"]))
        assert falls(slopes[len(slopes) // 2 :])
        assert slopes[-1] > -1 - 1e-3
        assert slopes[-1] + 1 < (slopes[len(slopes) // 2] + 1) / 2
        ends.append(slopes[-1])
    assert rises(ends)


def larger_tokens_decay_slower_and_far_below_the_bound(table):
    slopes = []
    for sigma, curves in groups(table, "sigma"):
        exact, bound = (curves[curves["kind"] == kind].sort_values("length") for kind in ("exact", "bound"))
        slopes.append(last_slope(exact, "length", "error"))
        above = np.interp(np.log(exact["length"]), np.log(bound["length"]), np.log(bound["error"].clip(lower=1e-300)))
        if sigma > 1:
            assert np.max(above - np.log(exact["error"])) > math.log(FAR)
    assert rises(slopes)


def large_weights_become_rarer(table):
    last = {}
    for sigma, curve in groups(table[(table["panel"] == "share") & (table["series"] == "exact")], "fixed", by="x"):
        assert falls(curve["value"][curve["value"].idxmax() :])
        assert curve["value"].iloc[-1] < curve["value"].iloc[0]
        last[sigma] = curve["value"].iloc[-1]
    assert falls([-last[sigma] for sigma in sorted(last)])


def gradients_concentrate(table):
    for _, curve in groups(table, "gradient", "sigma", by="length"):
        assert falls_beyond_chance(curve["error"], curve["std_error"])


# --- exact_finite_prompt


def error_eventually_falls_like_one_over_length_later_for_larger_queries(table):
    starts = []
    for _, rows in groups(table.assign(length=np.exp(table["log_length"])), "tau"):
        exact, large = (rows[rows["kind"] == kind].set_index("log_length") for kind in ("exact", "large L"))
        assert last_slope(exact, "length", "error") == pytest.approx(-1, abs=LITTLE)
        starts.append(large.index[large["error"] < 2 * exact["error"]].min())
    assert rises(starts)


def larger_queries_have_fewer_tokens_and_freezing_sharpens(table):
    distances = []
    for _, curve in groups(table, "log_length", by="ratio"):
        assert rises(curve["participation"])
        common = curve[curve["ratio"] <= table.groupby("log_length")["ratio"].max().min()]
        distances.append(np.interp([0.5, 0.75, 1, 1.1], common["ratio"], (common["participation"] - common["limit"])))
        if curve["log_length"].iloc[0] < math.log(1e9):
            assert np.interp(1, curve["ratio"], curve["participation"]) > 2 * LITTLE
    assert (np.diff(distances, axis=0) < 0).all()


# --- finite_samples


def descent_by_sgd_ends_a_little_above(table):
    descent, stochastic = (table[table["method"] == method] for method in ("gradient descent", "SGD"))
    assert (descent["above"].abs() < SIGMAS * descent["above_error"]).all()
    assert (stochastic["above"] < LITTLE * stochastic["risk"]).all()
    softmax, linear = (stochastic[stochastic["head"] == head] for head in ("softmax", "linear"))
    higher = softmax["above"] > SIGMAS * softmax["above_error"]
    assert (higher == (softmax["alpha"] >= 5)).all()
    assert (linear["above"] > 0).all()
    assert (linear["above"] > SIGMAS * linear["above_error"]).any()


# --- icl_finite


def each_length_has_a_level_of_its_own(table):
    flows = table[(table["kind"] == "flow") & (table["quantity"] == "risk")]
    ends = flows.sort_values("time").groupby("prompt")["value"].last()
    assert falls(ends[["16", "64", "512", "infinite"]])


def stopped_training_leaves_an_error_that_no_length_removes(table):
    ended = table[table["kind"] == "ended"].groupby("log_length")["risk"].max()
    for _, curve in groups(table[table["kind"] == "stopped"], "time", "start"):
        risk = curve.sort_values("log_length")["risk"].to_numpy()
        assert risk[-1] > risk[-2] * (1 - LITTLE)
        assert risk[-1] > FAR * ended.iloc[-1]


# --- icl_infinite


def ill_conditioned_covariance_takes_longest(table):
    arrivals = {}
    for name, path in groups(table, "covariance", by="time"):
        assert path["distance"].iloc[0] > 0.1
        assert path["distance"].iloc[-1] < 1e-6
        arrivals[name] = path.loc[path["distance"] > 1e-3, "time"].max()
    assert max(arrivals, key=arrivals.__getitem__) == "condition number 10"
    assert len(arrivals) > 2


def outputs_approach_the_missing_label_of_the_task(table):
    prompt = table[table["part"] == "prompt"].pivot_table(index="place", columns="entry", values="value")
    covariates, labels = prompt.drop(columns="y").to_numpy(), prompt["y"].to_numpy()
    assert len(covariates) > covariates.shape[1] + 1
    assert np.isfinite(covariates).all()
    assert np.isfinite(labels).all()
    # the task of the first columns gives the last label, too
    task = np.linalg.lstsq(covariates[:-1], labels[:-1])[0]
    assert np.allclose(covariates @ task, labels, atol=1e-4)
    for _, outputs in groups(table[table["part"] == "answer"], "entry", by="place"):
        errors = (outputs["value"] - labels[-1]).abs()
        assert errors.iloc[-1] < errors.iloc[0] / FAR


# --- laboratory


def a_query_moves_the_output_in_its_direction(table):
    for _, outputs in groups(table[table["kind"].isin(["law", "prompt"])], "law", "kind"):
        at_zero = outputs[(outputs["x"].abs() < 1e-9) & (outputs["y"].abs() < 1e-9)].iloc[0]
        others = outputs[(outputs["x"].abs() > 1e-9) | (outputs["y"].abs() > 1e-9)]
        along = others["x"] * (others["u"] - at_zero["u"]) + others["y"] * (others["v"] - at_zero["v"])
        assert (along > 0).all()


def softmax_needs_two_log_lengths_and_a_linear_head_the_length(table):
    table = table.assign(signal=table["scale"] ** 2, length=1 + np.exp(table["top"] ** 2 / 2))
    strongest = table["signal"].max()
    for length, curve in groups(table[table["length"] > 100], "length"):
        needed = curve.loc[curve["softmax"] < math.log(0.5), "signal"].min()
        assert 1 / NEAR < needed / (2 * math.log(length)) < NEAR
        if length > 2 * strongest:
            assert (curve["linear"] > math.log(0.5)).all()


def best_place_of_the_valley_costs_more_than_linear(table):
    share = np.linspace(0, 1.5, 301)[:, None]
    for _, heads in groups(table[table["noise"] == 0], "dimension", "log_length", by="tilt"):
        shrink, spread = np.exp(heads["log_shrink"].to_numpy()), np.exp(heads["log_spread"].to_numpy())
        dimension = heads["dimension"].iloc[0]
        risks = (dimension * (1 - share) ** 2 + shrink * share * (1 - share) + spread * share**2) / 2
        floor = risks.min(axis=0)
        assert floor.min() > np.exp(heads["log_linear"].iloc[0])
        if heads["log_length"].iloc[0] > math.log(1000):
            assert 0 < floor.argmin() < len(floor) - 1


# --- message_passing


def both_starts_arrive_within_a_dozen_iterations(table):
    for _, path in groups(table, "start", by="iteration"):
        late = path[path["iteration"] >= 12]
        assert len(late) > 0
        assert ((late["evolution"] / late["end"] - 1).abs() < 0.01).all()
        assert ((late["risk"] - late["end"]).abs() < SIGMAS * late["std_error"] + 0.01 * late["end"]).all()
        assert abs(path["evolution"].iloc[0] / path["end"].iloc[0] - 1) > 0.01


# --- needle_in_a_long_prompt


def the_relevant_token_is_found_where_other_weights_freeze(table):
    places = []
    for _, curve in groups(table, "decade", by="ratio"):
        assert (np.diff(curve["risk"]) <= 0).all()
        places.append(float(np.interp(0.5, curve["risk"].to_numpy()[::-1], curve["ratio"].to_numpy()[::-1])))
    off = np.abs(np.array(places) - 1)
    assert (off < NEAR - 1).all()
    assert off[-1] < off[0]
    long = table[table["decade"] == table["decade"].max()].set_index("ratio")["participation"]
    assert long[long.index < 0.6].max() < LITTLE
    assert long[long.index > NEAR].min() > 4 * LITTLE


# --- threshold_in_temperature


def exact_curves_are_more_gradual_than_the_limit(table):
    """By the overlaps over which the weight rises from 0.2 to 0.8, and the risk falls by as much of its range."""
    exact, limit = (table[table["kind"] == kind].sort_values("overlap") for kind in ("exact", "limit"))
    for name, sign in (("weight", 1), ("risk", -1)):
        spans = []
        for curve in (exact, limit):
            values = sign * curve[name].to_numpy()
            levels = values[0] + np.array([0.2, 0.8]) * np.ptp(values)
            spans.append(float(np.ptp(np.interp(levels, values, curve["overlap"]))))
        assert spans[0] > 2 * spans[1]


# --- worth_of_heads


def every_softmax_head_but_the_first_counts_as_a_linear_head(table):
    """The steps are those of the linear heads, one head to the right."""
    assert falls(table["reached"])
    np.testing.assert_allclose(table["reached"][1:], table["bound"][:-1], rtol=1e-5)


def one_head_per_task_wins_by_less_than_for_long_prompts(table):
    assert (table["exact"] > 1).all()
    assert (table["exact"] < table["long_prompts"] - SIGMAS * table["simulated_std_error"]).all()


# --- opposite_heads


def curves_are_lowest_at_small_keys_that_are_not_zero(table):
    """Longer prompts have smaller best keys, also in units of the root of the length."""
    best = []
    for length, curve in groups(table, "length", by="scaled_key"):
        lowest = curve.loc[curve["scaled_change"].idxmin()]
        assert lowest["scaled_change"] < 0
        assert curve["scaled_key"].iloc[0] < lowest["scaled_key"] < curve["scaled_key"].iloc[-1]
        assert lowest["scaled_key"] / math.sqrt(length) < 0.25  # where a softmax is nearly linear
        best.append(lowest["scaled_key"])
    assert falls(best)


# --- published_experiment


def long_runs_end_at_the_optimum(table):
    best, runs = (table[table["kind"] == kind].set_index(["predictor", "length"]) for kind in ("optimum", "tracked"))
    assert len(runs) > 1
    for head, run in runs.iterrows():
        assert run["mean_square"] == pytest.approx(best.loc[head, "mean_square"], rel=LITTLE / 2)


def the_flaw_raises_every_risk_and_keeps_the_order(table):
    risks = table.pivot(index="length", columns=["predictor", "law"], values="mean_square")
    for law in ("corrected", "as published"):
        assert (risks["softmax"][law] > risks["linear"][law]).all()
        ridge = risks["ridge"][law].dropna()
        assert len(ridge) > 1
        assert (risks["linear"][law][ridge.index] > ridge).all()
    for risk in ("softmax", "linear", "ridge"):
        assert (risks[risk]["as published"] > risks[risk]["corrected"]).dropna()[risks[risk].dropna().index].all()


# --- real_heads


def the_first_layer_has_the_most_linear_head_the_second_the_least(table):
    ordered = table.sort_values("share", ignore_index=True)
    assert ordered["layer"].iloc[-1] == 0
    assert falls_beyond_chance(ordered["share"].iloc[-2:][::-1], ordered["share_se"].iloc[-2:][::-1])
    layers = table.groupby("layer").agg(share=("share", "mean"), error=("share_se", "mean")).sort_values("share")
    assert layers.index[0] == 1
    error = layers["error"].iloc[:2] / math.sqrt(table["head"].nunique())
    assert falls_beyond_chance(layers["share"].iloc[:2][::-1], error[::-1])


def least_spread_is_linear_and_most_is_frozen(table):
    found = {}
    for ratio, head in groups(table, "ratio"):
        outputs = head[head["panel"] == "outputs"]
        unexplained = ((outputs["found"] - outputs["x"]) ** 2).sum() / (
            (outputs["found"] - outputs["found"].mean()) ** 2
        ).sum()
        found[ratio] = 1 - unexplained, head.loc[head["panel"] == "weights", "found"].max()
    (least, (line, spread_out)), (_, (middle_line, middle)), (most, (_, frozen)) = sorted(found.items())
    assert least < 0.5
    assert most > 1
    assert line > max(0.9, middle_line)
    assert spread_out < LITTLE
    assert spread_out < middle < frozen
    assert frozen > 0.5


def the_price_of_replaced_heads_adds_up(table):
    together = table[(table["kind"] == "together") & (table["order"] == "ascending")]
    own, fitted = (together[together["answer"] == name].set_index("count")["cosine"] for name in ("own", "fitted"))
    own = own.sort_index()
    price = own.iloc[0] - own
    assert (np.diff(price) > -LITTLE * price.iloc[-1]).all()
    half = price[price.index <= price.index.max() / 2].iloc[-1]
    assert 0 < half < price.iloc[-1] / NEAR
    assert (own[own.index > 0] > fitted.reindex(own.index)[own.index > 0]).all()


def most_heads_are_shrunk_more(table):
    beyond = table["expected"] - table["slope"] > 2 * table["slope_se"]
    assert beyond.mean() > 0.5
    assert ((table["gaussian"] - table["gaussian_expected"]).abs() < SIGMAS * table["gaussian_se"]).all()


# --- sharp_rates


def large_heads_miss_their_exponent_where_simulations_end(table):
    for norm, curve in groups(table, "squared_norm", by="log_length"):
        off = (curve["slope"] - curve["exponent"]).abs()
        simulated = np.interp(16, curve["log_length"], off)
        if norm >= 1:
            assert simulated > 0.01
            assert off.iloc[-1] < simulated / 4


# --- single_location_training


def the_value_is_found_before_the_key_and_softmax_ends_lowest(table):
    for _, paths in groups(table, "head"):
        first = {}
        for quantity in ("key", "value"):
            path = paths[paths["quantity"] == quantity]
            steps = path.loc[path["median"] >= path["found"], "step"]
            first[quantity] = steps.min() if len(steps) else math.inf
        assert first["value"] < first["key"]
    ends = table[table["quantity"] == "risk"].sort_values("step").groupby("head")["median"].last()
    assert ends.idxmin().startswith("softmax")


# --- softmax_advantage


def softmax_finds_the_hidden_token_and_a_linear_head_does_not(table):
    (hidden,) = table.index[table["hidden"] == 1]
    assert table["softmax"].idxmax() == hidden
    label = table.loc[hidden, "value"]
    off = {head: abs((table[head] * table["value"]).sum() - label) for head in ("softmax", "linear")}
    assert off["softmax"] < off["linear"]


def softmax_is_lowest_and_its_lead_grows(table):
    for _, curve in groups(table, "model", "length", by="snr"):
        for head in ("sigmoid", "linear"):
            lead = curve[head] / curve["softmax"]
            assert lead.iloc[0] >= 1
            assert rises(lead)


# --- temperature_and_length


def unscaled_heads_average_and_scaled_ones_freeze_if_unbounded(table):
    powers = table.assign(power=-np.log(table["mean"]) / table["log_length"])
    ends = {}
    for key, curve in groups(powers, "law", "scaling"):
        power = curve.sort_values("log_length")["power"].to_numpy()
        ends[key] = power[0], power[-1]
    assert min(ends["normal", "1"][1], ends["uniform", "1"][1], ends["uniform", "ln L"][1]) > 1 - LITTLE
    assert ends["normal", "1"][0] < ends["normal", "1"][1]
    assert ends["normal", "ln L"][1] < LITTLE
    assert LITTLE < ends["normal", "√ln L"][1] < 1 - LITTLE


# --- trained_at_other_lengths


def other_heads_lose_on_longer_prompts_and_scaled_softmax_too(table):
    longer = table[(table["trained"] == 100) & (table["used"] > table["trained"]) & (table["use"] != "drawn")]
    risks = longer.pivot_table(index="used", columns=["head", "use"], values="risk")
    assert np.allclose(risks["softmax"]["as trained"], risks["softmax"]["retrained"], rtol=1e-6)
    for head in ("sigmoid", "linear"):
        assert (risks[head]["as trained"] > risks[head]["retrained"]).all()
    scaled = risks["softmax"].drop(columns=["as trained", "retrained"])
    assert scaled.gt(risks["softmax"]["as trained"], axis=0).all(axis=None)


# --- trajectory_stability


def longer_prompts_stay_closer_but_hardly_in_the_control(table):
    exponents = table.groupby(["kind", "task"])["exponent"].first().unstack()
    control = [task for task in exponents.columns if "control" in task]
    assert len(control) == 1
    for (_, task), curve in groups(table, "kind", "task", by="length"):
        if task not in control:
            assert falls_beyond_chance(curve["gap"], curve["gap_std_error"])
    assert (exponents[control[0]] < exponents.drop(columns=control).min(axis=1) / 4).all()


def distances_grow_more_slowly_than_time(table):
    for _, path in groups(table, "task", "length", by="time"):
        rate, error = path["gap"] / path["time"], path["std_error"] / path["time"]
        late = np.searchsorted(path["time"], 2 * path["time"])
        for now, later in enumerate(late):
            if later < len(path):
                allowed = SIGMAS * math.hypot(error.iloc[now], error.iloc[later])
                assert rate.iloc[later] < rate.iloc[now] + allowed
        assert rate.iloc[-1] < rate.iloc[0] / 2
        assert path["gap"].iloc[-1] - path["gap"].iloc[0] > -SIGMAS * path["std_error"].iloc[-1]


def the_excess_falls_nearly_like_one_over_length(table):
    for _, task in groups(table[table["kind"] == "excess"], "task"):
        weight = task["risk"] / task["risk_std_error"]
        assert np.isfinite(weight).all()
        assert (task["risk"] > 0).all()
        assert task["length"].nunique() > 2
        (power, _), cov = np.polyfit(np.log(task["length"]), np.log(task["risk"]), 1, w=weight, cov="unscaled")
        error = math.sqrt(cov[0, 0])
        assert power < -0.5 - SIGMAS * error  # clearly faster than the next simple power
        assert abs(power + 1) < 0.25  # nearer to 1 than to one half


# --- which_kernel

FAST, SLOW = ("exp", "1 + exp"), ("square", "softplus", "sigmoid")


def the_groups_are_apart_on_both_tasks(table):
    regression, ratio = (table.set_index("kernel")[name] for name in ("regression", "ratio"))
    assert regression[list(SLOW)].max() < 0 < regression[list(FAST)].min()
    assert ratio[list(FAST)].max() < 1 + LITTLE < NEAR < ratio[list(SLOW)].min()


# --- mixtures


def most_runs_of_two_heads_end_below_every_single_head(table):
    last = table[table["steps"] == table["steps"].max()]
    best = last.groupby("heads")["excess"].min()
    assert (last.loc[last["heads"] == 2, "excess"] < last["one_head"].iloc[0] / FAR).mean() > 0.5
    assert best[1] > last["one_head"].iloc[0] / NEAR


CHECKS: dict[str, Callable[[pd.DataFrame], None]] = {
    "concentration/gradient_error_vs_length": gradients_concentrate,
    "concentration/output_error_by_dimension": the_slope_approaches_one_later_in_higher_dimensions,
    "concentration/output_error_vs_length": larger_tokens_decay_slower_and_far_below_the_bound,
    "concentration/output_proof": large_weights_become_rarer,
    "exact_finite_prompt/exact_error": error_eventually_falls_like_one_over_length_later_for_larger_queries,
    "exact_finite_prompt/freezing": larger_queries_have_fewer_tokens_and_freezing_sharpens,
    "finite_samples/plain_training": descent_by_sgd_ends_a_little_above,
    "icl_finite/finite_training": each_length_has_a_level_of_its_own,
    "icl_finite/random_starts": stopped_training_leaves_an_error_that_no_length_removes,
    "icl_infinite/infinite_flow": ill_conditioned_covariance_takes_longest,
    "icl_infinite/one_prompt": outputs_approach_the_missing_label_of_the_task,
    "laboratory/live_cloud": a_query_moves_the_output_in_its_direction,
    "laboratory/live_needle": softmax_needs_two_log_lengths_and_a_linear_head_the_length,
    "laboratory/live_valley": best_place_of_the_valley_costs_more_than_linear,
    "message_passing/risk_along_iterations": both_starts_arrive_within_a_dozen_iterations,
    "mixtures/trained_denoisers": most_runs_of_two_heads_end_below_every_single_head,
    "needle_in_a_long_prompt/needle_threshold": the_relevant_token_is_found_where_other_weights_freeze,
    "published_experiment/published_optimum": long_runs_end_at_the_optimum,
    "published_experiment/two_data_laws": the_flaw_raises_every_risk_and_keeps_the_order,
    "real_heads/heads_in_full": least_spread_is_linear_and_most_is_frozen,
    "real_heads/replaced_heads": the_price_of_replaced_heads_adds_up,
    "real_heads/map_of_heads": the_first_layer_has_the_most_linear_head_the_second_the_least,
    "real_heads/slopes_of_heads": most_heads_are_shrunk_more,
    "threshold_in_temperature/mean_field_at_finite_size": exact_curves_are_more_gradual_than_the_limit,
    "worth_of_heads/separation_by_tasks": one_head_per_task_wins_by_less_than_for_long_prompts,
    "worth_of_heads/staircase_of_heads": every_softmax_head_but_the_first_counts_as_a_linear_head,
    "opposite_heads/risk_along_opposite_keys": curves_are_lowest_at_small_keys_that_are_not_zero,
    "which_kernel/two_tasks": the_groups_are_apart_on_both_tasks,
    "sharp_rates/local_slopes": large_heads_miss_their_exponent_where_simulations_end,
    "single_location_training/order_parameters_in_training": the_value_is_found_before_the_key_and_softmax_ends_lowest,
    "softmax_advantage/one_token_knows": softmax_finds_the_hidden_token_and_a_linear_head_does_not,
    "softmax_advantage/population_risk": softmax_is_lowest_and_its_lead_grows,
    "temperature_and_length/three_scalings": unscaled_heads_average_and_scaled_ones_freeze_if_unbounded,
    "trained_at_other_lengths/retrieval_elsewhere": other_heads_lose_on_longer_prompts_and_scaled_softmax_too,
    "trajectory_stability/gaps_along_training": longer_prompts_stay_closer_but_hardly_in_the_control,
    "trajectory_stability/gronwall_envelope": distances_grow_more_slowly_than_time,
    "trajectory_stability/risk_transfer": the_excess_falls_nearly_like_one_over_length,
}


def records() -> dict[str, FigureRecord]:
    """Return the records of the published figures that have data, by `notebook/figure`."""
    found = {
        f"{path.parent.name}/{path.stem}": path for path in sorted(FIGURES.glob("*/*.json")) if path.stem != "claims"
    }
    read = {name: store.read_record(path.parent, path.stem) for name, path in found.items()}
    return {name: record for name, record in read.items() if not record.is_schematic}


def test_a_figure_without_claims_has_a_check():
    """And every check has its figure."""
    without = {name for name, record in records().items() if not record.claims}
    assert without - set(CHECKS) == set(), "what guards the headline of this figure?"
    assert set(CHECKS) - set(records()) == set()


@pytest.mark.parametrize("figure", CHECKS)
def test_the_table_shows_the_headline(figure):
    CHECKS[figure](table_of(figure))


@pytest.mark.parametrize("figure", CHECKS)
def test_every_check_can_fail(figure):
    """Reversing one column of the table at a time makes each check fail at least once."""
    table = table_of(figure)
    corrupted = [table.assign(**{name: table[name].to_numpy()[::-1]}) for name in table.columns]
    assert not all(passes(CHECKS[figure], frame) for frame in corrupted)


def table_of(figure: str) -> pd.DataFrame:
    return pd.read_csv(FIGURES / f"{figure}.csv")


def passes(check: Callable[[pd.DataFrame], None], table: pd.DataFrame) -> bool:
    try:
        check(table)
    except (AssertionError, ArithmeticError, LookupError, ValueError):
        return False
    return True
