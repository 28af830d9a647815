"""Attention on Gaussian mixtures of two components: telling two classes apart, and removing noise."""
