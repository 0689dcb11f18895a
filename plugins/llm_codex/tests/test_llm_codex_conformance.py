"""The provider passes the suite of all providers, as far as an executor can: it speaks no HTTP itself."""

from pathlib import Path

import pytest
from casebound.testing.conformance.provider import Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound.testing.scripted_program import Play, ScriptedProgram
from casebound_llm_codex.provider import CodexProvider
from casebound_llm_codex.settings import CodexSettings

REPLIES = Path(__file__).parent / "replies"
SUCCESS = (REPLIES / "success.jsonl").read_bytes()
NONSENSE = b'"usage":{"input_tokens":-1,"cached_input_tokens":1.5,"output_tokens":"60","reasoning_output_tokens":true}'


def reply(name, status=0):
    return events((REPLIES / f"{name}.jsonl").read_bytes(), status)


def events(body, status=0):
    return Response(body=body, headers={"exit-status": str(status)})


class TestCodex(ProviderConformance):
    capabilities = Capabilities(http=False, key=False)
    replies = Replies(
        text='{"decision":"accept","confidence":90}',
        success=events(SUCCESS),
        without_usage=events(SUCCESS[: SUCCESS.index(b',"usage"')] + b"}\n"),
        nonsense_usage=events(SUCCESS[: SUCCESS.index(b'"usage"')] + NONSENSE + b"}\n"),
        refusal=reply("content_filter", status=1),
        cut_off=reply("cut_off", status=1),
        tool_call=reply("command"),
        no_text=reply("no_output"),
        error_in_success=reply("http_500", status=1),
        quota=reply("quota", status=1),
        empties={name: reply(name) for name in ("no_output", "refusal")},
        errors={
            "401": (reply("http_401", status=1), "LLM_AUTH"),
            "429": (reply("http_429", status=1), "LLM_RATE_LIMITED"),
            "400": (reply("bad_request", status=1), "LLM_REQUEST"),
            "503": (reply("http_503", status=1), "LLM_UNAVAILABLE"),
            "nobody listens": (reply("refused_connection", status=1), "LLM_UNAVAILABLE"),
        },
    )

    @pytest.fixture
    def provider(self, tmp_path):
        program = ScriptedProgram(tmp_path / "bin", "codex", "codex-cli 0.171.0")
        program.plays(Play(output=SUCCESS))
        return CodexProvider(CodexSettings(program=str(program.path), base_url="http://127.0.0.1:9/v1"))
