r"""A prompt of in-context regression, and the label that is asked for.

Left: a prompt, a token a column. Above are the entries of the covariate, below its label, which follows from a vector
$w$ that is drawn for this prompt and not shown. In the last column, the query, the label is missing. Right: the answers
of the balanced perfect head to this query, on longer and longer prompts of the same $w$, by softmax and by linear
attention. Dashed: the label asked for.

Alt: Left, a grid of coloured cells, one column a token, with numbers; the lowest cell of the last column holds a
question mark. Right, a line chart of two answers against the prompt's length: both wander at first and end on a dashed
horizontal line.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from chapters.icl_infinite.block_flows import toeplitz
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import INK, headline, ink, label
from lib.attention import Attention, attend, linear_attend
from lib.icl import LinearRegression, block_attention, infinite_limit
from lib.measures import Empirical, Gaussian

# Tokens that are shown, the longest prompt that is answered, and tasks that test the head.
SHOWN, LONGEST, TASKS = 8, 2**17, 100
# Of a sum of five products.
ROUNDING = 1e-10
PROMPT, ANSWER = "prompt", "answer"


@dataclass(frozen=True)
class Prompt:
    """Tokens (x, y), the query (x, 0), the label asked for, and two answers on the first tokens, by their number."""

    tokens: Float[np.ndarray, "L d+1"]
    query: Float[np.ndarray, " d+1"]
    label: float
    lengths: list[int]
    answers: dict[str, Float[np.ndarray, " lengths"]]
    misses: dict[str, float]


def simulate(d: int, *, key: PRNGKeyArray) -> Prompt:
    """A prompt without label noise, answered by the head (A*, b*); and how far heads miss on infinite prompts."""
    task, prompt_key, tasks_key = LinearRegression(toeplitz(d)), *jr.split(key)
    blocks = infinite_limit(task)
    head = block_attention(blocks.matrix, blocks.gain)
    alike = jnp.eye(d) * jnp.linalg.norm(blocks.matrix) / jnp.sqrt(d)
    drawn = task.draw(LONGEST, 1, key=prompt_key)
    tokens, query = np.asarray(drawn.tokens[0]), np.asarray(drawn.queries[0])
    lengths = [2**n for n in range(LONGEST.bit_length()) if 2**n >= SHOWN]
    kinds = {"softmax": jax.jit(attend), "linear": jax.jit(linear_attend)}
    answers = {
        name: np.array([float(kind(head, _beginning(tokens, n), query)[-1]) for n in lengths])
        for name, kind in kinds.items()
    }
    misses = {
        "precise": _worst_miss(task, head, key=tasks_key),
        "alike": _worst_miss(task, block_attention(alike, blocks.gain), key=tasks_key),
    }
    return Prompt(tokens[:SHOWN], query, float(drawn.targets[0]), lengths, answers, misses)


def _beginning(tokens: Float[np.ndarray, "L d+1"], n: int) -> Empirical:
    """The first n tokens, repeated: the same measure, and all prompts share a compilation. n divides their number."""
    return Empirical(np.tile(tokens[:n], (len(tokens) // n, 1)))


def _worst_miss(task: LinearRegression, head: Attention, *, key: PRNGKeyArray) -> float:
    """The largest error on infinite prompts, over random tasks and queries, relative to the root mean square label."""
    task_key, query_key = jr.split(key)
    tasks = jr.normal(task_key, (TASKS, task.dimension))
    queries = jr.normal(query_key, (TASKS, task.dimension)) @ jnp.linalg.cholesky(task.cov).T

    return float(_largest_miss(task, head, tasks, queries) / jnp.sqrt(jnp.trace(task.cov)))


@jax.jit
def _largest_miss(
    task: LinearRegression, head: Attention, tasks: Float[Array, "n d"], queries: Float[Array, "n d"]
) -> Float[Array, ""]:
    def miss(w, query):
        maps = jnp.concatenate([jnp.eye(task.dimension), w[None]])
        law = Gaussian(jnp.zeros(task.dimension + 1), maps @ task.cov @ maps.T)
        return attend(head, law, jnp.append(query, 0.0))[-1] - w @ query

    return jnp.max(jnp.abs(jax.vmap(miss)(tasks, queries)))


def numbers(prompt: Prompt) -> Numbers:
    """The prompt's entries, the answers by length, and the head on infinite prompts."""
    return Numbers(_table(prompt), (_exact_claim(prompt),))


def _table(prompt: Prompt) -> Table:
    """A row an entry of a token, and a row an answer."""
    columns = np.vstack([prompt.tokens, np.append(prompt.query[:-1], prompt.label)])
    rows = [
        {"part": PROMPT, "place": place + 1, "entry": "y" if row == columns.shape[1] - 1 else f"x{row + 1}", "value": x}
        for place, column in enumerate(columns)
        for row, x in enumerate(column)
    ]
    rows += [
        {"part": ANSWER, "place": length, "entry": name, "value": value}
        for name, values in prompt.answers.items()
        for length, value in zip(prompt.lengths, values, strict=True)
    ]
    meanings = {
        "part": Column("Entries of the prompt, or answers to its query", "name"),
        "place": Column("Of an entry: which token, the query last. Of an answer: tokens in the prompt, L", "tokens"),
        "entry": Column("A covariate's entry, the label (the query's is what is asked for), or who answers", "name"),
        "value": Column("Its value", absolute=1e-9),
    }
    return Table(pd.DataFrame(rows), meanings)


def _exact_claim(prompt: Prompt) -> Claim:
    """On an infinite prompt the balanced head answers with the label; one of the same size that ignores Σ does not."""
    return Claim(
        id="icl-infinite-fills-in",
        statement=(
            f"On an infinite prompt the head (A*, b*) fills in the label: its largest error over {TASKS} tasks and "
            "queries, relative to the root mean square of labels."
        ),
        source="derived here",
        box="bb26-lemma-2-1",
        measured=prompt.misses["precise"],
        expected=0.0,
        tolerance=ROUNDING,
        alternative=Alternative("a head of the same size with A along the identity", prompt.misses["alike"]),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The prompt as a grid, the answers as curves."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.0), width_ratios=(1.25, 1))
    asked = _draw_prompt(left, table[table["part"] == PROMPT])
    answers = table[table["part"] == ANSWER]
    for (name, mine), colour in zip(answers.groupby("entry", sort=False), ("C0", "C1"), strict=True):
        right.plot(mine["place"], mine["value"], color=colour, linewidth=2, marker="o", markersize=4)
        farthest = mine.loc[(mine["value"] - asked).abs().idxmax()]
        label(right, farthest["place"], farthest["value"], str(name), colour, xytext=(8, 4))
    right.axhline(asked, color=ink(), linestyle="--", linewidth=1.5)
    label(right, answers["place"].max(), asked, "label\nasked for", ink(), xytext=(14, 0))
    right.set(xscale="log", xlabel="prompt length $L$", ylabel="answer to the query")
    headline(figure, "A prompt shows pairs of one hidden task and asks for one label")
    return figure


def _draw_prompt(axes: Axes, cells: pd.DataFrame) -> float:
    """A cell an entry; the query's label is left open, and returned."""
    names = list(dict.fromkeys(cells["entry"]))
    grid = cells.pivot(index="entry", columns="place", values="value").loc[names]
    values = grid.to_numpy().copy()
    asked = float(values[-1, -1])
    values[-1, -1] = np.nan
    size = np.nanmax(np.abs(values))
    signed = _signed()
    axes.pcolormesh(np.ma.masked_invalid(values), cmap=signed, vmin=-size, vmax=size, edgecolors="face")
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            text = "?" if np.isnan(values[row, column]) else f"{round(values[row, column], 1) + 0.0:.1f}"
            colour = ink() if text == "?" else _readable(signed((values[row, column] / size + 1) / 2))
            text = text.replace("-", "−")
            axes.text(column + 0.5, row + 0.5, text, color=colour, ha="center", va="center", fontsize=9)
    axes.axhline(rows - 1, color=ink(), linewidth=1.5)
    axes.axvline(columns - 1, color=ink(), linewidth=1.5)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(columns) + 0.5, [*(f"$z_{i}$" for i in range(1, columns)), "query"])
    axes.set_yticks(np.arange(rows) + 0.5, [*(f"$x_{{{i}}}$" for i in range(1, rows)), "label $y$"])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return asked


def _readable(cell: tuple[float, ...]) -> str:
    """The ink that is read on a cell of this colour, dark on light or light on dark."""
    return INK["light" if np.dot(cell[:3], (0.3, 0.59, 0.11)) > 0.4 else "dark"]


def _signed() -> LinearSegmentedColormap:
    """Colours of signed numbers: zero is the colour of the sheet."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return LinearSegmentedColormap.from_list("signed", [cycle[3], mpl.rcParams["axes.facecolor"], cycle[2]], N=21)
