"""What every provider that speaks HTTP does in the same way: settings, sending, reading an envelope, telling failures.

Only plugins import it, and core never does. `sender` alone imports an HTTP library and needs the extra
`casebound[http]`: import it where the provider itself is, not where its settings are. A provider that leaves HTTP to
another program uses the rest without that extra.
"""
