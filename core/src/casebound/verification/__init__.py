"""Derives a package again from its own bytes, offline, and says what holds: consistency, not authorship.

It needs the plugins whose protocols, rules and readers the package froze; no database, no provider and no clock.
"""

from casebound.verification.verification import Verification, verify_package

__all__ = ["Verification", "verify_package"]
