"""Intake: the bytes of a report → an admitted report → `case.json`. No model, no database, no clock."""
