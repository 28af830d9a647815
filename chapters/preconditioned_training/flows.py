"""The flows that this chapter compares, by name."""

PLAIN, PRECONDITIONED, BLOCKS = "plain", "preconditioned", "blocks"
# Powers of Σ⁻¹ on both sides of the gradient by a head's matrices, without and with the preconditioner.
HEAD_POWERS = {"head, plain": 0.0, "head, preconditioned": 1.0}
# Powers (p, q) of the gradient Σ^-p ∇_A Σ^-q of blocks.
BLOCK_POWERS = {"blocks, plain": (0.0, 0.0), "blocks, Σ⁻¹∇Σ⁻¹": (1.0, 1.0), "blocks, Σ⁻²∇Σ⁻¹": (2.0, 1.0)}
