"""Figures of the chapter sharp_rates: one module per figure."""
