"""Types of arguments that more than one module takes."""

import numpy as np
from jaxtyping import Array, Bool, Float, Num, Real

# An array of JAX or of NumPy, for example `Float[AnyArray, "n d"]`.
AnyArray = Array | np.ndarray
# A real number: of Python, of NumPy or an array of shape ().
Scalar = float | int | np.number | Float[AnyArray, ""]
# Real numbers of any shape.
Scalars = float | int | np.number | Real[AnyArray, "..."]
# An array of numbers of any kind and shape.
Numeric = Num[AnyArray, "..."]
# A truth value.
Truth = bool | np.bool_ | Bool[AnyArray, ""]
