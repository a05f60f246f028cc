"""How a reranker's pairs of query and document are written, which its architecture and its tokenizer decide."""

from typing import Any

from vllm.entrypoints.pooling.scoring.io_processor import CrossEncoderIOProcessor
from vllm.entrypoints.pooling.typing import ScoringRenderParams
from vllm.pooling_params import PoolingParams
from vllm.renderers.chat_utils import ChatTemplateConfig


class PairWriter:
    """Writes pairs as a cross-encoder reads them, in a thread of vLLM's."""

    def __init__(self, llm: Any, template: str | None) -> None:
        labels = getattr(llm.model_config.hf_config, "num_labels", 0)
        if labels != 1:
            raise ValueError(f"a reranker gives one number for a pair, and this model gives {labels}")
        config = ChatTemplateConfig(chat_template=template)
        self._tokens = llm.renderer.default_cmpl_tok_params
        self._template = template
        self._writer = CrossEncoderIOProcessor(
            vllm_config=llm.vllm_config, renderer=llm.renderer, chat_template_config=config
        )

    async def write(self, query: str, document: str, salt: str) -> tuple[Any, Any]:
        """Give the prompt of a pair, and how it is to be pooled. Raises what vLLM raises for an unfit input."""
        params = ScoringRenderParams(
            data_1=query,
            data_2=document,
            chat_template=self._template,
            max_tokens_per_query=0,
            max_tokens_per_doc=0,
            tok_params=self._tokens,
            prompt_extras={"cache_salt": salt},
            skip_mm_cache=False,
            # Some models say that their number is to be left as it is. Relevance is always its logistic function.
            params=PoolingParams(task="classify", use_activation=False),
            lora_requests=None,
            priorities=0,
        )
        written = await self._writer.render_async(params)
        return written["prompts"], written["params"]
