"""Ranges of tables that `draw` needs as well.

They are apart from the computations, so that an edit of a computation does not change a picture's code.
"""

# The largest coordinate of a query of the clouds.
LARGEST_QUERY = 3.0
# The largest prompt length of single-location regression, as a power of ten.
LARGEST_NEEDLE_DECADE = 12
# Prompt length and largest signal strength with several relevant tokens.
SEVERAL_LENGTH, LARGEST_SEVERAL_SNR = 100, 30
# Factors u of the scores, and the largest gain bu, of heads of in-context regression.
VALLEY_TILTS, LARGEST_VALLEY_GAIN = (0.05, 1.0), 2.0
