"""Using a trained model: loading it, sampling, translating, scoring, inspecting."""
