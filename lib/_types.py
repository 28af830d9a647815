"""Types of arguments that more than one module takes."""

import numpy as np
from jaxtyping import Array, Float, Num, Real

# An array of JAX or of NumPy, for example `Float[AnyArray, "n d"]`.
AnyArray = Array | np.ndarray
# A real number: of Python or an array of shape ().
Scalar = float | int | Float[AnyArray, ""]
# Real numbers of any shape.
Scalars = float | int | Real[AnyArray, "..."]
# An array of numbers of any kind and shape.
Numeric = Num[AnyArray, "..."]
