"""The machine and the process: device, cores, environment, settings of jax, signals, standard streams."""
