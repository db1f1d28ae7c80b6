"""The served retriever: Ray Serve in front of the same pools that a run uses."""
