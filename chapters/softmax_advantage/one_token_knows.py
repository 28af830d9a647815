r"""One prompt of the spiked model: where the answer is, and where heads look.

Each column is a token. Upper row: its score $\chi^\star$; one token, marked, is shifted, and nobody says which. Middle:
the weights of the best softmax head and of the best linear head. Lower row: its value $z^\star$; the dashed line is the
marked token's value, which is the label asked for, the others are the heads' answers. Of all prompts drawn, this is the
one on which both miss it most nearly by what they miss in the root mean square.

Alt: Three rows of bars over the same tokens. Above, scores, the marked token's among the largest. In the middle,
softmax puts most weight on few tokens with large scores, linear attention spreads it and has weights below zero. Below,
values, with three horizontal lines.
"""

from dataclasses import dataclass

import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.softmax_advantage.models import bayes_risk
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink
from lib import single_location as sl
from lib.single_location.erm import draw_prompts, draw_truth
from lib.statistics import comparison_quantile, standard_error

# The prompt, the dimension of its tokens, and how many more are drawn to measure what heads miss.
LENGTH, SNR, DIMENSION, PROMPTS = 10, 9.0, 200, 4000
HEADS = ("softmax", "linear")


@dataclass(frozen=True)
class Prompts:
    """Scores and values of the tokens of prompts, which token is hidden, the heads' weights and square errors."""

    scores: Float[np.ndarray, "n L"]
    values: Float[np.ndarray, "n L"]
    hidden: Float[np.ndarray, " n"]
    weights: dict[str, Float[np.ndarray, "n L"]]
    bayes: float

    def answers(self, head: str) -> Float[np.ndarray, " n"]:
        """Weighted values."""
        return np.sum(self.weights[head] * self.values, axis=1)

    @property
    def typical(self) -> int:
        """The prompt on which each head misses about as much as it does in the mean square."""
        misses = np.stack([self.misses(head) for head in HEADS])
        return int(np.argmin(np.abs(np.log(misses / misses.mean(axis=1, keepdims=True))).max(axis=0)))

    def misses(self, head: str) -> Float[np.ndarray, " n"]:
        """Squared errors."""
        asked = np.take_along_axis(self.values, self.hidden[:, None], axis=1)[:, 0]
        return (asked - self.answers(head)) ** 2


def simulate(*, key: PRNGKeyArray) -> Prompts:
    """Prompts of real tokens without label noise, read by the best softmax head and the best linear head."""
    truth_key, prompt_key, place_key = jr.split(key, 3)
    task, truth = sl.Spiked(LENGTH, SNR), draw_truth(DIMENSION, key=truth_key)
    drawn = jax.jit(lambda key: draw_prompts(task, truth, PROMPTS, noise_std=0.0, key=key))(prompt_key)
    tokens = np.asarray(drawn.tokens)
    scores, values = (tokens @ np.asarray(side) / np.sqrt(DIMENSION) for side in (truth.key, truth.value))
    hidden = np.asarray(jr.randint(place_key, (PROMPTS,), 0, LENGTH))  # tokens are drawn with the hidden one first
    order = (np.arange(LENGTH) - hidden[:, None]) % LENGTH
    scores, values = np.take_along_axis(scores, order, axis=1), np.take_along_axis(values, order, axis=1)
    offset, slope = _least_squares()
    softmax = np.exp(np.sqrt(SNR) * (scores - scores.max(axis=1, keepdims=True)))
    weights = {"softmax": softmax / softmax.sum(axis=1, keepdims=True), "linear": offset + slope * scores}
    return Prompts(scores, values, hidden, weights, float(bayes_risk(task)))


def _least_squares() -> Float[np.ndarray, "2"]:
    """The linear weights, offset and slope, of least risk `1 - 2 E s_ε + E Σ s²`."""
    shift = np.array([1.0, np.sqrt(SNR)])
    return np.linalg.solve(np.diag([LENGTH - 1.0, LENGTH]) + np.outer(shift, shift), shift)


def numbers(prompts: Prompts) -> Numbers:
    """The tokens of one prompt, and what softmax misses over all."""
    return Numbers(_table(prompts), (_bayes_claim(prompts),))


def _table(prompts: Prompts) -> Table:
    """A row a token."""
    shown = prompts.typical
    frame = pd.DataFrame(
        {
            "token": np.arange(1, LENGTH + 1),
            "hidden": (np.arange(LENGTH) == prompts.hidden[shown]).astype(int),
            "score": prompts.scores[shown],
            "value": prompts.values[shown],
            **{head: prompts.weights[head][shown] for head in HEADS},
        }
    )
    columns = {
        "token": Column("Which token of the prompt"),
        "hidden": Column("1 for the token whose value is the label"),
        "score": Column("Its score χ*", absolute=1e-9),
        "value": Column("Its value z*", absolute=1e-9),
        "softmax": Column("Its weight in the best softmax head", absolute=1e-9),
        "linear": Column("Its weight in the best linear head", absolute=1e-9),
    }
    return Table(frame, columns)


def _bayes_claim(prompts: Prompts) -> Claim:
    """The mean square that softmax misses over all prompts, against the integral; linear attention misses more."""
    misses = {head: prompts.misses(head) for head in HEADS}
    std_error = float(standard_error(misses["softmax"]))
    return Claim(
        id="softmax-advantage-one-prompt",
        statement=(
            f"On {PROMPTS} prompts of {LENGTH} tokens in {DIMENSION} dimensions, like the one shown, the best softmax "
            "head misses the label by the Bayes risk."
        ),
        source="derived here",
        box="d26-bayes",
        measured=float(misses["softmax"].mean()),
        expected=prompts.bayes,
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative("what the best linear head misses on them", float(misses["linear"].mean())),
    )


def beside(axes: Axes, height: float, name: str, colour: str) -> None:
    """A name to the right of the axes."""
    axes.annotate(
        name,
        (1, height),
        xycoords="axes fraction",
        xytext=(6, 0),
        textcoords="offset points",
        color=colour,
        va="center",
    )


def draw(table: pd.DataFrame) -> Figure:
    """Scores, weights and values, a column a token."""
    figure, (scores, weights, values) = plt.subplots(3, 1, figsize=(8.0, 5.6), sharex=True)
    hidden, tokens = table[table["hidden"] == 1].iloc[0], table["token"]
    for axes in (scores, weights, values):
        axes.axvspan(hidden["token"] - 0.45, hidden["token"] + 0.45, color=ink(), alpha=0.1, linewidth=0)
        axes.axhline(0, color=ink(), linewidth=0.8)
        axes.grid(False, axis="x")
    scores.bar(tokens, table["score"], width=0.5, color=ink(), alpha=0.6, linewidth=0)
    scores.annotate(
        "the hidden token", (hidden["token"], 1), xycoords=("data", "axes fraction"), ha="center", va="bottom"
    )
    values.bar(tokens, table["value"], width=0.5, color=ink(), alpha=0.6, linewidth=0)
    lines = [(hidden["value"], "label", ink(), "--")]
    for head, colour, side in zip(HEADS, ("C0", "C1"), (-0.2, 0.2), strict=True):
        weights.bar(tokens + side, table[head], width=0.36, color=colour, linewidth=0)
        lines.append((float((table[head] * table["value"]).sum()), f"{head} answers", colour, "-"))
        beside(weights, 0.85 if head == "softmax" else 0.55, head, colour)
    for place, (value, name, colour, dashes) in enumerate(sorted(lines)):
        values.axhline(value, color=colour, linewidth=2, linestyle=dashes)
        beside(values, (1 + 2 * place) / 6, name, colour)
    scores.set(ylabel=r"score $\chi^\star$")
    weights.set(ylabel="weight")
    values.set(ylabel=r"value $z^\star$", xlabel="token", xticks=tokens, xlim=(0.45, tokens.max() + 0.55))
    headline(figure, "The label is the value of one token, and only scores hint at which")
    return figure
