"""Stand-ins for serving engines: modules with the interfaces that they ask for, and nothing behind them."""

from __future__ import annotations

import enum
import sys
from types import ModuleType, SimpleNamespace


def install(patch, **modules):
    """Put modules in place; names are written with __ for a dot."""
    for name, members in modules.items():
        parts = name.split("__")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            if path not in sys.modules or not hasattr(sys.modules[path], "is_stand_in"):
                module = ModuleType(path)
                module.is_stand_in = True
                module.__path__ = []
                patch.setitem(sys.modules, path, module)
        vars(sys.modules[".".join(parts)]).update(members)


def forget(patch, package):
    """Import a package of ours anew, against the stand-ins."""
    for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
        patch.delitem(sys.modules, name)


class Direction(enum.Enum):
    UNIDIRECTIONAL = 0
    SWAP = 1


class V1Base:
    pass


class V2Base:
    pass


class Options(enum.Enum):
    JSON = 1
    JSON_OBJECT = 2
    REGEX = 3
    GRAMMAR = 4
    CHOICE = 5
    STRUCTURAL_TAG = 6


class BackendBase:
    def __init__(self, vllm_config, tokenizer, vocab_size):
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size


class SchedulerBase:
    def __init__(self, vllm_config, tokenizer):
        self.vllm_config = vllm_config
        self.structured_output_manager = SimpleNamespace(backend=None, tokenizer=tokenizer)


def vllm_config(tokenizer, width):
    model = SimpleNamespace(
        tokenizer=tokenizer,
        hf_config=SimpleNamespace(eos_token_id=2),
        get_vocab_size=lambda: width,
        try_get_generation_config=lambda: {"eos_token_id": [2, 0]},
    )
    return SimpleNamespace(model_config=model)


def install_vllm(patch):
    """Put vLLM's stand-in in place."""
    interface = "vllm__v1__worker__gpu__sample__logits_processor__interface"
    install(
        patch,
        vllm={"SamplingParams": SimpleNamespace, "TokensPrompt": dict},
        vllm__sampling_params={"StructuredOutputsParams": SimpleNamespace},
        vllm__tokenizers={"cached_tokenizer_from_config": lambda model: model.tokenizer},
        vllm__v1__sample__logits_processor={"LogitsProcessor": V1Base},
        vllm__v1__core__sched__async_scheduler={"AsyncScheduler": SchedulerBase},
        vllm__v1__structured_output__backend_types={
            "StructuredOutputBackend": BackendBase,
            "StructuredOutputGrammar": object,
            "StructuredOutputOptions": Options,
        },
        **{interface: {"LogitsProcessor": V2Base}},
    )
    forget(patch, "healfsa.integrations.vllm")


class GrammarObject:
    def __init__(self):
        self.current_token = None


class InvalidGrammar(GrammarObject):
    def __init__(self, message="Unknown grammar error"):
        super().__init__()
        self.error_message = message


class GrammarBackend:
    pass


def install_sglang(patch):
    """Put SGLang's stand-in in place; return its registries."""
    choices, registry = ["xgrammar"], {}
    install(
        patch,
        sglang__srt__arg_groups__choices={
            "GRAMMAR_BACKEND_CHOICES": choices,
            "add_grammar_backend_choices": choices.extend,
        },
        sglang__srt__constrained__base_grammar_backend={
            "BaseGrammarBackend": GrammarBackend,
            "BaseGrammarObject": GrammarObject,
            "InvalidGrammarObject": InvalidGrammar,
            "register_grammar_backend": registry.__setitem__,
        },
        sglang__srt__sampling__custom_logit_processor={"CustomLogitProcessor": object},
    )
    forget(patch, "healfsa.integrations.sglang")
    return choices, registry
