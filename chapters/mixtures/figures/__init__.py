"""Figures of the chapter: one module per figure."""
