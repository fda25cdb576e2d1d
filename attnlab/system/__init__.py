"""The machine and the process: device, cores, environment, settings of jax, signals and standard streams."""
