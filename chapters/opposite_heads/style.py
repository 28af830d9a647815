"""Names of columns that the figures of this chapter share."""

# Columns that identify a training in tables.
RUN = ["start", "step_size", "seed"]
