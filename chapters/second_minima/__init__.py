"""A second minimum of the published experiment's risk, the pass out of it, and changes of training that avoid it."""
