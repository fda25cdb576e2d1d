"""Attention with any mechanism in one call, for batches and heads.

>>> import jax, attnlab
>>> x = jax.random.normal(jax.random.key(0), (2, 10, 8, 16))  # [batch, tokens, heads, width]
>>> q, k, v = x, x[:, :, :2], x[:, :, 2:4]  # each key head serves four query heads
>>> attnlab.attention(q, k, v, "linear", causal=True).shape
(2, 10, 8, 16)
>>> cache = attnlab.init_cache("linear", batch=2, length=10, heads=8, width=16, key_heads=2)
>>> y, cache = attnlab.decode_step(cache, q[:, :4], k[:, :4], v[:, :4])  # the first four tokens
>>> y.shape
(2, 4, 8, 16)
"""

from attnlab.functional.attention import attention
from attnlab.functional.decoding import DecodingCache, decode_step, init_cache

__all__ = ["DecodingCache", "attention", "decode_step", "init_cache"]
