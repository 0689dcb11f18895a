"""The suite that every model provider passes, ours and yours.

Subclass `ProviderConformance`, name the class `Test…`, supply the fixture `provider` and the value `replies`:

    class TestEcho(ProviderConformance):
        capabilities = Capabilities(http=False, usage=False)
        replies = Replies(text="{}", success=Response(body=b'{"text":"{}"}'))

        @pytest.fixture
        def provider(self):
            return EchoProvider(EchoSettings())

A provider that posts JSON also says what a request's body means (`asked`) and what stands in each body beside that
(`always`); then its requests are compared with what was to be asked. What a provider cannot do is declared in
`capabilities` and skips visibly; so does a reply that it cannot get.
"""

from __future__ import annotations

from casebound.testing.conformance.provider_asking import AskingConformance
from casebound.testing.conformance.provider_reading import ReadingConformance
from casebound.testing.conformance.provider_replies import Asked, Capabilities, Replies
from casebound.testing.conformance.provider_secrets import SecretsConformance
from casebound.testing.conformance.provider_sending import SendingConformance
from casebound.testing.conformance.secret import CANARY

__all__ = ["CANARY", "Asked", "Capabilities", "ProviderConformance", "Replies"]


class ProviderConformance(ReadingConformance, AskingConformance, SendingConformance, SecretsConformance):
    """What is promised in `casebound.llm.provider.Provider`, test by test."""
