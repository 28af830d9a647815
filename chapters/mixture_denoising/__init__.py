"""Denoising of Gaussian mixtures by attention: how many heads, the iterated denoiser, finite prompts, training."""
