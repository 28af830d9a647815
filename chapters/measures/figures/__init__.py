"""Figures of the chapter measures: one module per figure."""
