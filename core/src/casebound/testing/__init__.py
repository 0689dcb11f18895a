<<<<<<< HEAD
"""Help for the tests of plugins: conformance suites, fakes, and a pytest plugin. Nothing in casebound imports this."""
=======
"""Conformance suites and fakes for plugin authors. Nothing in casebound itself imports this package."""
>>>>>>> research
