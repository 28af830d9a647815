"""Figures of the chapter message_passing: one module per figure."""
