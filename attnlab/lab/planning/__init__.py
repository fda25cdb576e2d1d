"""Planning of studies: costs of variants, matching, budgets, and checks before training."""
