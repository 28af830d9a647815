"""Figures of the chapter worth_of_heads: one module per figure."""
