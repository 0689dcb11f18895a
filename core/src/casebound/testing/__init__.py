"""Conformance suites and fakes for plugin authors. Nothing in casebound itself imports this package."""
