"""The offline provider passes the suite for providers; a server, a key and failures that it has not are declared so."""

import pytest
from casebound.canonical import canonical_bytes
from casebound.testing.conformance.provider import Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound_llm_offline.plan import answer
from casebound_llm_offline.provider import OfflineProvider, OfflineSettings

TEXT = '{"searches":[]}'
FREE = {"input_tokens": 0, "output_tokens": 0}
NOTHING_NAMED = (
    '{"catalogs":[],"entities":[],"known_names":[],"limits":{"max_searches":4},"roles":[],"sources":[],"task":"plan"}'
)


class TestOffline(ProviderConformance):
    capabilities = Capabilities(http=False, key=False)
    replies = Replies(text=TEXT, success=Response(body=canonical_bytes({"text": TEXT, "usage": FREE})))

    @pytest.fixture
    def provider(self):
        return OfflineProvider(OfflineSettings(), {"plan": answer})

    def model_request(self, **changes):
        return super().model_request(user=NOTHING_NAMED, **changes)
