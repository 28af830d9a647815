"""How the pictures of this chapter name and draw what they share: a colour a scaling of the scores, a size."""

SIZE = (8.5, 4.5)
# Names in tables: of scalings, of averages over prompts, of laws of scores, of heads.
FIXED, ROOT, LOGARITHM = "1", "√ln L", "ln L"
MEAN, TYPICAL = "mean", "typical"
NORMAL, UNIFORM = "normal", "uniform"
SOFTMAX, SIGMOID, LINEAR = "softmax", "sigmoid", "linear"
# Colour, line and label of each scaling.
COLOURS = {FIXED: "C0", ROOT: "C2", LOGARITHM: "C1"}
LABELS = {FIXED: "scores left alone", ROOT: r"scores $\times\sqrt{\ln\,L}$", LOGARITHM: r"scores $\times\ln\,L$"}
