"""The distance of random walks, and how often they return."""
