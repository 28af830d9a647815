"""Figures of the chapter risk_and_parameters: one module per figure."""
