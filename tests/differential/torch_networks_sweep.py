"""Networks of timm and of transformers, with seeded weights, as exported programs with a free batch, and a free sequence where there is
one, beside eager torch: python torch_networks_sweep.py [--networks NAME,...].

Needs torch, timm and transformers (tests/fixtures/requirements-networks.txt) and the built program. Language models are a few layers
of few columns. Says of each network whether it is equal, and ends with the number of those that are not.
"""

import argparse
import logging
import sys
import warnings

import timm
import torch
import transformers

from torch_sweep import compared

warnings.simplefilter("ignore")
logging.disable(logging.ERROR)
transformers.logging.set_verbosity_error()

TIMM = ("efficientnet_lite0 mobilenetv3_small_100 mobilenetv4_conv_small ghostnet_100 mixnet_s hrnet_w18_small resnest14d res2net50_26w_4s "
        "cspresnet50 dla34 repvgg_a0 convnextv2_atto edgenext_xx_small mobilevit_xxs mobilevitv2_050 poolformer_s12 deit_tiny_patch16_224 "
        "cait_xxs24_224 pit_ti_224 levit_128s crossvit_tiny_240 xcit_nano_12_p16_224 mixer_s32_224 resmlp_12_224 eva02_tiny_patch14_224 "
        "efficientformerv2_s0 fastvit_t8 tinynet_e lcnet_050 visformer_tiny").split()
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 200}
LATER = SMALL | {"num_key_value_heads": 2, "max_position_embeddings": 128, "head_dim": 16}
# Class, its configuration, what is other than in that, and what goes in: words, pictures of 64 x 64, a spectrum or a wave.
TRANSFORMERS = {
    "bert": ("BertModel", "BertConfig", SMALL, "words"),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL, "words"),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 200}, "words"),
    "albert": ("AlbertModel", "AlbertConfig", SMALL | {"embedding_size": 32}, "words"),
    "electra": ("ElectraModel", "ElectraConfig", SMALL | {"embedding_size": 32}, "words"),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL, "words"),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16,
                                                                 "max_relative_positions": 32}, "words"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 200, "n_positions": 128}, "words"),
    "opt": ("OPTModel", "OPTConfig", SMALL | {"ffn_dim": 128, "word_embed_proj_dim": 64}, "words"),
    "t5_encoder": ("T5EncoderModel", "T5Config", {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128, "vocab_size": 200}, "words"),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LATER, "words"),
    "mistral": ("MistralForCausalLM", "MistralConfig", LATER, "words"),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", LATER, "words"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", LATER, "words"),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", LATER, "words"),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", LATER | {"pad_token_id": 0}, "words"),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", SMALL | {"eos_token_id": 2}, "words"),
    "vit": ("ViTModel", "ViTConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "beit": ("BeitModel", "BeitConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "dinov2": ("Dinov2Model", "Dinov2Config", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "segformer": ("SegformerModel", "SegformerConfig", {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 40, 64]}, "pictures"),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "siglip_vision": ("SiglipVisionModel", "SiglipVisionConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "whisper_encoder": ("WhisperModel", "WhisperConfig", {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
                                                          "decoder_layers": 1, "decoder_attention_heads": 4, "max_source_positions": 50,
                                                          "vocab_size": 200, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                                                          "decoder_start_token_id": 1}, "spectrum"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", SMALL | {"conv_dim": [32] * 7, "num_conv_pos_embedding_groups": 4}, "wave"),
}


class Result(torch.nn.Module):
    """The first result of a network of transformers."""

    def __init__(self, module, argument):
        super().__init__()
        self.module, self.argument = module, argument

    def forward(self, x):
        made = self.module(**{self.argument: x})
        return made.logits if "logits" in made else made.last_hidden_state


def of_timm(name):
    module = timm.create_model(name, pretrained=False)
    size = module.default_cfg.get("input_size", (3, 224, 224))
    return module, torch.rand(2, *size), [0]


def of_transformers(name):
    model, config, options, kind = TRANSFORMERS[name]
    made = getattr(transformers, config)(**options)
    made._attn_implementation = "sdpa" if name not in ("deberta_v2", "t5_encoder", "segformer", "mpnet") else "eager"
    made.use_cache = False
    module = getattr(transformers, model)(made)
    if kind == "words":
        return Result(module, "input_ids"), torch.randint(3, 200, (2, 9)), [0, 1]
    if kind == "pictures":
        return Result(module, "pixel_values"), torch.rand(2, 3, 64, 64), [0]
    if kind == "wave":
        return Result(module, "input_values"), torch.rand(2, 4000), [0]
    return Result(module.encoder, "input_features"), torch.rand(2, 80, 100), [0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", help="names behind commas, as they are printed; all, unless it is said")
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    names = [f"timm.{name}" for name in TIMM] + [f"transformers.{name}" for name in TRANSFORMERS]
    equal = wrong = 0
    for name in arguments.networks.split(",") if arguments.networks else names:
        torch.manual_seed(arguments.seed)
        home, _, own = name.partition(".")
        module, x, free = (of_timm if home == "timm" else of_transformers)(own)
        module = module.eval()
        dims = {axis: torch.export.Dim(("batch", "sequence")[axis], min=2, max=64) for axis in free}
        try:
            with torch.no_grad():
                program = torch.export.export(module, (x,), dynamic_shapes=(dims,), strict=False)
                results, _ = torch.utils._pytree.tree_flatten(module(x))
        except Exception as error:  # what torch itself does not export
            print(f"{name}: not exported: {str(error).splitlines()[0][:300]}", flush=True)
            continue
        _, bad = compared(name, program, (x,), results, [name] * len(results), arguments.level)
        equal, wrong = equal + (bad == 0), wrong + (bad != 0)
        print(f"{name}: {'equal' if bad == 0 else 'wrong'}", flush=True)
    print(f"{equal + wrong} networks, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
