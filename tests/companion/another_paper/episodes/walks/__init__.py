"""How far random walks go, and how often they are back."""
