"""Figures of the chapter needle_in_a_long_prompt: one module per figure."""
