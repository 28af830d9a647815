"""A head is two vectors, and what its risk knows of them is seven scalar products."""

import equinox as eqx
from jaxtyping import Array, Float

from lib._checks import as_float


class Head(eqx.Module):
    """A single attention head of one output: it scores tokens by the vector k and reads their values by the vector v.

    Their lengths are the caller's: √D and `Σ_l s_l(Xk/√D) (Xv/√D)_l` in [D26], the unit sphere in [M24].
    """

    key: Float[Array, " D"]
    value: Float[Array, " D"]


class Overlaps(eqx.Module):
    """Scalar products of the key vector k and the value vector v with the hidden k*, v* and each other, over D.

    `m_k = k·k*/D`, `q_k = |k|²/D`, `m_v = v·v*/D`, `q_v = |v|²/D`, and the cross overlaps `m_kv = k·v*/D`,
    `m_vk = v·k*/D`, `q_vk = k·v/D`, which vanish wherever the symmetry between k and v is not broken.
    """

    m_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_kv: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    m_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    q_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
