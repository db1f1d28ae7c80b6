"""Where a run happens: actors, pools, shards and commits on Ray."""
