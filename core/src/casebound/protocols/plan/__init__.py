"""The published versions of stage `plan`, one file each."""
