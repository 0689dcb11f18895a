"""The readers that core ships; each is a pure function of a report's text."""
