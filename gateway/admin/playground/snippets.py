"""A call written out for a shell, for Python and for JavaScript: what a caller would run to have the same."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.contract.tasks import Task

WAIT_S = 120


def snippets(base_url: str, model: str, task: Task, given: Mapping[str, Any]) -> dict[str, str]:
    """Write a call in three ways."""
    if task == "chat":
        return _chat(base_url, model, given)
    body = {"model": model, "input": given}
    address = f"{base_url}/v1/requests"
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return {
        "curl": _curl(address, body, f'  -H "Prefer: wait={WAIT_S}" \\\n'),
        "Python": (
            "import os\nimport httpx\n\nanswer = httpx.post(\n"
            f'    "{address}",\n'
            "    headers={\n"
            '        "Authorization": f"Bearer {os.environ[\'FAREGATE_API_KEY\']}",\n'
            f'        "Prefer": "wait={WAIT_S}",\n'
            "    },\n"
            f"    json={_python(body)},\n    timeout={WAIT_S + 10},\n)\n"
            'print(answer.json()["output"])\n'
        ),
        "JavaScript": (
            f'const answer = await fetch("{address}", {{\n  method: "POST",\n  headers: {{\n'
            "    Authorization: `Bearer ${process.env.FAREGATE_API_KEY}`,\n"
            f'    "Content-Type": "application/json",\n    Prefer: "wait={WAIT_S}",\n  }},\n'
            f"  body: JSON.stringify({_indented(text, 2)}),\n}});\nconsole.log((await answer.json()).output);\n"
        ),
    }


def _chat(base_url: str, model: str, given: Mapping[str, Any]) -> dict[str, str]:
    body = {"model": model, **given, "stream": True}
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return {
        "curl": _curl(f"{base_url}/v1/chat/completions", body, "", flags="-N "),
        "Python": (
            "import os\nfrom openai import OpenAI\n\n"
            f'client = OpenAI(base_url="{base_url}/v1", api_key=os.environ["FAREGATE_API_KEY"])\n'
            f"stream = client.chat.completions.create(**{_python(body, 0)})\n"
            "for chunk in stream:\n    if chunk.choices:\n"
            '        print(chunk.choices[0].delta.content or "", end="", flush=True)\n'
        ),
        "JavaScript": (
            'import OpenAI from "openai";\n\n'
            f'const client = new OpenAI({{ baseURL: "{base_url}/v1", apiKey: process.env.FAREGATE_API_KEY }});\n'
            f"const stream = await client.chat.completions.create({text});\n"
            'for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n'
        ),
    }


def _curl(address: str, body: Mapping[str, Any], more: str, flags: str = "") -> str:
    data = json.dumps(body, indent=2, ensure_ascii=False).replace("'", "'\\''")
    return (
        f'curl {flags}{address} \\\n  -H "Authorization: Bearer $FAREGATE_API_KEY" \\\n'
        f"  -H \"Content-Type: application/json\" \\\n{more}  -d '{data}'"
    )


def _python(value: Any, by: int = 4) -> str:
    """Write data as Python: JSON but for three words."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    for word, other in ((": true", ": True"), (": false", ": False"), (": null", ": None")):
        text = "\n".join(line.replace(word, other) if line.rstrip(",").endswith(word) else line
                         for line in text.split("\n"))  # fmt: skip
    return _indented(text, by)


def _indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)
