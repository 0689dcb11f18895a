"""One suite a kind of plugin: subclass it in a test module, supply what it asks for, run pytest."""
