"""Figures of the chapter opposite_heads: one module per figure."""
