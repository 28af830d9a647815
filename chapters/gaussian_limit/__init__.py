"""An infinite Gaussian prompt is linear attention; finite prompts and other laws depart from it."""
