"""Chapter on the heads of a trained network, MiniLM-L6: their regimes on a text, compared with the theory."""
