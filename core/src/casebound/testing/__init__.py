"""Conformance suites, fakes and a pytest plugin for plugin authors. Nothing in casebound imports this package."""
