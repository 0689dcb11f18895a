"""The published versions of stage `interpretation`, one file each."""
