"""Constants that simulations and drawing code share."""

# [GBB26, Table 1, C1]: the means of the two classes.
PUBLISHED_MEANS = ((1.0, 0.0), (0.0, 1.0))
# The families of minimisers, and distances from them at which flows start, the second that of [GBB26, Figure 1].
GATELESS, CONSTANT = "without gate", "constant gate"
LARGE_SIZE, PUBLISHED_SIZE = 0.1, 1e-6
# The entries of a head that are random when its training to tell classes apart starts.
STARTS = ("all entries random", "value only")
# [GBB26, Figure 2]: the standard deviations of tokens in a component, and of the noise.
TOKEN_STD, PUBLISHED_NOISE_STD = 1.0, 2.0
# Numbers of steps after which iterates are in the table, and the number after which they have converged except near
# λ = 1.
SHOWN_STEPS, STEPS = (3, 10, 100), 3000
