"""Interactive figures: tables of exact numbers, which the page interpolates."""
