"""Shared style of the figures of this chapter, and names in their tables."""

# Scalings of the scores.
FIXED, ROOT, LOGARITHM = "1", "√ln L", "ln L"
# Averages over prompts.
MEAN, TYPICAL = "mean", "typical"
# Distributions of the scores.
NORMAL, UNIFORM = "normal", "uniform"
# Length of the prompts whose participation is split by score, as ln L.
LOG_LENGTH = 300.0
# Colour and label of each scaling.
COLOURS = {FIXED: "C0", ROOT: "C2", LOGARITHM: "C1"}
LABELS = {FIXED: "scores unchanged", ROOT: r"scores $\times\sqrt{\ln\,L}$", LOGARITHM: r"scores $\times\ln\,L$"}
