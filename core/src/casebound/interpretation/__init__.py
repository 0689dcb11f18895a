"""Context, interpretation, summary; with resolution, and without it."""
