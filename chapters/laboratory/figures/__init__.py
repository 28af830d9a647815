"""Figures of the chapter laboratory: one module per figure."""
