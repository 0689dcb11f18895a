"""Named parts that versions share. Append only: a part that a published version uses never changes; a better one gets a new name."""
