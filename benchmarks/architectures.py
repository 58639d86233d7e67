"""Every architecture of `transformers` that a tiny configuration can make: the loss, the norm of its gradient, and the loss
after one step of AdamW.

    python benchmarks/architectures.py --write numbers.json          under PyTorch, or under the alias: what it computes
    python benchmarks/architectures.py --compare numbers.json        the same, compared; exit status 1 where numbers differ
    python benchmarks/architectures.py --only llama,mixtral ...

An architecture counts where PyTorch computes it from the configuration; the others are listed with their error. `--timeout`
is in seconds, for each.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings

SIZES = {
    "vocab_size": 99, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "hidden_dim": 64,
    "n_positions": 64, "max_position_embeddings": 64, "max_target_positions": 64, "max_source_positions": 64, "n_ctx": 64,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_encoder_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "num_kv_heads": 2, "head_dim": 8,
    "intermediate_size": 64, "ffn_dim": 64, "d_ff": 64, "d_kv": 8, "n_inner": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "embedding_size": 32, "type_vocab_size": 2,
    "rotary_dim": 8, "state_size": 8, "attention_window": 8, "sliding_window": 16, "image_size": 32, "patch_size": 8,
    "num_channels": 3, "num_labels": 3, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1,
    "relative_attention_num_buckets": 8, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "dropout": 0.0,
    "attention_dropout": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "hidden_dropout": 0.0,
    "activation_dropout": 0.0, "dropout_rate": 0.0, "classifier_dropout": 0.0, "attention_hidden_size": 32,
    "num_codebooks": 2, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "initializer_range": 0.02,
    "layer_types": None, "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "n_mels": 8,
}  # fmt: skip
KINDS = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "image": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
}


def tiny(config_class):
    """A configuration of the class with every size that it has made small."""
    known = config_class().to_dict()
    chosen = {key: value for key, value in SIZES.items() if key in known}
    if known.get("layer_types") is None:
        chosen.pop("layer_types", None)
    if "qk_rope_head_dim" in known:
        chosen.pop("head_dim", None)  # those two make it
    if isinstance(known.get("hidden_sizes"), list):
        chosen["hidden_sizes"] = SIZES["hidden_sizes"][: len(known["hidden_sizes"])]
    return config_class(**chosen)


def numbers(kind: str, model_class, config_class, torch, double: bool) -> list[float]:
    """[loss, norm of the gradient, loss after a step]."""
    torch.manual_seed(0)
    config = tiny(config_class)
    model = model_class(config)
    if sum(p.numel() for p in model.parameters()) > 20_000_000:
        raise RuntimeError("the tiny configuration is not tiny")
    if double:
        model = model.double()
    torch.manual_seed(1)
    if kind == "image":
        size = getattr(config, "image_size", None) or 32
        size = size if isinstance(size, int) else size[0]
        pixels = torch.randn(2, 3, size, size)
        inputs = {"pixel_values": pixels.double() if double else pixels, "labels": torch.tensor([0, 1])}
    else:
        ids = torch.randint(3, 90, (2, 16))
        inputs = {"input_ids": ids, "labels": ids.clone()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = model(**inputs).loss
    first.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    optimizer.step()
    with torch.no_grad():
        second = model(**inputs).loss
    return [float(first.detach()), float(norm), float(second)]


def architectures(only: list[str]):
    from transformers.models.auto import modeling_auto

    seen = set()
    for kind, name in KINDS.items():
        for config_class, model_class in getattr(modeling_auto, name).items():
            for one in model_class if isinstance(model_class, tuple) else (model_class,):
                label = f"{kind} {one.__name__}"
                if label not in seen and (not only or any(word in label.lower() for word in only)):
                    seen.add(label)
                    yield label, kind, one, config_class


def alike(a: list[float], b: list[float]) -> bool:
    """Whether the three numbers agree to three digits, nan with nan."""
    return all(x == y or x != x and y != y or abs(x - y) <= 1e-3 * max(1.0, abs(y)) for x, y in zip(a, b, strict=True))


def too_slow(signum, frame):
    raise TimeoutError("over the time limit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write")
    parser.add_argument("--compare")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=int, default=0)
    parser.add_argument(
        "--double", action="store_true", help="in float64, for models whose gradients are badly conditioned"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, too_slow)
    expected = json.load(open(args.compare)) if args.compare else {}
    results: dict[str, list[float] | str] = {}
    wrong = 0
    for label, kind, model_class, config_class in architectures([w for w in args.only.lower().split(",") if w]):
        want = expected.get(label)
        if args.compare and not isinstance(want, list):
            continue
        signal.alarm(args.timeout)
        try:
            results[label] = numbers(kind, model_class, config_class, torch, args.double)
        except Exception as error:
            results[label] = f"{type(error).__name__}: {str(error)[:200]}"
        signal.alarm(0)
        found = results[label]
        good = isinstance(found, list) and (want is None or alike(found, want))
        wrong += want is not None and not good
        print(
            "pass" if good else "FAIL", label, found, "" if good or want is None else f"| expected {want}", flush=True
        )
        if args.write:
            json.dump(results, open(args.write, "w"), indent=1)
    computed = sum(isinstance(v, list) for v in results.values())
    print(f"{computed} of {len(results)} computed" + (f", {wrong} not as expected" if args.compare else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
