"""When to stop: first-crossing policies, their thresholds, what is guaranteed about them, and whether they pay."""
