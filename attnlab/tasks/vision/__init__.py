"""Tasks on images: classes, detection, generation."""
