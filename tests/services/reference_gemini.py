"""Sends one request with the vendor's own package, as its documentation says; run by the interpreter that has it.

Standard input: {"base_url", "api_version", "model", "user", "config"}; `config` goes to `GenerateContentConfig`.
"""

import json
import os
import sys

from google import genai
from google.genai import types

asked = json.load(sys.stdin)
client = genai.Client(
    api_key=os.environ["REFERENCE_KEY"],
    http_options=types.HttpOptions(base_url=asked["base_url"], api_version=asked["api_version"]),
)
config = types.GenerateContentConfig(**asked["config"])
reply = client.models.generate_content(model=asked["model"], contents=asked["user"], config=config)
print(json.dumps({"text": reply.text, "response_id": reply.response_id, "version": genai.__version__}))
