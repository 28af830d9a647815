r"""One head has a larger risk than its opposite pair, by the mean square of the even part of its output.

One head with key $\omega$ and its best value is compared with the pair that has the keys $\pm\omega$ and half of this
value with both signs. Solid curves: the exact difference of the two mean square errors, one curve per prompt length.
Points: the mean square of $(f(x_q)+f(-x_q))/2$ over simulated prompts, where $f$ is the output of the single head, with
two standard errors. Dashed curves: the form for long prompts.

Alt: Chart with a logarithmic vertical axis. Solid curves, one per prompt length, with points on them. Each has a dashed
curve, which is close to it for small keys and rises far above it for large keys.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.opposite_heads.prices import Prices
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, label, legend_line, legend_point, legend_with, ticks_at
from lib.statistics import standard_error


def numbers(prices: Sequence[Prices]) -> Numbers:
    """Return the exact and the simulated cost by length and key, and the claim that they agree."""
    groups = [
        {
            "length": price.length,
            "key": price.keys,
            "exact": price.exact,
            "long_prompts": price.long_prompt,
            "even_part": price.squares.mean(axis=0),
            "even_part_std_error": standard_error(price.squares),
        }
        for price in prices
    ]
    columns = {
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "key": Column("Key $ω$ of the single head"),
        "exact": Column("Mean square error of the single head minus that of its opposite pair, exact"),
        "long_prompts": Column("The same difference in its form for long prompts"),
        "even_part": Estimate("Mean square of the even part of the single head's output over simulated prompts"),
    }
    table = Table.of(groups, columns)
    exact, long_prompts = (
        (table.frame["even_part"] - table.frame[price]) / table.frame["even_part_std_error"]
        for price in ("exact", "long_prompts")
    )
    claim = Claims("opposite-heads", source="derived here", box="query-even-part")
    claim.agree(
        "price",
        f"At {len(exact)} pairs of a prompt length and a key, the errors of a head and of the opposite pair with half "
        "of its value differ by the mean square of the even part of the head's output",
        exact,
        rejects=("the form for long prompts holds at these lengths", long_prompts),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, simulated points and the form for long prompts, in one colour per length."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(yscale="log", ylabel="extra risk of one head\nover its opposite pair")
    for length, colour, marker in coloured(sorted(table["length"].unique())):
        rows = table[table["length"] == length]
        axes.plot(rows["key"], rows["exact"], color=colour, linewidth=2)
        axes.plot(rows["key"], rows["long_prompts"], color=colour, linewidth=1.3, linestyle="--")
        error_bars(axes, rows["key"], rows["even_part"], rows["even_part_std_error"], color=colour, marker=marker)
        label(axes, rows["key"].iloc[-1], rows["exact"].iloc[-1], f"$L={length}$", colour, xytext=(9, 0))
    lines = {
        "extra risk, exact": legend_line("-"),
        "mean square of the even part of the output, simulated": legend_point(),
        "extra risk, form for long prompts": legend_line("--", 1.3),
    }
    ticks_at(axes.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    values = table[["exact", "long_prompts", "even_part"]]
    axes.set(xlabel=r"key $\omega$ of the single head", ylim=(0.8 * values.min().min(), 2.1 * values.max().max()))
    legend_with(axes, lines, loc="upper left")
    return figure
