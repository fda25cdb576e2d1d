"""Using a trained model: loading, sampling, translating, scoring and inspecting it."""
