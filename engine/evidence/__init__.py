"""Evidence: what is kept of the passages that were read, and how it is shown to a model."""
