"""Figures of the chapter gaussian_limit: one module per figure."""
