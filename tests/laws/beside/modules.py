"""Texts of modules, optimizers and schedules, and of the steps of a training.

Comes in: a generator of random numbers and names. Goes out: statements. What always holds: a module's text stands with the
shapes of its inputs, or with the texts of those that are no real numbers.
"""

from __future__ import annotations

import random

_RECURRENT = "num_layers=2, batch_first=True", "bidirectional=True", "bias=False", ""
# (what makes a module, its inputs: shapes, or texts)
MODULES: tuple[tuple[str, tuple], ...] = (
    ("Linear(3, 2)", ((4, 3),)), ("Linear(3, 2, bias=False)", ((2, 4, 3),)), ("Linear(3, 4)", ((3,),)), ("Bilinear(3, 4, 2)", ((5, 3), (5, 4))),
    ("Conv1d(2, 3, 2, padding=1)", ((2, 2, 5),)), ("Conv1d(2, 2, 3, padding='same', padding_mode='circular')", ((2, 2, 5),)),
    ("Conv2d(2, 4, 3, stride=2, padding=1, groups=2)", ((2, 2, 6, 5),)), ("Conv2d(3, 2, (1, 3), dilation=(1, 2), padding_mode='reflect', padding=2)", ((1, 3, 4, 6),)),
    ("Conv2d(2, 3, 2, bias=False)", ((2, 5, 4),)), ("Conv3d(1, 2, 2, padding=1)", ((1, 1, 3, 3, 4),)), ("Conv2d(2, 2, 3, padding=1, padding_mode='replicate')", ((2, 2, 4, 4),)),
    ("ConvTranspose1d(2, 3, 3, stride=2, output_padding=1)", ((2, 2, 4),)), ("ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2)", ((1, 4, 3, 3),)),
    ("ConvTranspose3d(1, 2, 2)", ((1, 1, 2, 3, 2),)), ("BatchNorm1d(3)", ((4, 3),)), ("BatchNorm1d(3, momentum=None)", ((2, 3, 4),)),
    ("BatchNorm2d(2, affine=False)", ((3, 2, 4, 3),)), ("BatchNorm2d(2, track_running_stats=False)", ((3, 2, 2, 3),)), ("BatchNorm3d(2, momentum=0.3)", ((2, 2, 2, 2, 3),)),
    ("GroupNorm(2, 4)", ((2, 4, 3),)), ("GroupNorm(1, 4, affine=False)", ((2, 4, 3, 3),)), ("LayerNorm(4)", ((2, 3, 4),)), ("LayerNorm((3, 4), bias=False)", ((2, 3, 4),)),
    ("RMSNorm(4)", ((2, 3, 4),)), ("InstanceNorm1d(3, affine=True)", ((2, 3, 5),)), ("InstanceNorm2d(2, track_running_stats=True)", ((2, 2, 4, 3),)),
    ("LocalResponseNorm(3)", ((2, 5, 4),)), ("CrossMapLRN2d(3)", ((2, 4, 3, 3),)),
    *((f"{kind}(3, 4, {options})", ((2, 5, 3),)) for kind in ("RNN", "LSTM", "GRU") for options in _RECURRENT),
    ("LSTM(3, 4, num_layers=2, dropout=0.3, proj_size=2)", ((5, 2, 3),)), ("RNN(3, 4, nonlinearity='relu')", ((5, 3),)), ("GRU(3, 2)", ((4, 2, 3), (1, 2, 2))),
    ("LSTMCell(3, 4)", ((2, 3),)), ("GRUCell(3, 4)", ((2, 3), (2, 4))), ("RNNCell(3, 4, bias=False)", ((2, 3),)),
    ("Embedding(7, 3, padding_idx=0)", ("torch.tensor([[0, 3], [6, 3]])",)), ("Embedding(7, 3, max_norm=1.0, norm_type=1.0)", ("torch.tensor([1, 1, 5])",)),
    ("Embedding(7, 3, scale_grad_by_freq=True)", ("torch.tensor([1, 1, 5])",)),
    *((f"EmbeddingBag(7, 3, mode='{mode}', padding_idx=2)", ("torch.tensor([1, 2, 4, 5])", "torch.tensor([0, 2])")) for mode in ("sum", "mean", "max")),
    ("MultiheadAttention(4, 2)", ((3, 2, 4), (5, 2, 4), (5, 2, 4))), ("MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True)", ((2, 3, 4), (2, 3, 4), (2, 3, 4))),
    ("MultiheadAttention(4, 1, kdim=3, vdim=2, bias=False, add_zero_attn=True)", ((3, 2, 4), (5, 2, 3), (5, 2, 2))),
    ("TransformerEncoderLayer(4, 2, 8, dropout=0.1)", ((3, 2, 4),)), ("TransformerEncoderLayer(4, 2, 8, 0.0, 'gelu', batch_first=True, norm_first=True)", ((2, 3, 4),)),
    ("TransformerDecoderLayer(4, 2, 8, dropout=0.2)", ((3, 2, 4), (5, 2, 4))), ("Transformer(4, 2, 1, 1, 6, dropout=0.0)", ((3, 1, 4), (2, 1, 4))),
    *((f"{kind}()", ((2, 3, 4),)) for kind in (
        "ReLU", "GELU", "SiLU", "Mish", "ELU", "SELU", "CELU", "Softplus", "Softsign", "Tanhshrink", "Hardswish", "Hardsigmoid", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "PReLU", "ReLU6", "RReLU", "Softshrink", "Hardshrink", "Tanh", "Sigmoid", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d", "Flatten", "Identity",
    )),
    ("PReLU(3)", ((2, 3, 4),)), ("GLU()", ((2, 4),)), ("Threshold(0.1, 2.0)", ((2, 3),)), ("Softmax(dim=1)", ((2, 3, 2),)), ("LogSoftmax(dim=-1)", ((2, 3),)),
    ("Softmin(0)", ((2, 3),)), ("Softmax2d()", ((2, 3, 2, 2),)), ("Unflatten(1, (2, 2))", ((2, 4),)), ("Dropout2d(0.4)", ((2, 3, 2, 2),)), ("Dropout3d(0.4)", ((2, 3, 2, 2, 1),)),
    ("MaxPool1d(2, ceil_mode=True)", ((2, 2, 5),)), ("MaxPool2d(2, stride=1, dilation=2)", ((2, 2, 5, 4),)), ("MaxPool3d(2, padding=1, return_indices=True)", ((1, 1, 3, 4, 3),)),
    ("AvgPool1d(3, padding=1, count_include_pad=False)", ((2, 2, 5),)), ("AvgPool2d(2, ceil_mode=True, divisor_override=3)", ((2, 2, 5, 5),)), ("AvgPool3d(2)", ((1, 1, 4, 4, 3),)),
    ("AdaptiveAvgPool1d(2)", ((2, 2, 5),)), ("AdaptiveAvgPool2d((2, None))", ((2, 2, 5, 3),)), ("AdaptiveMaxPool2d(2)", ((2, 2, 5, 3),)), ("AdaptiveMaxPool1d(3)", ((2, 5),)),
    ("LPPool1d(2, 2)", ((2, 2, 5),)), ("LPPool2d(3, 2)", ((2, 2, 4, 4),)), ("FractionalMaxPool2d(2, output_size=3)", ((1, 2, 6, 6),)), ("AdaptiveAvgPool3d(2)", ((1, 1, 3, 4, 5),)),
    ("Upsample(scale_factor=2, mode='bilinear', align_corners=True)", ((1, 2, 3, 2),)), ("Upsample(size=5)", ((1, 2, 3),)), ("Upsample(scale_factor=1.5, mode='bicubic')", ((1, 2, 4, 4),)),
    ("PixelShuffle(2)", ((1, 4, 2, 3),)), ("PixelUnshuffle(2)", ((1, 2, 4, 2),)), ("ChannelShuffle(2)", ((1, 4, 2, 2),)), ("Fold((4, 5), (2, 2))", ((1, 8, 12),)),
    ("Unfold((2, 3), padding=1, stride=2)", ((1, 2, 4, 5),)), ("ZeroPad2d((1, 0, -1, 2))", ((1, 2, 3, 3),)), ("ReflectionPad1d(2)", ((2, 2, 4),)), ("CircularPad2d(1)", ((1, 2, 3, 3),)),
    ("ReplicationPad3d(1)", ((1, 1, 2, 2, 3),)), ("ConstantPad1d((2, 1), 3.5)", ((2, 2, 3),)), ("CosineSimilarity()", ((2, 3), (2, 3))), ("PairwiseDistance(p=1)", ((2, 3), (2, 3))),
    ("CrossEntropyLoss(label_smoothing=0.1, ignore_index=1)", ((3, 4), "torch.tensor([0, 1, 3])")), ("CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))", ((2, 3, 2), "torch.tensor([[0, 1], [2, 2]])")),
    ("NLLLoss(reduction='none')", ((3, 4), "torch.tensor([0, 1, 3])")), ("MSELoss()", ((3, 4), (3, 4))), ("L1Loss(reduction='sum')", ((3, 4), (3, 4))), ("HuberLoss(delta=0.7)", ((3, 4), (3, 4))),
    ("SmoothL1Loss(beta=0.3)", ((3, 4), (3, 4))), ("BCEWithLogitsLoss()", ((3, 4), "torch.ones(3, 4)")), ("KLDivLoss(reduction='batchmean')", ((3, 4), (3, 4))), ("PoissonNLLLoss(full=True)", ((3, 4), "torch.full((3, 4), 3.0)")),
    ("GaussianNLLLoss()", ((3, 4), (3, 4), "torch.full((3, 4), 0.6)")), ("HingeEmbeddingLoss()", ((3,), "torch.tensor([1, -1, 1])")), ("TripletMarginLoss(swap=True)", ((3, 4), (3, 4), (3, 4))),
    ("CosineEmbeddingLoss(margin=0.2)", ((3, 4), (3, 4), "torch.tensor([1, -1, 1])")), ("MarginRankingLoss(margin=0.1)", ((3,), (3,), "torch.tensor([1, -1, 1])")), ("SoftMarginLoss()", ((3,), "torch.tensor([1., -1., 1.])")),
    ("MultiLabelSoftMarginLoss()", ((3, 4), "torch.ones(3, 4)")), ("MultiMarginLoss(p=2)", ((3, 4), "torch.tensor([0, 1, 3])")), ("MultiLabelMarginLoss()", ((2, 3), "torch.tensor([[0, 2, -1], [1, -1, 0]])")),
    ("CTCLoss()", ("torch.randn(5, 2, 4).log_softmax(2)", "torch.tensor([[1, 2], [3, 3]])", "torch.tensor([5, 5])", "torch.tensor([2, 1])")), ("AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4])", ((3, 4), "torch.tensor([0, 3, 5])")),
    ("Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(4, 2))", ((5, 3),)), ("Sequential(torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(inplace=True))", ((2, 2, 4, 4),)),
    ("utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))", ((4, 3),)), ("utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2))", ((4, 3),)), ("utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))", ((4, 3),)),
    ("utils.weight_norm(torch.nn.Conv1d(2, 2, 2))", ((1, 2, 4),)), ("ParameterList([torch.ones(2), torch.zeros(3)])", ()), ("Sequential(torch.nn.Embedding(5, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))", ("torch.tensor([[0, 4]])",)),
)  # fmt: skip
# Where some slopes vanish: what they are is rounding, which most optimizers take the sign of. The first three optimizers do not.
LEVEL = ("Attention", "Transformer", "BatchNorm2d(3), torch")
# The last two follow a line to where conditions hold: in single precision, roundings decide.
OPTIMIZERS: tuple[str, ...] = (
    "SGD({p}, lr=0.1)", "SGD({p}, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)", "SGD({p}, lr=0.1, momentum=0.5, dampening=0.1, maximize=True)",
    "Adam({p}, lr=0.01)", "Adam({p}, amsgrad=True, weight_decay=0.1)", "Adam({p}, betas=(0.5, 0.7), maximize=True)", "AdamW({p}, lr=0.02)", "AdamW({p}, amsgrad=True)",
    "Adagrad({p}, lr_decay=0.1, initial_accumulator_value=0.1)", "Adadelta({p}, rho=0.8, weight_decay=0.1)", "RMSprop({p}, centered=True, momentum=0.4)", "RMSprop({p})",
    "Adamax({p}, weight_decay=0.1)", "NAdam({p}, decoupled_weight_decay=True, weight_decay=0.1)", "NAdam({p})", "RAdam({p}, lr=0.1)", "ASGD({p}, lr=0.1, t0=1)", "Rprop({p}, lr=0.1)",
    "Adafactor({p}, lr=0.1)",
    "LBFGS({a}, lr=0.5, max_iter=3)", "LBFGS({a}, lr=0.1, max_iter=2, history_size=2, line_search_fn='strong_wolfe')",
)  # fmt: skip
SCHEDULES: tuple[str, ...] = (
    "StepLR({o}, 1, 0.5)", "ExponentialLR({o}, 0.9)", "CosineAnnealingLR({o}, 3)", "OneCycleLR({o}, 0.1, total_steps=9)", "LinearLR({o}, total_iters=3)", "ConstantLR({o})",
    "MultiStepLR({o}, [1, 2])", "PolynomialLR({o}, 4, 2.0)", "CosineAnnealingWarmRestarts({o}, 2)", "LambdaLR({o}, lambda i: 0.5 ** i)", "MultiplicativeLR({o}, lambda i: 0.7)",
    "CyclicLR({o}, 0.01, 0.1, step_size_up=2, cycle_momentum=False)",
)  # fmt: skip
STATES = (
    "",
    "",
    ".eval()",
    ".double()",
    ".double().eval()",
    ".bfloat16()",
    ".half()",
    ".requires_grad_(False)",
    ".train()",
    ".to(memory_format=torch.channels_last)",
)


def groups(rng: random.Random, parameters: str) -> str:
    """Parameters as an optimizer takes them: all of them, or in two groups."""
    if rng.random() < 0.5:
        return parameters
    return f"[{{'params': {parameters}[:1], 'lr': 0.05}}, {{'params': {parameters}[1:], 'weight_decay': 0.02}}]"


def training(rng: random.Random, called: str, parameters: str, optimizer: str, schedule: str) -> str:
    """Some steps of an optimizer on what a call gives, as one statement."""
    lines = [f"for i in range({rng.choice((1, 2, 3))}):"]
    body = [
        f"{optimizer}.zero_grad({rng.choice(('', 'set_to_none=False'))})",
        f"loss = weighted({called})",
        "loss.backward()",
    ]
    if rng.random() < 0.3:
        clip = rng.choice(
            (
                "clip_grad_norm_({p}, 0.5)",
                "clip_grad_value_({p}, 0.1)",
                "clip_grad_norm_({p}, 1.0, float('inf'))",
                "clip_grad_norm_({p}, 0.3, 1.0, foreach=True)",
            )
        )
        body.append("torch.nn.utils." + clip.format(p=parameters))
    body.append(f"{optimizer}.step()")
    if schedule:
        body.append(f"{schedule}.step()")
    return "\n".join(lines + [f"    {line}" for line in body])


def closed(called: str, optimizer: str) -> str:
    """A step of an optimizer that calls its closure."""
    return (
        f"def closure():\n    {optimizer}.zero_grad()\n    loss = weighted({called}) + sum((p * p).sum() for g in {optimizer}.param_groups for p in g['params'])\n"
        f"    loss.backward()\n    return loss\n{optimizer}.step(closure)"
    )
