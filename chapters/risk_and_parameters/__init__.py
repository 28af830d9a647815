"""Long prompts determine the risk but not the parameters: valley drift, the price of one head, two opposite heads."""
