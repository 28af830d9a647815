"""Figures of the chapter concentration: one module per figure."""
