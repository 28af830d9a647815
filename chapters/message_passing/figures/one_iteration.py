r"""One iteration turns estimates into weights of tokens, and weighted tokens into better estimates.

Schematic of the iteration for the estimates $\hat k$ and $\hat v$ of the two hidden directions. Each token is projected
on both estimates, which leave out what the prompt of this token contributed. A prompt weights its tokens: those that
agree with $\hat k$, and whose value agrees with the label $y$, get most of the weight. The weighted tokens of all
prompts together give the next estimates.

Alt: Four boxes in a ring, joined by arrows: estimates; projections of each token; weights of the tokens of each prompt;
contributions of all prompts, which lead back to the estimates. The labels enter at the weights.
"""

from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.schematics import arrow, box, canvas
from companion.figures.style import WIDE, ink

numbers = no_numbers

SIZE = (2.85, 0.95)
LEFT, RIGHT, TOP, BOTTOM = 0.15, 5.35, 2.25, 0.15


def draw(_) -> Figure:
    """Draw the four steps as a ring of boxes."""
    figure, axes = canvas(WIDE, 3.5)
    box(axes, (LEFT, TOP), SIZE, "1. estimates $\\hat k$, $\\hat v$\nof both directions", "C2")
    box(axes, (RIGHT, TOP), SIZE, "2. fields: each token\nprojected on $\\hat k$ and on $\\hat v$", ink())
    box(axes, (RIGHT, BOTTOM), SIZE, "3. weights $p_l$: which token\nexplains the label?", "C0")
    box(axes, (LEFT, BOTTOM), SIZE, "4. weighted tokens\nof all prompts, added up", ink())
    middle = SIZE[1] / 2
    arrow(axes, (LEFT + SIZE[0] + 0.05, TOP + middle), (RIGHT - 0.05, TOP + middle))
    arrow(axes, (RIGHT + SIZE[0] / 2, TOP - 0.05), (RIGHT + SIZE[0] / 2, BOTTOM + SIZE[1] + 0.05))
    arrow(axes, (RIGHT - 0.05, BOTTOM + middle), (LEFT + SIZE[0] + 0.05, BOTTOM + middle))
    arrow(axes, (LEFT + SIZE[0] / 2, BOTTOM + SIZE[1] + 0.05), (LEFT + SIZE[0] / 2, TOP - 0.05))
    words = {"ha": "center", "va": "bottom", "fontsize": 10.5}
    centre = (LEFT + SIZE[0] + RIGHT) / 2
    axes.text(centre, TOP + middle + 0.08, "for each prompt,\nwithout its own part", **words)
    axes.text(LEFT + SIZE[0] / 2 + 0.12, 1.67, "better estimates", **(words | {"ha": "left", "va": "center"}))
    arrow(axes, (centre, 1.72), (RIGHT - 0.06, BOTTOM + SIZE[1] - 0.12), color="C1")
    axes.text(centre - 0.06, 1.72, "labels $y$", ha="center", va="bottom", color="C1", fontsize=12)
    return figure
