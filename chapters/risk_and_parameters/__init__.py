"""Long prompts fix the risk, not the parameters: the drift along a valley, the price of one head, two heads."""
