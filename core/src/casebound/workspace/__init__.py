"""Many cases: what stands in the index, who works on which case, and in what order they go on."""
