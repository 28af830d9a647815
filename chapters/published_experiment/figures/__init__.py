"""Figures of the chapter published_experiment: one module per figure."""
