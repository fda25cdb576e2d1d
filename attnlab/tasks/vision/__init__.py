"""Tasks on images: classification, detection and generation."""
