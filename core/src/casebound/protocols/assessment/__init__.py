"""The published versions of stage `assessment`, one file each."""
