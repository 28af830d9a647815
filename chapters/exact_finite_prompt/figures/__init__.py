"""Figures of the chapter exact_finite_prompt: one module per figure."""
