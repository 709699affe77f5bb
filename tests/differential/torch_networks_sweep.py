"""Networks of timm and of transformers, with seeded weights, as exported programs with a free batch, and a free sequence where there is
one, beside eager torch at two batches and two lengths: python torch_networks_sweep.py [--networks NAME,...].

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

from torch_sweep import compared, runs_of

warnings.simplefilter("ignore")
logging.disable(logging.ERROR)
transformers.logging.set_verbosity_error()

TIMM = ("efficientnet_lite0 mobilenetv3_small_100 mobilenetv4_conv_small ghostnet_100 mixnet_s hrnet_w18_small resnest14d res2net50_26w_4s "
        "cspresnet50 dla34 repvgg_a0 convnextv2_atto edgenext_xx_small mobilevit_xxs mobilevitv2_050 poolformer_s12 deit_tiny_patch16_224 "
        "cait_xxs24_224 pit_ti_224 levit_128s crossvit_tiny_240 xcit_nano_12_p16_224 mixer_s32_224 resmlp_12_224 eva02_tiny_patch14_224 "
        "efficientformerv2_s0 fastvit_t8 tinynet_e lcnet_050 visformer_tiny "
        "test_maxvit hiera_tiny_224 tiny_vit_5m_224 efficientformer_l1 mobileone_s0 repvit_m0_9 gcvit_xxtiny inception_next_atto starnet_s050 "
        "ghostnetv3_050 mambaout_femto fasternet_t0 shvit_s1 convit_tiny tnt_s_patch16_224 efficientvit_b0 efficientvit_m0 pvt_v2_b0 mvitv2_tiny "
        "swiftformer_xs botnet26t_256 halonet26t lambda_resnet26t test_nfnet test_vit3 test_coatnet coat_lite_tiny nest_tiny_jx twins_svt_small "
        "csatv2 hgnetv2_b0 rexnet_100 regnetz_005 focalnet_tiny_srf davit_tiny rdnet_tiny sequencer2d_s volo_d1_224").split()
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 200}
LATER = SMALL | {"num_key_value_heads": 2, "max_position_embeddings": 128, "head_dim": 16}
BACKBONE = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "backbone_config": {
    "model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "out_features": ["stage4"]}}
# Class, its configuration, what is other than in that, and what goes in (inputs_of).
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
    "modernbert": ("ModernBertModel", "ModernBertConfig", SMALL | {"num_hidden_layers": 3, "local_attention": 8, "pad_token_id": 0}, "masked words"),
    "xlm_roberta": ("XLMRobertaModel", "XLMRobertaConfig", SMALL, "masked words"),
    "fnet": ("FNetModel", "FNetConfig", SMALL, "words"),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", SMALL | {"embedding_size": 64}, "words"),
    "esm": ("EsmModel", "EsmConfig", SMALL | {"position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 2}, "masked words"),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, "masked words"),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 200}, "words"),
    "falcon": ("FalconForCausalLM", "FalconConfig", SMALL, "words"),
    "phi": ("PhiForCausalLM", "PhiConfig", LATER, "words"),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", LATER | {"sliding_window": 4}, "masked words"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", LATER | {"sliding_window": 4}, "masked words"),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", LATER, "words"),
    "granite": ("GraniteForCausalLM", "GraniteConfig", LATER, "words"),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", LATER | {"pad_token_id": 0}, "words"),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", LATER | {
        "first_k_dense_replace": 2, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "head_dim": 8,
        "num_key_value_heads": 4}, "words"),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", LATER | {"num_local_experts": 4}, "words"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", LATER | {
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}, "words"),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", LATER | {"layer_types": ["conv", "full_attention"]}, "words"),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "vocab_size": 200}, "fixed words"),
    "llama_cached": ("LlamaForCausalLM", "LlamaConfig", LATER, "cached words"),
    "qwen2_cached": ("Qwen2ForCausalLM", "Qwen2Config", LATER, "cached words"),
    "qwen3_cached": ("Qwen3ForCausalLM", "Qwen3Config", LATER, "cached words"),
    "t5": ("T5ForConditionalGeneration", "T5Config", {"d_model": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "d_kv": 16,
                                                      "d_ff": 128, "vocab_size": 200}, "two words"),
    "bart": ("BartModel", "BartConfig", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                                         "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 200}, "two words"),
    "siglip_text": ("SiglipTextModel", "SiglipTextConfig", SMALL, "words"),
    "clip": ("CLIPModel", "CLIPConfig", {"text_config": SMALL | {"eos_token_id": 2}, "vision_config": SMALL | {"image_size": 64, "patch_size": 16}},
             "words and pictures"),
    "siglip": ("SiglipModel", "SiglipConfig", {"text_config": SMALL, "vision_config": SMALL | {"image_size": 64, "patch_size": 16}},
               "words and pictures"),
    "detr": ("DetrForObjectDetection", "DetrConfig", {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
                                                      "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 10,
                                                      **BACKBONE}, "pictures"),
    "yolos": ("YolosForObjectDetection", "YolosConfig", SMALL | {"image_size": [64, 64], "patch_size": 16, "num_detection_tokens": 5}, "pictures"),
    "segformer_map": ("SegformerForSemanticSegmentation", "SegformerConfig", {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 40, 64],
                                                                              "decoder_hidden_size": 32}, "pictures"),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, "pictures"),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]}, "pictures"),
    "dinov3_vit": ("DINOv3ViTModel", "DINOv3ViTConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", {"hidden_sizes": [32, 40, 48], "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64]}, "pictures"),
    "deit": ("DeiTModel", "DeiTConfig", SMALL | {"image_size": 64, "patch_size": 16}, "pictures"),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", SMALL | {
        "image_size": 64, "patch_size": 16, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [16, 24, 32, 40],
        "fusion_hidden_size": 16, "is_hybrid": False}, "pictures"),
    "hubert": ("HubertModel", "HubertConfig", SMALL | {"conv_dim": [32] * 7, "num_conv_pos_embedding_groups": 4}, "wave"),
    "wavlm": ("WavLMModel", "WavLMConfig", SMALL | {"conv_dim": [32] * 7, "num_conv_pos_embedding_groups": 4}, "wave"),
    "ast": ("ASTModel", "ASTConfig", SMALL | {"max_length": 64, "num_mel_bins": 32}, "frames"),
    "patchtst": ("PatchTSTModel", "PatchTSTConfig", {"num_input_channels": 3, "context_length": 32, "patch_length": 4, "patch_stride": 4, "d_model": 32,
                                                     "num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 64}, "series"),
}
# What is compared, as far as a network makes it.
RESULTS = ("logits", "last_hidden_state", "pooler_output", "pred_boxes", "logits_per_image", "text_embeds", "image_embeds", "predicted_depth",
           "encoder_last_hidden_state")


class Results(torch.nn.Module):
    """The results of a network of transformers that takes these arguments; behind "past" stand keys and values of each layer."""

    def __init__(self, module, arguments):
        super().__init__()
        self.module, self.arguments = module, arguments

    def forward(self, *inputs):
        named = dict(zip(self.arguments, inputs))
        past = inputs[len(self.arguments):]
        if past:
            named["past_key_values"] = transformers.DynamicCache(list(zip(past[::2], past[1::2])))
        made = self.module(**named)
        results = [made[name] for name in RESULTS if isinstance(made.get(name), torch.Tensor)]
        if past:
            results += [each for layer in made.past_key_values.layers for each in (layer.keys, layer.values)]
        return results


def of_timm(name):
    module = timm.create_model(name, pretrained=False)
    size = module.default_cfg.get("input_size", (3, 224, 224))
    return module, [(torch.rand(batch, *size),) for batch in (2, 3)], [{0: BATCH}]


BATCH = torch.export.Dim("batch", min=2, max=64)
LENGTH = torch.export.Dim("length", min=2, max=64)
OTHER_LENGTH = torch.export.Dim("other_length", min=2, max=64)


def words(batch, length):
    return torch.randint(3, 200, (batch, length))


def mask(batch, length):
    """The first row is shorter by two."""
    made = torch.ones(batch, length, dtype=torch.int64)
    made[0, -2:] = 0
    return made


def past(batch, length):
    return [torch.randn(batch, LATER["num_key_value_heads"], length, LATER["head_dim"]) for _ in range(2 * LATER["num_hidden_layers"])]


def pictures(batch):
    return torch.rand(batch, 3, 64, 64)


BOTH = {0: BATCH, 1: LENGTH}
# Names of arguments, of a batch and a length what goes in, and which dims of it are free.
KINDS = {
    "words": (["input_ids"], lambda n, m: (words(n, m),), [BOTH]),
    "fixed words": (["input_ids"], lambda n, _: (words(n, 7),), [{0: BATCH}]),
    "masked words": (["input_ids", "attention_mask"], lambda n, m: (words(n, m), mask(n, m)), [BOTH] * 2),
    "cached words": (["input_ids"], lambda n, m: (words(n, 1), *past(n, m)), [{0: BATCH}] + [{0: BATCH, 2: LENGTH}] * 4),
    "two words": (["input_ids", "decoder_input_ids"], lambda n, m: (words(n, m), words(n, m - 2)), [BOTH, {0: BATCH, 1: OTHER_LENGTH}]),
    "words and pictures": (["input_ids", "pixel_values"], lambda n, m: (words(n, m), pictures(n + 1)),
                           [BOTH, {0: torch.export.Dim("pictures", min=2, max=64)}]),
    "pictures": (["pixel_values"], lambda n, _: (pictures(n),), [{0: BATCH}]),
    "spectrum": (["input_features"], lambda n, _: (torch.rand(n, 80, 100),), [{0: BATCH}]),
    "wave": (["input_values"], lambda n, _: (torch.rand(n, 4000),), [{0: BATCH}]),
    "frames": (["input_values"], lambda n, _: (torch.rand(n, 64, 32),), [{0: BATCH}]),
    "series": (["past_values"], lambda n, _: (torch.rand(n, 32, 3),), [{0: BATCH}]),
}


def of_transformers(name):
    model, config, options, kind = TRANSFORMERS[name]
    made = getattr(transformers, config)(**options)
    made.use_cache = kind == "cached words"
    module = getattr(transformers, model)(made)
    arguments, draw, dims = KINDS[kind]
    return Results(module.encoder if name == "whisper_encoder" else module, arguments), [draw(2, 9), draw(3, 12)], dims


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
        module, inputs, dims = (of_timm if home == "timm" else of_transformers)(own)
        module = module.eval()
        try:
            with torch.no_grad():
                program = torch.export.export(module, inputs[0], dynamic_shapes=tuple(dims) if home == "timm" else (tuple(dims),), strict=False)
        except Exception as error:  # what torch itself does not export
            print(f"{name}: not exported: {str(error).splitlines()[0][:300]}", flush=True)
            continue
        runs = runs_of(module, inputs)
        _, bad = compared(name, program, runs, [name] * len(runs[0][1]), arguments.level)
        equal, wrong = equal + (bad == 0), wrong + (bad != 0)
        print(f"{name}: {'equal' if bad == 0 else 'wrong'}", flush=True)
    print(f"{equal + wrong} networks, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
