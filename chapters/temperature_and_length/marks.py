"""How the pictures of this chapter draw what they share: a colour a scaling of the scores, a size."""

SIZE = (8.5, 4.5)
FIXED, ROOT, LOGARITHM = "1", "√ln L", "ln L"
# Colour, line and label of each scaling.
COLOURS = {FIXED: "C0", ROOT: "C2", LOGARITHM: "C1"}
LABELS = {FIXED: "scores left alone", ROOT: r"scores $\times\sqrt{\ln\,L}$", LOGARITHM: r"scores $\times\ln\,L$"}
