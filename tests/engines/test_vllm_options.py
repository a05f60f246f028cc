"""What the engine `vllm` makes of a pool's models before vLLM sees them: options, sources, adapters, GPUs."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.contract.pools import ServedModel
from tests.engines.adapters import write_adapter
from workers.engines.vllm.devices import claim_devices
from workers.engines.vllm.options import BadModel, options_of, source_of
from workers.engines.vllm.serving import Serving, serving_of

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
TINY = {"source": "tiny:tiny-llama"}


def served(name: str = "m", **given: Any) -> ServedModel:
    return msgspec.convert({"name": name, "tasks": ["chat"]} | given, ServedModel)


def serving(models_dir: Path, *models: ServedModel, **options: Any) -> Serving:
    return serving_of(models or [served(**TINY, options=options)], models_dir)


def test_sources_are_folders_repositories_and_tiny_models(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    assert source_of(served(source="mine"), tmp_path).where == str(tmp_path / "mine")
    assert source_of(served(source=str(tmp_path / "mine")), tmp_path).local
    remote = source_of(served(source="someone/some-model.v2"), tmp_path)
    assert (remote.where, remote.local) == ("someone/some-model.v2", False)
    assert source_of(served(source="tiny:tiny-llama"), tmp_path).tiny == "tiny-llama"
    for bad in ("", "../secrets", "a/b/c", "-x/y", "https://example.com/x"):
        with pytest.raises(BadModel, match="neither"):
            source_of(served(source=bad), tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trust_remote_code", True),
        ("hf_overrides", {}),
        ("worker_cls", "os.system"),
        ("max_seqs", 1),
        ("speculative_config", NGRAM),
        ("quantization", "bitsandbytes"),
        ("kv_cache_dtype", "int1"),
        ("load_format", "pt"),
        ("tool_parser", "../parser.py"),
        ("revision", "a b"),
        ("devices", [-1]),
        ("speculative", NGRAM | {"trust_remote_code": True}),
        ("speculative", NGRAM | {"method": "custom_class"}),
        ("speculative", NGRAM | {"num_speculative_tokens": 1000}),
        ("speculative", {"method": "ngram", "num_speculative_tokens": 2}),
        ("speculative", {"method": "eagle", "num_speculative_tokens": 2}),
        ("speculative", {"method": "mtp", "num_speculative_tokens": 2, "prompt_lookup_max": 2}),
    ],
)
def test_options_outside_the_list_are_refused_by_name(tmp_path: Path, name: str, value: Any) -> None:
    model = served(source="a/b", options={name: value})
    with pytest.raises(BadModel, match=name):
        options_of(model, source_of(model, tmp_path))


def test_a_tiny_model_needs_no_options(tmp_path: Path) -> None:
    plan = serving(tmp_path, served(source="tiny:tiny-embed", tasks=["embedding"]))
    assert (plan.runner, plan.convert, plan.reranks) == ("pooling", "embed", False)
    assert (plan.options.enforce_eager, plan.options.dtype) == (True, "float32")


def test_how_a_model_ranks_is_left_to_its_own_configuration(tmp_path: Path) -> None:
    plan = serving(tmp_path, served(source="tiny:tiny-rerank", tasks=["rerank"]))
    assert (plan.runner, plan.convert, plan.reranks) == ("pooling", "auto", True)
    both = serving(tmp_path, served(source="tiny:tiny-embed", tasks=["embedding", "rerank"]))
    assert (both.runner, both.convert, both.reranks) == ("pooling", "embed", True)


@pytest.mark.parametrize(
    ("tasks", "options", "says"),
    [
        (["chat", "rerank"], {}, "need an engine of their own"),
        (["rerank"], {"runner": "generate"}, "runner"),
        (["chat"], {"runner": "pooling"}, "runner"),
        (["rerank"], {"speculative": NGRAM}, "speculative"),
        (["chat"], {"chat_template": "none.jinja"}, "chat_template"),
        (["chat"], {"chat_template": "../none.jinja"}, "chat_template"),
        (
            ["chat"],
            {"speculative": {"method": "eagle", "num_speculative_tokens": 2, "model": "../x"}},
            "speculative.model",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, tasks: list[str], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadModel, match=says):
        serving(tmp_path, served(source="a/b", tasks=tasks, options=options))


def test_a_template_and_a_smaller_model_are_found_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "plain.jinja").write_text("{{ messages }}")
    draft = {"method": "draft_model", "num_speculative_tokens": 2, "model": "someone/draft"}
    plan = serving(tmp_path, chat_template="plain.jinja", speculative=draft)
    assert (plan.template, plan.draft) == ("{{ messages }}", "someone/draft")
    assert [source.local for source in plan.sources] == [True, False], "the smaller one has to be fetched"


def test_adapters_and_further_names_share_the_process_of_their_base(tmp_path: Path) -> None:
    write_adapter(tmp_path / "lawyer", 1)
    write_adapter(tmp_path / "poet", 2)
    (tmp_path / "poet" / "adapter_config.json").write_text(json.dumps({"r": 4, "rank_pattern": {"q_proj": 40}}))
    models = [
        served("law", **TINY, options={"adapter": "lawyer"}),
        served("base", **TINY, options={"max_num_seqs": 8}),
        served("poem", **TINY, options={"adapter": str(tmp_path / "poet")}),
        served("cheap", **TINY),
        served("same", **TINY, options={"max_num_seqs": 8}),
    ]
    plan = serving(tmp_path, *models)
    assert (plan.name, plan.aliases, plan.refused) == ("base", ["cheap", "same"], {})
    assert {name: adapter.rank for name, adapter in plan.adapters.items()} == {"law": 8, "poem": 64}
    assert plan.options.max_num_seqs == 8


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"source": "tiny:tiny-embed"}, "give other a pool of its own"),
        ({"tasks": ["embedding"]}, "of another kind"),
        ({"options": {"max_num_seqs": 9}}, "max_num_seqs"),
        ({"options": {"adapter": "nowhere"}}, "adapter_model.safetensors"),
        ({"options": {"adapter": "pickled"}}, "adapter_model.safetensors"),
        ({"options": {"adapter": "../lawyer"}}, r"`\.\.`"),
        ({"options": {"adapter": "huge"}}, "at most 512"),
    ],
)
def test_a_name_that_cannot_be_served_beside_its_base_says_why(
    tmp_path: Path, given: dict[str, Any], says: str
) -> None:
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "adapter_model.bin").write_bytes(b"")
    huge = write_adapter(tmp_path / "huge", 1)
    (huge / "adapter_config.json").write_text('{"r": 1024}')
    plan = serving(tmp_path, served("base", **TINY), served("other", **(TINY | given)))
    assert plan.served == ["base"]
    with pytest.raises(BadModel, match=says):
        raise BadModel(plan.refused["other"])


def test_the_workers_of_a_pool_share_out_its_gpus(tmp_path: Path) -> None:
    plan = serving(tmp_path, devices=[0, 1, 2, 3, 4], tensor_parallel_size=2)
    claims = [claim_devices(plan, tmp_path / "locks") for _ in range(3)]
    assert [claim.devices for claim in claims] == [[0, 1], [2, 3], [0, 1]]
    claims[1].release()
    again = claim_devices(plan, tmp_path / "locks")
    assert again.devices == [2, 3]
    alone = claim_devices(serving(tmp_path, served("other", **TINY)), tmp_path / "locks")
    assert (alone.place, alone.devices) == (0, [])
    for claim in (claims[0], claims[2], again, alone):
        claim.release()
