"""Conformance suites, fakes and a pytest plugin for plugin authors. Nothing in casebound itself imports this package."""
