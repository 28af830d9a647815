"""A head is two vectors; its risk depends on them through seven scalar products."""

import equinox as eqx
from jaxtyping import Array, Float

from lib._checks import as_float


class Head(eqx.Module):
    """A single attention head of one output: it scores tokens by the vector k and reads their values by the vector v.

    The caller chooses their lengths: √D and `Σ_l s_l(Xk/√D) (Xv/√D)_l` in [D26], the unit sphere in [M24].

    Attributes:
      key: the key vector k, shape (D,).
      value: the value vector v, shape (D,).
    """

    key: Float[Array, " D"]
    value: Float[Array, " D"]


class Overlaps(eqx.Module):
    """Scalar products of the key vector k and the value vector v with the hidden k*, v* and each other, over D.

    In the setting of [M24] all vectors have length 1 and nothing is divided by D.

    The three cross overlaps vanish wherever the symmetry between k and v is not broken. The leaves of a stack of heads
    have the same leading shape.

    Attributes:
      m_k: `k·k*/D`.
      q_k: `|k|²/D`.
      m_v: `v·v*/D`.
      q_v: `|v|²/D`.
      m_kv: the cross overlap `k·v*/D`.
      m_vk: the cross overlap `v·k*/D`.
      q_vk: the cross overlap `k·v/D`.
    """

    m_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_kv: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    m_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    q_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
