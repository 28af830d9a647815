"""Figures of the chapter finite_samples: one module per figure."""
