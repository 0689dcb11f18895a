"""Read-only look-ups in the operator's own database, and what they found, as captures that need no database again."""
