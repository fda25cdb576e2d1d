"""What the variants of a study will cost, how they are made equal, and whether they can be trained."""
