"""Figures of the chapter sinks_and_dependent_tokens: one module per figure."""
