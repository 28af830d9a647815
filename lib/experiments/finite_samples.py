"""Fitting a head to n = αD prompts: replica theory, simulated training, and the Bayes-optimal risk, side by side.

Training runs take minutes, so they are tracked under data/finite_samples; everything else is computed here.
`python -c "from lib.experiments.finite_samples import write_data; write_data()"` writes the data anew.
"""

import datetime
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from pydantic import AfterValidator, Field
from scipy.optimize import minimize

from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile
from lib.single_location.activations import Activation, linear, softmax
from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.erm import Erm, informed, simulate_erm, uninformed
from lib.single_location.population import bayes_risk, best_risk
from lib.single_location.replica import Replica, replica
from lib.single_location.tasks import Spiked

DATA = Path(__file__).resolve().parents[2] / "data/finite_samples"
HEADS: dict[str, Activation] = {"softmax": softmax, "linear": linear}
STARTS = {"informed": informed, "uninformed": uninformed}
# The task of the whole chapter, and the noise on its answers.
LENGTH, SNR, NOISE_STD = 3, 4.0, 0.3
# The grid of training runs: sample ratios, and dimensions with the number of runs at each.
ALPHAS, RUNS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0), {200: 16, 400: 8, 800: 4}
# Where the replica is trusted; best ridges are looked for from here on.
SMALLEST_RIDGE = 0.3
RIDGE_ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
# Weak regularisation: equal ridges of keys and values, at one size.
WEAK_RIDGES, WEAK_ALPHA, WEAK_DIMENSION, WEAK_RUNS = (0.01, 0.03, 0.1, 0.3, 1.0), 1.5, 200, 12
QUANTITIES = ("risk", "m_k", "q_k", "m_v", "q_v", "train_loss")


def task() -> Spiked:
    """One token of three carries the answer, its score raised by two standard deviations."""
    return Spiked(LENGTH, SNR)


Positive = Annotated[float, Field(ge=0.25, le=10.0)]


def increasing(alphas: list[float]) -> list[float]:
    """Sample ratios that a curve can be drawn through."""
    if sorted(set(alphas)) != alphas:
        raise ValueError("needs different sample ratios in increasing order, because a curve is drawn through them")
    return alphas


@experiment
def finite_samples(
    *,
    alphas: Annotated[
        list[Positive],
        Field(min_length=2, max_length=30, description="Sample ratios α = n/D of the curves, in increasing order."),
        AfterValidator(increasing),
    ],
    points: Annotated[
        int, Field(ge=256, le=65536, description="Quasi-random prompts of a replica average: a power of 2.")
    ],
    tested: Annotated[
        int, Field(ge=2, le=len(ALPHAS), description="Sample ratios at which training runs are compared.")
    ],
) -> Result:
    """Theory computed here, training runs read from data/finite_samples, one of them run again."""
    ridges, runs, weak = tracked("best_ridges"), tracked("runs"), tracked("weak_ridges")
    compared = list(ALPHAS[:: -(-len(ALPHAS) // tested)])
    curves = curve_frame(ridges, sorted({*alphas, *compared}), points)
    large = np.asarray(bayes_optimal_risk(task(), noise_std=NOISE_STD, alpha=1e6))
    floors = {"softmax": float(bayes_risk(task())), "linear": float(best_risk(task(), linear))}
    pairs = agreement(curves, limits(runs), compared)
    return Result(
        tables={
            "risk_against_samples": risk_table(curves, runs, floors),
            "overlaps_against_samples": overlaps_table(curves, limits(runs)),
            "weak_ridge_starts": weak_table(weak),
        },
        claims=(
            *(agreement_claim(pairs, name) for name in HEADS),
            order_claim(curves),
            advantage_claim(curves),
            floor_claim(float(large), floors["softmax"]),
            rerun_claim(runs),
            *weak_claims(weak),
        ),
    )


# --- theory -----------------------------------------------------------------------------------------------


def curve_frame(ridges: pd.DataFrame, alphas: list[float], points: int) -> pd.DataFrame:
    """Replica predictions of both heads at their best ridges, and the Bayes-optimal risk."""
    rows = []
    for name, activation in HEADS.items():
        for alpha in alphas:
            ridge = ridge_at(ridges, name, alpha)
            fixed = theory(activation, alpha, ridge, points=points)
            rows.append({"head": name, "alpha": alpha, "converged": bool(fixed.converged), **numbers_of(fixed)})
    for alpha in alphas:
        risk = float(bayes_optimal_risk(task(), noise_std=NOISE_STD, alpha=alpha))
        rows.append({"head": "Bayes-optimal", "alpha": alpha, "converged": True, "risk": risk})
    return pd.DataFrame(rows)


def numbers_of(fixed: Replica) -> dict[str, float]:
    """The quantities that a simulation can measure too, and their errors."""
    values = {"risk": fixed.risk, **vars(fixed.overlaps), "train_loss": fixed.train_loss}
    errors = {"risk": fixed.std_error, **vars(fixed.overlaps_std_error), "train_loss": fixed.train_loss_std_error}
    return {name: float(values[name]) for name in QUANTITIES} | {
        f"{name}_std_error": float(errors[name]) for name in QUANTITIES
    }


# --- training runs ----------------------------------------------------------------------------------------


def limits(runs: pd.DataFrame) -> pd.DataFrame:
    """Each quantity at D → ∞: least squares in 1/D on the single runs, whose variance falls like 1/D."""
    rows = []
    for name, alpha in dict.fromkeys(zip(runs["head"], runs["alpha"], strict=True)):
        mine = runs.loc[(runs["head"] == name) & (runs["alpha"] == alpha)]
        size = np.asarray(mine["dimension"], float)
        design = np.stack([np.ones_like(size), size.mean() / size], axis=1) * np.sqrt(size)[:, None]
        inverse = np.linalg.inv(design.T @ design)
        row = {"head": name, "alpha": alpha}
        for quantity in QUANTITIES:
            target = np.asarray(mine[quantity]) * np.sqrt(size)
            fitted = inverse @ design.T @ target
            variance = np.sum((target - design @ fitted) ** 2) / (len(size) - 2)
            row |= {quantity: fitted[0], f"{quantity}_std_error": np.sqrt(variance * inverse[0, 0])}
        rows.append(row)
    return pd.DataFrame(rows)


def agreement(curves: pd.DataFrame, simulated: pd.DataFrame, alphas: list[float]) -> pd.DataFrame:
    """Simulation minus replica in combined standard errors; `wrong` is the same against the neighbouring ratio."""
    predicted = curves.set_index(["head", "alpha"])
    rows = []
    for _, run in simulated[simulated["alpha"].isin(alphas)].iterrows():
        right = predicted.loc[(run["head"], run["alpha"])]
        ratios = np.asarray(alphas)
        other = ratios[ratios != run["alpha"]][np.argmin(np.abs(np.log(ratios[ratios != run["alpha"]] / run["alpha"])))]
        wrong = predicted.loc[(run["head"], other)]
        for quantity in QUANTITIES:
            error = np.hypot(run[f"{quantity}_std_error"], right[f"{quantity}_std_error"])
            rows.append(
                {
                    "head": run["head"],
                    "quantity": quantity,
                    "right": (run[quantity] - right[quantity]) / error,
                    "wrong": (run[quantity] - wrong[quantity]) / error,
                }
            )
    return pd.DataFrame(rows)


# --- tables -----------------------------------------------------------------------------------------------

STD_ERROR = "Standard error: of the quasi-random average, or over runs"


def risk_table(curves: pd.DataFrame, runs: pd.DataFrame, floors: dict[str, float]) -> Table:
    """Excess risk against the sample ratio: theory, means of runs by dimension, and the population floors."""
    theory_rows = curves[["head", "alpha", "risk", "risk_std_error"]].assign(kind="theory", dimension=0)
    theory_rows = theory_rows.rename(columns={"risk_std_error": "std_error"}).fillna({"std_error": 0.0})
    means = runs.groupby(["head", "alpha", "dimension"], sort=False)["risk"].agg(["mean", "sem"]).reset_index()
    means = means.rename(columns={"mean": "risk", "sem": "std_error"}).assign(kind="runs")
    floor_rows = pd.DataFrame(
        {"head": list(floors), "alpha": 0.0, "risk": list(floors.values()), "std_error": 0.0, "kind": "n = ∞"}
    ).assign(dimension=0)
    columns = {
        "head": Column(
            "`softmax` or `linear`, at its best ridges; `Bayes-optimal`: no head, the best estimator", "name"
        ),
        "kind": Column(
            "`theory`: replica or state evolution; `runs`: simulated; `n = ∞`: best risk of the head", "name"
        ),
        "alpha": Column("Sample ratio α = n/D; 0 where it is infinite"),
        "dimension": Column("D of the runs; 0 for theory"),
        "risk": Column("Excess risk; answering 0 costs 1", std_error="std_error"),
        "std_error": Column(STD_ERROR, std_error="std_error"),
    }
    return Table(pd.concat([theory_rows, means, floor_rows], ignore_index=True).reindex(columns=list(columns)), columns)


def overlaps_table(curves: pd.DataFrame, simulated: pd.DataFrame) -> Table:
    """Overlaps and training loss against the sample ratio: replica, and runs taken to D → ∞."""
    frames = []
    for kind, frame in {"theory": curves[curves["head"] != "Bayes-optimal"], "runs": simulated}.items():
        for quantity in QUANTITIES[1:]:
            values, errors = frame[quantity], frame[f"{quantity}_std_error"]
            part = frame[["head", "alpha"]].assign(kind=kind, quantity=quantity, value=values, std_error=errors)
            frames.append(part)
    columns = {
        "head": Column("`softmax` or `linear`, at its best ridges", "name"),
        "kind": Column("`theory`: replica; `runs`: simulated at three dimensions and extrapolated in 1/D", "name"),
        "quantity": Column(
            "`m_k`, `q_k`, `m_v`, `q_v`: overlaps; `train_loss`: half the mean square on the prompts", "name"
        ),
        "alpha": Column("Sample ratio α = n/D"),
        "value": Column("The quantity", std_error="std_error"),
        "std_error": Column(STD_ERROR, std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def weak_table(weak: pd.DataFrame) -> Table:
    """One row a ridge and seed: the objective and the risk from both starts, on the same prompts."""
    wide = weak.pivot_table(index=["ridge_k", "seed"], columns="start", values=["objective", "risk"]).reset_index()
    wide.columns = ["_".join(filter(None, names)) for names in wide.columns]
    columns = {
        "ridge": Column("Ridge of keys and of values"),
        "seed": Column("Of the prompts", "name"),
        "objective_informed": Column("Minimised objective over D, from the hidden directions"),
        "objective_uninformed": Column("The same from random directions"),
        "risk_informed": Column("Excess risk of the first minimum"),
        "risk_uninformed": Column("Excess risk of the second"),
    }
    return Table(wide.rename(columns={"ridge_k": "ridge"}).reindex(columns=list(columns)), columns)


# --- claims -----------------------------------------------------------------------------------------------


def agreement_claim(pairs: pd.DataFrame, name: str) -> Claim:
    """The worst deviation between simulation and replica for one head."""
    mine = pairs.loc[pairs["head"] == name]
    right, wrong = (float(np.abs(np.asarray(mine[column])).max()) for column in ("right", "wrong"))
    return Claim(
        id=f"finite-samples-{name}",
        statement=(
            f"Risk, four overlaps and training loss of {name} training runs, taken to D → ∞, are those of the replica "
            f"fixed point: the worst of {len(mine)} deviations, in combined standard errors."
        ),
        source="[D26]",
        figure="overlaps_against_samples",
        measured=right,
        expected=0.0,
        tolerance=comparison_quantile(len(mine)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("the runs followed the theory of the next sample ratio", wrong),
    )


def order_claim(curves: pd.DataFrame) -> Claim:
    """The least ratio of a head's risk to the Bayes-optimal one."""
    wide = curves.pivot_table(index="alpha", columns="head", values="risk")
    least = min(float(np.min(np.asarray(wide[name]) / np.asarray(wide["Bayes-optimal"]))) for name in HEADS)
    return Claim(
        id="finite-samples-bayes-optimal",
        statement=(
            f"At none of {len(wide)} sample ratios is a trained head as good as the Bayes-optimal estimator: the least "
            "ratio of its risk to the optimal one."
        ),
        source="[D26]",
        figure="risk_against_samples",
        measured=least,
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("trained heads were 40 % better than they are", 0.6 * least),
    )


def advantage_claim(curves: pd.DataFrame) -> Claim:
    """The largest ratio of softmax to linear risk, from α = 1.5 on."""
    wide = curves.loc[curves["alpha"] >= 1.5].pivot_table(index="alpha", columns="head", values="risk")
    ratio = np.asarray(wide["softmax"]) / np.asarray(wide["linear"])
    return Claim(
        id="finite-samples-advantage",
        statement=(
            "From n = 1.5 D prompts on, softmax at its best ridges beats linear attention at its own: the largest "
            "ratio of the two risks."
        ),
        source="[D26]",
        figure="risk_against_samples",
        measured=float(ratio.max()),
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the heads changed places", float((1 / ratio).max())),
    )


def floor_claim(optimal: float, floor: float) -> Claim:
    """Bayes-optimal at α = 10⁶ against the population Bayes risk."""
    return Claim(
        id="finite-samples-floor",
        statement="With a million prompts a dimension the Bayes-optimal risk is the population Bayes risk.",
        source="[D26]",
        figure="risk_against_samples",
        measured=optimal,
        expected=floor,
        tolerance=1e-3,
        alternative=Alternative("it stayed one hundredth of its way to 1 above", floor + 0.01 * (1 - floor)),
    )


def rerun_claim(runs: pd.DataFrame) -> Claim:
    """One tracked training run, done again."""
    row = runs[(runs["head"] == "softmax") & (runs["dimension"] == min(RUNS))].iloc[0]
    ridge = (float(row["ridge_k"]), float(row["ridge_v"]))
    setting = {"alpha": float(row["alpha"]), "ridge": ridge, "dimension": int(row["dimension"])}
    again, other = simulate("softmax", "informed", **setting, seeds=[int(row["seed"]), 999])["risk"]
    return Claim(
        id="finite-samples-rerun",
        statement="A training run of the tracked data, done again here, finds the same risk.",
        source="derived here",
        figure="risk_against_samples",
        measured=float(again),
        expected=float(row["risk"]),
        tolerance=1e-4,
        alternative=Alternative("other prompts had been drawn", float(other)),
    )


def weak_claims(weak: pd.DataFrame) -> tuple[Claim, Claim]:
    """The share of seeds whose two starts end at different objectives, at strong and at weak ridges."""
    wide = weak.pivot_table(index=["ridge_k", "seed"], columns="start", values="objective")
    informed_ends, uninformed_ends = np.asarray(wide["informed"]), np.asarray(wide["uninformed"])
    differ = np.abs(informed_ends - uninformed_ends) > 1e-4 * informed_ends
    ridges = wide.index.get_level_values("ridge_k").to_numpy()
    smallest, largest = ridges.min(), ridges.max()
    weakest, strong = float(differ[ridges == smallest].mean()), float(differ[ridges == largest].mean())
    return (
        Claim(
            id="finite-samples-one-minimum",
            statement=(
                f"At ridges of {largest:g}, L-BFGS ends at the same objective from the hidden directions and "
                "from random ones: the share of seeds where it does not."
            ),
            source="derived here",
            figure="weak_ridge_starts",
            measured=strong,
            expected=0.0,
            tolerance=0.1,
            relation="≤",
            alternative=Alternative("strong ridges behaved like the weakest", weakest),
        ),
        Claim(
            id="finite-samples-several-minima",
            statement=(
                f"At a ridge of {smallest:g} the start decides where L-BFGS ends: the share of seeds whose two "
                "starts find different objectives."
            ),
            source="derived here",
            figure="weak_ridge_starts",
            measured=weakest,
            expected=0.5,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the weakest ridge behaved like strong ones", strong),
        ),
    )


# --- what is tracked --------------------------------------------------------------------------------------


def best_ridges() -> pd.DataFrame:
    """The ridges, from `SMALLEST_RIDGE` on, of least replica risk: by the simplex method, on coarse fixed points."""
    rows = []
    for name, activation in HEADS.items():
        logs = np.log([0.5, 0.5] if name == "softmax" else [0.5, 8.0])
        for alpha in RIDGE_ALPHAS:

            def risk(logs, activation=activation, alpha=alpha):
                ridge = np.maximum(np.exp(logs), SMALLEST_RIDGE)
                return float(theory(activation, alpha, ridge, points=512).risk)

            simplex = logs + np.asarray([[0.0, 0.0], [0.4, 0.0], [0.0, 0.4]])
            options = {"xatol": 0.05, "fatol": 1e-4, "initial_simplex": simplex}
            logs = minimize(risk, logs, method="Nelder-Mead", options=options).x
            ridge_k, ridge_v = np.maximum(np.exp(logs), SMALLEST_RIDGE).round(3)
            rows.append({"head": name, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v})
    return pd.DataFrame(rows)


def simulate(
    name: str, start: str, *, alpha: float, ridge: tuple[float, float], dimension: int, seeds: list[int]
) -> pd.DataFrame:
    """One training run a seed; the key of a run is its seed folded with its dimension."""

    scene = task()

    def one(key):
        return simulate_erm(
            scene,
            HEADS[name],
            noise_std=NOISE_STD,
            alpha=alpha,
            ridge=ridge,
            dimension=dimension,
            start=STARTS[start],
            key=key,
        )

    keys = jnp.stack([jr.fold_in(jr.key(seed), dimension) for seed in seeds])
    runs = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    setting = {"head": name, "start": start, "alpha": alpha, "ridge_k": ridge[0], "ridge_v": ridge[1]}
    return pd.DataFrame({**setting, "dimension": dimension, "seed": seeds, **columns_of(runs)})


def columns_of(runs: Erm) -> dict[str, np.ndarray]:
    """The numbers of a stack of runs, by name."""
    overlaps = {name: np.asarray(value) for name, value in vars(runs.overlaps).items()}
    rest = ("train_loss", "objective", "flatness", "steps")
    return {"risk": np.asarray(runs.risk), **overlaps, **{name: np.asarray(getattr(runs, name)) for name in rest}}


def simulate_grid(ridges: pd.DataFrame) -> pd.DataFrame:
    """Runs at the best ridges, in all dimensions, from the hidden directions."""
    frames = []
    for name in HEADS:
        for alpha in ALPHAS:
            ridge = ridge_at(ridges, name, alpha)
            for dimension, runs in RUNS.items():
                seeds = list(range(runs))
                frames.append(simulate(name, "informed", alpha=alpha, ridge=ridge, dimension=dimension, seeds=seeds))
    return pd.concat(frames, ignore_index=True)


def simulate_weak() -> pd.DataFrame:
    """Runs at weak ridges, each twice on the same prompts: from the hidden directions, and from random ones."""
    seeds = list(range(WEAK_RUNS))
    return pd.concat(
        [
            simulate("softmax", start, alpha=WEAK_ALPHA, ridge=(ridge, ridge), dimension=WEAK_DIMENSION, seeds=seeds)
            for ridge in WEAK_RIDGES
            for start in STARTS
        ],
        ignore_index=True,
    )


def write_data(folder: Path = DATA) -> None:
    """The three tables with their provenance. About ten minutes on one core."""
    with jax.enable_x64(True):
        ridges = best_ridges()
        write_table(folder, "best_ridges", ridges)
        write_table(folder, "runs", simulate_grid(ridges))
        write_table(folder, "weak_ridges", simulate_weak())


def write_table(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """The numbers, and beside them where they come from."""
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / f"{name}.csv", index=False, float_format="%.8g")
    (folder / f"{name}.json").write_text(json.dumps(provenance(name, frame), indent=1) + "\n", encoding="utf-8")


def provenance(name: str, frame: pd.DataFrame) -> dict:
    """Where a tracked table comes from."""
    return {
        "command": 'python -c "from lib.experiments.finite_samples import write_data; write_data()"',
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, CPU",
        "parameters": {"length": LENGTH, "snr": SNR, "noise_std": NOISE_STD},
        "rows": len(frame),
        "seeds": "the column `seed`: key = fold_in(key(seed), dimension)" if "seed" in frame else "none: deterministic",
        "table": name,
        "versions": {package: version(package) for package in ("jax", "optax", "numpy", "scipy")},
    }


def tracked(name: str) -> pd.DataFrame:
    """A table of data/finite_samples."""
    return pd.read_csv(DATA / f"{name}.csv")


def ridge_at(ridges: pd.DataFrame, name: str, alpha: float) -> tuple[float, float]:
    """Best ridges between the tracked sample ratios, by straight lines in logarithms."""
    mine = ridges.loc[ridges["head"] == name]

    def between(column):
        return float(np.exp(np.interp(np.log(alpha), np.log(mine["alpha"]), np.log(mine[column]))).round(3))

    return between("ridge_k"), between("ridge_v")


def theory(activation: Activation, alpha: float, ridge, *, points: int) -> Replica:
    """The replica fixed point of the chapter's task."""
    ridge_k, ridge_v = ridge
    return replica(
        task(), activation, noise_std=NOISE_STD, alpha=alpha, ridge=(float(ridge_k), float(ridge_v)), points=points
    )
