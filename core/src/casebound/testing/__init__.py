"""Help for the tests of plugins: conformance suites, fakes, and a pytest plugin. Nothing in casebound imports this."""
