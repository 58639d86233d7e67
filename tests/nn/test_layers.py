"""Every layer once: it runs, it gives the shape it should, and its gradients reach what it holds."""

import warnings

import pytest

import pullback as torch
from pullback import nn

CASES = [
    ("Linear(3, 4)", (2, 3), (2, 4)), ("Identity(1, a=2)", (2, 3), (2, 3)),
    ("Conv1d(2, 4, 3, padding='same')", (1, 2, 5), (1, 4, 5)),
    ("Conv2d(2, 4, 3, stride=2, padding=1, padding_mode='reflect')", (1, 2, 6, 6), (1, 4, 3, 3)),
    ("Conv3d(2, 2, 2, groups=2)", (1, 2, 3, 3, 3), (1, 2, 2, 2, 2)),
    ("ConvTranspose2d(2, 3, 2, stride=2)", (1, 2, 3, 3), (1, 3, 6, 6)), ("BatchNorm1d(3)", (4, 3), (4, 3)),
    ("BatchNorm2d(2)", (2, 2, 3, 3), (2, 2, 3, 3)), ("InstanceNorm1d(3, affine=True)", (2, 3, 4), (2, 3, 4)),
    ("LayerNorm((3, 4))", (2, 3, 4), (2, 3, 4)), ("GroupNorm(2, 4)", (2, 4, 3), (2, 4, 3)),
    ("RMSNorm(4)", (2, 4), (2, 4)), ("LocalResponseNorm(2)", (1, 4, 3, 3), (1, 4, 3, 3)),
    ("CrossMapLRN2d(4)", (1, 4, 3, 3), (1, 4, 3, 3)), ("PReLU(3)", (2, 3), (2, 3)), ("GELU('tanh')", (2, 3), (2, 3)),
    ("GLU()", (2, 4), (2, 2)), ("Softmax2d()", (1, 3, 2, 2), (1, 3, 2, 2)), ("LogSoftmax(1)", (2, 3), (2, 3)),
    ("Hardtanh()", (2, 3), (2, 3)), ("Softplus()", (2, 3), (2, 3)), ("RReLU()", (2, 3), (2, 3)),
    ("MaxPool2d(2)", (1, 2, 4, 4), (1, 2, 2, 2)), ("AvgPool1d(2)", (1, 2, 4), (1, 2, 2)),
    ("LPPool2d(2, 2)", (1, 2, 4, 4), (1, 2, 2, 2)), ("AdaptiveAvgPool2d((1, None))", (1, 2, 4, 3), (1, 2, 1, 3)),
    ("AdaptiveMaxPool1d(2)", (1, 2, 5), (1, 2, 2)),
    ("FractionalMaxPool2d(2, output_size=2)", (1, 2, 5, 5), (1, 2, 2, 2)),
    ("ReflectionPad2d(1)", (1, 1, 3, 3), (1, 1, 5, 5)), ("ZeroPad1d((1, 2))", (1, 1, 3), (1, 1, 6)),
    ("CircularPad1d(1)", (1, 1, 3), (1, 1, 5)), ("Flatten()", (2, 3, 4), (2, 12)),
    ("Unflatten(1, (2, 3))", (2, 6), (2, 2, 3)), ("Unfold(2)", (1, 2, 3, 3), (1, 8, 4)),
    ("Fold((3, 3), 2)", (1, 8, 4), (1, 2, 3, 3)), ("PixelShuffle(2)", (1, 4, 2, 2), (1, 1, 4, 4)),
    ("PixelUnshuffle(2)", (1, 1, 4, 4), (1, 4, 2, 2)), ("ChannelShuffle(2)", (1, 4, 2, 2), (1, 4, 2, 2)),
    ("Upsample(scale_factor=2, mode='bilinear')", (1, 1, 2, 2), (1, 1, 4, 4)),
    ("UpsamplingNearest2d(size=(3, 3))", (1, 1, 2, 2), (1, 1, 3, 3)), ("Dropout(0.5)", (2, 3), (2, 3)),
    ("AlphaDropout()", (2, 3), (2, 3)), ("Dropout2d()", (1, 2, 3, 3), (1, 2, 3, 3)),
    ("TransformerEncoderLayer(4, 2, 8)", (3, 2, 4), (3, 2, 4)),
    ("TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True)", (2, 3, 4), (2, 3, 4)),
    ("Sequential(Linear(3, 3), ReLU(), Linear(3, 1))", (2, 3), (2, 1)), ("DataParallel(Linear(3, 2))", (2, 3), (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("text, given, expected", CASES, ids=[c[0] for c in CASES])
def test_layers(text, given, expected):
    layer = eval(f"{text}", vars(nn).copy())
    x = torch.randn(given, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = layer(x)
    assert tuple(out.shape) == expected
    out.sum().backward()
    assert x.grad is not None and all(p.grad is not None for p in layer.parameters())


def test_pooling_is_undone_by_unpooling():
    x = torch.randn(1, 1, 4, 4)
    pooled, where = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(pooled, where)
    assert back.shape == x.shape and torch.equal(back[back != 0].sort()[0], pooled.flatten().sort()[0])


def test_a_transformer_is_causal_where_its_mask_is():
    model = nn.Transformer(4, 2, 1, 1, 8, dropout=0.0)
    src, tgt = torch.randn(3, 1, 4), torch.randn(5, 1, 4)
    mask = model.generate_square_subsequent_mask(5)
    whole = model(src, tgt, tgt_mask=mask)
    assert torch.allclose(model(src, tgt[:2], tgt_mask=mask[:2, :2]), whole[:2], atol=1e-6)


def test_batch_norm_counts_and_averages():
    m = nn.BatchNorm1d(2, momentum=None)
    batches = [torch.randn(8, 2) for _ in range(3)]
    for b in batches:
        m(b)
    assert m.num_batches_tracked == 3 and torch.allclose(m.running_mean, torch.stack(batches).mean((0, 1)), atol=1e-6)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        m(torch.randn(2))


def test_adaptive_softmax_agrees_with_all_its_probabilities():
    m = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])
    x, y = torch.randn(6, 8), torch.tensor([0, 3, 5, 9, 12, 19])
    whole = m.log_prob(x)
    assert torch.allclose(whole.exp().sum(1), torch.ones(6)) and torch.equal(m.predict(x), whole.argmax(1))
    assert torch.allclose(m(x, y).output, whole.gather(1, y.unsqueeze(1)).squeeze(1), atol=1e-6)
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 19\]"):
        m(x, y + 1)


def test_losses_hold_their_settings():
    x, y = torch.randn(3, 4), torch.tensor([0, 2, 1])
    loss = nn.CrossEntropyLoss(weight=torch.ones(4), label_smoothing=0.1, reduction="sum")
    assert list(loss.state_dict()) == ["weight"]
    assert torch.allclose(loss(x, y), nn.functional.cross_entropy(x, y, label_smoothing=0.1, reduction="sum"))
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.raises(ValueError, match="expected margin to be greater than 0"):
        nn.TripletMarginLoss(margin=0.0)


def test_embeddings_keep_their_padding_row():
    m = nn.Embedding(5, 3, padding_idx=-1)
    assert m.padding_idx == 4 and m.weight[4].abs().sum() == 0
    given = torch.randn(2, 3)
    assert nn.Embedding.from_pretrained(given).weight.requires_grad is False
