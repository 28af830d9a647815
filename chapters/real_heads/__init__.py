"""Whether the heads of a trained network are anywhere near the regimes of the theorem: MiniLM-L6 on a long text."""
