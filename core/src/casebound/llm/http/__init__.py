"""What every provider that speaks HTTP does in the same way: settings, sending, reading an envelope, telling failures.

Only plugins import it, and core never does: it needs the extra `casebound[http]`. `settings`, `envelope` and `failure`
import no HTTP library; `sender` does, so import it where the provider itself is, not where its settings are.
"""
