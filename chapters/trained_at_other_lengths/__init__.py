"""Heads that were trained at one prompt length and are used at another."""
