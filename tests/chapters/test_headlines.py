"""Headlines of the published figures agree with their claims and tables.

The headline of a figure is the first sentence of its module's docstring. `GUARDS` names for each figure what guards it:
ids of claims, and functions that check the published table. The bounds in these functions follow from the words of the
headline, such as "falls", "far" or "most", and from the columns of standard errors. A change of a headline needs a look
at its entry here.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from companion.figures import store
from companion.figures.record import Claim

FIGURES = Path(__file__).parents[2] / "figures"
# So many standard errors are more than chance, also where a hundred values are compared.
SIGMAS = 4.0
# What the words of headlines mean here, as ratios.
NEAR, FAR, LITTLE = 1.5, 10.0, 0.05

Guard = str | Callable[[pd.DataFrame], None]


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


def only_the_gaussian_climbs(table):
    rates = {
        law: -last_slope(curve, "length", "error") for law, curve in groups(table[table["kind"] == "exact"], "law")
    }
    assert rates.pop("Gaussian") < 1 - LITTLE
    assert all(rate == pytest.approx(1, abs=0.01) for rate in rates.values())


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
    for sigma, curve in groups(table[(table["panel"] == "share") & (table["series"] == "exact")], "sigma", by="x"):
        assert falls(curve["value"][curve["value"].idxmax() :])
        assert curve["value"].iloc[-1] < curve["value"].iloc[0]
        last[sigma] = curve["value"].iloc[-1]
    assert falls([-last[sigma] for sigma in sorted(last)])


def gradients_concentrate(table):
    for _, curve in groups(table, "gradient", "sigma", by="length"):
        assert falls_beyond_chance(curve["error"], curve["std_error"])


def bilinear_gradient_errs_more_on_longer_prompts(table):
    for _, curve in groups(table[(table["panel"] == "scale") & (table["series"] == "prompts")], "number", by="length"):
        assert (curve["ratio"] - 1 > SIGMAS * curve["std_error"]).all()
        assert falls_beyond_chance(curve["ratio"].to_numpy()[::-1], curve["std_error"].to_numpy()[::-1])
        assert rises(curve["ratio"])


# --- exact_finite_prompt


def error_eventually_falls_like_one_over_length_later_for_larger_queries(table):
    starts = []
    for _, curve in groups(table[table["prompts"].isna()], "tau"):
        assert last_slope(curve.assign(length=np.exp(curve["log_length"])), "length", "exact") == pytest.approx(
            -1, abs=LITTLE
        )
        starts.append(curve.loc[curve["delta_method"] < 2 * curve["exact"], "log_length"].min())
    assert rises(starts)


def many_tokens_answer_above_the_line_a_few_below(table):
    long = table[table["log_length"] > math.log(100)]
    ratio, tokens = long["tau"] / np.sqrt(2 * long["log_length"]), 1 / long["participation"]
    above, below = tokens[ratio < 0.5], tokens[ratio > 1.25]
    assert above.min() > FAR
    assert below.max() < FAR / 2


def larger_queries_have_fewer_tokens_and_freezing_sharpens(table):
    distances = []
    for _, curve in groups(table, "log_length", by="ratio"):
        assert rises(curve["participation"])
        common = curve[curve["ratio"] <= table.groupby("log_length")["ratio"].max().min()]
        distances.append(np.interp([0.5, 0.75, 1, 1.1], common["ratio"], (common["participation"] - common["limit"])))
        if curve["log_length"].iloc[0] < math.log(1e9):
            assert np.interp(1, curve["ratio"], curve["participation"]) > 2 * LITTLE
    assert (np.diff(distances, axis=0) < 0).all()


def finite_prompts_follow_the_line_then_stop(table):
    for _, curve in groups(table, "decade", by="tau"):
        ceiling = curve["ceiling"].iloc[0]
        follows = curve[(curve["tau"] > 0) & (curve["tau"] < ceiling / 4)]
        assert (follows["mean"] > 0.8 * follows["tau"]).all()
        assert (curve["mean"] <= curve["tau"]).all()
        assert curve["mean"].iloc[-1] == pytest.approx(ceiling, rel=LITTLE)
    assert table["decade"].max() > 12  # more tokens than any computer holds


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


# --- gaussian_limit


def three_laws_have_three_lengths(table):
    lengths = table.pivot_table(index="tau", columns="law", values="exact")
    assert (lengths["two scales"] > lengths["Gaussian"]).all()
    assert (lengths["Gaussian"] > lengths["ellipsoid"]).all()


def finite_prompts_follow_the_line_then_saturate(table):
    for _, curve in groups(table, "length", by="tau"):
        follows = curve[curve["tau"] < curve["departure"] / 4]
        noise = SIGMAS * follows["std_error"].fillna(0) + 0.2 * follows["tau"]
        assert ((follows["response"] - follows["tau"]).abs() < noise).all()
        last = curve.iloc[[-1 - len(curve) // 4, -1]]
        assert last["response"].diff().iloc[-1] < last["tau"].diff().iloc[-1] / 4


def outputs_settle_inside_the_pole_and_grow_beyond(table):
    for tilt, curve in groups(table, "tilt", by="length"):
        if curve["limit"].notna().all():
            distance = (curve["mean"] - curve["limit"]).abs()
            assert distance.iloc[-1] < distance.iloc[0] / 2
        else:
            assert tilt > 1
            assert rises(curve["mean"])


def only_gaussian_tokens_and_infinite_prompts_have_normal_outputs(table):
    worst = {}
    for kind, bins in groups(table, "kind"):
        half = np.diff(bins["output"])[0] / 2
        normal = [
            (math.erf((at + half) / math.sqrt(2)) - math.erf((at - half) / math.sqrt(2))) / (4 * half)
            for at in bins["output"]
        ]
        inside = np.abs(bins["output"]) < 3  # in the tails outputs are too few for a standard error
        worst[kind] = float((np.abs(bins["density"] - normal) / bins["std_error"])[inside].max())
    assert worst.pop("infinite prompts") < SIGMAS
    assert min(worst.values()) > SIGMAS


def answers_shrink_with_the_query(table):
    for _, curve in groups(table, "length"):
        assert falls(curve.sort_values("tau")["exact"])
        assert (curve["exact"] < 1).all()


def only_gaussian_tokens_are_linear(table):
    bends = {}
    for law, curve in groups(table, "measure"):
        slopes = (curve["exact"] / curve["tilt"])[curve["tilt"] != 0]
        bends[law] = slopes.max() / slopes.min() - 1
    assert bends.pop("Gaussian") < 1e-9
    assert min(bends.values()) > LITTLE


# --- icl_finite


def each_length_has_a_level_of_its_own(table):
    flows = table[(table["kind"] == "flow") & (table["quantity"] == "risk")]
    ends = flows.sort_values("time").groupby("prompt")["value"].last()
    assert falls(ends[["16", "64", "512", "infinite"]])


def risks_converge_slower_over_larger_balls_and_over_all_heads(table):
    fixed = table[~table["ball"].str.contains("L")]
    rates = {}
    for (family, radius), curve in groups(fixed, "family", "radius", by="log_length"):
        assert falls(curve["gap"])
        slopes = np.diff(np.log(curve["gap"])) / np.diff(curve["log_length"])
        rates[family, radius] = -slopes[-1]
    by_family = pd.Series(rates).unstack()
    assert (by_family.diff(axis=1).iloc[:, 1:] < 0).all(axis=None)
    (block,) = [family for family in by_family.index if family.startswith("block")]
    (every,) = [family for family in by_family.index if family.startswith("all")]
    assert (by_family.loc[every] < by_family.loc[block]).all()


def stopped_training_leaves_an_error_that_no_length_removes(table):
    ended = table[table["kind"] == "ended"].groupby("log_length")["risk"].max()
    for _, curve in groups(table[table["kind"] == "stopped"], "time", "start"):
        risk = curve.sort_values("log_length")["risk"].to_numpy()
        assert risk[-1] > risk[-2] * (1 - LITTLE)
        assert risk[-1] > FAR * ended.iloc[-1]


def flows_part_less_on_longer_prompts(table):
    for _, curve in groups(table[table["shown"] == "at"], "time", by="log_length"):
        assert falls(curve["gap"])
        assert curve["gap"].iloc[-1] < curve["gap"].iloc[0] / FAR


# --- icl_infinite


def more_balanced_starts_wait_longer(table):
    started = table[table["imbalance"] > 0]
    for _, waits in groups(started, "larger"):
        escapes = waits.groupby("imbalance")["escape"].first()
        assert escapes.notna().all()
        assert falls(escapes)
    for _, path in groups(started, "larger", "imbalance"):
        gain = path.sort_values("time")["gain"].abs().to_numpy()
        lowest = int(gain.argmin())
        assert gain[lowest] < gain[0]
        assert gain[-1] > gain[lowest]


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


def the_output_falls_below_linear_attention_near_the_line(table):
    long = table[table["top"] ** 2 / 2 > math.log(100)]
    ratio, lost = long["tau"] / long["top"], np.exp(long["log_participation"])
    assert lost[ratio < 0.5].max() < LITTLE
    assert lost[ratio > 1.5].min() > 4 * LITTLE
    before_the_line = [
        np.interp(0.75 * top, prompt["tau"], prompt["log_participation"])
        for top, prompt in groups(long, "top", by="tau")
        if 0.75 * top < prompt["tau"].max()
    ]
    assert len(before_the_line) > 1
    assert falls(before_the_line)  # short prompts lose it first


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


def no_pair_beats_the_best_opposite_pair(table):
    """The last node in size has the largest keys; the first one is debiased gradient descent for every product."""
    for _, pairs in groups(table, "log_length"):
        opposite = pairs[pairs["product"] == -1.0]["log_ratio"].min()
        assert opposite <= 1e-6  # one digit of the table
        assert pairs["log_ratio"].min() >= opposite - 1e-6
        assert pairs["log_ratio"].max() > math.log(1.4)


# --- message_passing


def hard_where_prompts_are_long_hints_weak_and_noise_little(table):
    assert table["found"].any()
    for _, by_hint in groups(table, "length", "noise_std", by="snr"):
        found, reaches = by_hint["found"].to_numpy(bool), by_hint["reaches"].to_numpy(bool)
        # weaker hints than those of a hard phase have one, too, unless it has left the grid through its last ratio
        assert (found[:-1] | ~found[1:] | reaches[1:]).all()
    counts = table.pivot_table(index="length", columns="noise_std", values="found", aggfunc="sum").astype(int)
    assert (np.diff(counts, axis=0) >= 0).all()
    assert (np.diff(counts, axis=1) <= 0).all()
    assert counts.iloc[-1, 0] > counts.iloc[0, 0]
    assert counts.iloc[-1, 0] > counts.iloc[-1, -1]


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


def the_threshold_is_flat_below_freezing_and_rises_above(table):
    longest = table[table["decade"] == table["decade"].max()].sort_values("temperature")
    cold, hot = longest[longest["temperature"] <= 1], longest[longest["temperature"] >= 1]
    assert cold["ratio"].max() / cold["ratio"].min() < 1 + 2 * LITTLE
    assert rises(hot["ratio"])
    assert hot["ratio"].iloc[-1] > NEAR * cold["ratio"].max()
    for _, curve in groups(table, "decade", by="temperature"):
        assert (curve["ratio"] < curve["limit"] * (1 + LITTLE)).all()


def exact_widths_stay_at_the_limit_and_those_of_the_formula_vanish(table):
    for _, curve in groups(table, "temperature", by="decade"):
        assert falls(curve["width"])
        assert falls(curve["mean_field"])
        assert 1 < curve["width"].iloc[-1] / curve["limit"].iloc[-1] < 1 + 2 * LITTLE
        assert curve["mean_field"].iloc[-1] < curve["limit"].iloc[-1] / 2


def cold_heads_are_above_the_output_zero(table):
    for _, curve in groups(table, "decade", by="temperature"):
        assert (np.diff(curve["risk"]) <= 0).all()
        assert (curve["risk"] > curve["limit"] - LITTLE).all()
        assert curve.loc[curve["temperature"] <= 1, "risk"].min() > 1 + LITTLE
    longest = table[table["decade"] == table["decade"].max()]
    assert longest.loc[longest["temperature"] > NEAR, "risk"].max() < 1 + LITTLE


def exact_curves_are_more_gradual_than_the_limit(table):
    """By the overlaps over which the weight rises from 0.2 to 0.8, and the risk falls by as much of its range."""
    curve = table[table["simulated_risk"].isna()].sort_values("overlap")
    for name, sign in (("weight", 1), ("risk", -1)):
        spans = {}
        for column in (name, f"limit_{name}"):
            values = sign * curve[column].to_numpy()
            levels = values[0] + np.array([0.2, 0.8]) * np.ptp(values)
            spans[column] = float(np.ptp(np.interp(levels, values, curve["overlap"])))
        assert spans[name] > 2 * spans[f"limit_{name}"]


# --- worth_of_heads


def two_heads_or_more_approach_linear_attention_and_never_reach_it(table):
    """One head stops; the others fall by orders of magnitude with larger values, and stay above zero."""
    for heads, curve in groups(table, "heads", by="largest_value"):
        assert (curve["excess"] > 0).all()
        if heads == 1:
            assert curve["excess"].iloc[-1] > 1
        else:
            assert falls(curve["excess"])
            assert curve["excess"].iloc[-1] < curve["excess"].iloc[0] / FAR**3


def every_softmax_head_but_the_first_counts_as_a_linear_head(table):
    """The steps are those of the linear heads, one head to the right."""
    assert falls(table["reached"])
    np.testing.assert_allclose(table["reached"][1:], table["bound"][:-1], rtol=1e-5)


def one_head_per_task_wins_by_less_than_for_long_prompts(table):
    assert (table["exact"] > 1).all()
    assert (table["exact"] < table["long_prompts"] - SIGMAS * table["simulated_std_error"]).all()


def training_reaches_one_head_per_task_and_leaves_it(table):
    """The loss is near the level in the middle of the training, and far from chance below it at the end."""
    level = table["allocated"].iloc[0]
    middle, end = table[table["time"].between(100, 250)], table.iloc[-len(table) // 10 :]
    assert middle["loss"].mean() == pytest.approx(level, rel=0.1)
    error = math.sqrt((end["loss_std_error"] ** 2).mean() / len(end))
    assert end["loss"].mean() < level - SIGMAS * error


# --- preconditioned_training


def halving_times_grow_with_the_square_and_the_square_root(table):
    for flow, power in (("plain", 2.0), ("preconditioned", 0.5), ("blocks", 0.0)):
        times = {}
        for condition, curve in groups(table[table["flow"] == flow], "condition", by="time"):
            assert (np.diff(curve["error"]) <= 0).all()
            times[condition] = np.interp(-0.5, -curve["error"], curve["time"])
        for condition, time in times.items():
            assert time / times[1] == pytest.approx(condition**power, rel=LITTLE)


def only_blocks_lose_the_condition_number(table):
    ends = {}
    for flow, curve in groups(table, "flow", by="condition"):
        ends[flow] = curve["ratio"].iloc[-1]
        if flow == "blocks, Σ⁻²∇Σ⁻¹":
            assert np.ptp(curve["ratio"]) < LITTLE
        else:
            assert rises(curve["ratio"])
    assert ends["head, preconditioned"] < ends["head, plain"] / FAR
    assert ends["head, preconditioned"] > FAR


def balanced_slopes_stay_near_the_golden_ratio_and_rescaled_ones_reach_one(table):
    for _, curve in groups(table, "condition", by="log_length"):
        assert curve["balanced"].max() < 0.7
        assert curve["balanced"].iloc[-1] == pytest.approx(0.618, abs=0.01)
        assert curve["rescaled"].iloc[-1] == pytest.approx(1, abs=1e-6)


def the_best_factor_is_below_the_balanced_one(table):
    for _, curve in groups(table, "log_length", by="factor"):
        assert curve["factor"].iloc[-1] == pytest.approx(1)
        assert (curve["best"] < 0.5).all()
        assert curve["least"].iloc[0] < curve["ratio"].iloc[-1] / NEAR


# --- opposite_heads


def best_keys_shrink_like_one_over_the_root_of_the_length(table):
    keys = table.assign(key=table["scaled_key"] / np.sqrt(table["length"]))
    assert last_slope(keys, "length", "key") == pytest.approx(-0.5, abs=LITTLE)
    assert falls(table["scaled_key"])


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


def printed_losses_are_on_the_curves_and_the_figure_above_them(table):
    """Every printed loss is near its exact error, and every open marker is near the dashed curve."""
    printed = table[table["kind"] == "printed"]
    formulas, trained = printed[printed["predictor"] != "trained"], printed[printed["heads"] > 1]
    trained = trained[trained["predictor"] == "trained"]
    assert (np.abs(formulas["loss"] / formulas["exact"] - 1) < LITTLE).all()
    assert (trained["loss"] > trained["exact"] + 0.05).all()
    assert (np.abs(trained["loss"] - trained["exact"] - 0.1) < 0.05).all()


def keys_rest_above_the_best_key_and_lower_with_a_smaller_step(table):
    """The second half of each run is above the best key; smaller steps end below the published step, seed by seed."""
    ends = {}
    for (start, step, seed), run in groups(table, "start", "step_size", "seed", by="total_step"):
        last = run.iloc[-len(run) // 5 :]
        assert (run.iloc[len(run) // 2 :]["key"] > run["best_key"].iloc[0]).all()
        ends[start, step, seed] = last["key"].mean()
    for seed in (0, 1):
        assert ends["rest", "half", seed] < ends["own", "published", seed]
        assert ends["rest", "decaying", seed] < ends["own", "published", seed]
        assert ends["optimum", "half", seed] < ends["optimum", "published", seed]


# --- published_experiment


def long_runs_end_at_the_optimum(table):
    best = table.dropna(subset=["softmax"]).set_index("length")
    runs = table.dropna(subset=["long_end"])
    assert len(runs) > 1
    for run in runs.itertuples():
        assert run.long_end == pytest.approx(best.loc[run.length, run.activation], rel=LITTLE / 2)


def the_flaw_raises_every_risk_and_keeps_the_order(table):
    risks = table.pivot_table(index="length", columns="law", values=["softmax", "linear", "bayes"])
    for law in ("corrected", "as published"):
        assert (risks["softmax"][law] > risks["linear"][law]).all()
        ridge = risks["bayes"][law].dropna()
        assert len(ridge) > 1
        assert (risks["linear"][law][ridge.index] > ridge).all()
    for risk in ("softmax", "linear", "bayes"):
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


def at_most_about_half_of_the_heads_are_near_the_curve(table):
    for length, heads in groups(table[table["kind"] == "head"], "length"):
        curve = table[(table["kind"] == "curve") & (table["length"] == length)].sort_values("tau")
        expected = np.exp(np.interp(np.log(heads["tau"]), np.log(curve["tau"]), np.log(curve["participation"])))
        ratio = heads["participation"] / expected
        assert 0 < ((ratio < NEAR) & (ratio > 1 / NEAR)).sum() < len(heads) / 2


def the_price_of_replaced_heads_adds_up(table):
    together = table[(table["kind"] == "together") & (table["order"] == "ascending")]
    own, fitted = (together[together["answer"] == name].set_index("count")["cosine"] for name in ("own", "fitted"))
    own = own.sort_index()
    price = own.iloc[0] - own
    assert (np.diff(price) > -LITTLE * price.iloc[-1]).all()
    half = price[price.index <= price.index.max() / 2].iloc[-1]
    assert 0 < half < price.iloc[-1] / NEAR
    assert (own[own.index > 0] > fitted.reindex(own.index)[own.index > 0]).all()


def heads_of_small_spread_gain_and_others_lose(table):
    heads = table.pivot_table(index=["layer", "head"], columns="length", values=["share", "ratio"])
    lengths = sorted(table["length"].unique())
    change = heads["share"][lengths[-1]] - heads["share"][lengths[0]]
    spread = heads["ratio"][lengths[-1]]
    assert change[spread < 0.5].mean() > 0
    assert (change[spread < 0.5] > 0).mean() > 0.5
    assert change[spread >= 0.5].mean() < 0
    assert (change[spread >= 0.5] < 0).mean() > 0.5


def most_heads_are_shrunk_more(table):
    beyond = table["expected"] - table["slope"] > 2 * table["slope_se"]
    assert beyond.mean() > 0.5
    assert ((table["gaussian"] - table["gaussian_expected"]).abs() < SIGMAS * table["gaussian_se"]).all()


def the_even_part_is_mostly_the_plain_average(table):
    linear, frozen = table[table["ratio"] < 0.5], table[table["ratio"] >= 1]
    assert (linear["gain"] > 0.5).mean() > 0.5
    assert (frozen["gain"] < 0.5).all()
    assert (linear["gain"] > linear["gaussian_gain"]).mean() > 0.5
    assert (linear["share"] > linear["gaussian_share"]).all()
    # heads of the smallest spread, as the page describes them
    first = table["layer"] == 0
    assert table[first]["variation"].mean() < table[~first]["variation"].mean() / NEAR
    small = table[table["ratio"] * np.sqrt(2 * np.log(512)) < 1]
    assert (small["layer"] == 0).mean() > 0.5
    assert (small["gain"] < small["gaussian_gain"]).mean() > 0.5


# --- risk_and_parameters


def noise_does_not_remove_the_price(table):
    noisy = table[table["kind"] == "law"]
    assert len(noisy) > 1
    assert (noisy[["over_linear", "over_ridge"]] > 1 + LITTLE).all(axis=None)
    searched = table[table["kind"] == "search"]
    assert (searched["scaled_risk"] > searched["linear"] * (1 + LITTLE)).all()


def the_price_falls_with_the_dimension_to_e(table):
    limit = table.dropna(subset=["limit"]).drop_duplicates("dimension").sort_values("dimension")["limit"]
    assert falls(limit)
    assert limit.iloc[-1] > math.e
    assert limit.iloc[-1] == pytest.approx(math.e, rel=0.01)
    assert (table["ratio"].dropna() > 1).all()


def training_is_fast_to_the_valley_then_slow_along_it(table):
    for length, path in groups(table[table["length"] > 1000], "length", by="time"):
        assert path["product"].iloc[0] < 0.5
        assert path["product"].iloc[-1] == pytest.approx(1, abs=LITTLE)
        arrived = path.loc[path["product"] > 0.9 * path["product"].iloc[-1], "time"].min()
        apart = (path["tilt"] / path["best_tilt"] - 1).abs() > LITTLE
        assert path.loc[apart, "time"].max() > FAR * arrived, length


# --- second_minima


def starts_of_one_training_end_in_different_places(table):
    runs = table.dropna(subset=["start", "end"]).sort_values("time")
    ends = runs.groupby(["activation", "law", "start"], as_index=False).last()
    for place, columns in {"optimum": "optimum", "second minimum": "second_minimum", "wrong way": "wrong_way"}.items():
        there = ends[ends["end"] == place]
        assert len(there) > 1
        assert np.allclose(there["risk"], there[columns], rtol=LITTLE)
    places = ends[ends["end"] != "elsewhere"].groupby(["law", "activation"])["end"].value_counts()
    for head in ("softmax", "linear"):
        assert (places["corrected", head] > 1).sum() > 1


# --- sharp_rates


def small_heads_have_exponent_one_and_larger_ones_less(table):
    points = table.sort_values("squared_norm")
    small = points["squared_norm"] < 0.5
    assert small.any()
    assert np.allclose(points.loc[small, "slope"], 1, atol=LITTLE)
    assert falls(points.loc[points["squared_norm"] > 0.5, "slope"])
    assert points["slope"].iloc[-1] < 0.5


def large_heads_miss_their_exponent_where_simulations_end(table):
    for norm, curve in groups(table, "squared_norm", by="log_length"):
        off = (curve["slope"] - curve["exponent"]).abs()
        simulated = np.interp(16, curve["log_length"], off)
        if norm >= 1:
            assert simulated > 0.01
            assert off.iloc[-1] < simulated / 4


def faster_growing_queries_have_slower_decay(table):
    for _, curve in groups(table[table["ratio"] <= 1], "log_length"):
        assert falls(curve.sort_values("ratio")["slope"])


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


def any_fixed_hint_is_lost_in_a_long_prompt(table):
    for _, curve in groups(table[table["kind"] == "fixed"], "strength", by="log_length"):
        assert curve["risk"].iloc[0] < 0.5
        assert curve["risk"].iloc[-1] > 1 - LITTLE


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


# --- softmax_variations


def softmax_is_bayes_at_every_width_and_other_heads_are_not(table):
    for head, risks in groups(table, "activation"):
        off = risks["risk"] - risks["bayes"]
        if head == "softmax":
            assert off.abs().max() < 1e-6
        else:
            assert off.min() > 1e-3


def each_head_comes_nearer_to_its_law(table):
    for _, curve in groups(table, "activation", "length"):
        assert falls((curve.sort_values("snr")["ratio"] - 1).abs())


# --- temperature_and_length


def beyond_one_over_root_three_tokens_just_dominate_their_prompt(table):
    for ratio, hill in groups(table, "ratio"):
        found = hill.loc[hill["exponent"].idxmax(), "score"]
        owns = (1 + ratio**2) / (2 * ratio)
        expected = 2 * ratio if ratio < 1 / math.sqrt(3) - 1e-3 else owns
        assert found == pytest.approx(expected, rel=LITTLE)
    assert table["ratio"].max() > 0.6


def the_relevant_token_is_found_only_above_bounded_scores_and_with_log_length(table):
    for (law, scaling), curve in groups(table, "law", "scaling"):
        last = curve.sort_values("log_length")["weight"].iloc[-1]
        found = law == "uniform" and scaling == "ln L"
        assert last > 0.99 if found else last < 0.01


def typical_prompts_share_more_evenly_for_large_scores(table):
    powers = table[table["panel"] == "exponent"]
    for _, curves in groups(powers, "log_length"):
        by_size = curves.pivot_table(index="x", columns="curve", values="y")
        more = by_size["typical"] / by_size["mean"] - 1
        assert (more > -1e-6).all()
        assert (more[more.index > 0.6] > LITTLE).all()
    carried = table[(table["panel"] == "share") & (table["log_length"] == table["log_length"].max())]
    assert carried.loc[(carried["x"] - 0.01).abs().idxmin(), "y"] > 0.9


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


def a_head_shrinks_too_much_on_longer_prompts_and_overshoots_if_scaled(table):
    longer = table[(table["trained"] == 100) & (table["used"] > table["trained"])]
    by_use = longer.pivot_table(index="used", columns="use", values=["factor", "risk"])
    assert (by_use["factor"]["best factor"] > 1).all()
    alone, scaled, best = (by_use["risk"][use] for use in ("1", "ln L", "best factor"))
    assert alone.iloc[-1] > FAR * best.iloc[-1]
    assert scaled.iloc[-1] > FAR * alone.iloc[-1]
    assert scaled.iloc[-1] > scaled.min() * NEAR


def other_heads_lose_on_longer_prompts_and_scaled_softmax_too(table):
    longer = table[(table["trained"] == 100) & (table["used"] > table["trained"]) & (table["use"] != "drawn")]
    risks = longer.pivot_table(index="used", columns=["head", "use"], values="risk")
    assert np.allclose(risks["softmax"]["as trained"], risks["softmax"]["retrained"], rtol=1e-6)
    for head in ("sigmoid", "linear"):
        assert (risks[head]["as trained"] > risks[head]["retrained"]).all()
    scaled = risks["softmax"].drop(columns=["as trained", "retrained"])
    assert scaled.gt(risks["softmax"]["as trained"], axis=0).all(axis=None)


# --- trajectory_stability


def the_distance_opens_by_decades_where_the_tilt_is_large(table):
    assert table["tilt"].max() > 0.5
    for _, path in groups(table, "log10_length", by="time"):
        large = path[path["tilt"] > 0.5]
        assert large["distance"].iloc[-1] > FAR * large["distance"].iloc[0]
        assert path["tilt"].iloc[-1] < 0.5


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
    for _, task in groups(table.dropna(subset=["excess"]), "task"):
        weight = task["excess"] / task["excess_std_error"]
        assert np.isfinite(weight).all()
        assert (task["excess"] > 0).all()
        assert task["length"].nunique() > 2
        (power, _), cov = np.polyfit(np.log(task["length"]), np.log(task["excess"]), 1, w=weight, cov="unscaled")
        error = math.sqrt(cov[0, 0])
        assert power < -0.5 - SIGMAS * error  # clearly faster than the next simple power
        assert abs(power + 1) < 0.25  # nearer to 1 than to one half


def normal_tasks_are_light_enough_and_heavy_ones_not(table):
    changes = {}
    for law, curve in groups(table, "law"):
        bound = curve.sort_values("log_length")["bound"]
        changes[law] = bound.iloc[-1] / bound.max()
    assert changes["normal"] < 1 / FAR
    assert changes["bounded"] < 1 / FAR
    assert changes["Student, n = 5"] == 1


# --- which_kernel

FAST, SLOW = ("exp", "1 + exp"), ("square", "softplus", "sigmoid")


def fast_kernels_do_not_beat_linear_attention(table):
    for kernel, curve in groups(table, "kernel", by="key"):
        assert (curve["error"].min() < curve["linear"].iloc[0]) == (kernel in SLOW)


def gains_of_slow_kernels_agree_at_the_end(table):
    end = table[table["length"] == table["length"].max()].set_index("kernel")["scaled_gain"]
    slow = end[list(SLOW)]
    assert slow.max() / slow.min() < 1 + LITTLE
    assert slow.min() > FAR * end["exp"]


def the_groups_are_apart_on_both_tasks(table):
    regression, ratio = (table.set_index("kernel")[name] for name in ("regression", "ratio"))
    assert regression[list(SLOW)].max() < 0 < regression[list(FAST)].min()
    assert ratio[list(FAST)].max() < 1 + LITTLE < NEAR < ratio[list(SLOW)].min()


def longer_prompts_hide_the_divergence(table):
    """The number of prompts at which the error is twice its first value, by length."""
    doubled = []
    for _, rows in groups(table[table["simulated"].isna()], "length", by="prompts"):
        above = rows[rows["exact"] > 2 * rows["exact"].iloc[0]]
        assert last_slope(rows, "prompts", "exact") == pytest.approx(1, abs=LITTLE)
        doubled.append(above["prompts"].iloc[0])
    assert rises(doubled)
    assert doubled[-1] > FAR * table.loc[table["simulated"].notna(), "prompts"].max()


def one_head_is_above_the_centred_head_and_the_pair(table):
    curve = table[table["simulated"].isna()]
    assert (curve["plain"] > curve["centred"]).all()
    best = curve[["plain", "centred", "pair"]].min()
    assert best["plain"] / best["centred"] > NEAR
    assert best["centred"] / best["pair"] < 1 + LITTLE


# --- mixtures


def weights_are_the_posterior_at_one_scale(table):
    differences = (table["weight"] - table["posterior"]).abs().groupby(table["factor"]).max()
    assert differences[1.0] < 1e-5
    assert (differences.drop(1.0) > LITTLE).all()


def only_gates_that_are_off_cost_nothing(table):
    cross = table[table["excess"].notna()]
    off = (cross["height"] == 0) | (cross["gate_slope"] == 0)
    assert (cross.loc[off, "excess"] < 1e-14).all()
    assert (cross.loc[~off, "excess"] > 1e-9).all()
    spectra = table[table["eigenvalue"].notna()].assign(flat=lambda rows: rows["eigenvalue"].abs() < 1e-9)
    flat = spectra.groupby("point")["flat"].sum()
    assert flat["constant gate"] > flat["without gate"] > flat["saddle"]
    assert (spectra.loc[spectra["point"] == "saddle", "eigenvalue"] < -1e-4).any()


def the_flow_is_slow_near_gates_of_slope_zero_only(table):
    near = table[(table["family"] != "invariant") & (table["size"] == 0.1)]
    for (family, _), path in groups(near, "family", "start", by="time"):
        late = path[path["time"] >= 1e6]["distance"]
        assert (late.max() < 1e-6) == (family == "without gate")
        assert falls(path.loc[path["time"] >= 1e6, "distance"]) or family == "without gate"


def starts_with_a_random_value_only_are_ahead_early(table):
    early = table[table["steps"] <= 80].groupby(["kind", "steps"])["excess"]
    assert (early.min()["all entries random"] > FAR * early.max()["value only"]).all()


def components_merge_up_to_a_separation_of_one(table):
    ends = table[table["position"].notna() & (table["steps"] == 3000)]
    apart = ends.groupby("separation")["position"].min()
    assert (apart[apart.index > 1] > 0.3).all()
    assert (apart[apart.index <= 1] < LITTLE).all()


def the_error_of_the_exact_denoiser_falls_more_slowly(table):
    exact, quarter = (last_slope(table[table["size"] == size], "length", "error") for size in (1.0, 0.25))
    assert exact > quarter + 0.1


def most_runs_of_two_heads_end_below_every_single_head(table):
    last = table[table["steps"] == table["steps"].max()]
    best = last.groupby("heads")["excess"].min()
    assert (last.loc[last["heads"] == 2, "excess"] < last["one_head"].iloc[0] / FAR).mean() > 0.5
    assert best[1] > last["one_head"].iloc[0] / NEAR


GUARDS: dict[str, tuple[Guard, ...]] = {
    "concentration/gradient_error_vs_length": (
        "gradient-concentration-bound-value",
        "gradient-concentration-bound-bilinear",
        gradients_concentrate,
    ),
    "concentration/gradient_extra_factor": (bilinear_gradient_errs_more_on_longer_prompts,),
    "concentration/output_error_by_dimension": (the_slope_approaches_one_later_in_higher_dimensions,),
    "concentration/output_error_by_law": ("output-concentration-laws", only_the_gaussian_climbs),
    "concentration/output_error_vs_length": (
        "output-concentration-bound",
        larger_tokens_decay_slower_and_far_below_the_bound,
    ),
    "concentration/output_proof": ("output-concentration-share", large_weights_become_rarer),
    "concentration/tilted_moments": ("gradient-concentration-tilts",),
    "exact_finite_prompt/collapsed_sampler": ("exact-finite-prompt-collapsed",),
    "exact_finite_prompt/exact_error": (
        "exact-finite-prompt-error",
        error_eventually_falls_like_one_over_length_later_for_larger_queries,
    ),
    "exact_finite_prompt/finite_prompt_plane": (
        "exact-finite-prompt-mean",
        "exact-finite-prompt-error",
        many_tokens_answer_above_the_line_a_few_below,
    ),
    "exact_finite_prompt/freezing": (
        "exact-finite-prompt-freezing",
        larger_queries_have_fewer_tokens_and_freezing_sharpens,
    ),
    "exact_finite_prompt/shrunken_mean": ("exact-finite-prompt-ceiling", finite_prompts_follow_the_line_then_stop),
    "finite_samples/overlaps_against_samples": ("finite-samples-softmax", "finite-samples-linear"),
    "finite_samples/plain_training": ("finite-samples-plain-descent", descent_by_sgd_ends_a_little_above),
    "finite_samples/published_samples": ("finite-samples-published-advantage", "finite-samples-published-always"),
    "finite_samples/risk_against_samples": ("finite-samples-linear-ahead", "finite-samples-advantage"),
    "finite_samples/weak_ridge_starts": ("finite-samples-several-minima", "finite-samples-one-minimum"),
    "gaussian_limit/elliptical_tokens": (
        "gaussian-limit-elliptical-direction",
        "gaussian-limit-elliptical-length",
        three_laws_have_three_lengths,
    ),
    "gaussian_limit/finite_prompt_response": (finite_prompts_follow_the_line_then_saturate,),
    "gaussian_limit/laplace_domain": ("gaussian-limit-laplace-growth", outputs_settle_inside_the_pole_and_grow_beyond),
    "gaussian_limit/law_of_outputs": (
        "gaussian-limit-output-law",
        only_gaussian_tokens_and_infinite_prompts_have_normal_outputs,
    ),
    "gaussian_limit/mean_output": ("gaussian-limit-mean-output", answers_shrink_with_the_query),
    "gaussian_limit/other_measures": (only_gaussian_tokens_are_linear,),
    "icl_finite/final_risk": ("icl-finite-price",),
    "icl_finite/finite_training": ("icl-finite-training", "icl-finite-gain", each_length_has_a_level_of_its_own),
    "icl_finite/gap_over_a_ball": (
        "icl-finite-ball",
        "icl-finite-slow-ball",
        risks_converge_slower_over_larger_balls_and_over_all_heads,
    ),
    "icl_finite/random_starts": ("icl-finite-theorem", stopped_training_leaves_an_error_that_no_length_removes),
    "icl_finite/trajectory_gap": ("icl-finite-growth", "icl-finite-gap", flows_part_less_on_longer_prompts),
    "icl_infinite/escape_from_saddle": ("icl-infinite-saddle", more_balanced_starts_wait_longer),
    "icl_infinite/infinite_flow": ("icl-infinite-limit", ill_conditioned_covariance_takes_longest),
    "icl_infinite/initialisation_interval": ("icl-infinite-every-alpha",),
    "icl_infinite/one_prompt": ("icl-infinite-fills-in", outputs_approach_the_missing_label_of_the_task),
    "icl_infinite/token_scales": ("icl-infinite-task-scale",),
    "laboratory/live_cloud": (a_query_moves_the_output_in_its_direction,),
    "laboratory/live_needle": (softmax_needs_two_log_lengths_and_a_linear_head_the_length,),
    "laboratory/live_pair": ("live-pair-best", no_pair_beats_the_best_opposite_pair),
    "laboratory/live_plane": (the_output_falls_below_linear_attention_near_the_line,),
    "laboratory/live_valley": (best_place_of_the_valley_costs_more_than_linear,),
    "measures/one_prompt_converges": ("measures-one-prompt", "measures-fluctuation"),
    "measures/order_does_not_matter": ("measures-order", "measures-one-more"),
    "measures/single_token": ("measures-single-token", "measures-short-prompts"),
    "measures/the_tilt": ("measures-tilted-mean", "measures-tilted-law"),
    "message_passing/descent_beside_messages": ("message-passing-beside-descent",),
    "message_passing/hard_phase": ("message-passing-hard-phase", "message-passing-stuck"),
    "message_passing/hard_phase_map": (
        "message-passing-hard-hints",
        hard_where_prompts_are_long_hints_weak_and_noise_little,
    ),
    "message_passing/reached_risk": ("message-passing-optimum", "message-passing-below-training"),
    "message_passing/risk_along_iterations": (
        "message-passing-evolution",
        "message-passing-one-end",
        both_starts_arrive_within_a_dozen_iterations,
    ),
    "mixture_denoising/denoising_from_a_prompt": (
        "mixture-denoising-exponent",
        the_error_of_the_exact_denoiser_falls_more_slowly,
    ),
    "mixture_denoising/heads_needed": ("mixture-denoising-two-heads", "mixture-denoising-one-head"),
    "mixture_denoising/merging_components": (
        "mixture-denoising-threshold",
        components_merge_up_to_a_separation_of_one,
    ),
    "mixture_denoising/trained_denoisers": (
        "mixture-denoising-training",
        most_runs_of_two_heads_end_below_every_single_head,
    ),
    "mixture_discrimination/flow_to_minimisers": (
        "mixture-discrimination-exponential",
        "mixture-discrimination-algebraic",
        the_flow_is_slow_near_gates_of_slope_zero_only,
    ),
    "mixture_discrimination/gate_over_the_plane": (
        "mixture-discrimination-gate",
        weights_are_the_posterior_at_one_scale,
    ),
    "mixture_discrimination/minimisers_and_saddle": (
        "mixture-discrimination-cross",
        only_gates_that_are_off_cost_nothing,
    ),
    "mixture_discrimination/training_from_two_starts": (
        "mixture-discrimination-starts",
        starts_with_a_random_value_only_are_ahead_early,
    ),
    "needle_in_a_long_prompt/needle_price": ("needle-threshold", "needle-elementwise-threshold", "needle-linear"),
    "needle_in_a_long_prompt/needle_threshold": (
        "needle-freezing",
        the_relevant_token_is_found_where_other_weights_freeze,
    ),
    "published_experiment/every_length": ("published-experiment-every-run", "published-experiment-wrong-way-above"),
    "published_experiment/published_optimum": ("published-experiment-no-run-below", long_runs_end_at_the_optimum),
    "published_experiment/published_training": (
        "published-experiment-long-softmax",
        "published-experiment-long-linear",
    ),
    "published_experiment/two_data_laws": (
        "published-experiment-flaw",
        the_flaw_raises_every_risk_and_keeps_the_order,
    ),
    "real_heads/even_part_of_heads": (
        "real-heads-even-average",
        "real-heads-even-share",
        the_even_part_is_mostly_the_plain_average,
    ),
    "real_heads/heads_in_full": (least_spread_is_linear_and_most_is_frozen,),
    "real_heads/heads_in_the_plane": (at_most_about_half_of_the_heads_are_near_the_curve, "real-heads-near-most"),
    "real_heads/replaced_heads": (
        "real-heads-order",
        "real-heads-fitted",
        "real-heads-partners",
        the_price_of_replaced_heads_adds_up,
    ),
    "real_heads/map_of_heads": (the_first_layer_has_the_most_linear_head_the_second_the_least,),
    "real_heads/share_on_the_line": (
        "real-heads-ranks",
        "real-heads-growth",
        heads_of_small_spread_gain_and_others_lose,
    ),
    "real_heads/slopes_of_heads": ("real-heads-shortfall", most_heads_are_shrunk_more),
    "real_heads/where_the_share_goes": ("real-heads-law", "real-heads-first-place"),
    "threshold_in_temperature/mean_field_at_finite_size": (
        "threshold-in-temperature-gap",
        exact_curves_are_more_gradual_than_the_limit,
    ),
    "threshold_in_temperature/phases_in_temperature": (
        "threshold-in-temperature-cold",
        "threshold-in-temperature-hot",
        the_threshold_is_flat_below_freezing_and_rises_above,
    ),
    "threshold_in_temperature/risk_without_overlap": (
        "threshold-in-temperature-others",
        cold_heads_are_above_the_output_zero,
    ),
    "threshold_in_temperature/width_of_the_transition": (
        "threshold-in-temperature-width-cold",
        "threshold-in-temperature-width-hot",
        exact_widths_stay_at_the_limit_and_those_of_the_formula_vanish,
    ),
    "worth_of_heads/excess_over_linear_attention": (
        "worth-of-heads-slope",
        "worth-of-heads-bound",
        two_heads_or_more_approach_linear_attention_and_never_reach_it,
    ),
    "worth_of_heads/loss_of_allocated_heads": (
        "worth-of-heads-emergence",
        "worth-of-heads-end",
        training_reaches_one_head_per_task_and_leaves_it,
    ),
    "worth_of_heads/separation_by_tasks": (
        "worth-of-heads-separation",
        "worth-of-heads-cost",
        one_head_per_task_wins_by_less_than_for_long_prompts,
    ),
    "worth_of_heads/staircase_of_heads": (
        "worth-of-heads-staircase",
        every_softmax_head_but_the_first_counts_as_a_linear_head,
    ),
    "preconditioned_training/flow_by_condition": (
        "preconditioned-training-plain-power",
        "preconditioned-training-preconditioned-power",
        halving_times_grow_with_the_square_and_the_square_root,
    ),
    "preconditioned_training/rates_by_condition": (
        "preconditioned-training-head-rates",
        "preconditioned-training-block-rates",
        only_blocks_lose_the_condition_number,
    ),
    "preconditioned_training/exponent_at_the_optimum": (
        "preconditioned-training-golden",
        "preconditioned-training-rescaled",
        balanced_slopes_stay_near_the_golden_ratio_and_rescaled_ones_reach_one,
    ),
    "preconditioned_training/error_of_rescaled_heads": (
        "preconditioned-training-best-factor",
        the_best_factor_is_below_the_balanced_one,
    ),
    "opposite_heads/best_opposite_keys": (
        "opposite-heads-best-key",
        "opposite-heads-positive-keys",
        best_keys_shrink_like_one_over_the_root_of_the_length,
    ),
    "opposite_heads/key_in_training": (
        "opposite-heads-rest-low",
        "opposite-heads-half-step",
        "opposite-heads-leaves-optimum",
        keys_rest_above_the_best_key_and_lower_with_a_smaller_step,
    ),
    "opposite_heads/price_of_the_even_part": ("opposite-heads-price",),
    "opposite_heads/published_losses": (
        "opposite-heads-published-pair",
        "opposite-heads-published-head",
        "opposite-heads-published-noise",
        printed_losses_are_on_the_curves_and_the_figure_above_them,
    ),
    "opposite_heads/risk_along_opposite_keys": (
        "opposite-heads-curvature",
        curves_are_lowest_at_small_keys_that_are_not_zero,
    ),
    "which_kernel/centred_head": (
        "which-kernel-centred-simulated",
        "which-kernel-centred-share",
        one_head_is_above_the_centred_head_and_the_pair,
    ),
    "which_kernel/gain_for_long_prompts": (
        "which-kernel-common-gain",
        "which-kernel-noisy-labels",
        gains_of_slow_kernels_agree_at_the_end,
    ),
    "which_kernel/kernel_one_plus_x": (
        "which-kernel-infinite-error",
        "which-kernel-cut-errors",
        longer_prompts_hide_the_divergence,
    ),
    "which_kernel/risk_along_keys": ("which-kernel-beats-linear", fast_kernels_do_not_beat_linear_attention),
    "which_kernel/two_tasks": (
        "which-kernel-slow-retrieval",
        "which-kernel-raised-retrieval",
        the_groups_are_apart_on_both_tasks,
    ),
    "risk_and_parameters/beyond_one_family": ("risk-and-parameters-all-heads", noise_does_not_remove_the_price),
    "risk_and_parameters/drift_along_the_valley": (
        "risk-and-parameters-duration",
        training_is_fast_to_the_valley_then_slow_along_it,
    ),
    "risk_and_parameters/price_of_one_head": ("risk-and-parameters-price", the_price_falls_with_the_dimension_to_e),
    "risk_and_parameters/two_opposite_heads": ("risk-and-parameters-two-heads",),
    "second_minima/heads_at_the_minima": (
        "published-experiment-left-out",
        "published-experiment-wrong-way-round",
    ),
    "second_minima/success_by_change": (
        *(f"published-experiment-cure-{change}" for change in ("balanced-start", "label-entry-1", "label-entry-2")),
        "published-experiment-cure-4-heads",
        *(f"published-experiment-no-cure-{change}" for change in ("label-entry-0-5", "batch-16", "batch-4")),
    ),
    "second_minima/the_pass": (
        "published-experiment-pass-softmax",
        "published-experiment-pass-linear",
        "published-experiment-pass-ends",
    ),
    "second_minima/two_minima": (starts_of_one_training_end_in_different_places,),
    "sharp_rates/bounded_laws": ("sharp-rates-bounded-queries", "sharp-rates-bounded-tokens"),
    "sharp_rates/exponent_laws": ("sharp-rates-golden", small_heads_have_exponent_one_and_larger_ones_less),
    "sharp_rates/local_slopes": ("sharp-rates-slopes", large_heads_miss_their_exponent_where_simulations_end),
    "sharp_rates/operator_norm": ("sharp-rates-operator-norm",),
    "sharp_rates/rate_at_fixed_ratio": ("sharp-rates-fixed-ratio", faster_growing_queries_have_slower_decay),
    "single_location_training/manifold_distance_in_training": (
        "single-location-training-manifold",
        "single-location-training-exchange",
    ),
    "single_location_training/order_parameters_in_training": (
        the_value_is_found_before_the_key_and_softmax_ends_lowest,
    ),
    "single_location_training/published_descents": (
        "single-location-training-published-falling",
        "single-location-training-published-exchange",
    ),
    "single_location_training/seven_overlaps": ("single-location-training-seven-overlaps",),
    "softmax_advantage/activation_zoo": ("softmax-advantage-no-other", "softmax-advantage-softplus-bias"),
    "softmax_advantage/max_long_prompts": (
        "softmax-advantage-max-fixed",
        "softmax-advantage-max-growing",
        any_fixed_hint_is_lost_in_a_long_prompt,
    ),
    "softmax_advantage/one_token_knows": (
        "softmax-advantage-one-prompt",
        softmax_finds_the_hidden_token_and_a_linear_head_does_not,
    ),
    "softmax_advantage/population_risk": ("softmax-advantage-bayes", softmax_is_lowest_and_its_lead_grows),
    "softmax_variations/published_population": (
        "softmax-advantage-published-softmax",
        "softmax-advantage-published-others",
    ),
    "softmax_variations/random_length": (
        "softmax-advantage-any-length",
        "softmax-advantage-length-price",
        softmax_is_bayes_at_every_width_and_other_heads_are_not,
    ),
    "softmax_variations/strong_hints": (each_head_comes_nearer_to_its_law,),
    "temperature_and_length/largest_scores": (
        "temperature-cap",
        beyond_one_over_root_three_tokens_just_dominate_their_prompt,
    ),
    "temperature_and_length/one_token": (
        "temperature-needle-bounded",
        "temperature-needle-normal",
        the_relevant_token_is_found_only_above_bounded_scores_and_with_log_length,
    ),
    "temperature_and_length/rare_prompts": ("temperature-rare", typical_prompts_share_more_evenly_for_large_scores),
    "temperature_and_length/three_scalings": (
        "temperature-frozen",
        "temperature-bounded",
        unscaled_heads_average_and_scaled_ones_freeze_if_unbounded,
    ),
    "trained_at_other_lengths/regression_elsewhere": (
        "temperature-scaling-costs",
        a_head_shrinks_too_much_on_longer_prompts_and_overshoots_if_scaled,
    ),
    "trained_at_other_lengths/retrieval_elsewhere": (
        "temperature-softmax-keeps",
        other_heads_lose_on_longer_prompts_and_scaled_softmax_too,
    ),
    "trajectory_stability/concentration_along_training": ("trajectory-stability-rate",),
    "trajectory_stability/from_a_balanced_start": (
        "trajectory-stability-balanced-tilt",
        "trajectory-stability-balanced-risk",
        the_distance_opens_by_decades_where_the_tilt_is_large,
    ),
    "trajectory_stability/gaps_along_training": (
        "trajectory-stability-gap",
        longer_prompts_stay_closer_but_hardly_in_the_control,
    ),
    "trajectory_stability/gronwall_envelope": ("trajectory-stability-envelope", distances_grow_more_slowly_than_time),
    "trajectory_stability/risk_transfer": (
        "trajectory-stability-risk",
        the_excess_falls_nearly_like_one_over_length,
    ),
    "trajectory_stability/task_wise_scale": (
        "trajectory-stability-task-scale",
        normal_tasks_are_light_enough_and_heavy_ones_not,
    ),
}


def published() -> list[str]:
    """Return the published figures that have data, in the form `notebook/figure`."""
    return sorted(
        f"{path.parent.name}/{path.stem}"
        for path in FIGURES.glob("*/*.json")
        if not store.read_record(path.parent, path.stem).is_schematic
    )


@cache
def claims() -> dict[str, Claim]:
    records = [store.read_record(path.parent, path.stem) for path in FIGURES.glob("*/*.json")]
    return {claim.id: claim for record in records for claim in record.claims}


def table_of(figure: str) -> pd.DataFrame:
    return pd.read_csv(FIGURES / f"{figure}.csv")


def test_no_entry_is_left_of_a_figure_that_is_gone():
    assert published()
    assert set(GUARDS) - set(published()) == set()


@pytest.mark.parametrize("figure", published())
def test_headlines_agree_with_claims_and_table(figure):
    assert GUARDS.get(figure), "what guards the headline of this figure?"
    for guard in GUARDS[figure]:
        if isinstance(guard, str):
            assert guard in claims()
            assert claims()[guard].holds, guard
            assert claims()[guard].catches_alternative, guard
        else:
            guard(table_of(figure))


@pytest.mark.parametrize("figure", [figure for figure in GUARDS if any(callable(guard) for guard in GUARDS[figure])])
def test_every_check_of_a_table_can_fail(figure):
    """Reversing one column of the table at a time makes each check fail at least once."""
    table = table_of(figure)
    corrupted = [table.assign(**{name: table[name].to_numpy()[::-1]}) for name in table.columns]
    for guard in filter(callable, GUARDS[figure]):
        assert not all(passes(guard, frame) for frame in corrupted), guard.__name__


def passes(guard: Callable[[pd.DataFrame], None], table: pd.DataFrame) -> bool:
    try:
        guard(table)
    except (AssertionError, ArithmeticError, LookupError, ValueError):
        return False
    return True
