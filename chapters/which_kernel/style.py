"""Names and colours that the figures of this chapter share."""

COLOURS = {"exp": "C0", "1 + exp": "C5", "square": "C2", "softplus": "C4", "sigmoid": "C3"}
MARKERS = {"exp": "o", "1 + exp": "s", "square": "^", "softplus": "D", "sigmoid": "v"}
NAMES = {"exp": "$e^x$", "1 + exp": "$1+e^x$", "square": "$(1+x/2)^2$", "softplus": "softplus", "sigmoid": "sigmoid"}
# Sign of the curvature of each kernel.
CURVATURES = {"exp": "= 0", "1 + exp": "> 0", "square": "< 0", "softplus": "< 0", "sigmoid": "< 0"}
