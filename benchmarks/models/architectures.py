"""Models of many architectures, small enough to run in seconds: built from configuration classes, weights random.

Nothing is downloaded.  torch and transformers are imported by the functions that build with them.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Setting = int | float | str | bool | list[int] | list[str] | None
"""A field of a configuration class."""

_SEED = 20261122
_VOCABULARY = 128
_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A module in inference mode and what it is called with."""

    module: torch.nn.Module
    arguments: tuple[object, ...]
    keywords: Mapping[str, object] = field(default_factory=dict[str, object])


def build(name: str) -> Example:
    """Return the model of that name; the same weights and inputs each time."""
    return made(ARCHITECTURES[name])


def made(make: Callable[[], Example]) -> Example:
    """Return what ``make`` builds, in inference mode; the same weights and inputs each time."""
    import torch

    torch.manual_seed(_SEED)
    example = make()
    example.module.eval()
    return example


def _tokens(length: int = _LENGTH, batch: int = 1, vocabulary: int = _VOCABULARY) -> torch.Tensor:
    import torch

    return torch.randint(0, vocabulary, (batch, length))


def _decoder(config: str, model: str, **more: Setting) -> Callable[[], Example]:
    """A decoder of transformers over tokens."""

    def make() -> Example:
        import transformers

        settings: dict[str, Setting] = {
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": _VOCABULARY, "max_position_embeddings": 64,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        }  # fmt: skip
        settings.update(more)
        made = getattr(transformers, config)(**{name: value for name, value in settings.items() if value is not None})
        return Example(getattr(transformers, model)(made), (_tokens(),), {"use_cache": False})

    return make


def _encoder(config: str, model: str, with_mask: bool = True, **more: Setting) -> Callable[[], Example]:
    """An encoder of transformers over tokens and a padding mask."""

    def make() -> Example:
        import torch
        import transformers

        settings: dict[str, Setting] = {
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": _VOCABULARY, "max_position_embeddings": 64, "pad_token_id": 0,
        }  # fmt: skip
        settings.update(more)
        made = getattr(transformers, config)(**{name: value for name, value in settings.items() if value is not None})
        mask = torch.ones(2, _LENGTH, dtype=torch.int64)
        mask[1, 11:] = 0
        keywords = {"attention_mask": mask} if with_mask else {}
        return Example(getattr(transformers, model)(made), (_tokens(batch=2),), keywords)

    return make


def _vision(config: str, model: str, size: int = 32, **settings: Setting) -> Callable[[], Example]:
    """A model of transformers over images."""

    def make() -> Example:
        import torch
        import transformers

        made = getattr(transformers, config)(**settings)
        return Example(getattr(transformers, model)(made), (torch.randn(1, 3, size, size),))

    return make


_VIT = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip


def _t5() -> Example:
    import transformers

    config = transformers.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4, vocab_size=_VOCABULARY,
        decoder_start_token_id=0,
    )  # fmt: skip
    return Example(
        transformers.T5ForConditionalGeneration(config),
        (),
        {"input_ids": _tokens(), "decoder_input_ids": _tokens(8), "use_cache": False},
    )


def _bart() -> Example:
    import transformers

    config = transformers.BartConfig(
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=_VOCABULARY, max_position_embeddings=64,
    )  # fmt: skip
    return Example(
        transformers.BartModel(config),
        (),
        {"input_ids": _tokens(), "decoder_input_ids": _tokens(8), "use_cache": False},
    )


def _whisper() -> Example:
    import torch
    import transformers

    config = transformers.WhisperConfig(
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=_VOCABULARY, num_mel_bins=16, max_source_positions=32,
        max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return Example(
        transformers.WhisperModel(config),
        (),
        {"input_features": torch.randn(1, 16, 64), "decoder_input_ids": _tokens(8), "use_cache": False},
    )


def _clip() -> Example:
    import torch
    import transformers

    config = transformers.CLIPConfig(
        text_config={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": _VOCABULARY, "max_position_embeddings": 32, "eos_token_id": 2, "bos_token_id": 1,
            "pad_token_id": 0,
        },
        vision_config=_VIT,
        projection_dim=64,
    )  # fmt: skip
    return Example(
        transformers.CLIPModel(config), (), {"input_ids": _tokens(), "pixel_values": torch.randn(1, 3, 32, 32)}
    )


def _wav2vec2() -> Example:
    import torch
    import transformers

    config = transformers.Wav2Vec2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=(32, 32),
        conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        vocab_size=32, num_feat_extract_layers=2,
    )  # fmt: skip
    return Example(transformers.Wav2Vec2Model(config), (torch.randn(1, 400),))


def _mlp() -> Example:
    import torch
    from torch import nn

    module = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10), nn.Softmax(-1))
    return Example(module, (torch.randn(4, 64),))


def _cnn() -> Example:
    import torch
    from torch import nn

    module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return Example(module, (torch.randn(2, 3, 16, 16),))


def _recurrent(kind: str, **more: Setting) -> Callable[[], Example]:
    def make() -> Example:
        import torch

        module = getattr(torch.nn, kind)(32, 64, num_layers=2, batch_first=True, **more)
        return Example(module, (torch.randn(2, 5, 32),))

    return make


def _transformer_encoder() -> Example:
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
    return Example(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(2, 10, 64),))


def _multihead() -> Example:
    import torch

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, query: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
            return self.attention(query, memory, memory, need_weights=False)[0]

    return Example(Attention(), (torch.randn(2, 6, 64), torch.randn(2, 9, 64)))


def _unet() -> Example:
    import torch
    from torch import nn

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU())
            self.down = nn.Conv2d(16, 32, 3, stride=2, padding=1)
            self.middle = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.SiLU())
            self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
            self.last = nn.Conv2d(32, 3, 1)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            high = self.first(image)
            low = self.middle(self.down(high))
            wide = nn.functional.interpolate(low, scale_factor=2.0, mode="nearest")
            return self.last(torch.cat([high, self.up(low)], 1)) + wide.mean(1, keepdim=True)

    return Example(UNet(), (torch.randn(1, 3, 16, 16),))


def _lora() -> Example:
    import torch
    from torch import nn

    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(64, 64)
            self.down = nn.Linear(64, 8, bias=False)
            self.up = nn.Linear(8, 64, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + self.up(self.down(x)) * 0.5

    return Example(Adapted(), (torch.randn(4, 64),))


def _autoencoder() -> Example:
    import torch
    from torch import nn

    module = nn.Sequential(
        nn.Conv1d(4, 16, 5, stride=2, padding=2), nn.ELU(), nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.Tanh(),
        nn.ConvTranspose1d(32, 16, 4, stride=2, padding=1), nn.LeakyReLU(),
        nn.ConvTranspose1d(16, 4, 4, stride=2, padding=1),
    )  # fmt: skip
    return Example(module, (torch.randn(2, 4, 32),))


def _gated() -> Example:
    import torch
    from torch import nn

    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(64, 256)
            self.norm = nn.RMSNorm(128)
            self.back = nn.Linear(128, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.back(self.norm(nn.functional.glu(self.wide(x), -1)))) * x

    return Example(Gated(), (torch.randn(3, 7, 64),))


def _weight_norm() -> Example:
    import torch
    from torch import nn

    module = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(64, 32)), nn.Hardswish(), nn.Linear(32, 5))
    return Example(module, (torch.randn(2, 64),))


def _mixer() -> Example:
    import torch
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, 64, 8, stride=8)
            self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.channels = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
            self.norm = nn.LayerNorm(64)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.patch(image).flatten(2).transpose(1, 2)
            x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
            return (x + self.channels(self.norm(x))).mean(1)

    return Example(Mixer(), (torch.randn(1, 3, 32, 32),))


def _quantized() -> Example:
    import torch
    from torch import nn

    class Quantized(nn.Module):
        """A layer of 8-bit weights with a scale per row, and one of two 4-bit weights per byte."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("wide", torch.randint(-127, 128, (32, 64), dtype=torch.int8))
            self.register_buffer("scale", torch.rand(32, 1) * 0.01)
            self.register_buffer("packed", torch.randint(0, 256, (16, 16), dtype=torch.uint8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.relu(nn.functional.linear(x, self.wide.to(x.dtype) * self.scale))
            halves = torch.stack([self.packed & 15, self.packed >> 4], -1).to(x.dtype) - 8
            return nn.functional.linear(hidden, halves.reshape(16, 32) * 0.05)

    return Example(Quantized(), (torch.randn(4, 64),))


ARCHITECTURES: Mapping[str, Callable[[], Example]] = {
    "llama": _decoder("LlamaConfig", "LlamaForCausalLM"),
    "llama_bias_tied": _decoder("LlamaConfig", "LlamaForCausalLM", tie_word_embeddings=True, attention_bias=True),
    "mistral": _decoder("MistralConfig", "MistralForCausalLM", sliding_window=8),
    "qwen2": _decoder("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": _decoder("Qwen3Config", "Qwen3ForCausalLM", head_dim=16),
    "gemma": _decoder("GemmaConfig", "GemmaForCausalLM", head_dim=16),
    "gemma2": _decoder("Gemma2Config", "Gemma2ForCausalLM", head_dim=16, sliding_window=8),
    "gemma3": _decoder("Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=16, sliding_window=8),
    "granite": _decoder("GraniteConfig", "GraniteForCausalLM"),
    "granite_hybrid": _decoder(
        "GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", layer_types=["mamba", "attention"], mamba_n_heads=8,
        mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=8, shared_intermediate_size=128,
        num_local_experts=0, num_experts_per_tok=0,
    ),
    "granite_moe": _decoder(
        "GraniteMoeConfig", "GraniteMoeForCausalLM", num_local_experts=4, num_experts_per_tok=2,
        experts_implementation="batched_mm",
    ),
    "mixtral": _decoder(
        "MixtralConfig", "MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2,
        experts_implementation="batched_mm",
    ),
    "phi": _decoder("PhiConfig", "PhiForCausalLM"),
    "phi3": _decoder("Phi3Config", "Phi3ForCausalLM"),
    "olmo2": _decoder("Olmo2Config", "Olmo2ForCausalLM"),
    "cohere": _decoder("CohereConfig", "CohereForCausalLM"),
    "stablelm": _decoder("StableLmConfig", "StableLmForCausalLM"),
    "gpt_neox": _decoder("GPTNeoXConfig", "GPTNeoXForCausalLM", num_key_value_heads=None),
    "gpt2": _decoder(
        "GPT2Config", "GPT2LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=64, hidden_size=None,
        intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, num_key_value_heads=None,
        max_position_embeddings=None,
    ),
    "opt": _decoder("OPTConfig", "OPTForCausalLM", ffn_dim=128, word_embed_proj_dim=64, intermediate_size=None,
                    num_key_value_heads=None),
    "bloom": _decoder("BloomConfig", "BloomForCausalLM", n_layer=2, n_head=4, intermediate_size=None,
                      num_key_value_heads=None, max_position_embeddings=None, num_hidden_layers=None,
                      num_attention_heads=None),
    "falcon": _decoder("FalconConfig", "FalconForCausalLM", num_kv_heads=4, intermediate_size=None,
                       num_key_value_heads=None),
    "mamba": _decoder("MambaConfig", "MambaForCausalLM", state_size=8, intermediate_size=None,
                      num_attention_heads=None, num_key_value_heads=None, max_position_embeddings=None),
    "gpt_oss": _decoder("GptOssConfig", "GptOssForCausalLM", head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                        sliding_window=8, experts_implementation="batched_mm"),
    "deepseek_v3": _decoder(
        "DeepseekV3Config", "DeepseekV3ForCausalLM", kv_lora_rank=16, q_lora_rank=16, qk_nope_head_dim=16,
        qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
        first_k_dense_replace=1, n_group=2, topk_group=1, num_key_value_heads=4, experts_implementation="batched_mm",
    ),
    "recurrent_gemma": _decoder("RecurrentGemmaConfig", "RecurrentGemmaForCausalLM", lru_width=64, head_dim=16,
                                attention_window_size=8, num_hidden_layers=3, max_position_embeddings=None),
    "rwkv": _decoder("RwkvConfig", "RwkvForCausalLM", context_length=64, attention_hidden_size=64,
                     num_attention_heads=None, num_key_value_heads=None, max_position_embeddings=None),
    "mamba2": _decoder("Mamba2Config", "Mamba2ForCausalLM", num_heads=8, head_dim=16, state_size=16, n_groups=1,
                       chunk_size=8, intermediate_size=None, num_attention_heads=None, num_key_value_heads=None,
                       max_position_embeddings=None),
    "bamba": _decoder("BambaConfig", "BambaForCausalLM", attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16,
                      mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=8),
    "zamba2": _decoder("Zamba2Config", "Zamba2ForCausalLM", layers_block_type=["mamba", "hybrid"], mamba_d_state=8,
                       n_mamba_heads=8, mamba_headdim=16, mamba_ngroups=1, chunk_size=8, num_mem_blocks=1,
                       hybrid_layer_ids=[1], num_key_value_heads=4),
    "bert": _encoder("BertConfig", "BertModel"),
    "roberta": _encoder("RobertaConfig", "RobertaModel", max_position_embeddings=66),
    "distilbert": _encoder("DistilBertConfig", "DistilBertModel", dim=64, hidden_dim=128, n_layers=2, n_heads=4,
                           hidden_size=None, intermediate_size=None, num_hidden_layers=None, num_attention_heads=None),
    "electra": _encoder("ElectraConfig", "ElectraModel", embedding_size=32),
    "albert": _encoder("AlbertConfig", "AlbertModel", embedding_size=32),
    "modernbert": _encoder("ModernBertConfig", "ModernBertModel", local_attention=8, cls_token_id=1, sep_token_id=2,
                           bos_token_id=1, eos_token_id=2),
    "mpnet": _encoder("MPNetConfig", "MPNetModel", max_position_embeddings=66),
    "deberta": _encoder("DebertaV2Config", "DebertaV2Model", relative_attention=True, pos_att_type=["p2c", "c2p"],
                        position_buckets=8),
    "xlm": _encoder("XLMConfig", "XLMModel", emb_dim=64, n_layers=2, n_heads=4, hidden_size=None,
                    num_hidden_layers=None, num_attention_heads=None, intermediate_size=None),
    "t5": _t5,
    "bart": _bart,
    "whisper": _whisper,
    "wav2vec2": _wav2vec2,
    "clip": _clip,
    "vit": _vision("ViTConfig", "ViTModel", **_VIT),
    "deit": _vision("DeiTConfig", "DeiTModel", **_VIT),
    "dinov2": _vision("Dinov2Config", "Dinov2Model", **{**_VIT, "intermediate_size": 128}),
    "siglip_vision": _vision("SiglipVisionConfig", "SiglipVisionModel", **_VIT),
    "swin": _vision("SwinConfig", "SwinModel", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1],
                    num_heads=[2, 4], window_size=4),
    "resnet": _vision("ResNetConfig", "ResNetModel", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1],
                      layer_type="basic"),
    "convnext": _vision("ConvNextConfig", "ConvNextModel", hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    "mobilenet": _vision("MobileNetV2Config", "MobileNetV2Model", depth_multiplier=0.25, image_size=32,
                         initializer_range=0.3),
    "segformer": _vision("SegformerConfig", "SegformerModel", hidden_sizes=[16, 32], depths=[1, 1],
                         num_encoder_blocks=2, num_attention_heads=[1, 2], sr_ratios=[4, 2], patch_sizes=[7, 3],
                         strides=[4, 2], mlp_ratios=[2, 2]),
    "levit": _vision("LevitConfig", "LevitModel", size=64, image_size=64, hidden_sizes=[32, 48, 64],
                     num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8], initializer_range=0.2),
    "dpt": _vision("DPTConfig", "DPTForDepthEstimation", **{**_VIT, "num_hidden_layers": 4}, is_hybrid=False,
                   backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 16, 32, 32], fusion_hidden_size=16,
                   initializer_range=0.1),
    "mlp": _mlp,
    "cnn": _cnn,
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU", bidirectional=True),
    "elman": _recurrent("RNN", nonlinearity="relu", bidirectional=True),
    "transformer_encoder": _transformer_encoder,
    "multihead_attention": _multihead,
    "unet": _unet,
    "lora": _lora,
    "autoencoder": _autoencoder,
    "gated": _gated,
    "weight_norm": _weight_norm,
    "mixer": _mixer,
    "quantized": _quantized,
}  # fmt: skip
"""What builds each model, by name."""
