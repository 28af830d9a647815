"""Colours and markers that the figures of this chapter share."""

# As in the chapter on finite samples: the best estimator, and the two trained heads.
COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}
COLOUR = COLOURS["Bayes-optimal"]
START_MARKERS = {"uninformed": "o", "informed": "s"}
