"""Figures of the chapter real_heads: one module per figure."""
