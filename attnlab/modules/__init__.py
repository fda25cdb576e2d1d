"""Flax modules: parameters, and calls to ops and mechanisms.

A module holds `nnx.Param`s and static facts, nothing that changes, and is a pytree: it goes straight into `jax.jit`,
`jax.vmap`, `jax.grad` and `jax.lax.scan`. Everything is written for one example.
"""
