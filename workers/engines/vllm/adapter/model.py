"""A loaded model.

`Vllm.start` blocks for 10 to 60 s; everything else belongs on the event loop. What vLLM does itself in a thread of
its own: templates, tokenising, and the check of formats.
"""

import asyncio
import random
from typing import Any

from vllm.exceptions import VLLMClientError
from vllm.inputs import TokensPrompt
from vllm.lora.request import LoRARequest
from vllm.pooling_params import PoolingParams
from vllm.renderers import ChatParams
from vllm.renderers.inputs.preprocess import parse_model_prompt
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.metrics.loggers import StatLoggerBase

from workers.engine import EngineLost, RefusedInput
from workers.engines.vllm.adapter.arguments import arguments_of
from workers.engines.vllm.adapter.lora import check_fit
from workers.engines.vllm.adapter.pairs import PairWriter
from workers.engines.vllm.adapter.tools import ToolReader, parser_class, tool_reader
from workers.engines.vllm.serving import Adapter, Serving
from workers.engines.vllm.shapes import Constraint, Draw, Generation, Load, Origin, Pooled, Prompt, Scoring, Step

DEAD = "The engine of this model has died."


class _Llm(AsyncLLM):  # type: ignore[misc]  # vLLM is not followed by the type checker
    """vLLM's engine, which is always stopped by `Vllm.stop`: its own end fails where the interpreter ends first."""

    def __del__(self) -> None:
        pass


class _Gauge(StatLoggerBase):  # type: ignore[misc]
    """Keeps the last word of the engine about how full it is."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
    ) -> None:
        if scheduler_stats is not None:
            self._load.running = scheduler_stats.num_running_reqs
            self._load.waiting = scheduler_stats.num_waiting_reqs
            self._load.kv_share = scheduler_stats.kv_cache_usage

    def log_engine_initialized(self) -> None:
        pass


class _Generation:
    """A request inside the engine, by the collector into which its outputs go."""

    def __init__(self, llm: Any, collector: Any) -> None:
        self._llm = llm
        self._collector = collector

    async def step(self) -> Step:
        try:
            step: Step = self._collector.get_nowait() or await self._collector.get()
        except EngineDeadError:
            raise EngineLost(DEAD) from None
        return step

    async def abort(self) -> Step | None:
        try:
            await self._llm.abort(self._collector.request_id, internal=True)
            rest: Step | None = self._collector.get_nowait()
        except EngineDeadError:
            return None
        return rest


class Vllm:
    """A loaded model."""

    def __init__(self, llm: Any, load: Load, serving: Serving, tool_parser: Any, scoring: Scoring | None) -> None:
        self._llm = llm
        self._tool_parser = tool_parser
        self._template = serving.template
        self._pairs = PairWriter(llm, serving.template) if scoring == "pairs" else None
        self._adapters: dict[str, Any] = {}
        self.load = load
        self.scoring = scoring
        self.context_tokens: int = llm.model_config.max_model_len
        self.can_parse_tools = tool_parser is not None
        self._defaults: dict[str, Any] = llm.model_config.get_diff_sampling_param()

    @classmethod
    def start(cls, serving: Serving) -> "Vllm":
        """Load a model and start its engine; blocks. Raises what vLLM raises, mostly ValueError and RuntimeError."""
        load = Load()
        llm = _Llm.from_engine_args(arguments_of(serving), stat_loggers=[lambda config, index=0: _Gauge(load)])
        random.seed()  # vLLM seeds the generator of the whole process
        name = serving.options.tool_parser
        try:
            parser = None if name is None else parser_class(name, serving.source.where, llm.get_tokenizer())
            return cls(llm, load, serving, parser, _scoring(llm.model_config) if serving.reranks else None)
        except BaseException:
            llm.shutdown(timeout=5.0)
            raise

    async def adopt(self, name: str, adapter: Adapter) -> None:
        """Load a LoRA adapter to be called by `name`. Raises what vLLM raises where it does not fit the model."""
        check_fit(adapter, self._llm.model_config.hf_text_config)
        request = LoRARequest(lora_name=name, lora_int_id=len(self._adapters) + 1, lora_path=adapter.where)
        await self._llm.add_lora(request)
        self._adapters[name] = request

    @property
    def dead(self) -> bool:
        """Whether the engine has died."""
        return bool(self._llm.errored)

    def stop(self) -> None:
        """Stop the engine and its processes; blocks."""
        self._llm.shutdown(timeout=5.0)

    def forget(self) -> None:
        """Free what is left of a stopped engine, one turn of the event loop later: vLLM closes its sockets there."""
        self._llm.engine_core.resources.ctx.destroy(linger=0)

    async def chat_prompt(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], origin: Origin) -> Prompt:
        """Apply the chat template. Raises RefusedInput where the template or the context does not take it."""
        kwargs: dict[str, Any] = {"add_generation_prompt": True, "continue_final_message": False}
        if tools:
            kwargs["tools"] = tools
        params = ChatParams(chat_template=self._template, chat_template_kwargs=kwargs)
        extras = {"cache_salt": origin.salt}
        try:
            _, rendered = await self._llm.renderer.render_chat_async([messages], params, prompt_extras=extras)
        except (VLLMClientError, ValueError, TypeError) as error:
            raise RefusedInput(_reason(error)) from None
        return _prompt(rendered[0], origin)

    async def text_prompt(self, text: str, origin: Origin) -> Prompt:
        """Tokenise a text. Raises RefusedInput where the context does not take it."""
        parsed = parse_model_prompt(self._llm.model_config, text)
        extras = {"cache_salt": origin.salt}
        try:
            (rendered,) = await self._llm.renderer.render_cmpl_async([parsed], prompt_extras=extras)
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        return _prompt(rendered, origin)

    async def pair_prompt(self, query: str, document: str, origin: Origin) -> Prompt:
        """Write query and document as one text. Raises RefusedInput where the context does not take it."""
        if self._pairs is None:
            raise RefusedInput("This model does not judge pairs.")
        try:
            rendered, params = await self._pairs.write(query, document, origin.salt)
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        return _prompt(rendered, origin, params)

    def token_text(self, token: int) -> str:
        """Decode one token."""
        return str(self._llm.get_tokenizer().decode([token]))

    async def generate(self, request_id: str, prompt: Prompt, draw: Draw) -> Generation:
        """Hand a request to the engine. Raises RefusedInput and EngineLost."""
        # A format is checked by vLLM where it takes the request in: on the event loop, unless the prompt is raw.
        ready = prompt.ready
        if draw.constraint is not None:
            ready = TokensPrompt(prompt_token_ids=prompt.ids, cache_salt=prompt.origin.salt)
        lora = self._adapters.get(prompt.origin.model)
        try:
            collector = await self._llm.add_request(request_id, ready, self._sampling(draw), lora_request=lora)
        except EngineDeadError:
            raise EngineLost(DEAD) from None
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        except asyncio.CancelledError:
            await self._llm.abort(request_id)
            raise
        return _Generation(self._llm, collector)

    async def embed(self, request_id: str, prompt: Prompt, dimensions: int | None) -> Pooled:
        """Embed one text. Raises RefusedInput and EngineLost."""
        return await self._pool(request_id, prompt, PoolingParams(task="embed", dimensions=dimensions))

    async def score(self, request_id: str, prompt: Prompt) -> Pooled:
        """Judge one pair: one number, without bounds. Raises RefusedInput and EngineLost."""
        return await self._pool(request_id, prompt, prompt.pooling)

    async def _pool(self, request_id: str, prompt: Prompt, params: Any) -> Pooled:
        lora = self._adapters.get(prompt.origin.model)
        try:
            (result,) = [each async for each in self._llm.encode(prompt.ready, params, request_id, lora)]
        except EngineDeadError:
            raise EngineLost(DEAD) from None
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        numbers = result.outputs.data.float().cpu().numpy().astype("<f4")
        return Pooled(numbers=numbers.tobytes(), cached_tokens=min(result.num_cached_tokens or 0, len(prompt.ids)))

    def tool_reader(self, tools: list[dict[str, Any]]) -> ToolReader:
        """Make a reader of tool calls as this model writes them."""
        return tool_reader(self._tool_parser, self._llm, tools)

    def _sampling(self, draw: Draw) -> Any:
        given = {
            "temperature": draw.temperature,
            "top_p": draw.top_p,
            "top_k": draw.top_k,
            "min_p": draw.min_p,
            "presence_penalty": draw.presence_penalty,
            "frequency_penalty": draw.frequency_penalty,
            "repetition_penalty": draw.repetition_penalty,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return SamplingParams(
            **{**self._defaults, **chosen, "max_tokens": draw.max_tokens},
            n=draw.n,
            min_tokens=draw.min_tokens,
            seed=draw.seed,
            stop=draw.stop or None,
            ignore_eos=draw.ignore_eos,
            logprobs=draw.logprobs,
            prompt_logprobs=draw.prompt_logprobs,
            structured_outputs=_structured(draw.constraint),
            skip_special_tokens=not draw.keep_special,
            output_kind=RequestOutputKind.DELTA if draw.stream else RequestOutputKind.FINAL_ONLY,
        )


def _structured(constraint: Constraint | None) -> Any:
    match constraint:
        case None:
            return None
        case Constraint(kind="json_object"):
            return StructuredOutputsParams(json_object=True)
        case Constraint(kind=kind, value=value):
            return StructuredOutputsParams(**{kind: value})


def _scoring(config: Any) -> Scoring:
    """Say how a model compares texts: both read together, or a vector for each."""
    kind = config.score_type
    if kind == "cross-encoder":
        return "pairs"
    if kind == "bi-encoder":
        return "vectors"
    raise ValueError(f"this model ranks by {kind}, which is not served")


def _prompt(rendered: Any, origin: Origin, pooling: Any = None) -> Prompt:
    ids = rendered["prompt_token_ids"]
    if not ids:
        raise RefusedInput("The input has no tokens.")
    return Prompt(ids=ids, ready=rendered, origin=origin, pooling=pooling)


def _reason(error: Exception) -> str:
    """Say what vLLM has against an input: the first line, and not the whole of the input again."""
    return str(error.args[0] if error.args else error).partition("\n")[0][:300]
