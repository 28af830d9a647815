"""Constants that simulations and drawing code share."""

# [GBB26, Figure 2]: the standard deviation of tokens in a component.
TOKEN_STD = 1.0
# Numbers of steps after which iterates are shown, and after which they have ended away from λ = 1.
SHOWN_STEPS, STEPS = (3, 10, 100), 3000
