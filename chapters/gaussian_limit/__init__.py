"""Softmax attention on Gaussian tokens: linear for infinite prompts, and how finite prompts and other tokens differ."""
