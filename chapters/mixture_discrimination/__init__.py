"""Telling two classes apart with one head: its gate, the landscape of the risk, gradient flow and training."""
